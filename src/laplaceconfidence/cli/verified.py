"""Labels that people have verified, in tables and in reviews, for one audit."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.auditing.fit_request import class_values, default_estimator
from laplaceconfidence.auditing.table import encodable
from laplaceconfidence.auditing.verified import learns_from_verified, read_verified
from laplaceconfidence.cli.console import count
from laplaceconfidence.cli.decisions import decisions_for
from laplaceconfidence.confidence.registry import ESTIMATORS
from laplaceconfidence.confidence.verdict import FEWEST_AUDITED
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.exceptions import InvalidInputError, LaplaceConfidenceWarning


@dataclass(frozen=True, slots=True, eq=False)
class Verified:
    """Verified labels, ``None`` where no class fits, and how to correct the confidences of all others."""

    labels: dict[str, Any] | None = None  # by the id of the sample
    at_random: frozenset[str] = frozenset()  # ids among them that were drawn at random
    recalibrate: Callable[[FloatArray], FloatArray] | None = None
    described: dict[str, Any] = field(default_factory=dict)  # for the record of the audit
    n_empty: int = 0  # rows of tables that nobody has filled in

    def by_row(self, dataset: NoisyDataset) -> dict[int, Any] | None:
        """The labels by row; those of images that had to be left out are left out, too."""
        if self.labels is None:
            return None
        rows = _row_of(dataset)
        return {rows[id]: label for id, label in self.labels.items() if id in rows}

    def rows_at_random(self, dataset: NoisyDataset) -> frozenset[int]:
        """The rows that calibrate all others."""
        rows = _row_of(dataset)
        return frozenset(rows[id] for id in self.at_random if id in rows)

    def told(self, labels: dict[int, Any], dataset: NoisyDataset, judge: Any) -> str:
        """How many labels were used, and what they did to the others."""
        values = class_values(dataset).tolist()
        n_right = sum(
            code != MISSING and label == values[code]
            for label, code in ((label, int(dataset.labels[row])) for row, label in labels.items())
        )
        told = f"{count(len(labels), 'verified label')} used: {n_right:,} as given, "
        told += f"{len(labels) - n_right:,} different."
        if self.n_empty:
            told += f" {count(self.n_empty, 'row')} without a verified label skipped."
        calibration = (
            getattr(judge, "calibration_", None) if learns_from_verified(judge) else self.recalibrate
        )
        if calibration is None:
            return f"{told} They did not calibrate the confidences of the others."
        if (getattr(calibration, "slope", None), getattr(calibration, "offset", None)) == (1.0, 0.0):
            return f"{told} By them the confidences of the others are calibrated as they are."
        return f"{told} They calibrated the confidences of the others."


def check_can_learn(
    estimator: str | None, dataset: NoisyDataset, pred_probs: Path | None, knn_graph: Path | None
) -> None:
    """Raise where the estimator has no use for verified labels."""
    name = estimator or default_estimator(dataset, pred_probs, knn_graph)
    if name in ESTIMATORS and not learns_from_verified(ESTIMATORS[name]):
        able = ", ".join(repr(other) for other, kind in ESTIMATORS.items() if learns_from_verified(kind))
        raise InvalidInputError(
            f"--audited must be left out for the estimator {name!r}, which does not learn from verified "
            f"labels. Choose one that does with --estimator: {able}."
        )


def verified_labels(dataset: NoisyDataset, tables: tuple[Path, ...], reviewed: Path | None) -> Verified:
    """What tables and the review of a run say about the samples of ``dataset``, matched by id."""
    decided = decisions_for(_row_of(dataset), reviewed)
    if not tables:
        return Verified(decided.labels, decided.at_random, decided.recalibrate, decided.described)
    labels = dict(decided.labels or {})
    at_random = set(decided.at_random)
    said_by = dict.fromkeys(labels, f"the review of {reviewed}")
    n_audited = n_empty = 0
    for path in tables:
        table = read_verified(path, dataset)
        n_empty += table.n_empty
        n_audited += len(table.labels)
        _refuse_contradictions(labels, said_by, table.labels, path)
        labels |= table.labels
        at_random |= table.labels.keys()
        said_by |= dict.fromkeys(table.labels, str(path))
    _note_if_few({id: labels[id] for id in at_random}, dataset)
    described = {"audited": [str(path.absolute()) for path in tables], "n_audited": n_audited}
    return Verified(labels, frozenset(at_random), decided.recalibrate, decided.described | described, n_empty)


def _refuse_contradictions(
    labels: dict[str, Any], said_by: dict[str, str], more: dict[str, Any], path: Path
) -> None:
    against = [id for id, label in more.items() if id in labels and labels[id] != label]
    if against:
        first = against[0]
        before = "no class" if labels[first] is None else repr(labels[first])
        others = f" ({len(against)} samples differ in all)" if len(against) > 1 else ""
        raise InvalidInputError(
            f"Sample {first!r} is {before} in {said_by[first]} but {more[first]!r} in {path}{others}: settle "
            "it, and leave it in one of the two or write the same in both."
        )


def _note_if_few(labels: dict[str, Any], dataset: NoisyDataset) -> None:
    """Labels of samples that had none cannot say how right given labels are."""
    rows = _row_of(dataset)
    n_labeled = sum(label is not None and dataset.labels[rows[id]] != MISSING for id, label in labels.items())
    if n_labeled < FEWEST_AUDITED:
        warnings.warn(
            f"{count(n_labeled, 'verified label')} of samples with a given one: too few to calibrate the "
            f"others, which takes {FEWEST_AUDITED} drawn at random. They are certain nevertheless.",
            LaplaceConfidenceWarning,
            stacklevel=2,
        )


def _row_of(dataset: NoisyDataset) -> dict[str, int]:
    """Rows by the ids as tables and runs write them."""
    return {id: row for row, id in enumerate(encodable(dataset.sample_ids).tolist())}
