"""What a cell of an estimator measures, against the same done by hand."""

import numpy as np
import pytest

from laplaceconfidence.confidence.knn_vote import KNNVote
from laplaceconfidence.confidence.registry import ESTIMATORS
from laplaceconfidence.confidence.self_confidence import SelfConfidence
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.noise import add_noise
from laplaceconfidence.evaluation.confidence_cells import ConfidenceCells
from laplaceconfidence.evaluation.grid import Cell
from laplaceconfidence.evaluation.metrics import score_confidence
from laplaceconfidence.evaluation.out_of_fold import out_of_fold_probabilities
from laplaceconfidence.exceptions import InvalidInputError


def blobs(n: int = 120) -> NoisyDataset:
    rng = np.random.default_rng(0)
    labels = np.arange(n) % 3
    features = np.eye(3)[labels] + rng.normal(scale=0.2, size=(n, 3))
    return NoisyDataset.from_arrays(np.array(["<script>", "b", "c"])[labels], features)


def cell(name: str, noise: str = "symmetric:0.4", seed: int = 1) -> Cell:
    return Cell("confidence", name, noise, seed, "blobs")


def test_scores_are_those_of_the_confidence_on_the_noisy_labels() -> None:
    data = blobs()
    cells = ConfidenceCells(data)
    noisy = add_noise(data, "symmetric", 0.4, random_state=1)
    assert noisy.features is not None
    right = noisy.labels == noisy.true_labels
    by_features = score_confidence(KNNVote().fit(noisy.features, noisy.labels).confidence_, right)
    found = cells.measure(cell("knn-vote"))
    assert found["auroc"] == pytest.approx(by_features.auroc)
    assert found["calibration_error"] == pytest.approx(by_features.calibration_error)
    probabilities = out_of_fold_probabilities(noisy.features, noisy.labels, 3, random_state=1)
    by_probabilities = score_confidence(SelfConfidence().fit(probabilities, noisy.labels).confidence_, right)
    found = cells.measure(cell("self-confidence"))
    assert found["average_precision"] == pytest.approx(by_probabilities.average_precision)
    assert found["seconds"] is not None
    assert found["seconds"] > 0


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_can_be_measured(name: str) -> None:
    found = ConfidenceCells(blobs(), n_jobs=1).measure(cell(name))
    assert found["auroc"] is not None
    assert 0.5 < found["auroc"] <= 1


def test_labels_as_given_are_scored_where_the_truth_is_known() -> None:
    data = blobs()
    with pytest.raises(InvalidInputError, match="true labels"):
        ConfidenceCells(data).measure(cell("knn-vote", "none"))
    noisy = add_noise(data, "pair", 0.3, random_state=5)
    found = ConfidenceCells(noisy).measure(cell("knn-vote", "none"))
    assert found["noise_rate"] == pytest.approx(np.mean(noisy.labels != noisy.true_labels))
    clean = ConfidenceCells(data.with_labels(data.labels)).measure(cell("knn-vote", "symmetric:0"))
    assert clean["auroc"] is None


def test_features_are_made_once_for_a_noise_and_a_seed() -> None:
    data = blobs()
    features = data.features
    bare = NoisyDataset(data.labels, data.class_names, given=data.given)
    made: list[int] = []

    def describe(noisy: NoisyDataset, seed: int) -> NoisyDataset:
        made.append(seed)
        return noisy.with_features(features)

    cells = ConfidenceCells(bare, describe=describe)
    for seed in (0, 1):
        for name in ("knn-vote", "laplace"):
            cells.measure(cell(name, seed=seed))
    assert made == [0, 1]
