"""What verdicts on a random sample say about all labels: the noise rate, and better confidences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray
from laplaceconfidence.confidence.calibration import LogOddsCalibration, fit_calibration

FEWEST_TO_CALIBRATE = 50
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class NoiseEstimate:
    """Share of wrong labels among all, from a random sample of verdicts."""

    n_verdicts: int
    n_wrong: int
    low: float  # bounds that hold the true share in at least 95 of 100 samples (Clopper-Pearson)
    high: float

    @property
    def rate(self) -> float:
        return self.n_wrong / self.n_verdicts if self.n_verdicts else float("nan")


@dataclass(frozen=True, slots=True, eq=False)
class RandomSample:
    """The verdicts that count as drawn at random."""

    rows: IntArray
    wrong: BoolArray


def random_sample(
    random_order: IntArray, is_decided: BoolArray, said_wrong: FloatArray, in_random_queue: BoolArray
) -> RandomSample:
    """The verdicts on the first samples of the random order, wherever they were given.

    The order was drawn before anyone looked. All rows up to the last one that was decided in the random queue
    are therefore a random sample, also those that a person met among the suspects first; a sample that was
    skipped ends it, as people skip what is hard. ``said_wrong`` is 1, 0 or, for 'unsure', NaN by row.
    """
    skipped = np.flatnonzero(~is_decided[random_order])
    without_gap = random_order[: skipped[0]] if len(skipped) else random_order
    reached = np.flatnonzero(in_random_queue[without_gap])
    if len(reached) == 0:
        return RandomSample(np.empty(0, np.int64), np.empty(0, bool))
    drawn = without_gap[: reached[-1] + 1]
    rows = drawn[~np.isnan(said_wrong[drawn])]
    return RandomSample(rows, said_wrong[rows] == 1)


def noise_estimate(wrong: BoolArray) -> NoiseEstimate:
    """The exact interval of Clopper and Pearson (1934)."""
    n, k = len(wrong), int(wrong.sum())
    outside = (1 - LEVEL) / 2
    low = float(betaincinv(k, n - k + 1, outside)) if k > 0 else 0.0
    high = float(betaincinv(k + 1, n - k, 1 - outside)) if k < n else 1.0
    return NoiseEstimate(n, k, low, high)


def calibration_from(sample: RandomSample, confidence: FloatArray) -> LogOddsCalibration | None:
    """How to correct confidences so that they match the verdicts; ``None`` for too few verdicts."""
    if len(sample.rows) < FEWEST_TO_CALIBRATE:
        return None
    return fit_calibration(confidence[sample.rows], ~sample.wrong, trusted=False)
