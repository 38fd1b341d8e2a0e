"""Samples that are there more than once: copies within a data set, and copies of the samples of another set.

The reach of a sample is its distance to the last of its nearest others. Whether a pair are copies depends on
their distance as a share of their reach: the same rule then applies in dense and in sparse regions. Equal
rows are found by their hashes, even if a search missed them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray, sized_row_blocks
from laplaceconfidence.auditing.closeness import (
    LARGEST_SHARE,
    N_CLOSEST,
    NONE,
    Closest,
    copy_share,
    distances_to,
)
from laplaceconfidence.auditing.equal_rows import groups_of_equal_rows, pairs_across, pairs_within
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.features.scale import unit_length
from laplaceconfidence.graph.neighbors import nearest_among
from laplaceconfidence.validation import must_be


@dataclass(frozen=True, slots=True, eq=False)
class NearDuplicates:
    """Which samples are copies of each other.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        0 for an exact copy, 0.5 at the limit, toward 1 for a sample like no other.
    flagged : ndarray of shape (n,)
        Whether the sample has a copy.
    copy_of : ndarray of shape (n,)
        Row of the nearest copy, -1 where there is none.
    set_of : ndarray of shape (n,)
        Number of the set of copies, in the order of their first rows; -1 for none.
    """

    scores: FloatArray
    flagged: BoolArray
    copy_of: IntArray
    set_of: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Leakage:
    """Which samples of a set are copies of samples of another set.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        0 for an exact copy, 0.5 at the limit, 1 where no sample of the other set is near.
    flagged : ndarray of shape (n,)
        Whether the sample has a copy in the other set.
    copy_of : ndarray of shape (n,)
        Row of that copy in the other set, -1 where there is none.
    """

    scores: FloatArray
    flagged: BoolArray
    copy_of: IntArray


def find_near_duplicates(features: FloatArray, closest: Closest) -> NearDuplicates:
    """Find pairs of samples that are far nearer to each other than both are to their neighbors.

    Equal rows are always found. Other pairs are copies if their distance is within a share of the reach of
    both (``copy_share``), and if their features as they are, not only their directions, are close.

    Parameters
    ----------
    features : ndarray of shape (n, d)
        Feature vectors.
    closest : Closest
        Their nearest others.

    Returns
    -------
    NearDuplicates
    """
    n = len(features)
    limit = copy_share(closest)
    shares = _shares_of_reach(closest.distances, closest.reach[:, None], closest.reach[closest.rows])
    shares[closest.rows == NONE] = 1
    first, which = np.nonzero(shares < limit)
    second = closest.rows[first, which]
    plain = _PlainFeatures(features, features, closest.rows)
    plain_shares = _shares_of_reach(plain.distances(first, second), plain.reach(first), plain.reach(second))
    copies = plain_shares < LARGEST_SHARE
    shares[first[~copies], which[~copies]] = 1
    equal_first, equal_second = pairs_within(groups_of_equal_rows(features))
    pairs = _Pairs(
        np.concatenate([equal_first, first[copies]]),
        np.concatenate([equal_second, second[copies]]),
        np.concatenate([np.zeros(len(equal_first)), shares[first, which][copies]]),
    )
    nearest = shares.min(axis=1)
    for ends in (pairs.first, pairs.second):
        np.minimum.at(nearest, ends, pairs.shares)
    copy_of = pairs.nearest_partners(n)
    return NearDuplicates(_share_scores(nearest, limit), copy_of != NONE, copy_of, _sets(n, pairs))


def find_leakage(
    features: FloatArray, other_features: FloatArray, closest: Closest, *, n_jobs: int | None = None
) -> Leakage:
    """Find pairs across two sets that are far nearer than the samples of the first set are to each other.

    The rule is that of near-duplicates: the distance of a pair lies within a share of the reach of both,
    among the samples of the first set. Equal rows are always found.

    Parameters
    ----------
    features : ndarray of shape (n, d)
        Feature vectors of the first set.
    other_features : ndarray of shape (m, d)
        Feature vectors of the other set.
    closest : Closest
        The nearest others within the first set.
    n_jobs : int, optional
        Threads of the search.

    Returns
    -------
    Leakage
    """
    if other_features.shape[1] != features.shape[1]:
        rule = f"described by the {features.shape[1]} features of the audited set"
        raise must_be("test", rule, f"{other_features.shape[1]} features")
    n, m = len(features), len(other_features)
    unit, other_unit = unit_length(features), unit_length(other_features.astype(features.dtype, copy=False))
    found = nearest_among(other_unit, unit, min(N_CLOSEST, n), n_jobs=n_jobs)[0]
    distances = distances_to(other_unit, unit, found)
    limit = copy_share(closest)
    shares = _shares_of_reach(distances, distances.max(axis=1)[:, None], closest.reach[found])
    other, which = np.nonzero(shares < limit)
    row = found[other, which]
    across = _PlainFeatures(other_features, features, found)
    within = _PlainFeatures(features, features, closest.rows)
    plain_shares = _shares_of_reach(across.distances(other, row), across.reach(other), within.reach(row))
    copies = plain_shares < LARGEST_SHARE
    shares[other[~copies], which[~copies]] = 1
    equal_row, equal_other = pairs_across(groups_of_equal_rows(features, other_features), n)
    pairs = _Pairs(
        np.concatenate([equal_row, row[copies]]),
        n + np.concatenate([equal_other, other[copies]]),
        np.concatenate([np.zeros(len(equal_row)), shares[other, which][copies]]),
    )
    nearest = np.ones(n)
    np.minimum.at(nearest, found.ravel(), shares.ravel())
    nearest[equal_row] = 0
    partners = pairs.nearest_partners(n + m)[:n]
    copy_of = np.where(partners == NONE, NONE, partners - n)
    return Leakage(_share_scores(nearest, limit), copy_of != NONE, copy_of)


def conflicting(duplicates: NearDuplicates, labels: IntArray) -> BoolArray:
    """Find labeled samples that have a copy with a different label.

    Parameters
    ----------
    duplicates : NearDuplicates
        Sets of copies.
    labels : ndarray of int of shape (n,)
        Codes of the labels.

    Returns
    -------
    ndarray of bool of shape (n,)
    """
    result = np.zeros(len(labels), dtype=bool)
    labeled = np.flatnonzero((duplicates.set_of != NONE) & (labels != MISSING))
    if len(labeled) == 0:
        return result
    sets, codes = duplicates.set_of[labeled], labels[labeled]
    lowest = np.full(sets.max() + 1, np.iinfo(np.int64).max)
    highest = np.full(sets.max() + 1, MISSING)
    np.minimum.at(lowest, sets, codes)
    np.maximum.at(highest, sets, codes)
    result[labeled] = lowest[sets] != highest[sets]
    return result


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """Pairs of copies, and the share of their reach that lies between them."""

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


@dataclass(frozen=True, slots=True, eq=False)
class _PlainFeatures:
    """Features as they are, not as directions: (1, 1) and (2, 2) have one direction and are different."""

    features: FloatArray
    others: FloatArray  # what the neighbors are rows of: the same features, or another set's
    neighbors: IntArray  # (n, r) the nearest among the others, -1 where fewer are known

    def distances(self, rows: IntArray, others: IntArray) -> FloatArray:
        """Distance of each of ``rows`` to the one of ``others`` at the same position."""
        result = np.empty(len(rows))
        for some in sized_row_blocks(len(rows), self.features.shape[1]):
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


def _shares_of_reach(distances: FloatArray, own: FloatArray, theirs: FloatArray) -> FloatArray:
    """Distances over the smaller reach of both ends, at most 1; 1 where that reach is 0."""
    smaller = np.minimum(own, theirs)
    return np.minimum(np.divide(distances, smaller, out=np.ones_like(distances), where=smaller > 0), 1)


def _share_scores(shares: FloatArray, limit: float) -> FloatArray:
    """0 for an exact copy, 0.5 for a share at the limit, 1 where nothing is nearer than usual."""
    power = np.log(0.5) / np.log(limit) if limit > 0 else 0.0
    return np.where(shares > 0, np.power(shares, power), 0.0)


def _sets(n: int, pairs: _Pairs) -> IntArray:
    """Number of the set each sample is in, counted in the order of the sets' first rows; -1 for none."""
    edges = sparse.coo_array(
        (np.ones(len(pairs.first), dtype=bool), (pairs.first, pairs.second)), shape=(n, n)
    )
    component: IntArray = connected_components(edges, directed=False)[1].astype(np.int64)
    in_set = np.bincount(component)[component] > 1
    result = np.full(n, NONE)
    found, first_rows, which = np.unique(component[in_set], return_index=True, return_inverse=True)
    place = np.empty(len(found), dtype=np.int64)
    place[np.argsort(first_rows)] = np.arange(len(found))
    result[in_set] = place[which]
    return result
