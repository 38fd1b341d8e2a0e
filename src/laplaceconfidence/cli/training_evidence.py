"""What a training run keeps for its report: true labels, where they are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from laplaceconfidence.cli.training_data import PreparedData
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.records.training_run import write_truth


def keep_truth(folder: Path, data: PreparedData) -> None:
    """Write it into the folder of the run."""
    test = next(iter(data.tests.values()), None)
    truth = None if data.train.true_labels is None else _names(data.train, data.train.true_labels)
    test_labels = None if test is None else _names(test, test.labels)
    write_truth(folder, data.train.sample_ids, truth, test_labels=test_labels)


def _names(dataset: NoisyDataset, codes: Any) -> Any:
    return np.array([*dataset.class_names, None], dtype=object)[codes]
