"""Which label every sample of a corrected data set has, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from laplaceconfidence.arrays import BoolArray, IntArray
from laplaceconfidence.auditing.corrections import accepted_suggestions
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.records.audit_run import AuditRecord, AuditRun
from laplaceconfidence.records.sample_arrays import SampleArrays
from laplaceconfidence.review.decisions import SETTLES_LABEL, Decision
from laplaceconfidence.review.store import read_decisions
from laplaceconfidence.validation import check_choice, check_real, must_be

if TYPE_CHECKING:
    import pandas as pd

Policy = Literal["reviewed-only", "reviewed-then-confident", "drop"]
POLICIES: tuple[Policy, ...] = get_args(Policy)
DEFAULT_PROBABILITY = 0.95

_WHY = {
    "keep": "reviewed: kept",
    "suggestion": "reviewed: suggestion accepted",
    "other": "reviewed: another class",
    "none": "reviewed: no class fits",
    "unsure": "reviewed: unsure",
}
TRAIL_COLUMNS = (
    "row",
    "id",
    "action",
    "old_label",
    "new_label",
    "why",
    "probability",
    "label_score",
    "decided_by",
    "decided_at",
)


@dataclass(frozen=True, eq=False)
class ExportPlan:
    """The labels of a corrected data set, and a trail of the changes.

    Parameters
    ----------
    samples : SampleArrays
        The samples of the audit.
    policy : {"reviewed-only", "reviewed-then-confident", "drop"}
        What happens to labels that nobody reviewed.
    codes : ndarray of int of shape (n,)
        Codes of the new labels.
    is_kept : ndarray of bool of shape (n,)
        Whether the sample stays in the data set.
    trail : pandas.DataFrame
        One row per changed label, worst first: ``action`` is "changed", "filled" (there was none) or
        "dropped" (the sample is left out).
    n_reviewed : int
        Samples that a person decided on.
    """

    samples: SampleArrays
    policy: Policy
    codes: IntArray
    is_kept: BoolArray
    trail: pd.DataFrame
    n_reviewed: int

    def count(self, action: str) -> int:
        """Count the changes of one kind.

        Parameters
        ----------
        action : {"changed", "filled", "dropped"}
            The kind of change.

        Returns
        -------
        int
        """
        return int((self.trail["action"] == action).sum())


def plan_export(
    run: AuditRun,
    *,
    policy: str = "reviewed-only",
    min_probability: float | None = None,
    fill_missing: bool = False,
) -> ExportPlan:
    """Choose the label of every sample of a run.

    A sample for which a reviewer decided that no class fits is always left out. Labels that were verified
    before the audit (--decisions, --audited) are always applied.

    Parameters
    ----------
    run : AuditRun
        An audit, reviewed or not.
    policy : {"reviewed-only", "reviewed-then-confident", "drop"}, default="reviewed-only"
        "reviewed-only" changes labels as reviewers decided; "reviewed-then-confident" also accepts the
        suggestion for flagged labels that nobody reviewed; "drop" leaves out samples with flagged labels that
        no reviewer settled.
    min_probability : float, optional
        Probability that an unreviewed suggestion must have; 0.95 by default. Only for
        "reviewed-then-confident".
    fill_missing : bool, default=False
        Whether samples without a label get such a suggestion. Only for "reviewed-then-confident".

    Returns
    -------
    ExportPlan
    """
    chosen: Policy = check_choice(policy, "policy", POLICIES)  # type: ignore[assignment]
    if chosen != "reviewed-then-confident":
        rule = "left out unless 'policy' is 'reviewed-then-confident'"
        if min_probability is not None:
            raise must_be("min_probability", rule, min_probability)
        if fill_missing:
            raise must_be("fill_missing", rule, fill_missing)
    least = check_real(
        DEFAULT_PROBABILITY if min_probability is None else min_probability,
        "min_probability",
        at_least=0,
        at_most=1,
    )
    samples = SampleArrays.of(run)
    decisions = {decision.row: decision for decision in read_decisions(run.folder, run.record)}
    codes, is_kept = samples.given.copy(), ~_verified_as_no_class(samples)
    for row, decision in decisions.items():
        if decision.verdict in SETTLES_LABEL:
            codes[row] = MISSING if decision.label is None else decision.label
        elif decision.verdict == "none":
            is_kept[row] = False
    unreviewed = np.ones(len(samples), dtype=bool)
    unreviewed[list(decisions)] = False
    if chosen == "reviewed-then-confident":
        accepted = unreviewed & accepted_suggestions(
            flagged=samples.flagged,
            given=samples.given,
            suggested=samples.suggested,
            probability=samples.probability,
            min_probability=least,
            fill_missing=fill_missing,
        )
        codes[accepted] = samples.suggested[accepted]
    elif chosen == "drop":
        unsure = [row for row, decision in decisions.items() if decision.verdict == "unsure"]
        unreviewed[unsure] = True
        is_kept &= ~(samples.flagged & unreviewed)
    trail = _trail(samples, decisions, codes, is_kept, least)
    return ExportPlan(samples, chosen, codes, is_kept, trail, len(decisions))


def _trail(
    samples: SampleArrays, decisions: dict[int, Decision], codes: IntArray, is_kept: BoolArray, least: float
) -> pd.DataFrame:
    import pandas as pd

    differs = (codes != samples.in_data) | ~is_kept
    record = samples.run.record
    values = record.class_values
    entries: list[dict[str, Any]] = []
    for row in samples.order[differs[samples.order]].tolist():
        decision = decisions.get(row)
        old, new = int(samples.in_data[row]), int(codes[row])
        if decision is not None:
            why = _WHY[str(decision.verdict)]
        elif old != int(samples.given[row]):
            why = "verified before this audit"
        elif is_kept[row]:
            why = f"not reviewed: suggested with a probability of at least {least:g}"
        else:
            why = "not reviewed: flagged"
        action = "dropped" if not is_kept[row] else "filled" if old == MISSING else "changed"
        entries.append(
            {
                "row": row,
                "id": samples.ids[row],
                "action": action,
                "old_label": None if old == MISSING else str(values[old]),
                "new_label": None if not is_kept[row] or new == MISSING else str(values[new]),
                "why": why,
                "probability": _rounded(dict(samples.top_classes(row)).get(new)) if is_kept[row] else None,
                "label_score": _rounded(samples.confidence[row]),
                "decided_by": decision.who if decision else _author(record),
                "decided_at": decision.at if decision else record.created,
            }
        )
    return pd.DataFrame(entries, columns=list(TRAIL_COLUMNS))


def _verified_as_no_class(samples: SampleArrays) -> BoolArray:
    """Samples with a label for which a person had decided, before this audit, that no class fits."""
    erased: BoolArray = (samples.in_data != MISSING) & (samples.given == MISSING)
    return erased


def _author(record: AuditRecord) -> str:
    return record.estimator if record.source.get("command") == "train" else f"audit by {record.estimator!r}"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(float(value), 6)
