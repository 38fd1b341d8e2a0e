"""The neighbors that an estimator compared every sample with, kept so that its answer can be explained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from scipy import sparse

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.graph.affinity import degrees, normalized
from laplaceconfidence.graph.neighbors import Neighbors


class RankedNeighbors(NamedTuple):
    """The neighbors of one sample, the one of largest weight first."""

    rows: IntArray  # (k,)
    similarities: FloatArray  # (k,)
    shares: FloatArray  # (k,) of the weight of all neighbors; they sum to 1


@dataclass(frozen=True, slots=True, eq=False)
class Neighborhood:
    """Neighbors and weights as an estimator used them; both matrices store the same entries.

    Parameters
    ----------
    similarities : scipy.sparse.csr_array of shape (n, n)
        Row i holds the similarities of sample i to its neighbors.
    weights : scipy.sparse.csr_array of shape (n, n)
        How much each neighbor counted in the estimate.
    """

    similarities: sparse.csr_array
    weights: sparse.csr_array

    @classmethod
    def of_graph(cls, affinity: sparse.csr_array) -> Self:
        """The neighborhood of labels that spread over the normalized form of a symmetric graph."""
        return cls(affinity, normalized(affinity, degrees(affinity)))

    @classmethod
    def of_votes(cls, neighbors: Neighbors, weights: FloatArray) -> Self:
        """The neighborhood of votes with ``weights`` (n, k); those of positive similarity belong."""
        n = len(neighbors.indices)
        similar = neighbors.similarities > 0
        row_ends = np.concatenate([[0], np.cumsum(similar.sum(axis=1))])
        columns = neighbors.indices[similar]
        similarities, votes = (
            sparse.csr_array((values[similar], columns, row_ends), shape=(n, n))
            for values in (neighbors.similarities, weights)
        )
        return cls(similarities, votes)

    def __len__(self) -> int:
        return int(self.similarities.shape[0])

    def of(self, row: int) -> RankedNeighbors:
        """The neighbors of the sample ``row``."""
        span = slice(self.similarities.indptr[row], self.similarities.indptr[row + 1])
        rows = self.similarities.indices[span].astype(np.int64)
        weights = self.weights.data[span].astype(np.float64)
        order = np.lexsort((rows, -weights))
        shares = weights[order] / max(float(weights.sum()), np.finfo(np.float64).tiny)
        return RankedNeighbors(rows[order], self.similarities.data[span][order].astype(np.float64), shares)
