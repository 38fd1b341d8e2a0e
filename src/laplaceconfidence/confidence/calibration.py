"""Calibration on the log-odds scale: to a given mean, toward the overall mean, to audited labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray

_LARGEST_LOG_ODDS = 30.0  # larger than all log-odds that _EDGE allows
_EDGE = 1e-12  # confidences are clipped to this distance from 0 and 1
_LEAST_VARIANCE = 1e-9  # smallest variance between classes, as a divisor
_MOST_STEPS = 60  # bisection alone would need about forty
_TOLERANCE = 1e-9  # of a shift that has converged; means are clipped to this distance from 0 and 1
_PRIOR_COUNT = 0.5  # right and wrong labels added at the center, so that fits are finite; not tuned
_SLOPE_PENALTY = 1.0  # weight of the squared difference of the slope from 1; not tuned


def calibration_bins(
    confidence: FloatArray, is_right: BoolArray, n_bins: int
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Compare probabilities with how often they are right, over equal bins of [0, 1].

    Parameters
    ----------
    confidence : ndarray of float64, shape (n,)
        Probabilities.
    is_right : ndarray of bool, shape (n,)
        Whether what they are probabilities of is true.
    n_bins : int
        Number of bins.

    Returns
    -------
    counts : ndarray of int, shape (n_bins,)
        Number of samples.
    confidence : ndarray of shape (n_bins,)
        Their mean probability, 0 in an empty bin.
    accuracy : ndarray of shape (n_bins,)
        The share of them that is right, 0 in an empty bin.
    """
    bins = np.minimum((confidence * n_bins).astype(np.int64), n_bins - 1)  # 1 belongs to the last bin
    counts: IntArray = np.bincount(bins, minlength=n_bins)
    divisor = np.maximum(counts, 1)
    sums = (np.bincount(bins, weights=values, minlength=n_bins) for values in (confidence, is_right))
    mean, accuracy = (total / divisor for total in sums)
    return counts, mean, accuracy


def log_odds(confidence: FloatArray) -> FloatArray:
    """Log-odds log(w / (1 - w)), clipped to finite values.

    Parameters
    ----------
    confidence : ndarray of shape (n,)
        Probabilities.

    Returns
    -------
    ndarray of float64, shape (n,)
    """
    result: FloatArray = logit(np.clip(confidence.astype(np.float64), _EDGE, 1 - _EDGE))
    return result


def shifted_to_mean(confidence: FloatArray, groups: IntArray, means: FloatArray) -> FloatArray:
    """Shift the log-odds of confidences such that every group has a given mean.

    Parameters
    ----------
    confidence : ndarray of shape (n,)
        Probabilities; their order inside a group does not change.
    groups : ndarray of shape (n,)
        Group of every sample, from 0.
    means : ndarray of shape (groups,)
        The mean of every group.

    Returns
    -------
    ndarray of shape (n,)
    """
    odds = log_odds(confidence)
    n_groups = len(means)
    sizes = np.maximum(np.bincount(groups, minlength=n_groups), 1)
    wanted = np.clip(means, _TOLERANCE, 1 - _TOLERANCE)
    low, high = np.full(n_groups, -2 * _LARGEST_LOG_ODDS), np.full(n_groups, 2 * _LARGEST_LOG_ODDS)
    shift = np.zeros(n_groups)
    for _ in range(_MOST_STEPS):
        moved = expit(odds + shift[groups])
        reached = np.bincount(groups, weights=moved, minlength=n_groups) / sizes
        slope = np.bincount(groups, weights=moved * (1 - moved), minlength=n_groups) / sizes
        low, high = np.where(reached < wanted, shift, low), np.where(reached < wanted, high, shift)
        newton = shift + (wanted - reached) / np.maximum(slope, _EDGE)
        # Newton's step if it stays within the interval, else its midpoint.
        step = np.where((newton > low) & (newton < high), newton, (low + high) / 2) - shift
        shift = shift + step
        if np.abs(step).max(initial=0.0) < _TOLERANCE:
            break
    result: FloatArray = expit(odds + shift[groups])
    return result


def shrunk_by_class(
    confidence: FloatArray, codes: IntArray, n_classes: int, limits: tuple[float, float]
) -> FloatArray:
    """Move the mean confidence of every class toward the overall mean, small classes more than large ones.

    Empirical Bayes: the overall mean counts as k further labels of every class, k = (variance within classes)
    / (variance between them), clipped to ``limits``.

    Parameters
    ----------
    confidence : ndarray of shape (n,)
        Probability that each label is right.
    codes : ndarray of shape (n,)
        Given labels.
    n_classes : int
        Number of classes.
    limits : tuple of float
        Smallest and largest k.

    Returns
    -------
    ndarray of shape (n,)
        Confidences in the same order within every class.
    """
    sizes = np.bincount(codes, minlength=n_classes)
    overall = float(confidence.mean())
    means = np.bincount(codes, weights=confidence, minlength=n_classes) / np.maximum(sizes, 1)
    inside = overall * (1 - overall)
    between = float((sizes * (means - overall) ** 2).sum() / sizes.sum()) - inside * n_classes / sizes.sum()
    strength = np.clip(inside / max(between, _LEAST_VARIANCE), *limits)
    wanted = (sizes * means + strength * overall) / (sizes + strength)
    return shifted_to_mean(confidence, codes, wanted)


def is_rare(codes: IntArray, n_classes: int, share: float) -> BoolArray:
    """Find the classes that have much fewer labels than the median class.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Given labels.
    n_classes : int
        Number of classes.
    share : float
        Share of the number of labels of the median class below which a class is rare.

    Returns
    -------
    ndarray of bool, shape (C,)
    """
    sizes = np.bincount(codes, minlength=n_classes)
    rare: BoolArray = sizes < share * np.median(sizes[sizes > 0])
    return rare


@dataclass(frozen=True, slots=True)
class LogOddsCalibration:
    """w -> sigmoid(slope * log-odds(w) + support_slope * log-odds(p_y) + offset).

    Attributes
    ----------
    slope, offset, support_slope : float
        Coefficients; ``support_slope`` is 0 if p_y is not used.
    """

    slope: float
    offset: float
    support_slope: float = 0.0

    @property
    def is_identity(self) -> bool:
        """Whether confidences stay as they are."""
        return (self.slope, self.offset, self.support_slope) == (1.0, 0.0, 0.0)

    def __call__(self, confidence: FloatArray, support: FloatArray | None = None) -> FloatArray:
        """Calibrate confidences w (n,); ``support`` are the probabilities p_y (n,)."""
        scores = self.slope * log_odds(confidence) + self.offset
        if support is not None:
            scores += self.support_slope * log_odds(support)
        result: FloatArray = expit(scores)
        return result


@dataclass(frozen=True, slots=True)
class _Line:
    """A line on the log-odds scale and its cost: minus log-likelihood, plus a penalty per parameter."""

    slope: float
    offset: float
    cost: float


def fit_calibration(confidence: FloatArray, right: BoolArray, *, trusted: bool) -> LogOddsCalibration:
    """Fit Platt scaling to verified labels: no change, an offset, or offset and slope.

    The one with the lowest criterion is used: Schwarz's if the confidence is ``trusted`` (a hundred labels
    are too few to improve calibrated confidences), Akaike's if it is not.

    Parameters
    ----------
    confidence : ndarray of shape (m,)
        Probability that each verified label is right.
    right : ndarray of bool, shape (m,)
        Whether it is.
    trusted : bool
        Whether the confidences are assumed to be calibrated already.

    Returns
    -------
    LogOddsCalibration
    """
    best = min(_lines(confidence, right, trusted=trusted), key=lambda line: line.cost)
    return LogOddsCalibration(best.slope, best.offset)


def fit_calibration_of_both(
    confidence: FloatArray, support: FloatArray, right: BoolArray, *, trusted: bool
) -> LogOddsCalibration:
    """Fit Platt scaling of the confidence w and the support p_y, averaged on the log-odds scale.

    Each of the two is used without change, with an offset, and with offset and slope. The six lines are
    averaged with weights exp(-cost), where the cost is the criterion of ``fit_calibration``. The average had
    a smaller mean error than the best line (decision 4).

    Parameters
    ----------
    confidence, support : ndarray of shape (m,)
        w and p_y of the verified labels.
    right : ndarray of bool, shape (m,)
        Whether they are right.
    trusted : bool
        As in ``fit_calibration``.

    Returns
    -------
    LogOddsCalibration
    """
    by_confidence = _lines(confidence, right, trusted=trusted)
    by_support = _lines(support, right, trusted=trusted)
    costs = np.array([line.cost for line in by_confidence + by_support])
    weights = np.exp(costs.min() - costs)
    weights /= weights.sum()
    slopes = weights * [line.slope for line in by_confidence + by_support]
    offsets = weights * [line.offset for line in by_confidence + by_support]
    own = len(by_confidence)
    return LogOddsCalibration(float(slopes[:own].sum()), float(offsets.sum()), float(slopes[own:].sum()))


def _lines(confidence: FloatArray, right: BoolArray, *, trusted: bool) -> list[_Line]:
    odds, outcome = log_odds(confidence), right.astype(np.float64)
    center = float(np.median(odds))

    def loss(slope: float, offset: float) -> float:
        scores = slope * (odds - center) + center + offset
        fit = float((np.logaddexp(0, scores) - outcome * scores).sum())
        at_center = center + offset
        return (
            fit
            + _PRIOR_COUNT * float(np.logaddexp(0, at_center) + np.logaddexp(0, -at_center))
            + 0.5 * _SLOPE_PENALTY * (slope - 1) ** 2
        )

    by_offset = minimize(lambda theta: loss(1.0, theta[0]), [0.0], method="Nelder-Mead")
    by_both = minimize(
        lambda theta: loss(float(np.exp(theta[0])), theta[1]),
        [0.0, float(by_offset.x[0])],
        method="Nelder-Mead",
    )
    penalty = np.log(len(odds)) / 2 if trusted else 1.0
    slope = float(np.exp(by_both.x[0]))
    return [
        _Line(1.0, 0.0, loss(1.0, 0.0)),
        _Line(1.0, float(by_offset.x[0]), float(by_offset.fun) + penalty),
        _Line(slope, center * (1 - slope) + float(by_both.x[1]), float(by_both.fun) + 2 * penalty),
    ]
