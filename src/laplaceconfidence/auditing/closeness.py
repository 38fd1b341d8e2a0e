"""How far every sample is from the others nearest to it: what outliers and copies are told by.

The neighbors come from the graph on which the labels were judged, so that nothing is searched twice; how far
they are is measured anew between the features as vectors of unit length, in full precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.auditing.blocks import row_blocks
from laplaceconfidence.auditing.copies import LARGEST_SHARE, NONE
from laplaceconfidence.features.scale import unit_length
from laplaceconfidence.graph.neighbors import find_neighbors

N_CLOSEST = 10  # neighbors that are looked at; a set of copies should be smaller than this
CHANCE_OF_COPY = 5e-4  # probability that a sample looks like a copy of another and is none


@dataclass(frozen=True, slots=True, eq=False)
class Closest:
    """The nearest other samples of every sample, the nearest first."""

    rows: IntArray  # (n, r), -1 where fewer than r are known
    distances: FloatArray  # (n, r) between unit vectors; that of a stranger where nobody is known

    @property
    def reach(self) -> FloatArray:
        """(n,) distance of the farthest of them: how far one must go from a sample to meet r others."""
        return self.distances[:, -1]


def find_closest(
    features: FloatArray,
    candidates: IntArray | None = None,
    *,
    search: str = "auto",
    n_jobs: int | None = None,
    random_state: Any = None,
) -> Closest:
    """The nearest others of every row of ``features``.

    ``candidates`` (n, k) are the neighbors that a search found before, -1 where it found fewer; without them
    one is made.
    """
    unit = unit_length(features)
    if candidates is None and len(unit) > 1:
        candidates = find_neighbors(
            unit, min(N_CLOSEST, len(unit) - 1), search=search, n_jobs=n_jobs, random_state=random_state
        ).indices
    elif candidates is None:
        candidates = np.full((1, 1), NONE)
    distances = distances_to(unit, unit, candidates)
    order = np.argsort(distances, axis=1, kind="stable")[:, :N_CLOSEST]
    return Closest(np.take_along_axis(candidates, order, 1), np.take_along_axis(distances, order, 1))


def heaviest_neighbors(graph: sparse.csr_array, n_neighbors: int) -> IntArray:
    """(n, n_neighbors) whom every row of a graph gives the largest weights, -1 where it has fewer."""
    n = graph.shape[0]
    lengths = np.diff(graph.indptr)
    row_of = np.repeat(np.arange(n), lengths)
    # Sorted by row, then by falling weight, as one number: several times faster than by two keys.
    order = np.argsort(row_of - graph.data / (2 * max(float(graph.data.max(initial=0)), 1e-30)))
    rank = np.arange(len(order)) - np.repeat(graph.indptr[:-1], lengths)
    kept = rank < n_neighbors
    heaviest = np.full((n, n_neighbors), NONE, dtype=np.int64)
    heaviest[row_of[kept], rank[kept]] = graph.indices[order[kept]]
    return heaviest


def distances_to(unit_queries: FloatArray, unit_points: FloatArray, indices: IntArray) -> FloatArray:
    """(m, r) distance of every query to the points ``indices`` (m, r) names.

    Where that is -1, as far as a stranger: a right angle away. Distances within rounding are 0.
    """
    distances = np.empty(indices.shape, dtype=np.float64)
    for rows in row_blocks(len(indices), indices.shape[1] * unit_points.shape[1]):
        difference = unit_points[indices[rows]] - unit_queries[rows, None]
        distances[rows] = np.sqrt(np.einsum("ikd,ikd->ik", difference, difference))
    distances[distances <= 16 * np.finfo(unit_points.dtype).eps] = 0
    is_zero = ~unit_queries.any(axis=1)
    stranger = np.where(is_zero, 1.0, np.sqrt(2))[:, None]
    return np.where(indices == NONE, stranger, distances)


def intrinsic_dimension(distances: FloatArray) -> float:
    """How many directions the data really has, from the growth of distances with rank; infinite without any.

    Among points spread evenly over m dimensions, log(d_r / d_j) is (H_{r-1} - H_{j-1}) / m on average, with H
    the harmonic numbers. The nearest half of the ranks is left out: that is where copies are.
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
    """Share of its reach within which a sample has no other by chance: nearer ones are copies.

    In m dimensions, one of r neighbors lies within a share c of the r-th one's distance with a probability
    of about (r - 1) c^m, whatever the density is there.
    """
    r = closest.distances.shape[1]
    if r < 2:
        return 0.0
    exponent = 1 / intrinsic_dimension(closest.distances)
    return min(LARGEST_SHARE, float((CHANCE_OF_COPY / (r - 1)) ** exponent))
