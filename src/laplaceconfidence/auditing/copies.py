"""What makes a pair of samples copies of each other: how near they are for where they are.

The reach of a sample is its distance to the last of its nearest others. A pair is judged by the share of
their reach that lies between them: this means the same in dense and in sparse places.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.auditing.blocks import row_blocks

NONE = -1
LARGEST_SHARE = 0.7  # of the reach, at which a pair may still be called copies, however improbable it is


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Copies, and the share of their reach that lies between them."""

    first: IntArray
    second: IntArray
    shares: FloatArray

    def nearest_partners(self, n: int) -> IntArray:
        """The other end of each sample's nearest pair, the lowest of equally near ones; -1 for none."""
        ends = np.concatenate([self.first, self.second])
        others = np.concatenate([self.second, self.first])
        order = np.lexsort((others, np.tile(self.shares, 2), ends))
        with_copy, at = np.unique(ends[order], return_index=True)
        partners = np.full(n, NONE)
        partners[with_copy] = others[order[at]]
        return partners


def shares_of_reach(distances: FloatArray, own: FloatArray, theirs: FloatArray) -> FloatArray:
    """Distances over the smaller reach of both ends, at most 1; 1 where there are copies all around."""
    smaller = np.minimum(own, theirs)
    return np.minimum(np.divide(distances, smaller, out=np.ones_like(distances), where=smaller > 0), 1)


def share_scores(shares: FloatArray, limit: float) -> FloatArray:
    """0 for an exact copy, 0.5 for a share at the limit, 1 where nothing is nearer than the usual."""
    power = np.log(0.5) / np.log(limit) if limit > 0 else 0.0
    return np.where(shares > 0, np.power(shares, power), 0.0)


def pairs_within(groups: IntArray) -> tuple[IntArray, IntArray]:
    """Successive members of every group: enough pairs to join all of them."""
    order = np.argsort(groups, kind="stable")
    same = groups[order[1:]] == groups[order[:-1]]
    return order[:-1][same], order[1:][same]


@dataclass(frozen=True, slots=True, eq=False)
class PlainFeatures:
    """Features as they are, not as directions: (1, 1) and (2, 2) point the same way and are different."""

    features: FloatArray
    others: FloatArray  # what the neighbors are rows of: the same features, or another set's
    neighbors: IntArray  # (n, r) the nearest among the others, -1 where fewer are known

    def distances(self, rows: IntArray, others: IntArray) -> FloatArray:
        """Distance of each of ``rows`` to the one of the others at the same place."""
        result = np.empty(len(rows))
        for some in row_blocks(len(rows), self.features.shape[1]):
            here, there = self.features[rows[some]], self.others[others[some]]
            # Divided first: squares of huge and tiny numbers must stay representable.
            largest = max(float(np.abs(here).max()), float(np.abs(there).max())) or 1.0
            result[some] = (
                np.linalg.norm((here / largest - there / largest).astype(np.float64), axis=1) * largest
            )
        return result

    def reach(self, rows: IntArray) -> FloatArray:
        """Largest distance of each of ``rows`` to its neighbors; infinite where fewer are known."""
        distinct, which = np.unique(rows, return_inverse=True)
        reach = np.zeros(len(distinct))
        for neighbors in self.neighbors[distinct].T:
            known = neighbors != NONE
            reach[~known] = np.inf
            reach[known] = np.maximum(reach[known], self.distances(distinct[known], neighbors[known]))
        return reach[which]
