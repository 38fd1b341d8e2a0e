"""Labels that people have verified, in tables and in reviews, for one audit."""

from __future__ import annotations

import warnings
from collections.abc import Container
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from laplaceconfidence.auditing.diagnostics import fit_diagnostics
from laplaceconfidence.auditing.fit_request import default_estimator
from laplaceconfidence.auditing.verified import learns_from_verified, read_verified
from laplaceconfidence.cli.console import notices
from laplaceconfidence.confidence.calibration import LogOddsCalibration
from laplaceconfidence.confidence.noise_aware.settings import FEWEST_AUDITED
from laplaceconfidence.confidence.registry import ESTIMATORS
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.labels import MISSING, encodable
from laplaceconfidence.exceptions import InvalidInputError, LaplaceConfidenceWarning
from laplaceconfidence.wording import counted


@dataclass(frozen=True, slots=True, eq=False)
class Verified:
    """Verified labels of one audit, and how to correct the confidences of all others."""

    labels: dict[str, Any] | None = None  # by sample id; a label of None means that no class fits
    at_random: frozenset[str] = frozenset()  # ids among them that were drawn at random
    recalibrate: LogOddsCalibration | None = None
    described: dict[str, Any] = field(default_factory=dict)  # for the record of the audit
    n_empty: int = 0  # rows of tables without a verified label

    def by_row(self, dataset: NoisyDataset) -> dict[int, Any] | None:
        """The labels by row, without those of images that were skipped."""
        if self.labels is None:
            return None
        rows = _row_of(dataset)
        return {rows[id]: label for id, label in self.labels.items() if id in rows}

    def rows_at_random(self, dataset: NoisyDataset) -> frozenset[int]:
        """The rows whose labels calibrate the confidences of all others."""
        rows = _row_of(dataset)
        return frozenset(rows[id] for id in self.at_random if id in rows)

    def effect(self, labels: dict[int, Any], dataset: NoisyDataset, estimator: Any) -> str:
        """How many labels were used, and what they did to the others, for the summary."""
        values = dataset.class_values.tolist()
        n_right = sum(
            code != MISSING and label == values[code]
            for label, code in ((label, int(dataset.labels[row])) for row, label in labels.items())
        )
        text = f"{counted(len(labels), 'verified label')} used: {n_right:,} as given, "
        text += f"{len(labels) - n_right:,} different."
        if self.n_empty:
            text += f" {counted(self.n_empty, 'row')} without a verified label skipped."
        learned = learns_from_verified(estimator)
        calibration = fit_diagnostics(estimator).calibration if learned else self.recalibrate
        if calibration is None:
            return f"{text} They did not calibrate the confidences of the others."
        if calibration.is_identity:
            return f"{text} They confirm the confidences of the others, which stay as they are."
        return f"{text} They calibrated the confidences of the others."


def check_can_learn(
    estimator: str | None, dataset: NoisyDataset, pred_probs: Path | None, knn_graph: Path | None
) -> None:
    """Raise for an estimator that cannot learn from verified labels."""
    name = estimator or default_estimator(dataset, pred_probs, knn_graph)
    if name in ESTIMATORS and not learns_from_verified(ESTIMATORS[name]):
        able = ", ".join(repr(other) for other, kind in ESTIMATORS.items() if learns_from_verified(kind))
        raise InvalidInputError(
            f"--audited must be left out for the estimator {name!r}, which does not learn from verified "
            f"labels. Choose one that does with --estimator: {able}."
        )


def verified_labels(dataset: NoisyDataset, tables: tuple[Path, ...], reviewed: Path | None) -> Verified:
    """The verified labels of ``dataset`` in tables and in the review of a run, matched by sample id."""
    row_of = _row_of(dataset)
    decided = Verified() if reviewed is None else _decisions(row_of, reviewed)
    if not tables:
        return decided
    labels = dict(decided.labels or {})
    at_random = set(decided.at_random)
    found_in = dict.fromkeys(labels, f"the review of {reviewed}")
    n_audited = n_empty = 0
    for path in tables:
        table = read_verified(path, dataset)
        n_empty += table.n_empty
        n_audited += len(table.labels)
        _refuse_contradictions(labels, found_in, table.labels, path)
        labels |= table.labels
        at_random |= table.labels.keys()
        found_in |= dict.fromkeys(table.labels, str(path))
    _warn_if_few(sum(labels[id] is not None and dataset.labels[row_of[id]] != MISSING for id in at_random))
    described = {"audited": [str(path.absolute()) for path in tables], "n_audited": n_audited}
    return Verified(labels, frozenset(at_random), decided.recalibrate, decided.described | described, n_empty)


def _decisions(ids: Container[str], folder: Path) -> Verified:
    """The labels that the review of the run in ``folder`` settled for the samples with these ids."""
    from laplaceconfidence.records.refined_run import read_suggestions
    from laplaceconfidence.review.outcome import review_outcome

    outcome = review_outcome(read_suggestions(folder))
    labels = {id: label for id, label in outcome.labels.items() if id in ids}
    if lost := len(outcome.labels) - len(labels):
        notices().print(f"{counted(lost, 'decision')} ignored: their samples are not in this data.")
    if n_dropped := sum(id in ids for id in outcome.dropped):
        notices().print(
            f"{counted(n_dropped, 'sample')} of this data dropped in that review: they are audited all the "
            f"same. To leave them out, audit the data that 'laplaceconfidence export {folder}' writes.",
            soft_wrap=True,
        )
    described = {"decisions": str(folder.absolute()), "n_decisions": len(labels)}
    return Verified(labels, outcome.at_random & labels.keys(), outcome.calibration, described)


def _refuse_contradictions(
    labels: dict[str, Any], found_in: dict[str, str], more: dict[str, Any], path: Path
) -> None:
    against = [id for id, label in more.items() if id in labels and labels[id] != label]
    if against:
        first = against[0]
        before = "no class" if labels[first] is None else repr(labels[first])
        others = f" ({len(against)} samples differ in total)" if len(against) > 1 else ""
        raise InvalidInputError(
            f"Sample {first!r} is {before} in {found_in[first]} but {more[first]!r} in {path}{others}: "
            "decide which is right, and write the same in both or remove it from one."
        )


def _warn_if_few(n_calibrating: int) -> None:
    """Warn if too few verified labels are of samples with a given label: only these can calibrate."""
    if n_calibrating < FEWEST_AUDITED:
        warnings.warn(
            f"{counted(n_calibrating, 'verified label')} of samples that have a given label: too few to "
            f"calibrate the others, which takes {FEWEST_AUDITED} drawn at random. They are still taken as "
            "certain.",
            LaplaceConfidenceWarning,
            stacklevel=2,
        )


def _row_of(dataset: NoisyDataset) -> dict[str, int]:
    """Rows by the ids as tables and runs write them."""
    return {id: row for row, id in enumerate(encodable(dataset.sample_ids).tolist())}
