"""Estimates from the verdicts on a random sample: the noise rate, and a calibration of the confidences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray
from laplaceconfidence.confidence.calibration import LogOddsCalibration, fit_calibration
from laplaceconfidence.confidence.noise_aware.settings import FEWEST_AUDITED

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class NoiseEstimate:
    """Share of wrong labels among all, from the verdicts on a random sample.

    Parameters
    ----------
    n_verdicts : int
        Verdicts of the sample.
    n_wrong : int
        Labels among them that are wrong.
    low, high : float
        95% confidence interval of Clopper and Pearson.
    """

    n_verdicts: int
    n_wrong: int
    low: float
    high: float

    @property
    def rate(self) -> float:
        """float: share of wrong labels in the sample, NaN without verdicts."""
        return self.n_wrong / self.n_verdicts if self.n_verdicts else float("nan")


@dataclass(frozen=True, slots=True, eq=False)
class ReviewProgress:
    """How far a review is, and how many errors are expected to be left.

    Parameters
    ----------
    n_suspects : int
        Flagged labels.
    n_suspects_decided : int
        Flagged labels with a decision.
    n_ranked : int
        Labels to look at first, flagged or not.
    n_ranked_decided : int
        Those of them with a decision.
    n_left : dict of str to int
        Samples without a decision by queue.
    by_verdict : dict of str to int
        Decisions per verdict.
    expected_left : float
        Expected number of wrong labels among those that are not settled.
    most_left : float or None
        The highest number of wrong labels among those; None unless the noise was not identified and too few
        samples were drawn at random to calibrate the confidences.
    noise : NoiseEstimate
        Share of wrong labels, from the random sample.
    calibration : LogOddsCalibration or None
        Calibration of the confidences, if enough samples were drawn at random.
    other_issues : dict of str to tuple of int
        Decided and all samples of the queues of outliers and leaks, and sets of the queue of copies; queues
        that are empty are left out.
    """

    n_suspects: int
    n_suspects_decided: int
    n_ranked: int
    n_ranked_decided: int
    n_left: dict[str, int]
    by_verdict: dict[str, int]
    expected_left: float
    most_left: float | None
    noise: NoiseEstimate
    calibration: LogOddsCalibration | None
    other_issues: dict[str, tuple[int, int]]


@dataclass(frozen=True, slots=True, eq=False)
class RandomSample:
    """The verdicts that count as drawn at random.

    Parameters
    ----------
    rows : ndarray of int of shape (m,)
        Rows of the samples.
    wrong : ndarray of bool of shape (m,)
        Whether the given label is wrong.
    """

    rows: IntArray
    wrong: BoolArray


def random_sample(
    random_order: IntArray, is_decided: BoolArray, is_wrong: FloatArray, in_random_queue: BoolArray
) -> RandomSample:
    """Select the verdicts on the first samples of the random order, from whichever queue.

    The order was drawn before the review. All rows up to the last one that was decided in the random queue
    are therefore a random sample, including those that were first decided among the suspects. A sample that
    was skipped ends it, as reviewers skip difficult samples.

    Parameters
    ----------
    random_order : ndarray of int
        Labeled rows in random order.
    is_decided : ndarray of bool of shape (n,)
        Rows with a verdict.
    is_wrong : ndarray of shape (n,)
        1 where the verdict means that the label is wrong, 0 where it is right, NaN for "unsure".
    in_random_queue : ndarray of bool of shape (n,)
        Rows that were decided in the random queue.

    Returns
    -------
    RandomSample
    """
    skipped = np.flatnonzero(~is_decided[random_order])
    without_gap = random_order[: skipped[0]] if len(skipped) else random_order
    reached = np.flatnonzero(in_random_queue[without_gap])
    if len(reached) == 0:
        return RandomSample(np.empty(0, np.int64), np.empty(0, bool))
    drawn = without_gap[: reached[-1] + 1]
    rows = drawn[~np.isnan(is_wrong[drawn])]
    return RandomSample(rows, is_wrong[rows] == 1)


def noise_estimate(wrong: BoolArray) -> NoiseEstimate:
    """Estimate the noise rate, with the exact interval of Clopper and Pearson (1934).

    Parameters
    ----------
    wrong : ndarray of bool of shape (m,)
        Whether each label of a random sample is wrong.

    Returns
    -------
    NoiseEstimate
    """
    n, k = len(wrong), int(wrong.sum())
    outside = (1 - LEVEL) / 2
    low = float(betaincinv(k, n - k + 1, outside)) if k > 0 else 0.0
    high = float(betaincinv(k + 1, n - k, 1 - outside)) if k < n else 1.0
    return NoiseEstimate(n, k, low, high)


def calibration_from(sample: RandomSample, confidence: FloatArray) -> LogOddsCalibration | None:
    """Fit a calibration of confidences to the verdicts on a random sample.

    Parameters
    ----------
    sample : RandomSample
        The verdicts.
    confidence : ndarray of shape (n,)
        Confidences by row.

    Returns
    -------
    LogOddsCalibration or None
        None for too few verdicts.
    """
    if len(sample.rows) < FEWEST_AUDITED:
        return None
    return fit_calibration(confidence[sample.rows], ~sample.wrong, trusted=False)
