"""What a notebook shows of a classifier, and Hugging Face datasets to train on."""

from typing import Any

import numpy as np
import pytest
import sklearn

from html_pages import Page
from laplaceconfidence.data.readers import read_dataset
from laplaceconfidence.training import RobustClassifier


def small_classifier(**settings: Any) -> RobustClassifier:
    return RobustClassifier("small_cnn", "cross_entropy", rounds=2, batch_size=64, device="cpu", **settings)


def fitted(validation_fraction: float = 0.1, **more: Any) -> RobustClassifier:
    digits = read_dataset("digits").subset(np.arange(200))
    return small_classifier(validation_fraction=validation_fraction).fit(digits, **more)


def test_a_fitted_classifier_shows_how_its_training_went() -> None:
    digits = read_dataset("digits")
    classifier = fitted(test=digits.subset(np.arange(200, 300)))
    html = classifier._repr_mimebundle_()["text/html"]
    assert classifier._repr_html_().startswith(html[: html.index("<style", 100)])
    summary = classifier.summary_
    assert f"Trained for 2 rounds; round {summary['chosen_round']} was chosen" in html
    assert f"held-out given labels {summary['validation_accuracy']:.1%}" in html
    assert f"on the test set {summary['test_accuracy_of_chosen_round']:.1%}" in html
    n_changed = int((classifier.refined_labels_ != digits.labels[:200]).sum())
    assert f"would change {n_changed} of 200 given labels" in html
    assert html.count("<polyline") == 2
    assert "sk-estimator" in html  # scikit-learn's diagram stays


def test_a_chart_has_only_lines_that_were_measured() -> None:
    from laplaceconfidence.training.notebook import training_html

    page = Page(training_html(fitted(validation_fraction=0.0)))
    assert [tag for tag, _ in page.tags if tag in ("svg", "polyline")] == []
    assert "round 2 was chosen" in page.text
    page = Page(training_html(fitted()))
    assert [tag for tag, _ in page.tags if tag in ("svg", "polyline")] == ["svg", "polyline"]


def test_an_unfitted_classifier_is_shown_as_scikit_learn_shows_it() -> None:
    classifier = small_classifier()
    assert "Trained for" not in classifier._repr_html_()
    assert "sk-estimator" in classifier._repr_mimebundle_()["text/html"]


def test_scikit_learn_decides_whether_there_is_a_diagram() -> None:
    classifier = small_classifier()
    with sklearn.config_context(display="text"):
        assert not hasattr(classifier, "_repr_html_")
        assert set(classifier._repr_mimebundle_()) == {"text/plain"}


def test_hugging_face_images_are_trained_on_and_predicted() -> None:
    datasets = pytest.importorskip("datasets")
    digits = read_dataset("digits").subset(np.arange(120))
    assert digits.images is not None
    columns = datasets.Features(
        {"image": datasets.Image(), "label": datasets.ClassLabel(names=list("abcdefghij"))}
    )
    from PIL import Image

    images = [Image.fromarray(image[:, :, 0]).convert("RGB") for image in digits.images]
    source = datasets.Dataset.from_dict({"image": images, "label": digits.labels.tolist()}, features=columns)
    classifier = small_classifier().fit(source, test=source)
    same = small_classifier().fit(read_dataset(source))
    assert np.array_equal(classifier.predict_proba(source), same.predict_proba(read_dataset(source)))
    assert classifier.summary_["rounds"] == 2
