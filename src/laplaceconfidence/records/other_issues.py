"""What an audit found besides wrong labels, as reports, reviews and exports use it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray
from laplaceconfidence.records.audit_run import AuditRun

if TYPE_CHECKING:
    import pandas as pd

NO_SET = -1


@dataclass(frozen=True, slots=True, eq=False)
class CopySet:
    """Samples that are copies of each other.

    Parameters
    ----------
    rows : ndarray of int of shape (m,)
        Their rows, in the order of the data.
    is_conflicting : bool
        Whether their given labels differ.
    """

    rows: IntArray
    is_conflicting: bool


@dataclass(frozen=True, slots=True)
class Leak:
    """The sample of the test set that a sample is a copy of.

    Parameters
    ----------
    id : str
        Its id in the test set.
    label : str or None
        Name of its class there.
    text : str or None
        Its text.
    path : str or None
        Its image file.
    """

    id: str
    label: str | None
    text: str | None
    path: str | None


@dataclass(frozen=True, eq=False)
class OtherIssues:
    """What an audit found besides wrong labels; nothing where it had no features to compare.

    Parameters
    ----------
    outliers : ndarray of int
        Rows of the outliers, the farthest first.
    copies : tuple of CopySet
        Sets of copies: first those with conflicting labels, then the most similar ones.
    set_of : ndarray of int of shape (n,)
        Index into ``copies`` of the set that a sample is in; NO_SET for none.
    leaked : ndarray of int
        Rows of the samples that are also in the test set, the most similar first.
    odd_images : ndarray of int
        Rows of images that are dark, blurry, unreadable or otherwise odd.
    empty : ndarray of int
        Rows of empty texts.
    incomplete : ndarray of int
        Rows of a table most of whose cells are empty, those with fewest cells first.
    in_rare_classes : ndarray of int
        Rows of labels of rare classes, the rarest class and the least trustworthy label first.
    not_random : ndarray of int
        Rows that lie near similar ones, where rows are not in random order, the nearest first.
    in_worst_groups : ndarray of int
        Rows of labels in groups with many wrong labels, the worst group and label first.
    were_looked_for : bool
        Whether the audit had features to look for outliers and copies.
    had_test_set : bool
        Whether it had a test set to look for leaks.
    table : pandas.DataFrame
        The issues in the order of the data.
    name_of : dict of label to str
        Names of the classes, by how they are written among the labels.
    """

    outliers: IntArray
    copies: tuple[CopySet, ...]
    set_of: IntArray
    leaked: IntArray
    odd_images: IntArray
    empty: IntArray
    incomplete: IntArray
    in_rare_classes: IntArray
    not_random: IntArray
    in_worst_groups: IntArray
    were_looked_for: bool
    had_test_set: bool
    table: pd.DataFrame
    name_of: dict[Any, str]

    @classmethod
    def of(cls, run: AuditRun) -> Self:
        """Read what an audit found.

        Parameters
        ----------
        run : AuditRun
            The audit.

        Returns
        -------
        OtherIssues
        """
        table = run.issues.sort_index()
        sets, set_of = _copy_sets(table)
        return cls(
            outliers=_worst_first(table, "is_outlier_issue", "outlier_score"),
            copies=sets,
            set_of=set_of,
            leaked=_worst_first(table, "is_leaked", "leakage_score"),
            odd_images=_marked(table, "is_image_issue"),
            empty=_marked(table, "is_empty_issue"),
            incomplete=_worst_first(table, "is_missing_value_issue", "missing_value_score"),
            in_rare_classes=_rarest_first(table),
            not_random=_worst_first(table, "is_row_order_issue", "row_order_score"),
            in_worst_groups=_worst_groups(table),
            were_looked_for="is_outlier_issue" in table,
            had_test_set="is_leaked" in table,
            table=table,
            name_of=dict(zip(run.record.class_values, run.record.class_names, strict=True)),
        )

    @property
    def n_copies(self) -> int:
        """int: samples that have a copy."""
        return int((self.set_of != NO_SET).sum())

    @property
    def n_conflicting(self) -> int:
        """int: sets of copies with conflicting labels."""
        return sum(found.is_conflicting for found in self.copies)

    @property
    def is_leaked(self) -> BoolArray:
        """ndarray of bool of shape (n,): which samples are also in the test set."""
        return _mask(self.leaked, len(self.set_of))

    @property
    def is_outlier(self) -> BoolArray:
        """ndarray of bool of shape (n,): which samples are outliers."""
        return _mask(self.outliers, len(self.set_of))

    def leak(self, row: int) -> Leak | None:
        """Return the sample of the test set that a sample is a copy of.

        Parameters
        ----------
        row : int
            Row of the sample.

        Returns
        -------
        Leak or None
            None where there is none.
        """
        id = self._cell("leaked_from", row)
        if id is None:
            return None
        label, text, path = (self._cell(f"leaked_from_{name}", row) for name in ("label", "text", "path"))
        name = None if label is None else self.name_of.get(label, str(label))
        return Leak(str(id), name, text, path)

    def image_issues(self, row: int) -> str | None:
        """Return what is odd about an image.

        Parameters
        ----------
        row : int
            Row of the sample.

        Returns
        -------
        str or None
            Such as "dark, blurry"; None if nothing is, or nobody looked.
        """
        found = self._cell("image_issues", row)
        return None if found is None else str(found)

    def missing_values(self, row: int) -> str | None:
        """Return which columns of a table are empty in a row.

        Parameters
        ----------
        row : int
            Row of the sample.

        Returns
        -------
        str or None
            Such as "age, income"; None if none is, or the data is no table of columns.
        """
        found = self._cell("missing_values", row)
        return None if found is None else str(found)

    def _cell(self, column: str, row: int) -> Any:
        import pandas as pd

        if column not in self.table:
            return None
        value = self.table[column].iloc[row]
        return None if pd.isna(value) else value


def best_copy(rows: IntArray, is_verified: BoolArray, probability: FloatArray) -> int:
    """Choose the copy to keep: one whose label a person verified, then the most probable label.

    Parameters
    ----------
    rows : ndarray of int of shape (m,)
        Rows of the copies, at least one.
    is_verified : ndarray of bool of shape (m,)
        Whether a person verified the label.
    probability : ndarray of shape (m,)
        Probability that the label is right, NaN where there is none.

    Returns
    -------
    int
        Row of the chosen copy; the first among equally good ones.
    """
    known = np.where(np.isnan(probability), -1.0, probability)
    return int(rows[np.lexsort((rows, -known, ~is_verified))[0]])


def _copy_sets(table: pd.DataFrame) -> tuple[tuple[CopySet, ...], IntArray]:
    set_of = np.full(len(table), NO_SET, dtype=np.int64)
    if "near_duplicate_set" not in table:
        return (), set_of
    number = table["near_duplicate_set"].fillna(NO_SET).to_numpy().astype(np.int64)
    scores = table["near_duplicate_score"].to_numpy(dtype=np.float64)
    conflicts = table["has_conflicting_duplicate"].to_numpy(dtype=bool)
    in_set = np.flatnonzero(number != NO_SET)
    by_set = in_set[np.argsort(number[in_set], kind="stable")]
    _, starts = np.unique(number[by_set], return_index=True)
    groups: list[NDArray[Any]] = np.split(by_set, starts[1:]) if len(by_set) else []
    groups.sort(key=lambda rows: (not conflicts[rows].any(), scores[rows].min(), rows[0]))
    for position, rows in enumerate(groups):
        set_of[rows] = position
    return tuple(CopySet(rows, bool(conflicts[rows].any())) for rows in groups), set_of


def _marked(table: pd.DataFrame, flag: str) -> IntArray:
    if flag not in table:
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(table[flag].to_numpy(dtype=bool))


def _rarest_first(table: pd.DataFrame) -> IntArray:
    rows = _marked(table, "is_rare_class_issue")
    if not len(rows):
        return rows
    labels = table["given_label"].iloc[rows]
    sizes = labels.map(labels.value_counts()).to_numpy(dtype=np.int64)
    scores = table["label_score"].to_numpy(dtype=np.float64)[rows]
    return rows[np.lexsort((scores, labels.astype(str).to_numpy(), sizes))]


def _worst_groups(table: pd.DataFrame) -> IntArray:
    rows = _marked(table, "is_group_issue")
    if not len(rows):
        return rows
    scores = table["label_score"].to_numpy(dtype=np.float64)[rows]
    groups = table["group"].to_numpy(dtype=np.int64)[rows]
    return rows[np.lexsort((scores, groups))][: np.count_nonzero(~np.isnan(scores))]


def _worst_first(table: pd.DataFrame, flag: str, score: str) -> IntArray:
    if flag not in table:
        return np.empty(0, dtype=np.int64)
    flagged = np.flatnonzero(table[flag].to_numpy(dtype=bool))
    scores = table[score].to_numpy(dtype=np.float64)[flagged]
    return flagged[np.argsort(scores, kind="stable")]


def _mask(rows: IntArray, n: int) -> BoolArray:
    result = np.zeros(n, dtype=bool)
    result[rows] = True
    return result
