"""Which samples a person is shown, and in what order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from laplaceconfidence.arrays import BoolArray, IntArray
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.records.sample_arrays import SampleArrays

View = Literal["worst", "random", "unlabeled"]
Show = Literal["undecided", "decided", "all"]
SEARCHED_CHARACTERS = 2_000  # of every text, from its beginning


@dataclass(frozen=True, slots=True)
class Wanted:
    """What somebody wants to see."""

    view: View = "worst"
    given: int | None = None  # code of the given label
    suggested: int | None = None
    search: str = ""
    show: Show = "undecided"


class Queues:
    """The suspects worst first, all labels in random order, and the samples without a label."""

    def __init__(self, samples: SampleArrays) -> None:
        self._samples = samples
        missing = np.flatnonzero(~samples.is_labeled)
        surest_first = np.argsort(-samples.probability[missing], kind="stable")
        self.rows_of: dict[View, IntArray] = {
            "worst": samples.suspects,
            "random": samples.random_order,
            "unlabeled": missing[surest_first],
        }
        self._found = lru_cache(maxsize=32)(self._search)
        self._texts: list[Any] | None = None

    def rows(self, wanted: Wanted, is_decided: BoolArray) -> IntArray:
        """The rows that are wanted, in the order of the queue."""
        rows = self.matching(wanted)
        if wanted.show == "all":
            return rows
        decided = is_decided[rows]
        return rows[decided if wanted.show == "decided" else ~decided]

    def matching(self, wanted: Wanted) -> IntArray:
        """The same, decided or not."""
        rows = self.rows_of[wanted.view]
        if wanted.given is not None:
            rows = rows[self._samples.given[rows] == wanted.given]
        if wanted.suggested is not None:
            rows = rows[self._samples.suggested[rows] == wanted.suggested]
        if wanted.search.strip():
            rows = rows[self._found(wanted.search.strip().casefold())[rows]]
        return rows

    def step(self, wanted: Wanted, is_decided: BoolArray, row: int | None, direction: int) -> int | None:
        """The wanted row after (or, for -1, before) ``row``, which may be wanted no more; from the end, on
        from the beginning."""
        if row is None:
            rows = self.rows(wanted, is_decided)
            return int(rows[0]) if len(rows) else None
        every = self.matching(wanted)
        fits = np.ones(len(every), dtype=bool)
        if wanted.show != "all":
            fits = is_decided[every] if wanted.show == "decided" else ~is_decided[every]
        at = np.flatnonzero(every == row)
        position = int(at[0]) if len(at) else -1
        turned = np.roll(np.arange(len(every)), -(position + 1))
        if direction < 0:
            turned = np.roll(np.arange(len(every)), -position)[::-1]
        candidates = turned[fits[turned] & (every[turned] != row)]
        return int(every[candidates[0]]) if len(candidates) else None

    def pairs(self, view: View, is_decided: BoolArray, most: int) -> list[tuple[int, int, int, int]]:
        """(given, suggested, how many, how many undecided), the most frequent first."""
        rows = self.rows_of[view]
        given, suggested = self._samples.given[rows], self._samples.suggested[rows]
        differs = (given != suggested) & (given != MISSING)
        n_classes = len(self._samples.class_names)
        cells = given[differs] * n_classes + suggested[differs]
        distinct, which, counts = np.unique(cells, return_inverse=True, return_counts=True)
        left = np.bincount(which, weights=~is_decided[rows[differs]], minlength=len(distinct))
        order = np.argsort(-counts, kind="stable")[:most]
        return [
            (int(distinct[i]) // n_classes, int(distinct[i]) % n_classes, int(counts[i]), int(left[i]))
            for i in order
        ]

    def _search(self, text: str) -> BoolArray:
        """Rows whose id, text or path holds ``text``, whatever the case."""
        if self._texts is None:
            sources = self._samples.sources
            shown = [""] * len(self._samples) if sources is None else sources
            self._texts = [
                f"{id}\n{source[:SEARCHED_CHARACTERS]}".casefold()
                for id, source in zip(self._samples.ids, shown, strict=True)
            ]
        return np.fromiter((text in held for held in self._texts), dtype=bool, count=len(self._texts))
