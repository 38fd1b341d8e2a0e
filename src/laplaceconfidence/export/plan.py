"""Which label every sample gets, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from laplaceconfidence.arrays import BoolArray, IntArray
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.records.audit_run import AuditRun
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
    "suggestion": "reviewed: suggestion taken",
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
    """The labels of the corrected data set, and the trail of all that differs from the given ones.

    ``trail`` has one row a changed label, worst first: ``action`` is "changed", "filled" (there was none) or
    "dropped" (the sample is left out).
    """

    samples: SampleArrays
    policy: Policy
    codes: IntArray  # (n,) new label codes
    is_kept: BoolArray  # (n,) whether the sample stays in the data set
    trail: pd.DataFrame
    n_reviewed: int

    def count(self, action: str) -> int:
        """How many labels were "changed", "filled" or "dropped"."""
        return int((self.trail["action"] == action).sum())


def plan_export(
    run: AuditRun,
    *,
    policy: str = "reviewed-only",
    min_probability: float | None = None,
    fill_missing: bool = False,
) -> ExportPlan:
    """Decide on every label of a run.

    'reviewed-only' changes what a person decided; 'reviewed-then-confident' also takes the suggestion for
    flagged labels nobody looked at if it has at least ``min_probability`` (and, with ``fill_missing``, gives
    samples without a label such a suggestion); 'drop' leaves out flagged labels that nobody settled. A sample
    for which a person said that no class fits is always left out.
    """
    chosen: Policy = check_choice(policy, "policy", POLICIES)  # type: ignore[assignment]
    if chosen != "reviewed-then-confident":
        if min_probability is not None:
            raise must_be("min_probability", "left out but for 'reviewed-then-confident'", min_probability)
        if fill_missing:
            raise must_be("fill_missing", "left out but for 'reviewed-then-confident'", fill_missing)
    least = check_real(
        DEFAULT_PROBABILITY if min_probability is None else min_probability,
        "min_probability",
        at_least=0,
        at_most=1,
    )
    samples = SampleArrays.of(run)
    decisions = {decision.row: decision for decision in read_decisions(run.folder, run.record)}
    codes, is_kept = samples.given.copy(), np.ones(len(samples), dtype=bool)
    for row, decision in decisions.items():
        if decision.verdict in SETTLES_LABEL:
            codes[row] = MISSING if decision.label is None else decision.label
        elif decision.verdict == "none":
            is_kept[row] = False
    unseen = np.ones(len(samples), dtype=bool)
    unseen[list(decisions)] = False
    if chosen == "reviewed-then-confident":
        wanted = samples.flagged | (~samples.is_labeled & fill_missing)
        taken = wanted & unseen & (samples.probability >= least)
        codes[taken] = samples.suggested[taken]
    elif chosen == "drop":
        unsure = [row for row, decision in decisions.items() if decision.verdict == "unsure"]
        unseen[unsure] = True
        is_kept &= ~(samples.flagged & unseen)
    trail = _trail(samples, decisions, codes, is_kept, least)
    return ExportPlan(samples, chosen, codes, is_kept, trail, len(decisions))


def _trail(
    samples: SampleArrays, decisions: dict[int, Decision], codes: IntArray, is_kept: BoolArray, least: float
) -> pd.DataFrame:
    import pandas as pd

    differs = (codes != samples.given) | ~is_kept
    record = samples.run.record
    values = record.class_values
    entries: list[dict[str, Any]] = []
    for row in samples.order[differs[samples.order]].tolist():
        decision = decisions.get(row)
        old, new = int(samples.given[row]), int(codes[row])
        if decision is not None:
            why = _WHY[str(decision.verdict)]
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
                "decided_by": decision.who if decision else f"audit by {record.estimator!r}",
                "decided_at": decision.at if decision else record.created,
            }
        )
    return pd.DataFrame(entries, columns=list(TRAIL_COLUMNS))


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(float(value), 6)
