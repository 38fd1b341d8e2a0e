"""Folds of the given labels, and the worlds in which one or two folds are hidden.

A model that has seen a label cannot judge it. In *world f* nothing has seen a label of fold f. To train on
soft targets in world f, those targets must not have seen fold f either, nor the label of the sample they
belong to: they come from the models of *pairs*, from which both folds are hidden.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray
from laplaceconfidence.data.labels import MISSING


def stratified_folds(codes: IntArray, n_folds: int, rng: np.random.Generator) -> IntArray:
    """A fold for every sample, each class spread evenly; samples without a label are a class of their own."""
    folds = np.empty(len(codes), dtype=np.int64)
    for code in np.unique(codes):
        members = rng.permutation(np.flatnonzero(codes == code))
        folds[members] = (np.arange(len(members)) + rng.integers(n_folds)) % n_folds
    return folds


@dataclass(frozen=True, slots=True)
class FoldWorlds:
    """Which samples are heard in which world, and which pair of folds shows a sample to a world."""

    folds: IntArray  # (n,)
    n_folds: int
    labeled: BoolArray  # (n,)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        return list(combinations(range(self.n_folds), 2))

    def heard_in_pairs(self) -> FloatArray:
        """(n, pairs) 1 where a sample's label is visible to the model of a pair."""
        heard = [(self.folds != f) & (self.folds != g) & self.labeled for f, g in self.pairs]
        return np.stack(heard, axis=1).astype(np.float32)

    def heard_in_worlds(self) -> FloatArray:
        """(n, folds) 1 where a sample's label is visible in a world."""
        heard = (self.folds[:, None] != np.arange(self.n_folds)) & self.labeled[:, None]
        return np.asarray(heard, dtype=np.float32)

    def foreign(self) -> BoolArray:
        """(n, folds) True where a world is not the sample's own."""
        mask: BoolArray = self.folds[:, None] != np.arange(self.n_folds)
        return mask

    def pair_seen_from(self) -> IntArray:
        """(n, folds) the pair that hides the sample's fold and the world's; 0 (unused) in its own world."""
        table = np.zeros((self.n_folds, self.n_folds), dtype=np.int64)
        for number, (f, g) in enumerate(self.pairs):
            table[f, g] = table[g, f] = number
        seen: IntArray = table[self.folds]
        return seen

    def average(self, values: FloatArray) -> FloatArray:
        """Mean over a sample's foreign worlds of values (n, folds, R)."""
        kept = np.where(self.foreign()[:, :, None], values, np.float32(0))
        return np.asarray(kept.sum(axis=1) / np.float32(self.n_folds - 1))

    def own(self, values: FloatArray) -> FloatArray:
        """Values (n, folds, ...) at every sample's own world, which has not seen its label."""
        return np.asarray(values[np.arange(len(self.folds)), self.folds])


def make_worlds(codes: IntArray, n_folds: int, rng: np.random.Generator) -> FoldWorlds:
    """Worlds over stratified folds of the given labels."""
    return FoldWorlds(stratified_folds(codes, n_folds, rng), n_folds, codes != MISSING)
