"""The nearest other samples of every sample, from which outliers and copies are found.

If the confidence estimator used enough neighbors, the nearest samples are selected among them and nothing is
searched again. Their distances are computed between the features scaled to unit length, in full precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from laplaceconfidence.arrays import FloatArray, IntArray, sized_row_blocks
from laplaceconfidence.features.scale import unit_length
from laplaceconfidence.graph.neighborhood import Neighborhood
from laplaceconfidence.graph.neighbors import find_neighbors

NONE = -1  # in place of a row, where there is none
N_CLOSEST = 10  # nearest samples that are kept; larger sets of copies may be missed in part
N_CANDIDATES = 50  # neighbors of the estimator that are measured; with 20, some copies are missed
FEWEST_CANDIDATES = 30  # of a sample, where the estimator compared other coordinates than the features
LARGEST_SHARE = 0.7  # of the reach, beyond which no pair is flagged as copies, however improbable it is
CHANCE_OF_COPY = 5e-4  # probability that a sample looks like a copy of another and is none


@dataclass(frozen=True, slots=True, eq=False)
class Closest:
    """The nearest other samples of every sample, the nearest first.

    Parameters
    ----------
    rows : ndarray of shape (n, r)
        Their rows; -1 where fewer than r are known.
    distances : ndarray of shape (n, r)
        Euclidean distances between unit vectors; that of a right angle where the row is -1.
    """

    rows: IntArray
    distances: FloatArray

    @property
    def reach(self) -> FloatArray:
        """ndarray of shape (n,): the distance to the last of them, within which a sample has r others."""
        return self.distances[:, -1]


def find_closest(
    features: FloatArray,
    neighborhood: Neighborhood | None = None,
    *,
    search: str = "auto",
    n_jobs: int | None = None,
    random_state: Any = None,
) -> Closest:
    """Find the nearest other samples of every sample.

    Parameters
    ----------
    features : ndarray of shape (n, d)
        Feature vectors; only their directions are compared.
    neighborhood : Neighborhood, optional
        The neighbors that an estimator found among the same samples. They are used as candidates if there
        are enough of them; otherwise, and by default, the neighbors are searched.
    search : {"auto", "exact", "ivf"}, default="auto"
        How to search, if a search is made.
    n_jobs : int, optional
        Threads of that search.
    random_state : int or None, optional
        Seed of that search.

    Returns
    -------
    Closest
        At most ``N_CLOSEST`` of them per sample.
    """
    unit = unit_length(features)
    measured = None if neighborhood is None else _measured_candidates(unit, neighborhood)
    if measured is not None:
        candidates, distances = measured
    else:
        if len(unit) > 1:
            n_closest = min(N_CLOSEST, len(unit) - 1)
            candidates = find_neighbors(
                unit, n_closest, search=search, n_jobs=n_jobs, random_state=random_state
            ).indices
        else:
            candidates = np.full((1, 1), NONE)
        distances = distances_to(unit, unit, candidates)
    order = np.argsort(distances, axis=1, kind="stable")[:, :N_CLOSEST]
    return Closest(np.take_along_axis(candidates, order, 1), np.take_along_axis(distances, order, 1))


def _measured_candidates(unit: FloatArray, neighborhood: Neighborhood) -> tuple[IntArray, FloatArray] | None:
    """(n, k) the most similar neighbors and their distances; None where they are too few to rely on.

    Estimators may compare other coordinates than the features, such as principal components. The nearest
    samples are then among the first neighbors, but are not the very first, so that more are needed.
    """
    candidates, similarities = most_similar(neighborhood.similarities, N_CANDIDATES)
    distances = distances_to(unit, unit, candidates)
    known = candidates != NONE
    counts = known.sum(axis=1)
    others = len(unit) - 1
    if _are_cosines(similarities[known], distances[known]):
        # Samples with fewer neighbors than the rest have no more at an acute angle: nothing to search for.
        is_enough = (counts >= min(N_CLOSEST, others)).mean() >= 0.95
    else:
        is_enough = bool((counts >= min(FEWEST_CANDIDATES, others)).all())
    if not is_enough:
        return None
    return candidates, distances


def _are_cosines(similarities: FloatArray, distances: FloatArray) -> bool:
    """Whether similarities are the cosines of the vectors with these distances."""
    if len(distances) == 0:
        return False
    return bool(np.median(np.abs(similarities - (1 - distances**2 / 2))) < 1e-3)


def most_similar(similarities: sparse.csr_array, n_neighbors: int) -> tuple[IntArray, FloatArray]:
    """The columns of the largest values per row of a sparse matrix, largest first, and these values.

    Parameters
    ----------
    similarities : scipy.sparse.csr_array of shape (n, n)
        Stored values are similarities.
    n_neighbors : int
        Columns per row; rows that store fewer are filled with -1 and 0.

    Returns
    -------
    columns : ndarray of shape (n, n_neighbors)
    values : ndarray of shape (n, n_neighbors)
    """
    n = similarities.shape[0]
    lengths = np.diff(similarities.indptr)
    n_neighbors = min(n_neighbors, int(lengths.max(initial=1)))
    row_of = np.repeat(np.arange(n), lengths)
    # Sorted by row, then by decreasing value, as one number: several times faster than by two keys.
    order = np.argsort(row_of - similarities.data / (2 * max(float(similarities.data.max(initial=0)), 1e-30)))
    rank = np.arange(len(order)) - np.repeat(similarities.indptr[:-1], lengths)
    kept = rank < n_neighbors
    columns = np.full((n, max(n_neighbors, 1)), NONE, dtype=np.int64)
    values = np.zeros(columns.shape)
    columns[row_of[kept], rank[kept]] = similarities.indices[order[kept]]
    values[row_of[kept], rank[kept]] = similarities.data[order[kept]]
    return columns, values


def distances_to(unit_queries: FloatArray, unit_points: FloatArray, indices: IntArray) -> FloatArray:
    """Distances of every query to some points.

    Parameters
    ----------
    unit_queries : ndarray of shape (m, d)
        Vectors of unit length, or zero.
    unit_points : ndarray of shape (n, d)
        Vectors of unit length, or zero.
    indices : ndarray of shape (m, r)
        Rows of the points; where one is -1, the distance is that of a right angle.

    Returns
    -------
    ndarray of shape (m, r)
        Euclidean distances; those within rounding are 0.
    """
    distances = np.empty(indices.shape, dtype=np.float64)
    for rows in sized_row_blocks(len(indices), indices.shape[1] * unit_points.shape[1]):
        difference = unit_points[indices[rows]] - unit_queries[rows, None]
        distances[rows] = np.sqrt(np.einsum("ikd,ikd->ik", difference, difference))
    distances[distances <= 16 * np.finfo(unit_points.dtype).eps] = 0
    is_zero = ~unit_queries.any(axis=1)
    right_angle = np.where(is_zero, 1.0, np.sqrt(2))[:, None]
    return np.where(indices == NONE, right_angle, distances)


def intrinsic_dimension(distances: FloatArray) -> float:
    """Estimate the dimension of the data from how distances grow with rank.

    Among points spread evenly over m dimensions, log(d_r / d_j) is (H_{r-1} - H_{j-1}) / m on average, with H
    the harmonic numbers. The nearest half of the ranks is left out, as copies are there.

    Parameters
    ----------
    distances : ndarray of shape (n, r)
        Distances of every sample to its nearest others, the nearest first.

    Returns
    -------
    float
        Infinite where it cannot be estimated.
    """
    r = distances.shape[1]
    first = max(1, r // 2)  # rank of the first distance that is used
    known = distances[:, first - 1] > 0
    if r < 2 or not known.any():
        return float("inf")
    logs = np.log(distances[known, first - 1 :])
    growth = float(np.median((logs[:, -1:] - logs[:, :-1]).mean(axis=1)))
    harmonic = np.cumsum(1 / np.arange(1, r))  # H_1 ... H_{r-1}
    before = np.concatenate([[0.0], harmonic])[first - 1 : r - 1]
    expected = float((harmonic[-1] - before).mean())
    return expected / growth if growth > 0 else float("inf")


def copy_share(closest: Closest) -> float:
    """Compute the share of a sample's reach within which there is no other sample by chance.

    In m dimensions, one of r neighbors lies within a share c of the r-th one's distance with a probability
    of about (r - 1) c^m, whatever the density is there.

    Parameters
    ----------
    closest : Closest
        The nearest other samples of every sample.

    Returns
    -------
    float
        Between 0 and ``LARGEST_SHARE``; pairs within this share of their reach are copies.
    """
    r = closest.distances.shape[1]
    if r < 2:
        return 0.0
    exponent = 1 / intrinsic_dimension(closest.distances)
    return min(LARGEST_SHARE, float((CHANCE_OF_COPY / (r - 1)) ** exponent))
