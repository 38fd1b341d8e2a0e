"""Samples of one set that are also in another, such as test samples among the training ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray
from laplaceconfidence.auditing.closeness import N_CLOSEST, Closest, copy_share, distances_to
from laplaceconfidence.auditing.copies import (
    LARGEST_SHARE,
    NONE,
    Pairs,
    PlainFeatures,
    share_scores,
    shares_of_reach,
)
from laplaceconfidence.auditing.equal_rows import groups_of_equal_rows
from laplaceconfidence.features.scale import unit_length
from laplaceconfidence.graph.neighbors import nearest_among
from laplaceconfidence.validation import must_be


@dataclass(frozen=True, slots=True, eq=False)
class Leakage:
    """Which samples of a set are copies of samples of another."""

    scores: FloatArray  # (n,) 0 for an exact copy, 0.5 at the limit, 1 where nothing is near
    flagged: BoolArray  # (n,) has a copy in the other set
    copy_of: IntArray  # (n,) its row in the other set, -1 where there is none
    other_copy_of: IntArray  # (m,) for the samples of the other set: row of the nearest copy here, or -1


def find_leakage(
    features: FloatArray, other_features: FloatArray, closest: Closest, *, n_jobs: int | None = None
) -> Leakage:
    """Pairs across two sets that are far nearer than the samples of the first set are to each other.

    ``closest`` are the neighbors within ``features``. The rule is that of near-duplicates: the distance of a
    pair lies within a share of the reach of both, among the samples of the first set. Equal rows are always
    found.
    """
    if other_features.shape[1] != features.shape[1]:
        rule = f"described by the {features.shape[1]} features of the audited set"
        raise must_be("test", rule, f"{other_features.shape[1]} features")
    n, m = len(features), len(other_features)
    unit, other_unit = unit_length(features), unit_length(other_features.astype(features.dtype, copy=False))
    found = nearest_among(other_unit, unit, min(N_CLOSEST, n), n_jobs=n_jobs)[0]
    distances = distances_to(other_unit, unit, found)
    limit = copy_share(closest)
    shares = shares_of_reach(distances, distances.max(axis=1)[:, None], closest.reach[found])
    other, which = np.nonzero(shares < limit)
    row = found[other, which]
    across, within = (
        PlainFeatures(other_features, features, found),
        PlainFeatures(features, features, closest.rows),
    )
    plain_shares = shares_of_reach(across.distances(other, row), across.reach(other), within.reach(row))
    copies = plain_shares < LARGEST_SHARE
    shares[other[~copies], which[~copies]] = 1
    equal_row, equal_other = _equal_across(groups_of_equal_rows(features, other_features), n)
    pairs = Pairs(
        np.concatenate([equal_row, row[copies]]),
        n + np.concatenate([equal_other, other[copies]]),
        np.concatenate([np.zeros(len(equal_row)), shares[other, which][copies]]),
    )
    nearest = np.ones(n)
    np.minimum.at(nearest, found.ravel(), shares.ravel())
    nearest[equal_row] = 0
    partners = pairs.nearest_partners(n + m)
    copy_of = np.where(partners[:n] == NONE, NONE, partners[:n] - n)
    return Leakage(share_scores(nearest, limit), copy_of != NONE, copy_of, partners[n:])


def _equal_across(groups: IntArray, n: int) -> tuple[IntArray, IntArray]:
    """Pairs of one of the first n rows and an equal one of the rest; each row with a copy is in some pair."""
    here, there = groups[:n], groups[n:]
    shared, first_here, first_there = np.intersect1d(here, there, return_indices=True)
    rows, others = (np.flatnonzero(np.isin(part, shared)) for part in (here, there))
    return (
        np.concatenate([rows, first_here[np.searchsorted(shared, there[others])]]),
        np.concatenate([first_there[np.searchsorted(shared, here[rows])], others]),
    )
