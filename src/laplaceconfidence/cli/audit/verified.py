"""Labels that people have verified, in tables and in reviews, for one audit."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from laplaceconfidence.auditing.diagnostics import fit_diagnostics
from laplaceconfidence.auditing.fit_request import default_estimator
from laplaceconfidence.auditing.verified import learns_from_verified
from laplaceconfidence.auditing.verified_tables import (
    VerifiedTable,
    is_most,
    match_verified,
    read_label_studio,
    read_verified,
)
from laplaceconfidence.cli.console import notices
from laplaceconfidence.confidence.calibration import LogOddsCalibration
from laplaceconfidence.confidence.noise_aware.settings import FEWEST_AUDITED
from laplaceconfidence.confidence.registry import ESTIMATORS
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.identity import are_row_numbers
from laplaceconfidence.data.labels import MISSING, encodable
from laplaceconfidence.data.sample_search import ABSENT, find_classes, find_samples
from laplaceconfidence.exceptions import InvalidInputError, LaplaceConfidenceWarning
from laplaceconfidence.records.audit_run import AuditRun
from laplaceconfidence.wording import counted, percent

_FEW = 5  # ids that a note lists


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
        if counted_at_random := self._share_at_random(dataset):
            text += f" {counted_at_random}"
        if calibration is None:
            return f"{text} They did not calibrate the confidences of the others."
        if calibration.is_identity:
            return f"{text} They confirm the confidences of the others, which stay as they are."
        return f"{text} They calibrated the confidences of the others."

    def _share_at_random(self, dataset: NoisyDataset) -> str | None:
        """What the labels that were drawn at random say by themselves about how many are wrong."""
        from laplaceconfidence.review.estimates import noise_estimate

        values, rows = dataset.class_values.tolist(), _row_of(dataset)
        wrong = [
            label != values[dataset.labels[rows[id]]]
            for id, label in (self.labels or {}).items()
            if id in self.at_random and id in rows and dataset.labels[rows[id]] != MISSING
        ]
        if not wrong:
            return None
        found = noise_estimate(np.array(wrong, dtype=bool))
        return (
            f"{found.n_wrong:,} of the {len(wrong):,} that were drawn at random differ: by these alone, "
            f"between {percent(found.low)} and {percent(found.high)} of all labels are wrong."
        )


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


def verified_labels(
    dataset: NoisyDataset, tables: tuple[Path, ...], reviewed: Path | None, *, id_column: str | None
) -> Verified:
    """The verified labels of ``dataset`` in tables and in the review of a run, matched by sample id.

    ``id_column`` is the column of ids that the user named.
    """
    decided = Verified()
    if reviewed is not None:
        is_export = reviewed.is_file()
        decided = _choices(dataset, reviewed) if is_export else _decisions(dataset, reviewed, id_column)
    if not tables:
        return decided
    row_of = _row_of(dataset)
    labels = dict(decided.labels or {})
    at_random = set(decided.at_random)
    found_in = dict.fromkeys(labels, f"the review of {reviewed}")
    n_audited = n_empty = n_left_out = 0
    for path in tables:
        table = read_verified(path, dataset)
        tell_left_out(table, "verified label", f" in {path}")
        n_empty += table.n_empty
        n_audited += len(table.labels)
        n_left_out += len(table.unknown) + len(table.relabeled)
        _refuse_contradictions(labels, found_in, table.labels, path)
        labels |= table.labels
        at_random |= table.at_random
        found_in |= dict.fromkeys(table.labels, str(path))
    _warn_if_few(sum(labels[id] is not None and dataset.labels[row_of[id]] != MISSING for id in at_random))
    described = {
        "audited": [str(path.absolute()) for path in tables],
        "n_audited": n_audited,
        "n_audited_left_out": n_left_out,
    }
    return Verified(
        labels,
        frozenset(at_random),
        decided.recalibrate,
        decided.described | described,
        n_empty + decided.n_empty,
    )


def _choices(dataset: NoisyDataset, path: Path) -> Verified:
    """The labels that people chose in Label Studio; they looked at suspects, so none was drawn at random."""
    found = read_label_studio(path, dataset)
    tell_left_out(found, "decision", f" in {path}")
    described = {
        "decisions": str(path.absolute()),
        "n_decisions": len(found.labels),
        "n_decisions_left_out": len(found.unknown) + len(found.relabeled),
    }
    return Verified(found.labels, described=described, n_empty=found.n_empty)


def _decisions(dataset: NoisyDataset, folder: Path, id_column: str | None) -> Verified:
    """The labels that the review of the run in ``folder`` settled, by the ids that samples have now."""
    from laplaceconfidence.records.refined_run import read_suggestions
    from laplaceconfidence.review.outcome import review_outcome

    run = read_suggestions(folder)
    outcome = review_outcome(run)
    _refuse_row_numbers(run, dataset, id_column)
    record, values = run.record, dataset.class_values.tolist()
    found = find_classes(dataset, record.class_names, record.class_values)
    codes: dict[Any, int] = {None: MISSING, **dict(zip(record.class_values, found, strict=True))}
    without_class = [id for id, label in outcome.labels.items() if codes[label] == ABSENT]
    labels = {
        id: None if label is None else values[codes[label]]
        for id, label in outcome.labels.items()
        if codes[label] != ABSENT
    }
    given = [codes[outcome.given[id]] for id in labels]
    paths = [outcome.paths.get(id, "") for id in labels]
    matched = match_verified(dataset, labels, given, paths)
    n_left_out = len(outcome.labels) - len(matched.labels)
    # An export leaves out the samples that no class fits, so these need not be there.
    n_settled, n_used = (
        sum(label is not None for label in by_id.values()) for by_id in (outcome.labels, matched.labels)
    )
    if is_most(n_settled - n_used, n_settled):
        raise _other_data(folder, matched, without_class, len(outcome.labels))
    tell_left_out(matched, "decision", "")
    if without_class:
        lost = outcome.labels[without_class[0]]
        notices().print(
            f"{counted(len(without_class), 'decision')} not used: the data does not have their class, such "
            f"as {lost!r}.",
            soft_wrap=True,
            markup=False,
            highlight=False,
        )
    dropped = find_samples(dataset, sorted(outcome.dropped))
    if n_dropped := int((dropped != ABSENT).sum()):
        notices().print(
            f"{counted(n_dropped, 'sample')} of this data dropped in that review: they are audited all the "
            f"same. To leave them out, audit the data that 'laplaceconfidence export {folder}' writes.",
            soft_wrap=True,
            markup=False,
        )
    id_of = dict(zip(matched.ids_before, matched.labels, strict=True))
    at_random = frozenset(id_of[id] for id in outcome.at_random if id in id_of)
    described = {
        "decisions": str(folder.absolute()),
        "n_decisions": len(matched.labels),
        "n_decisions_left_out": n_left_out,
    }
    return Verified(matched.labels, at_random, outcome.calibration, described)


def _refuse_row_numbers(run: AuditRun, dataset: NoisyDataset, id_column: str | None) -> None:
    """Raise for a run whose ids are row numbers, as those of earlier versions were for data without ids."""
    if run.record.ids_from in ("data", "content"):
        return
    ids = run.issues.sort_index()["id"].tolist()
    named_before = (run.record.source.get("options") or {}).get("id")
    is_same_column = dataset.ids is not None and named_before == id_column
    if are_row_numbers(ids) and not is_same_column:
        raise InvalidInputError(
            f"The decisions in {run.folder} are about row numbers, which say nothing about the samples once "
            "rows are moved or dropped: the run was written by an earlier version, or for samples without "
            f"content. Apply them with 'laplaceconfidence export {run.folder}' while the data is unchanged, "
            "and audit the export. From then on, samples are identified by an id column (--id) or by content."
        )


def _other_data(
    folder: Path, matched: VerifiedTable, without_class: list[str], n_decisions: int
) -> InvalidInputError:
    kinds = {
        "are about samples that are not in this data": matched.unknown,
        "are about samples that have another label now": matched.relabeled,
        "chose a class that this data does not have": without_class,
    }
    shown = "; ".join(
        f"{len(ids)} of {n_decisions} {what}, such as {ids[0]!r}" for what, ids in kinds.items() if ids
    )
    return InvalidInputError(
        f"Most decisions in {folder} do not apply to this data: {shown}. Audit the data that was reviewed, "
        "read with the same options (--id, --text, --path, --features), or leave --decisions out."
    )


def tell_left_out(table: VerifiedTable, what: str, where: str) -> None:
    """Print which verified labels are not used, and why."""
    for ids, why in (
        (table.unknown, "their samples are not in this data"),
        (table.relabeled, "the data has another label now than the one that was looked at"),
    ):
        if ids:
            few = ", ".join(ids[:_FEW]) + (", ..." if len(ids) > _FEW else "")
            notices().print(
                f"{counted(len(ids), what)}{where} not used: {why} ({few}).",
                soft_wrap=True,
                markup=False,
                highlight=False,
            )


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
