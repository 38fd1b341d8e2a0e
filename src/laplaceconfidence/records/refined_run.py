"""A finished training run in the form of an audit: its refined labels are the suggestions.

Reviews and exports read it like an audit. Nothing is written into the folder but what they write.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.auditing.table import best_alternatives
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.identity import are_row_numbers
from laplaceconfidence.data.labels import MISSING, encodable
from laplaceconfidence.data.readers import read_dataset
from laplaceconfidence.exceptions import LaplaceConfidenceError, RunFolderError
from laplaceconfidence.records.audit_run import KIND, AuditRecord, AuditRun, read_audit
from laplaceconfidence.records.evidence_table import top_classes
from laplaceconfidence.records.run_folder import record_name
from laplaceconfidence.records.training_run import TrainingRun, is_training_run, read_training
from laplaceconfidence.run_files import (
    METRICS,
    PREDICTIONS,
    REFINED_LABELS,
    SETTINGS,
    SKIPPED_IMAGES,
    SOURCE,
    SUMMARY,
)

if TYPE_CHECKING:
    import pandas as pd

_PROBABILITY = "p_"  # before the name of the class, in the columns of the predictions


def read_suggestions(folder: str | Path) -> AuditRun:
    """Read an audit, or a finished training run in the form of one.

    Parameters
    ----------
    folder : str or pathlib.Path
        The folder of the run.

    Returns
    -------
    AuditRun

    Raises
    ------
    RunFolderError
        If it holds neither, or a training run that is not finished or was given wrong labels on purpose.
    """
    path = Path(folder)
    if (path / record_name(KIND)).is_file() or not is_training_run(path):
        return read_audit(path)
    if not (path / SUMMARY).is_file():
        raise RunFolderError(
            f"The training run in {path} is not finished and has no refined labels yet. Finish it with "
            "'laplaceconfidence train' and --resume."
        )
    return RefinedRun.of(read_training(path))


@dataclass(frozen=True, eq=False)
class RefinedRun(AuditRun):
    """The labels of a finished training run as an audit has them.

    A sample's distribution is that from which its refined label was chosen: the given label with the weight
    of its confidence, and the prediction of the networks. A label is flagged if the refined one differs.

    Parameters
    ----------
    folder : pathlib.Path
        Where the run is.
    record : AuditRecord
        What ``audit.json`` would hold.
    training : TrainingRun
        The run.
    dataset : NoisyDataset or None
        Its data, where it can be read and has the same classes.
    """

    training: TrainingRun
    dataset: NoisyDataset | None

    @classmethod
    def of(cls, training: TrainingRun) -> RefinedRun:
        """Build the record of a training run.

        Parameters
        ----------
        training : TrainingRun
            A finished run.

        Returns
        -------
        RefinedRun
        """
        source = _source(training.folder)
        preset = source.get("preset_settings")
        if isinstance(preset, Mapping) and preset.get("noise"):
            raise RunFolderError(
                f"The training run in {training.folder} is a benchmark: its preset {source.get('preset')!r} "
                "replaced labels by wrong ones, which are not those of the data. Train without such a preset "
                "to review or export the labels."
            )
        refined, predictions = training.refined_labels, training.predictions
        if refined is None or predictions is None or len(refined) != len(predictions):
            raise RunFolderError(
                f"{training.folder} has no complete {REFINED_LABELS} and {PREDICTIONS}: the run is damaged. "
                "Train again."
            )
        names = tuple(
            name.removeprefix(_PROBABILITY) for name in predictions.columns if name.startswith(_PROBABILITY)
        )
        labeled = refined["given_label"].notna()
        dataset = _dataset(source)
        if dataset is not None and dataset.class_names != names:
            dataset = None
        origin: dict[str, Any] = {key: source[key] for key in ("source", "options") if key in source}
        method = training.settings.get("method")
        kind = method.get("kind", "") if isinstance(method, Mapping) else str(method)
        record = AuditRecord(
            created=source.get("created") or _time_of(training.folder / SUMMARY),
            files=(SETTINGS, METRICS, PREDICTIONS, REFINED_LABELS, SUMMARY),
            versions={},
            source={"command": "train", **origin, "skipped_images": _skipped_images(training.folder)},
            source_kind=None if dataset is None else dataset.source_kind,
            ids_from=None if dataset is None or are_row_numbers(refined["id"].tolist()) else dataset.ids_from,
            class_names=names,
            class_values=names if dataset is None else tuple(dataset.class_values.tolist()),
            estimator=f"training with {kind.rpartition('.')[2]}",
            settings={},
            n_samples=len(refined),
            n_labeled=int(labeled.sum()),
            n_classes=len(names),
            n_features=None,
            n_issues=int((labeled & (refined["given_label"] != refined["refined_label"])).sum()),
            noise_rate=float(1 - refined["confidence"][labeled].mean()),
        )
        return cls(training.folder, record, training, dataset)

    @cached_property
    def issues(self) -> pd.DataFrame:
        """pandas.DataFrame: the ranked table, indexed by row, like that of an audit."""
        import pandas as pd

        refined = self.training.refined_labels
        assert refined is not None
        given, suggested = self._codes("given_label"), self._codes("refined_label")
        values = np.array([*self.record.class_values, None], dtype=object)
        alternative, alternative_probability = best_alternatives(self._distributions, given)
        columns: dict[str, Any] = {
            "id": encodable(refined["id"].to_numpy()),
            "given_label": values[given],
            "predicted_label": values[suggested],
            "predicted_probability": self._distributions[np.arange(len(given)), suggested],
            "label_score": np.where(given == MISSING, np.nan, refined["confidence"]),
            "is_label_issue": (given != MISSING) & (given != suggested),
            "alternative_label": values[alternative],
            "alternative_probability": alternative_probability,
        }
        dataset = self.dataset
        if dataset is not None and dataset.sources is not None:
            ids = dataset.sample_ids
            if dataset.ids is None and are_row_numbers(refined["id"].tolist()):  # a run of version 0.1
                ids = np.arange(len(dataset)).astype(str)
            source_of = dict(zip(encodable(ids).tolist(), dataset.sources, strict=True))
            name = "path" if dataset.source_kind == "image" else "text"
            columns[name] = [source_of.get(id, "") for id in columns["id"].tolist()]
        table = pd.DataFrame(columns, index=pd.RangeIndex(len(given), name="row"))
        return table.sort_values("label_score", kind="stable", na_position="last")

    @cached_property
    def evidence(self) -> pd.DataFrame:
        """pandas.DataFrame: the most probable classes of every sample; a network has no neighbors."""
        import pandas as pd

        classes, probabilities = top_classes(self._distributions)
        return pd.DataFrame({"top_classes": list(classes), "top_probabilities": list(probabilities)})

    @cached_property
    def _distributions(self) -> FloatArray:
        """Rows (n, C): confidence * given + (1 - confidence) * prediction."""
        refined, predictions = self.training.refined_labels, self.training.predictions
        assert refined is not None
        assert predictions is not None
        columns = [f"{_PROBABILITY}{name}" for name in self.record.class_names]
        given = self._codes("given_label")
        weight = np.where(given == MISSING, 0.0, refined["confidence"].to_numpy(dtype=np.float64))
        mixed: FloatArray = (1 - weight)[:, None] * predictions[columns].to_numpy(dtype=np.float64)
        mixed[np.arange(len(given)), np.maximum(given, 0)] += weight
        return mixed

    def _codes(self, column: str) -> IntArray:
        refined = self.training.refined_labels
        assert refined is not None
        code_of = {name: code for code, name in enumerate(self.record.class_names)}
        codes: IntArray = refined[column].map(code_of).fillna(MISSING).to_numpy().astype(np.int64)
        return codes


def _source(folder: Path) -> dict[str, Any]:
    """Where the data came from; empty for a run that was not started by the command."""
    path = folder / SOURCE
    if not path.is_file():
        return {}
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunFolderError(f"{path} cannot be read ({error}): the run is damaged.") from error
    return content


def _skipped_images(folder: Path) -> list[str]:
    """Paths of the images that were left out because they could not be decoded."""
    path = folder / SKIPPED_IMAGES
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return [line.partition("\t")[0] for line in lines]


def _dataset(source: Mapping[str, Any]) -> NoisyDataset | None:
    """The data of the run, for its pictures and texts; None where it cannot be read."""
    if not isinstance(source.get("source"), str):
        return None
    try:
        return read_dataset(source["source"], **(source.get("options") or {}))
    except (LaplaceConfidenceError, OSError):
        return None


def _time_of(path: Path) -> str:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds")
