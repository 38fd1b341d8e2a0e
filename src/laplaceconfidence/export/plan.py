"""Which label every sample of a corrected data set has, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from laplaceconfidence.arrays import BoolArray, IntArray
from laplaceconfidence.auditing.corrections import accepted_suggestions
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.export.left_out import LeftOutSamples, OtherPolicies, Reason
from laplaceconfidence.records.audit_run import AuditRecord, AuditRun
from laplaceconfidence.records.other_issues import OtherIssues
from laplaceconfidence.records.sample_arrays import SampleArrays
from laplaceconfidence.review.decisions import LEAVES_OUT, SETTLES_LABEL, Decision
from laplaceconfidence.review.store import read_decisions
from laplaceconfidence.validation import check_choice, check_real, must_be

if TYPE_CHECKING:
    import pandas as pd

Policy = Literal["reviewed-only", "reviewed-then-confident", "consensus", "drop"]
POLICIES: tuple[Policy, ...] = get_args(Policy)
DEFAULT_PROBABILITY = 0.95

_WHY = {
    "keep": "reviewed: kept",
    "suggestion": "reviewed: suggestion accepted",
    "other": "reviewed: another class",
    "none": "reviewed: no class fits",
    "unsure": "reviewed: unsure",
    "drop": "reviewed: dropped",
}
_CONSENSUS = "not reviewed: consensus of the annotators"
_VERIFIED_BEFORE = "verified before this audit"
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
    "copy_of",
)


@dataclass(frozen=True, eq=False)
class ExportPlan:
    """The labels of a corrected data set, and a trail of the changes.

    Parameters
    ----------
    samples : SampleArrays
        The samples of the audit.
    policy : {"reviewed-only", "reviewed-then-confident", "consensus", "drop"}
        What happens to labels that nobody reviewed.
    codes : ndarray of int of shape (n,)
        Codes of the new labels.
    is_kept : ndarray of bool of shape (n,)
        Whether the sample stays in the data set.
    trail : pandas.DataFrame
        One row per changed label and sample left out, worst label first: ``action`` is "changed", "filled"
        (there was none) or "dropped" (the sample is left out). ``copy_of`` is, for a dropped copy, the id of
        the one that was chosen to stay, and for a leak the id in the test set.
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
    policy: str | None = None,
    min_probability: float | None = None,
    fill_missing: bool = False,
    copies: str = "keep",
    outliers: str = "keep",
    leaks: str = "keep",
) -> ExportPlan:
    """Choose the label of every sample of a run, and which samples are left out.

    What reviewers decided always applies: a sample for which no class fits, or that they dropped, is left
    out, and the other policies do not apply to what they settled. Labels that were verified before the audit
    (--decisions, --audited) are always applied.

    Parameters
    ----------
    run : AuditRun
        An audit, reviewed or not.
    policy : {"reviewed-only", "reviewed-then-confident", "consensus", "drop"}, optional
        "reviewed-only" changes labels as reviewers decided; "reviewed-then-confident" also accepts the
        suggestion for flagged labels that nobody reviewed; "consensus", for labels of several annotators,
        also takes their consensus for all samples that nobody reviewed; "drop" leaves out samples with
        flagged labels that no reviewer settled. By default "consensus" where there are several annotators,
        else "reviewed-only".
    min_probability : float, optional
        Probability that an unreviewed suggestion must have; 0.95 by default. Only for
        "reviewed-then-confident".
    fill_missing : bool, default=False
        Whether samples without a label get such a suggestion. Only for "reviewed-then-confident" and
        "consensus".
    copies : {"keep", "drop-conflicting", "keep-one"}, default="keep"
        What happens to near-duplicates: "drop-conflicting" leaves out those whose copies have another label,
        unless a reviewer settled their label; "keep-one" keeps one sample of every set of copies: one whose
        label a reviewer settled, then the one with the most probable label, then the first.
    outliers : {"keep", "drop"}, default="keep"
        Whether outliers stay whose label no reviewer settled.
    leaks : {"keep", "drop"}, default="keep"
        Whether samples stay that are also in the test set.

    Returns
    -------
    ExportPlan
    """
    chosen = _checked_policy(run, policy)
    if chosen != "reviewed-then-confident":
        rule = "left out unless 'policy' is 'reviewed-then-confident'"
        if min_probability is not None:
            raise must_be("min_probability", rule, min_probability)
        if fill_missing and chosen != "consensus":
            raise must_be("fill_missing", f"{rule} or 'consensus'", fill_missing)
    least = check_real(
        DEFAULT_PROBABILITY if min_probability is None else min_probability,
        "min_probability",
        at_least=0,
        at_most=1,
    )
    samples, issues = SampleArrays.of(run), OtherIssues.of(run)
    policies = OtherPolicies(copies, outliers, leaks)
    policies.check(issues)
    made: dict[str, dict[int, Decision]] = {"label": {}, "copies": {}, "leaks": {}}
    for decision in read_decisions(run.folder, run.record):
        made[decision.subject][decision.row] = decision
    decisions = made["label"]
    codes, left_out = samples.given.copy(), LeftOutSamples(samples, issues)
    is_verified = samples.given != samples.in_data
    for row, decision in decisions.items():
        if decision.verdict in SETTLES_LABEL:
            codes[row] = MISSING if decision.label is None else decision.label
            is_verified[row] = True
        elif decision.verdict in LEAVES_OUT:
            left_out.add(row, Reason(_WHY[str(decision.verdict)], decision))
    for row in _verified_as_no_class(samples):
        left_out.add(row, Reason(_VERIFIED_BEFORE))
    left_out.add_decided_leaks(made["leaks"])
    left_out.add_decided_copies(made["copies"])
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
    elif chosen == "consensus":
        accepted = unreviewed & (samples.is_labeled | fill_missing)
        codes[accepted] = samples.suggested[accepted]
    elif chosen == "drop":
        for row in np.flatnonzero(samples.flagged & ~is_verified).tolist():
            unsure = decisions.get(row)
            left_out.add(row, Reason("not reviewed: flagged" if unsure is None else _WHY["unsure"], unsure))
    if policies.leaks == "drop":
        left_out.add_leaks(made["leaks"])
    if policies.outliers == "drop":
        left_out.add_outliers(decisions)
    if policies.copies != "keep":  # last, so that one of the samples that are still there is kept
        left_out.add_copies(policies.copies, made["copies"], codes, is_verified)
    unreviewed_why = f"not reviewed: suggested with a probability of at least {least:g}"
    trail = _trail(
        samples, decisions, codes, left_out.reasons, _CONSENSUS if chosen == "consensus" else unreviewed_why
    )
    n_reviewed = len({row for on_subject in made.values() for row in on_subject})
    return ExportPlan(samples, chosen, codes, left_out.is_kept, trail, n_reviewed)


def _checked_policy(run: AuditRun, policy: str | None) -> Policy:
    has_annotators = run.record.annotation is not None
    if policy is None:
        return "consensus" if has_annotators else "reviewed-only"
    chosen: Policy = check_choice(policy, "policy", POLICIES)  # type: ignore[assignment]
    if chosen == "consensus" and not has_annotators:
        raise must_be("policy", "another one for a run without labels of several annotators", policy)
    return chosen


def _trail(
    samples: SampleArrays,
    decisions: dict[int, Decision],
    codes: IntArray,
    left_out: dict[int, Reason],
    unreviewed_why: str,
) -> pd.DataFrame:
    import pandas as pd

    differs = codes != samples.in_data
    differs[list(left_out)] = True
    record = samples.run.record
    values = record.class_values
    entries: list[dict[str, Any]] = []
    for row in samples.order[differs[samples.order]].tolist():
        reason = left_out.get(row)
        old, new = int(samples.in_data[row]), int(codes[row])
        decision = decisions.get(row) if reason is None else reason.decision
        if reason is not None:
            why, action = reason.why, "dropped"
        else:
            action = "filled" if old == MISSING else "changed"
            why = unreviewed_why
            if decision is not None:
                why = _WHY[str(decision.verdict)]
            elif old != int(samples.given[row]):
                why = _VERIFIED_BEFORE
        entries.append(
            {
                "row": row,
                "id": samples.ids[row],
                "action": action,
                "old_label": None if old == MISSING else str(values[old]),
                "new_label": None if reason is not None or new == MISSING else str(values[new]),
                "why": why,
                "probability": _rounded(dict(samples.top_classes(row)).get(new)) if reason is None else None,
                "label_score": _rounded(samples.confidence[row]),
                "decided_by": decision.who if decision else _author(record),
                "decided_at": decision.at if decision else record.created,
                "copy_of": None if reason is None else reason.copy_of,
            }
        )
    return pd.DataFrame(entries, columns=list(TRAIL_COLUMNS))


def _verified_as_no_class(samples: SampleArrays) -> list[int]:
    """Samples with a label for which a person had decided, before this audit, that no class fits."""
    rows: list[int] = np.flatnonzero((samples.in_data != MISSING) & (samples.given == MISSING)).tolist()
    return rows


def _author(record: AuditRecord) -> str:
    return record.estimator if record.source.get("command") == "train" else f"audit by {record.estimator!r}"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(float(value), 6)
