"""Samples that belong to no class: far from everything, or far for where they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from laplaceconfidence.arrays import BoolArray, FloatArray
from laplaceconfidence.auditing.closeness import Closest

FEWEST_SAMPLES = 20  # below, nobody can say what is usual
LIMIT = 2.5  # in steps from the median to the ninth decile; about 3.2 standard deviations of a normal
LOCAL_SHARES = (0.0, 0.5, 1.0)  # how far a distance is measured against those of the neighbors
MANY_TIES = np.log(2) / LIMIT  # where nine tenths are equally far, twice as far is unusual


@dataclass(frozen=True, slots=True, eq=False)
class Outliers:
    """How well every sample is among others."""

    scores: FloatArray  # (n,) 1 amid others, 0.5 at the limit, toward 0 far from everything
    flagged: BoolArray  # (n,) score below 0.5


def find_outliers(closest: Closest) -> Outliers:
    """Compare how far each sample has to reach for its neighbors with how far the others have to.

    The logarithm of the reach is taken as it is, against half and against all of the mean reach of the
    neighbors: data may be dense here and sparse there. Each is put on a scale with the median at 0 and the
    ninth decile at 1, on which up to a tenth of outliers has no say; the largest of the three counts.
    """
    reach = closest.reach
    known = reach > 0  # the others have copies all around
    scores = np.ones(len(reach))
    if known.sum() < FEWEST_SAMPLES:
        return Outliers(scores, scores < 0.5)
    own = np.log(reach[known])
    around = np.log(_reach_around(closest)[known])
    unusual = np.max([_standardized(own - share * around) for share in LOCAL_SHARES], axis=0)
    scores[known] = expit(LIMIT - unusual)
    return Outliers(scores, scores < 0.5)


def _reach_around(closest: Closest) -> FloatArray:
    """Mean reach of a sample's neighbors; of those with copies all around nothing is known."""
    theirs = np.where(closest.rows >= 0, closest.reach[closest.rows], 0)
    known = (theirs > 0).sum(axis=1)
    mean = theirs.sum(axis=1) / np.maximum(known, 1)
    return np.where(known > 0, mean, closest.reach)


def _standardized(values: FloatArray) -> FloatArray:
    median, high = np.quantile(values, [0.5, 0.9])
    step = high - median
    return np.asarray((values - median) / (step if step > 1e-6 else MANY_TIES))
