"""Confidences from the feature vectors themselves, not by what a network has learned from the labels."""

import signal
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pytest
import torch

from laplaceconfidence.confidence.laplace import LaplaceConfidence
from laplaceconfidence.confidence.noise_aware import NoiseAwareConfidence
from laplaceconfidence.encoders.patches import PatchEncoder
from laplaceconfidence.encoders.samples import RawSamples
from laplaceconfidence.exceptions import Interrupted, InvalidInputError, LaplaceConfidenceWarning
from laplaceconfidence.training.augment.weak import WeakAugment
from laplaceconfidence.training.methods.confidences import EstimatedLabels
from laplaceconfidence.training.samples import reduced
from small_runs import noisy_digits, plain_mlp, quick, weights

pytestmark = pytest.mark.filterwarnings(
    "ignore::laplaceconfidence.training.guards.TrainingWarning",
    "ignore::laplaceconfidence.exceptions.LaplaceConfidenceWarning",
)

FROM_INPUTS: dict[str, Any] = {"confidence_from": "inputs"}


def of(estimator: Any) -> dict[str, Any]:
    """Settings of the method for another estimator than the paper's, with the estimator's own parameters."""
    return {"confidence": estimator, "n_neighbors": None}


def noisy_vectors(n: int = 240) -> tuple[Any, Any, Any]:
    images, given, true = noisy_digits(n)
    return images.reshape(n, -1).astype(np.float32), given, true


def run_on_vectors(own: dict[str, Any] | None = None, **settings: Any) -> Any:
    usual = {"network": plain_mlp, "weak": "none", "strong": "none"}
    return quick(own=FROM_INPUTS | (own or {}), **(usual | settings))


class Counting:
    """The paper's estimator, and how often it was fitted on what."""

    evidence: ClassVar[str] = "features"
    shown: ClassVar[list[np.ndarray]] = []

    def fit(self, X: Any, y: Any) -> Self:
        self.shown.append(X)
        model = LaplaceConfidence(10, missing_label=-1).fit(X, y)
        self.classes_, self.confidence_ = model.classes_, model.confidence_
        self.label_distributions_ = model.label_distributions_
        return self


def test_the_labels_are_judged_once_by_the_inputs_and_once_more_in_the_end() -> None:
    X, y, _ = noisy_vectors()
    Counting.shown.clear()
    run = run_on_vectors(of(Counting()), rounds=4, validation_fraction=0.2).fit(X, y)
    training, everything = Counting.shown
    assert len(training) == 192
    assert {tuple(row) for row in training} < {tuple(row) for row in X}
    np.testing.assert_array_equal(everything, X)
    expected = LaplaceConfidence(10).fit(X, y).confidence_
    np.testing.assert_allclose(run.confidence_, expected, atol=1e-6)
    means = [phase["mean_confidence"] for record in run.history_[1:] for phase in record["phases"]]
    assert means == [means[0]] * 6


def test_the_noise_aware_estimator_helps_to_repair_labels_of_vectors() -> None:
    X, y, true = noisy_vectors(600)
    run = run_on_vectors(of("noise-aware"), rounds=8, random_state=1).fit(X, y)
    alone = NoiseAwareConfidence(missing_label=-1, n_jobs=1).fit(X, y)
    assert abs(run.confidence_.mean() - alone.confidence_.mean()) < 0.05
    assert (run.refined_labels_ == true).mean() > (y == true).mean() + 0.2


def test_a_stopped_run_keeps_what_was_estimated(tmp_path: Path) -> None:
    X, y, _ = noisy_vectors()
    whole = run_on_vectors(out=tmp_path / "whole").fit(X, y)
    stopped = run_on_vectors(out=tmp_path / "stopped")

    def stop_after_two_rounds(record: Any) -> None:
        if record["round"] == 2:
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(Interrupted):
        stopped.fit(X, y, listeners=[stop_after_two_rounds])
    resumed = run_on_vectors(out=tmp_path / "stopped").fit(X, y)
    for ours, theirs in zip(weights(whole), weights(resumed), strict=True):
        assert ours.equal(theirs)
    np.testing.assert_array_equal(whole.confidence_, resumed.confidence_)


def test_images_are_judged_by_their_patches() -> None:
    X, y, _ = noisy_digits()
    run = quick(own=FROM_INPUTS | of("noise-aware"), n_jobs=1).fit(X, y)
    patches = PatchEncoder(n_jobs=1).fit_transform(RawSamples("image", X[..., None]))  # of another seed
    alone = NoiseAwareConfidence(missing_label=-1, n_jobs=1).fit(patches, y)
    assert np.corrcoef(run.confidence_, alone.confidence_)[0, 1] > 0.9


def test_networks_learn_from_posteriors_what_given_labels_hide() -> None:
    X, y, true = noisy_vectors(600)
    own = of("noise-aware") | {"confidence_from": "both", "targets": "posterior"}
    learned = run_on_vectors(own, rounds=8).fit(X, y)
    plain = quick("cross_entropy", network=plain_mlp, weak="none", strong="none", rounds=8).fit(X, y)
    assert (learned.predict(X) == true).mean() > (plain.predict(X) == true).mean()
    assert (learned.refined_labels_ == true).mean() > (y == true).mean() + 0.2


def test_a_stopped_run_on_posteriors_of_images_ends_the_same(tmp_path: Path) -> None:
    X, y, _ = noisy_digits()
    own = of("noise-aware") | {"confidence_from": "both", "targets": "posterior"}
    whole = quick(own=own, out=tmp_path / "whole", n_jobs=1).fit(X, y)

    def stop_after_two_rounds(record: Any) -> None:
        if record["round"] == 2:
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(Interrupted):
        quick(own=own, out=tmp_path / "stopped", n_jobs=1).fit(X, y, listeners=[stop_after_two_rounds])
    resumed = quick(own=own, out=tmp_path / "stopped", n_jobs=1).fit(X, y)
    for ours, theirs in zip(weights(whole), weights(resumed), strict=True):
        assert ours.equal(theirs)


def test_several_views_need_an_estimator_that_takes_them() -> None:
    with pytest.raises(InvalidInputError, match=r"'confidence_from'.*'noise-aware'"):
        run_on_vectors({"confidence_from": "both"})


def test_posteriors_need_the_inputs() -> None:
    with pytest.raises(InvalidInputError, match=r"'targets'.*'refurbished'.*'peer'"):
        run_on_vectors({"confidence_from": "peer", "targets": "posterior"})


@pytest.mark.parametrize("ignored", ["entropy_penalty", "weak_statistics"])
def test_posteriors_refuse_settings_that_they_would_ignore(ignored: str) -> None:
    own = of("noise-aware") | {"confidence_from": "both", "targets": "posterior", ignored: True}
    with pytest.raises(InvalidInputError, match=f"'{ignored}'.*False where 'targets' is 'posterior'"):
        run_on_vectors(own)


@pytest.mark.parametrize("flip", [True, False])
def test_images_and_their_mirror_images_are_alike_only_if_weak_views_mirror_them(flip: bool) -> None:
    rng = np.random.default_rng(0)
    halves = rng.integers(0, 256, (60, 8, 8), dtype=np.uint8)
    X = np.concatenate([halves, halves[..., ::-1]])
    Counting.shown.clear()
    own = FROM_INPUTS | of(Counting())
    quick(own=own, weak=WeakAugment(padding=1, flip=flip), rounds=2, n_jobs=1).fit(X, np.arange(120) % 2)
    shown = Counting.shown[-1]
    assert np.allclose(shown[:60], shown[60:], atol=1e-2) == flip


def test_large_images_are_reduced_in_proportion_and_others_are_not() -> None:
    images = torch.full((2, 3, 192, 100), 200, dtype=torch.uint8)
    smaller = reduced(images, 96)
    assert smaller.shape == (2, 3, 96, 50)
    assert smaller.dtype == torch.uint8
    assert (smaller == 200).all()
    assert reduced(images, 192) is images
    vectors = torch.ones(4, 500)
    assert reduced(vectors, 96) is vectors


def test_an_estimator_that_takes_losses_needs_a_network() -> None:
    with pytest.raises(
        InvalidInputError, match=r"'confidence_from'.*'peer' where the estimator takes losses"
    ):
        run_on_vectors(of("gaussian-mixture"))
    with pytest.raises(InvalidInputError, match="'confidence_from'"):
        run_on_vectors({"confidence_from": "somewhere"})


def test_labels_are_learned_as_given_where_noise_is_not_identified() -> None:
    labels = np.array([0, 1, -1])
    distributions = np.array([[0.6, 0.4], [0.3, 0.7], [0.2, 0.8]], dtype=np.float32)
    found = EstimatedLabels(np.array([0.6, 0.7, 0.0], dtype=np.float32), distributions, is_identified=False)
    with pytest.warns(LaplaceConfidenceWarning, match="trained on the given labels"):
        learned = found.to_train_on(labels)
    np.testing.assert_array_equal(learned.confidence, [1, 1, 0])
    np.testing.assert_allclose(learned.distributions, [[1, 0], [0, 1], [0.2, 0.8]])
    identified = replace(found, is_identified=True)
    assert identified.to_train_on(labels) is identified
