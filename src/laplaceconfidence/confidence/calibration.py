"""Confidences shifted on the log-odds scale: to a wanted mean, toward other classes, to audited labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray

_LARGEST_LOG_ODDS = 30.0  # above all log-odds that _EDGE allows
_EDGE = 1e-12  # confidences are kept this far from 0 and 1
_LEAST_VARIANCE = 1e-9
_MOST_STEPS = 60  # bisection alone would need forty
_ARRIVED = 1e-9
_PRIOR_COUNT = 0.5  # right and wrong labels that are added at the center: one-sided samples stay finite
_SLOPE_PENALTY = 1.0


def log_odds(confidence: FloatArray) -> FloatArray:
    """log(w / (1 - w)), finite."""
    result: FloatArray = logit(np.clip(confidence.astype(np.float64), _EDGE, 1 - _EDGE))
    return result


def shifted_to_mean(confidence: FloatArray, groups: IntArray, means: FloatArray) -> FloatArray:
    """Confidences whose log-odds are shifted so that every group has its wanted mean.

    Parameters
    ----------
    confidence : ndarray of shape (n,)
        Probabilities; their order inside a group does not change.
    groups : ndarray of shape (n,)
        Group of every sample, from 0.
    means : ndarray of shape (groups,)
        Wanted means.

    Returns
    -------
    ndarray of shape (n,)
    """
    odds = log_odds(confidence)
    n_groups = len(means)
    sizes = np.maximum(np.bincount(groups, minlength=n_groups), 1)
    wanted = np.clip(means, _ARRIVED, 1 - _ARRIVED)
    low, high = np.full(n_groups, -2 * _LARGEST_LOG_ODDS), np.full(n_groups, 2 * _LARGEST_LOG_ODDS)
    shift = np.zeros(n_groups)
    for _ in range(_MOST_STEPS):
        moved = expit(odds + shift[groups])
        reached = np.bincount(groups, weights=moved, minlength=n_groups) / sizes
        slope = np.bincount(groups, weights=moved * (1 - moved), minlength=n_groups) / sizes
        low, high = np.where(reached < wanted, shift, low), np.where(reached < wanted, high, shift)
        newton = shift + (wanted - reached) / np.maximum(slope, _EDGE)
        # Newton's step where it stays inside, else half the way.
        step = np.where((newton > low) & (newton < high), newton, (low + high) / 2) - shift
        shift = shift + step
        if np.abs(step).max(initial=0.0) < _ARRIVED:
            break
    result: FloatArray = expit(odds + shift[groups])
    return result


def shrunk_by_class(
    confidence: FloatArray, codes: IntArray, n_classes: int, limits: tuple[float, float]
) -> FloatArray:
    """Confidences whose mean per class is drawn to the overall mean, the more the smaller the class is.

    Empirical Bayes: the overall mean counts as k further labels of every class, k = (variance inside classes)
    / (variance between them), kept within ``limits``. The mean of a class of five depends mostly on the
    others, that of a class of thousands on itself.

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
    """(C,) whether a class has less than this ``share`` of the labels of the median class."""
    sizes = np.bincount(codes, minlength=n_classes)
    rare: BoolArray = sizes < share * np.median(sizes[sizes > 0])
    return rare


@dataclass(frozen=True, slots=True)
class LogOddsCalibration:
    """w -> sigmoid(slope * log-odds(w) + support_slope * log-odds(p_y) + offset).

    Attributes
    ----------
    slope, offset, support_slope : float
        Coefficients; ``support_slope`` is 0 where p_y is not used.
    """

    slope: float
    offset: float
    support_slope: float = 0.0

    @property
    def is_identity(self) -> bool:
        """Whether confidences stay as they are."""
        return (self.slope, self.offset, self.support_slope) == (1.0, 0.0, 0.0)

    def __call__(self, confidence: FloatArray, support: FloatArray | None = None) -> FloatArray:
        scores = self.slope * log_odds(confidence) + self.offset
        if support is not None:
            scores += self.support_slope * log_odds(support)
        result: FloatArray = expit(scores)
        return result


@dataclass(frozen=True, slots=True)
class _Line:
    """A line on the log-odds scale and its cost: minus log-likelihood, plus a price per parameter."""

    slope: float
    offset: float
    cost: float


def fit_calibration(confidence: FloatArray, right: BoolArray, *, trusted: bool) -> LogOddsCalibration:
    """Platt scaling on verified labels: the cheapest of no change, an offset, or offset and slope.

    Every parameter has a price: that of Schwarz's criterion where the confidence is ``trusted`` (a hundred
    labels are too few to improve what is already right), that of Akaike's where it is not.

    Parameters
    ----------
    confidence : ndarray of shape (m,)
        Probability that each verified label is right.
    right : ndarray of bool, shape (m,)
        Whether it is.
    trusted : bool
        Whether the confidence needs strong evidence to be changed.

    Returns
    -------
    LogOddsCalibration
    """
    best = min(_lines(confidence, right, trusted=trusted), key=lambda line: line.cost)
    return LogOddsCalibration(best.slope, best.offset)


def fit_calibration_of_both(
    confidence: FloatArray, support: FloatArray, right: BoolArray, *, trusted: bool
) -> LogOddsCalibration:
    """Platt scaling of the optimistic number w and the pessimistic one p_y, averaged on the log-odds scale.

    Each of the two is taken as it is, with an offset, and with offset and slope. The six lines are averaged
    with weights exp(-cost), at the prices of ``fit_calibration``. Where a hundred labels cannot decide
    between them, the average is closer than the best one (decision 4).

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
    price = np.log(len(odds)) / 2 if trusted else 1.0
    slope = float(np.exp(by_both.x[0]))
    return [
        _Line(1.0, 0.0, loss(1.0, 0.0)),
        _Line(1.0, float(by_offset.x[0]), float(by_offset.fun) + price),
        _Line(slope, center * (1 - slope) + float(by_both.x[1]), float(by_both.fun) + 2 * price),
    ]
