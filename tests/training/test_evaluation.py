"""``evaluate``: numbers that agree with scikit-learn's, and what is left out or refused."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from laplaceconfidence import NoisyDataset, RobustClassifier
from laplaceconfidence.evaluation.metrics import expected_calibration_error
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.training.evaluation import evaluate_predictions, top_5_accuracy
from small_runs import noisy_digits, quick

NAMES = tuple("abcdefg")


@settings(max_examples=40, deadline=None)
@given(n=st.integers(1, 60), n_classes=st.integers(2, 7), seed=st.integers(0, 1000))
def test_numbers_agree_with_scikit_learn(n: int, n_classes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet(np.ones(n_classes), size=n)
    labels = rng.integers(0, n_classes, n)
    found = evaluate_predictions(probabilities, labels, NAMES[:n_classes])
    predicted, classes = probabilities.argmax(axis=1), np.arange(n_classes)
    assert found.accuracy == pytest.approx(metrics.accuracy_score(labels, predicted))
    np.testing.assert_array_equal(
        found.confusion, metrics.confusion_matrix(labels, predicted, labels=classes)
    )
    recall = metrics.recall_score(labels, predicted, labels=classes, average=None, zero_division=np.nan)
    np.testing.assert_allclose(found.per_class["recall"], recall)
    precision = metrics.precision_score(labels, predicted, labels=classes, average=None, zero_division=np.nan)
    np.testing.assert_allclose(found.per_class["precision"], precision)
    f1 = metrics.f1_score(labels, predicted, labels=classes, average=None, zero_division=np.nan)
    np.testing.assert_allclose(found.per_class["f1"], f1)
    if n_classes > 5:
        top = metrics.top_k_accuracy_score(labels, probabilities, k=5, labels=classes)
        assert found.top_5_accuracy == pytest.approx(top)
    else:
        assert found.top_5_accuracy is None
    error = expected_calibration_error(probabilities.max(axis=1), predicted == labels)
    assert found.expected_calibration_error == pytest.approx(error)
    assert found.calibration["count"].sum() == n
    assert found.confused["count"].sum() == n - np.trace(found.confusion)


def test_it_is_readable_and_can_be_stored() -> None:
    probabilities = np.array([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.6, 0.4, 0.0]])
    found = evaluate_predictions(probabilities, np.array([0, 1, 1]), ("cat", "<dog>", "cow"))
    assert repr(found) == "Evaluation(3 samples: accuracy 66.7%, calibration error 0.300)"
    page = found._repr_html_()
    assert "&lt;dog&gt;" in page
    assert "predicted as" in page
    stored = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert stored["per_class"]["cow"]["recall"] is None
    assert stored["confusion"] == [[1, 0, 0], [1, 1, 0], [0, 0, 0]]


def test_a_classifier_is_evaluated_on_arrays_and_data_sets() -> None:
    images, given, true = noisy_digits(80)
    run = quick("cross_entropy", rounds=2).fit(images, given)
    found = run.evaluate(images, true)
    assert found.accuracy == pytest.approx(run.score(images, true))
    assert found.n_samples == 80
    pairs = list(zip(images, true.tolist(), strict=True))
    assert run.evaluate(_Pairs(pairs)).accuracy == found.accuracy
    few = true < 4  # a data set that has only some of the classes
    data = NoisyDataset.from_arrays(true[few], images=images[few][..., None])
    assert run.evaluate(data).accuracy == pytest.approx(run.score(images[few], true[few]))
    gaps = np.where(few, true, -1)
    run.set_params(missing_label=-1)
    assert run.evaluate(images, gaps).n_samples == few.sum()


class _Pairs:
    def __init__(self, pairs: list[tuple[object, int]]) -> None:
        self.pairs = pairs

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, row: int) -> tuple[object, int]:
        return self.pairs[row]


def test_labels_that_cannot_be_compared_are_refused() -> None:
    images, given, _ = noisy_digits(60)
    run = quick("cross_entropy", rounds=1).fit(images, given)
    with pytest.raises(InvalidInputError, match="among the 10 classes"):
        run.evaluate(images, given + 5)
    with pytest.raises(InvalidInputError, match="'X' has 60, 'y' has 59"):
        run.evaluate(images, given[1:])
    with pytest.raises(InvalidInputError, match="'y' parameter must be the given labels"):
        run.evaluate(images)
    with pytest.raises(InvalidInputError, match="missing labels only"):
        run.evaluate(images, [None] * 60)
    cats = NoisyDataset.from_arrays(["cat"] * 60, images=images[..., None])
    with pytest.raises(InvalidInputError, match="'cat'"):
        run.evaluate(cats)


def test_top_5_counts_labels_among_the_five_most_probable_classes() -> None:
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.ones(8), size=50)
    labels = rng.integers(-1, 8, size=50)
    ranked = [sorted(range(8), key=lambda code, row=row: -row[code])[:5] for row in probabilities]
    hits = [label in best for label, best in zip(labels, ranked, strict=True) if label >= 0]
    assert top_5_accuracy(probabilities, labels) == pytest.approx(np.mean(hits))
    assert top_5_accuracy(probabilities[:, :5], labels) is None
    assert top_5_accuracy(probabilities, np.full(50, -1)) is None


def test_the_summary_has_top_5_of_every_test_set() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(60, 4)).astype(np.float32)
    labels = np.arange(60) % 6
    classifier = RobustClassifier("mlp", "cross_entropy", rounds=1, batch_size=16, device="cpu", n_jobs=1)
    test = (features[:30], labels[:30])
    classifier.fit(features, labels, test=test, further_tests={"again": test})
    top_5 = classifier.summary_["test_top_5_accuracy_of_chosen_round"]
    assert top_5 == top_5_accuracy(classifier.predict_proba(test[0]), test[1])
    assert classifier.summary_["further_tests"]["again"]["test_top_5_accuracy_of_chosen_round"] == top_5
