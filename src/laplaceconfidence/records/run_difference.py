"""What changed between two audits of a data set that has grown or was corrected, sample by sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from laplaceconfidence.auditing.table import LABEL_IN_DATA
from laplaceconfidence.data.identity import are_row_numbers
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.records.audit_run import AuditRun

if TYPE_CHECKING:
    import pandas as pd

SAMPLE_FLAGS: dict[str, str] = {
    "flagged": "is_label_issue",
    "outliers": "is_outlier_issue",
    "copies": "is_near_duplicate_issue",
    "conflicting-copies": "has_conflicting_duplicate",
    "leaks": "is_leaked",
    "odd-images": "is_image_issue",
    "empty": "is_empty_issue",
    "missing-values": "is_missing_value_issue",
    "rare-class": "is_rare_class_issue",
    "bad-groups": "is_group_issue",
    "row-order": "is_row_order_issue",
}
"""What audits count, with the column of the issues that marks the samples."""

NEW, GONE, RELABELED = "new sample", "gone", "label changed"


@dataclass(frozen=True, slots=True)
class FlagDifference:
    """The samples that have a flag in one of two audits.

    Parameters
    ----------
    n_before, n_after : int or None
        How many have it; None if the audit did not look for it.
    appeared : tuple of str
        Ids of those that have it now and had it not before; samples that are new count, too.
    disappeared : tuple of str
        Ids of those that had it before and have it no longer, but are still there.
    """

    n_before: int | None
    n_after: int | None
    appeared: tuple[str, ...] = ()
    disappeared: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class RunDifference:
    """The differences of two audits, whose samples are matched by their ids.

    Parameters
    ----------
    before, after : AuditRun
        The audits.
    n_common : int
        Samples that are in both.
    new, gone : tuple of str
        Ids of samples that are in the second or in the first one only.
    relabeled : dict of str to (str or None, str or None)
        Labels in the data, before and after, of samples that have another one now; by id.
    flags : dict of str to FlagDifference
        By the keys of ``SAMPLE_FLAGS``; those that neither audit looked for are left out.
    """

    before: AuditRun
    after: AuditRun
    n_common: int
    new: tuple[str, ...]
    gone: tuple[str, ...]
    relabeled: dict[str, tuple[str | None, str | None]]
    flags: dict[str, FlagDifference]

    def table(self) -> pd.DataFrame:
        """List every change.

        Returns
        -------
        pandas.DataFrame
            ``id``, ``change`` ("new sample", "gone", "label changed", or a key of ``SAMPLE_FLAGS`` with "+"
            or "-" in front), ``label_before`` and ``label_after``.
        """
        import pandas as pd

        changes = [(id, NEW) for id in self.new] + [(id, GONE) for id in self.gone]
        changes += [(id, RELABELED) for id in self.relabeled]
        for name, flag in self.flags.items():
            changes += [(id, f"+{name}") for id in flag.appeared]
            changes += [(id, f"-{name}") for id in flag.disappeared]
        before, after = _labels(self.before), _labels(self.after)
        rows = [(id, change, before.get(id), after.get(id)) for id, change in changes]
        return pd.DataFrame(rows, columns=["id", "change", "label_before", "label_after"])


def compare_runs(before: AuditRun, after: AuditRun) -> RunDifference:
    """Compare two audits.

    Parameters
    ----------
    before, after : AuditRun
        The audits.

    Returns
    -------
    RunDifference

    Raises
    ------
    InvalidInputError
        If their samples cannot be matched.
    """
    for run in (before, after):
        if run.record.ids_from in (None, "rows") and are_row_numbers(run.issues.sort_index()["id"].tolist()):
            raise InvalidInputError(
                f"The samples of {run.folder} are identified by row numbers, which say nothing once rows are "
                "moved or dropped: audit again with a column of ids (--id)."
            )
    labels_before, labels_after = _labels(before), _labels(after)
    common = [id for id in labels_after if id in labels_before]
    if not common:
        raise InvalidInputError(
            f"{before.folder} and {after.folder} have no sample in common: audit the same data, read with "
            "the same options (--id, --text, --path, --features)."
        )
    flags = {}
    for name, column in SAMPLE_FLAGS.items():
        had, has = _flagged(before, column), _flagged(after, column)
        if had is None and has is None:
            continue
        appeared, disappeared = [], []
        if had is not None and has is not None:
            appeared = [id for id in has if id not in had]
            disappeared = [id for id in had if id not in has and id in labels_after]
        flags[name] = FlagDifference(
            None if had is None else len(had),
            None if has is None else len(has),
            tuple(appeared),
            tuple(disappeared),
        )
    return RunDifference(
        before,
        after,
        n_common=len(common),
        new=tuple(id for id in labels_after if id not in labels_before),
        gone=tuple(id for id in labels_before if id not in labels_after),
        relabeled={
            id: (labels_before[id], labels_after[id])
            for id in common
            if labels_before[id] != labels_after[id]
        },
        flags=flags,
    )


def _labels(run: AuditRun) -> dict[str, str | None]:
    """Names of the labels that the data had, by id, the least trustworthy first."""
    issues = run.issues
    column = LABEL_IN_DATA if LABEL_IN_DATA in issues else "given_label"
    names: dict[Any, str] = dict(zip(run.record.class_values, run.record.class_names, strict=True))
    labels = issues[column]
    missing = labels.isna().tolist()
    return {
        str(id): None if gap else names.get(label, str(label))
        for id, label, gap in zip(issues["id"].tolist(), labels.tolist(), missing, strict=True)
    }


def _flagged(run: AuditRun, column: str) -> dict[str, None] | None:
    """Ids of the flagged samples in the order of the table; None if the audit has no such flag."""
    issues = run.issues
    if column not in issues:
        return None
    return dict.fromkeys(map(str, issues.loc[issues[column].astype(bool), "id"].tolist()))
