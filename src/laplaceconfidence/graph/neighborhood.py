"""The neighbors and weights that an estimate used, which explanations show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from scipy import sparse

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.graph.affinity import degrees, normalized
from laplaceconfidence.graph.neighbors import Neighbors


class RankedNeighbors(NamedTuple):
    """The neighbors of one sample, the one of largest weight first.

    Attributes
    ----------
    rows : ndarray of int64, shape (k,)
        Row numbers of the neighbors.
    similarities : ndarray of float64, shape (k,)
        Their similarities to the sample.
    shares : ndarray of float64, shape (k,)
        Their weights, divided by the sum of all weights.
    """

    rows: IntArray
    similarities: FloatArray
    shares: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Neighborhood:
    """The neighbors and weights that an estimate used. Both matrices store the same entries.

    Parameters
    ----------
    similarities : scipy.sparse.csr_array of shape (n, n)
        Row i contains the similarities of sample i to its neighbors.
    weights : scipy.sparse.csr_array of shape (n, n)
        Row i contains the weights of the neighbors in the estimate of sample i.
    """

    similarities: sparse.csr_array
    weights: sparse.csr_array

    @classmethod
    def of_graph(cls, affinity: sparse.csr_array) -> Self:
        """Make the neighborhood of labels that were propagated over the normalized form of a graph.

        Parameters
        ----------
        affinity : scipy.sparse.csr_array of shape (n, n)
            The symmetric graph.

        Returns
        -------
        Neighborhood
        """
        return cls(affinity, normalized(affinity, degrees(affinity)))

    @classmethod
    def of_votes(cls, neighbors: Neighbors, weights: FloatArray) -> Self:
        """Make the neighborhood of votes; only neighbors of positive similarity are stored.

        Parameters
        ----------
        neighbors : Neighbors
            k neighbors per sample.
        weights : ndarray of shape (n, k)
            Weights of their votes.

        Returns
        -------
        Neighborhood
        """
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
        """Return the neighbors of one sample.

        Parameters
        ----------
        row : int
            Row number of the sample.

        Returns
        -------
        RankedNeighbors
        """
        span = slice(self.similarities.indptr[row], self.similarities.indptr[row + 1])
        rows = self.similarities.indices[span].astype(np.int64)
        weights = self.weights.data[span].astype(np.float64)
        order = np.lexsort((rows, -weights))
        shares = weights[order] / max(float(weights.sum()), np.finfo(np.float64).tiny)
        return RankedNeighbors(rows[order], self.similarities.data[span][order].astype(np.float64), shares)
