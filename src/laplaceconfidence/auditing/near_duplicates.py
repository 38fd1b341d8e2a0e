"""Samples that are there more than once, equal or nearly so, and those whose copies have another label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray
from laplaceconfidence.auditing.closeness import Closest, copy_share
from laplaceconfidence.auditing.copies import (
    LARGEST_SHARE,
    NONE,
    Pairs,
    PlainFeatures,
    pairs_within,
    share_scores,
    shares_of_reach,
)
from laplaceconfidence.auditing.equal_rows import groups_of_equal_rows
from laplaceconfidence.data.labels import MISSING


@dataclass(frozen=True, slots=True, eq=False)
class NearDuplicates:
    """Which samples are copies of each other."""

    scores: FloatArray  # (n,) 0 for an exact copy, 0.5 at the limit, toward 1 for a sample like no other
    flagged: BoolArray  # (n,) has a copy
    copy_of: IntArray  # (n,) row of the nearest copy, -1 where there is none
    set_of: IntArray  # (n,) number of the set of copies, in the order of their first rows; -1 for none


def find_near_duplicates(features: FloatArray, closest: Closest) -> NearDuplicates:
    """Pairs that are far nearer to each other than both are to their neighbors.

    Equal rows are always found. Other pairs are copies if their distance is within a share of the reach of
    both (``copy_share``), and if their features, taken as they are and not as directions, are close as well.
    """
    n = len(features)
    limit = copy_share(closest)
    shares = shares_of_reach(closest.distances, closest.reach[:, None], closest.reach[closest.rows])
    shares[closest.rows == NONE] = 1
    first, which = np.nonzero(shares < limit)
    second = closest.rows[first, which]
    plain = PlainFeatures(features, features, closest.rows)
    plain_shares = shares_of_reach(plain.distances(first, second), plain.reach(first), plain.reach(second))
    copies = plain_shares < LARGEST_SHARE
    shares[first[~copies], which[~copies]] = 1
    equal_first, equal_second = pairs_within(groups_of_equal_rows(features))
    pairs = Pairs(
        np.concatenate([equal_first, first[copies]]),
        np.concatenate([equal_second, second[copies]]),
        np.concatenate([np.zeros(len(equal_first)), shares[first, which][copies]]),
    )
    nearest = shares.min(axis=1)
    for ends in (pairs.first, pairs.second):
        np.minimum.at(nearest, ends, pairs.shares)
    copy_of = pairs.nearest_partners(n)
    return NearDuplicates(share_scores(nearest, limit), copy_of != NONE, copy_of, _sets(n, pairs))


def conflicting(duplicates: NearDuplicates, labels: IntArray) -> BoolArray:
    """Which labeled samples have a copy, in their set, with a different label."""
    result = np.zeros(len(labels), dtype=bool)
    judged = np.flatnonzero((duplicates.set_of != NONE) & (labels != MISSING))
    if len(judged) == 0:
        return result
    sets, codes = duplicates.set_of[judged], labels[judged]
    lowest = np.full(sets.max() + 1, np.iinfo(np.int64).max)
    highest = np.full(sets.max() + 1, MISSING)
    np.minimum.at(lowest, sets, codes)
    np.maximum.at(highest, sets, codes)
    result[judged] = lowest[sets] != highest[sets]
    return result


def _sets(n: int, pairs: Pairs) -> IntArray:
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
