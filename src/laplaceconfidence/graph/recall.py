"""What an approximate search is compared with, and what it costs to reach a recall."""

from __future__ import annotations

from dataclasses import dataclass

import faiss

from laplaceconfidence.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Effort:
    """What every query is compared with.

    Attributes
    ----------
    n_cells : int
        Number of cells.
    n_candidates : int
        Number of samples of these cells that are compared in all features.
    recall : float
        The recall that this reached on the queries it was chosen on.
    nanoseconds : float
        Rough time per query.
    """

    n_cells: int
    n_candidates: int
    recall: float
    nanoseconds: float

    def merit(self, target: float) -> tuple[float, float]:
        """What decides between two: the recall up to a target, then the time.

        Parameters
        ----------
        target : float
            The recall that suffices.

        Returns
        -------
        tuple of float
            Larger is better.
        """
        return min(self.recall, target), -self.nanoseconds


@dataclass(frozen=True, slots=True)
class ExactNeighbors:
    """The true neighbors of some queries.

    Attributes
    ----------
    rows : ndarray of int64, shape (m,)
        The queries, ascending.
    neighbors : ndarray of int64, shape (m, k)
        Their neighbors.
    accepted : ndarray of float32, shape (m, 1)
        Similarity from which on a sample counts as a true neighbor; duplicates tie.
    """

    rows: IntArray
    neighbors: IntArray
    accepted: FloatArray

    @classmethod
    def search(cls, points: FloatArray, rows: IntArray, k: int) -> ExactNeighbors:
        """Search by comparison with all points.

        Parameters
        ----------
        points : ndarray of float32, shape (n, d)
            Unit vectors.
        rows : ndarray of int64, shape (m,)
            The queries, ascending.
        k : int
            Number of neighbors; the query itself is not one.

        Returns
        -------
        ExactNeighbors
        """
        similar, found = faiss.knn(points[rows], points, k + 1, metric=faiss.METRIC_INNER_PRODUCT)
        neighbors, similar = without_self(rows, found, similar)
        return cls(rows, neighbors, similar[:, -1:] - 1e-6)


def without_self(rows: IntArray, indices: IntArray, similarities: FloatArray) -> tuple[IntArray, FloatArray]:
    """Remove the query itself from the samples that were found.

    Parameters
    ----------
    rows : ndarray of shape (m,)
        The queries.
    indices : ndarray of shape (m, k + 1)
        Samples found for every query.
    similarities : ndarray of shape (m, k + 1)
        Their similarities.

    Returns
    -------
    indices : ndarray of shape (m, k)
        Without the query, or without the last sample if duplicates displaced the query.
    similarities : ndarray of shape (m, k)
    """
    kept = indices != rows[:, None]
    kept[kept.all(axis=1), -1] = False
    shape = len(rows), indices.shape[1] - 1
    return indices[kept].reshape(shape), similarities[kept].reshape(shape)
