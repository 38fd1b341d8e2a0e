"""What a training run keeps for its report: true labels, where known, and features of some samples."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from laplaceconfidence.cli.training_data import PreparedData
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.records.training_run import LearnedFeatures, write_features, write_truth

if TYPE_CHECKING:
    from laplaceconfidence.training.classifier import RobustClassifier

MOST_SAMPLES = 5_000


def learned_features(classifier: RobustClassifier, data: PreparedData, seed: int) -> LearnedFeatures | None:
    """Inputs and learned features of at most 5,000 samples; none where inputs are files.

    All processes of a run must call it: each embeds its part.
    """
    train = data.train
    inputs = train.images if train.images is not None else train.features
    if inputs is None:
        return None
    rows = np.sort(np.random.default_rng(seed).permutation(len(train))[:MOST_SAMPLES])
    after = classifier.embed(train.subset(rows))
    before = inputs[rows].reshape(len(rows), -1).astype(np.float32)
    return LearnedFeatures(rows, before, after.astype(np.float16))


def keep_evidence(folder: Path, data: PreparedData, features: LearnedFeatures | None) -> None:
    """Write all of it into the folder of the run."""
    test = next(iter(data.tests.values()), None)
    truth = None if data.train.true_labels is None else _names(data.train, data.train.true_labels)
    test_labels = None if test is None else _names(test, test.labels)
    write_truth(folder, data.train.sample_ids, truth, test_labels=test_labels)
    if features is not None:
        write_features(folder, features)


def _names(dataset: NoisyDataset, codes: Any) -> Any:
    return np.array([*dataset.class_names, None], dtype=object)[codes]
