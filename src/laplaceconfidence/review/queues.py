"""Which samples a reviewer is shown, and in what order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np

from laplaceconfidence.arrays import BoolArray, IntArray
from laplaceconfidence.auditing.statement import VERIFIED_LABELS
from laplaceconfidence.auditing.summary import count_pairs
from laplaceconfidence.data.identity import name_of
from laplaceconfidence.records.other_issues import NO_SET, OtherIssues
from laplaceconfidence.records.sample_arrays import SampleArrays

QueueName = Literal[
    "worst",
    "ranked",
    "disputed",
    "random",
    "uncertain",
    "unlabeled",
    "outliers",
    "copies",
    "leaks",
    "images",
    "empty",
    "missing",
    "groups",
    "rare",
    "order",
]
QUEUES: tuple[QueueName, ...] = get_args(QueueName)
OTHER_ISSUES: tuple[QueueName, ...] = QUEUES[QUEUES.index("outliers") :]
Show = Literal["undecided", "decided", "all"]
SEARCHED_CHARACTERS = 2_000  # of every text, from its beginning


@dataclass(frozen=True, slots=True)
class QueueFilter:
    """Which samples of which queue are shown.

    Parameters
    ----------
    view : {"worst", "ranked", "disputed", "random", "uncertain", "unlabeled", *OTHER_ISSUES}, default="worst"
        The queue.
    given, suggested : int, optional
        Only samples with these labels (codes).
    search : str, default=""
        Only samples whose id, text or path contains this.
    show : {"undecided", "decided", "all"}, default="undecided"
        Only samples with or without a decision.
    """

    view: QueueName = "worst"
    given: int | None = None
    suggested: int | None = None
    search: str = ""
    show: Show = "undecided"


class Queues:
    """Flagged labels worst first, labels by rank, disputed ones, a random order, unlabeled samples, and more.

    In the queue of copies, the first row of every set stands for the set.

    Parameters
    ----------
    samples : SampleArrays
        The samples of the audit.
    issues : OtherIssues
        What it found besides wrong labels.
    """

    def __init__(self, samples: SampleArrays, issues: OtherIssues) -> None:
        self._samples = samples
        self._issues = issues
        missing = np.flatnonzero(~samples.is_labeled)
        surest_first = np.argsort(-samples.probability[missing], kind="stable")
        self.rows_of: dict[QueueName, IntArray] = {
            "worst": samples.suspects,
            "ranked": samples.first_rows,
            "disputed": samples.disputed,
            "random": samples.random_order,
            "uncertain": samples.uncertain,
            "unlabeled": missing[surest_first],
            "outliers": issues.outliers,
            "copies": np.array([copies.rows[0] for copies in issues.copies], dtype=np.int64),
            "leaks": issues.leaked,
            "images": issues.odd_images,
            "empty": issues.empty,
            "missing": issues.incomplete,
            "groups": issues.in_worst_groups,
            "rare": issues.in_rare_classes,
            "order": issues.not_random,
        }
        self._found = lru_cache(maxsize=32)(self._search)
        self._texts: list[Any] | None = None

    def rows(self, filter: QueueFilter, is_decided: BoolArray) -> IntArray:
        """Return the rows that pass a filter.

        Parameters
        ----------
        filter : QueueFilter
            Which samples of which queue.
        is_decided : ndarray of bool of shape (n,)
            Which samples have a decision.

        Returns
        -------
        ndarray of int
            In the order of the queue.
        """
        rows = self.matching(filter)
        if filter.show == "all":
            return rows
        decided = is_decided[rows]
        return rows[decided if filter.show == "decided" else ~decided]

    def matching(self, filter: QueueFilter) -> IntArray:
        """Return the rows that pass a filter, with and without a decision.

        Parameters
        ----------
        filter : QueueFilter
            Which samples of which queue.

        Returns
        -------
        ndarray of int
            In the order of the queue.
        """
        rows = self.rows_of[filter.view]
        if filter.given is None and filter.suggested is None and not filter.search.strip():
            return rows
        passes = np.ones(len(self._samples), dtype=bool)
        if filter.given is not None:
            passes &= self._samples.given == filter.given
        if filter.suggested is not None:
            passes &= self._samples.offered == filter.suggested
        if filter.search.strip():
            passes &= self._found(filter.search.strip().casefold())
        if filter.view == "copies":  # a set passes if one of its samples does
            of_sets = np.isin(self._issues.set_of, np.unique(self._issues.set_of[passes]))
            passes = of_sets & (self._issues.set_of != NO_SET)
        return rows[passes[rows]]

    def step(self, filter: QueueFilter, is_decided: BoolArray, row: int | None, direction: int) -> int | None:
        """Return the next row that passes a filter; after the last one comes the first.

        Parameters
        ----------
        filter : QueueFilter
            Which samples of which queue.
        is_decided : ndarray of bool of shape (n,)
            Which samples have a decision.
        row : int or None
            The current row, which need not pass the filter any more; None for the first row.
        direction : int
            -1 for the previous row.

        Returns
        -------
        int or None
            None where no other row passes the filter.
        """
        if row is None:
            rows = self.rows(filter, is_decided)
            return int(rows[0]) if len(rows) else None
        every = self.matching(filter)
        fits = np.ones(len(every), dtype=bool)
        if filter.show != "all":
            fits = is_decided[every] if filter.show == "decided" else ~is_decided[every]
        at = np.flatnonzero(every == row)
        position = int(at[0]) if len(at) else -1
        turned = np.roll(np.arange(len(every)), -(position + 1))
        if direction < 0:
            turned = np.roll(np.arange(len(every)), -position)[::-1]
        candidates = turned[fits[turned] & (every[turned] != row)]
        return int(every[candidates[0]]) if len(candidates) else None

    def pairs(self, view: QueueName, is_decided: BoolArray, most: int) -> list[tuple[int, int, int, int]]:
        """Count the labels of a queue by given and suggested class.

        Parameters
        ----------
        view : {"worst", "ranked", "disputed", "random", "uncertain", "unlabeled", *OTHER_ISSUES}
            The queue.
        is_decided : ndarray of bool of shape (n,)
            Which samples have a decision.
        most : int
            Pairs at most.

        Returns
        -------
        list of tuple of int
            (given, suggested, count, count of undecided ones), the most frequent pair first.
        """
        rows = self.rows_of[view]
        given, suggested = self._samples.given[rows], self._samples.offered[rows]
        n_classes = len(self._samples.class_names)
        undecided = ~is_decided[rows]
        left = {
            (old, new): n for old, new, n in count_pairs(given[undecided], suggested[undecided], n_classes)
        }
        pairs = count_pairs(given, suggested, n_classes)[:most]
        return [(old, new, n, left.get((old, new), 0)) for old, new, n in pairs]

    def n_left(self, is_decided: Callable[[QueueName], BoolArray]) -> dict[QueueName, int]:
        """Count the samples of every queue that are left to decide on.

        Of the random queue, which holds every label, only the first ones count: those that the audit drew, or
        as many as calibrate the confidences.

        Parameters
        ----------
        is_decided : callable
            Returns, for the name of a queue, which samples need no decision in it any more.

        Returns
        -------
        dict of str to int
        """
        n_drawn = len(self._samples.run.record.review_sample) or VERIFIED_LABELS
        rows_of = {**self.rows_of, "random": self.rows_of["random"][:n_drawn]}
        return {name: int((~is_decided(name)[rows]).sum()) for name, rows in rows_of.items()}

    def _search(self, text: str) -> BoolArray:
        """Rows whose id, number ("row 17", where the id is a digest), text or path contains ``text``."""
        if self._texts is None:
            sources = self._samples.sources
            shown = [""] * len(self._samples) if sources is None else sources
            self._texts = [
                f"{id}\n{name_of(id, row)}\n{source[:SEARCHED_CHARACTERS]}".casefold()
                for row, (id, source) in enumerate(zip(self._samples.ids, shown, strict=True))
            ]
        return np.fromiter((text in held for held in self._texts), dtype=bool, count=len(self._texts))
