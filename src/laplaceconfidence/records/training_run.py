"""A training run read back from its folder, without torch.

``laplaceconfidence.run_files`` lists what is in the folder. ``truth.parquet`` has the columns ``id``,
``true_label`` and ``split`` ("train" or "test").
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.exceptions import RunFolderError
from laplaceconfidence.files import replacing
from laplaceconfidence.records.run_folder import read_table
from laplaceconfidence.run_files import (
    AFTER_TRAINING,
    AFTER_WARM_UP,
    CONFIDENCES,
    FEATURES,
    METRICS,
    PREDICTIONS,
    REFINED_LABELS,
    SETTINGS,
    SUMMARY,
    TEST_PREDICTIONS,
    TIMINGS,
    TRUTH,
)

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, eq=False)
class LearnedFeatures:
    """Features of some training samples after training, and after the warm-up if the run had one.

    Parameters
    ----------
    rows : ndarray of int of shape (m,)
        Rows of the samples.
    after : ndarray of shape (m, d)
        Features after training.
    before : ndarray of shape (m, d), optional
        Features after the warm-up.
    warm_up_rounds : int, optional
        Rounds of the warm-up.
    """

    rows: IntArray
    after: FloatArray
    before: FloatArray | None = None
    warm_up_rounds: int | None = None


@dataclass(frozen=True, eq=False)
class TrainingRun:
    """A training run, finished or not; tables are loaded when they are first used.

    Parameters
    ----------
    folder : pathlib.Path
        Where the run is.
    settings : dict
        All settings of the run.
    metrics : list of dict
        One entry per round.
    summary : dict or None
        None while the run is not finished.
    """

    folder: Path
    settings: dict[str, Any]
    metrics: list[dict[str, Any]]
    summary: dict[str, Any] | None

    @cached_property
    def seconds(self) -> float | None:
        """float or None: seconds of all rounds; None where they were not recorded."""
        lines = _read_lines(self.folder / TIMINGS)
        return float(sum(line["seconds"] for line in lines)) if lines else None

    @cached_property
    def confidences(self) -> dict[int, pd.DataFrame]:
        """dict of int to pandas.DataFrame: by round, ``id`` and the confidences used by each network."""
        paths = sorted((self.folder / CONFIDENCES).glob("round-*.parquet"))
        return {int(path.stem.removeprefix("round-")): read_table(path) for path in paths}

    @cached_property
    def refined_labels(self) -> pd.DataFrame | None:
        """pandas.DataFrame or None: given and refined label of every sample; None if not written yet."""
        return self._table(REFINED_LABELS)

    @cached_property
    def predictions(self) -> pd.DataFrame | None:
        """pandas.DataFrame or None: predictions for the training samples; None if not written yet."""
        return self._table(PREDICTIONS)

    @cached_property
    def test_predictions(self) -> pd.DataFrame | None:
        """pandas.DataFrame or None: predictions for the test set; None if there are none."""
        return self._table(TEST_PREDICTIONS)

    @cached_property
    def truth(self) -> pd.DataFrame | None:
        """pandas.DataFrame or None: true labels, where they are known."""
        return self._table(TRUTH)

    @cached_property
    def features(self) -> LearnedFeatures | None:
        """LearnedFeatures or None: features of at most 5,000 training samples; None if not written yet."""
        final = _read_arrays(self.folder / FEATURES / AFTER_TRAINING, "rows", "features")
        if final is None:
            return None
        plain = _read_arrays(self.folder / FEATURES / AFTER_WARM_UP, "rows", "features", "rounds")
        if plain is None:
            return LearnedFeatures(final["rows"], final["features"])
        return LearnedFeatures(final["rows"], final["features"], plain["features"], int(plain["rounds"]))

    def _table(self, name: str) -> pd.DataFrame | None:
        path = self.folder / name
        return read_table(path) if path.is_file() else None


def write_truth(folder: Path, ids: Any, true_labels: Any, *, test_labels: Any = None) -> None:
    """Store true labels of the training samples and of the test set for the report.

    Parameters
    ----------
    folder : pathlib.Path
        The folder of the run.
    ids : array-like of str of shape (n,)
        Ids of the training samples.
    true_labels : array-like of shape (n,) or None
        Class names, None where they are not known.
    test_labels : array-like of shape (m,), optional
        Class names of the test set.
    """
    import pandas as pd

    parts = []
    if true_labels is not None:
        parts.append(pd.DataFrame({"id": ids, "true_label": true_labels, "split": "train"}))
    if test_labels is not None:
        rows = [str(row) for row in range(len(test_labels))]
        parts.append(pd.DataFrame({"id": rows, "true_label": test_labels, "split": "test"}))
    if parts:
        with replacing(folder / TRUTH) as temporary:
            pd.concat(parts).dropna(subset=["true_label"]).to_parquet(temporary, index=False)


def is_training_run(folder: Path) -> bool:
    """Return whether a folder looks like that of a training run.

    Parameters
    ----------
    folder : pathlib.Path
        The folder.

    Returns
    -------
    bool
    """
    return (folder / SETTINGS).is_file()


def read_training(folder: Path) -> TrainingRun:
    """Read the training run in a folder, as far as it is finished.

    Parameters
    ----------
    folder : pathlib.Path
        The folder of the run.

    Returns
    -------
    TrainingRun

    Raises
    ------
    RunFolderError
        If it is damaged, or has not finished a round yet.
    """
    path = folder / SETTINGS
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunFolderError(f"{path} cannot be read ({error}): the run is damaged.") from error
    metrics = _read_lines(folder / METRICS)
    if not metrics:
        raise RunFolderError(f"The run in {folder} has not finished a round yet: there is nothing to report.")
    summary = None
    if (folder / SUMMARY).is_file():
        summary = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
    return TrainingRun(folder, settings, metrics, summary)


def _read_lines(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        return []
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise RunFolderError(f"{path} cannot be read ({error}): the run is damaged.") from error


def _read_arrays(path: Path, *names: str) -> dict[str, Any] | None:
    if not path.is_file():
        return None
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in names}
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        raise RunFolderError(f"{path} cannot be read ({error}): the run is damaged.") from error
