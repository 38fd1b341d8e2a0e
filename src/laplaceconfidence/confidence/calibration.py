"""Confidences moved on the log-odds scale: to a wanted mean, toward other classes, to audited labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray

LEAST_SHRINKAGE, MOST_SHRINKAGE = 10.0, 100.0  # labels that the other classes' experience is worth
RARE_SHARE = 0.1  # of the median class's labels
_LARGEST_LOG_ODDS = 30.0
_EDGE = 1e-12
_MOST_STEPS = 60  # bisection alone would need forty
_ARRIVED = 1e-9


def log_odds(confidence: FloatArray) -> FloatArray:
    """log(w / (1 - w)), finite."""
    result: FloatArray = logit(np.clip(confidence.astype(np.float64), _EDGE, 1 - _EDGE))
    return result


def shifted_to_mean(confidence: FloatArray, groups: IntArray, means: FloatArray) -> FloatArray:
    """Confidences whose log-odds are shifted, by group, so that every group has its wanted mean.

    The order inside a group does not change.
    """
    odds = log_odds(confidence)
    n_groups = len(means)
    sizes = np.maximum(np.bincount(groups, minlength=n_groups), 1)
    wanted = np.clip(means, 1e-9, 1 - 1e-9)
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


def shrunk_by_class(confidence: FloatArray, codes: IntArray, n_classes: int) -> FloatArray:
    """Confidences in which small classes lean on what is known about the others.

    Empirical Bayes: the mean confidence of a class with n labels is drawn to the overall mean as if k labels
    stood behind the latter; k = (variance inside classes) / (variance between them), kept within 10..100. A
    class of five is therefore judged mostly by the rest, a class of thousands by itself.
    """
    sizes = np.bincount(codes, minlength=n_classes)
    overall = float(confidence.mean())
    means = np.bincount(codes, weights=confidence, minlength=n_classes) / np.maximum(sizes, 1)
    inside = overall * (1 - overall)
    between = float((sizes * (means - overall) ** 2).sum() / sizes.sum()) - inside * n_classes / sizes.sum()
    strength = np.clip(inside / max(between, 1e-9), LEAST_SHRINKAGE, MOST_SHRINKAGE)
    wanted = (sizes * means + strength * overall) / (sizes + strength)
    return shifted_to_mean(confidence, codes, wanted)


def is_rare(codes: IntArray, n_classes: int) -> BoolArray:
    """(C,) whether a class has less than a tenth of the labels that the median class has."""
    sizes = np.bincount(codes, minlength=n_classes)
    rare: BoolArray = sizes < RARE_SHARE * np.median(sizes[sizes > 0])
    return rare


@dataclass(frozen=True, slots=True)
class LogOddsCalibration:
    """w -> sigmoid(slope * log-odds(w) + support_slope * log-odds(p_y) + offset)."""

    slope: float
    offset: float
    support_slope: float = 0.0

    def __call__(self, confidence: FloatArray, support: FloatArray | None = None) -> FloatArray:
        scores = self.slope * log_odds(confidence) + self.offset
        if support is not None:
            scores += self.support_slope * log_odds(support)
        result: FloatArray = expit(scores)
        return result


@dataclass(frozen=True, slots=True)
class _Line:
    """One way to move log-odds and what it costs: minus log-likelihood, plus a price a parameter."""

    slope: float
    offset: float
    cost: float


def fit_calibration(confidence: FloatArray, right: BoolArray, *, trusted: bool) -> LogOddsCalibration:
    """Platt scaling on verified labels: as they are, an offset, or offset and slope.

    A parameter must pay for itself: by Schwarz's criterion where the confidence is ``trusted`` (a hundred
    labels are too few to improve what is already right), by Akaike's where it is not.
    """
    best = min(_lines(confidence, right, trusted=trusted), key=lambda line: line.cost)
    return LogOddsCalibration(best.slope, best.offset)


def fit_calibration_of_both(
    confidence: FloatArray, support: FloatArray, right: BoolArray, *, trusted: bool
) -> LogOddsCalibration:
    """Platt scaling of the optimistic reading w and the pessimistic one p_y, averaged on the log-odds scale.

    Each reading is taken as it is, with an offset, and with offset and slope; all six weigh as much as the
    verified labels make them likely, at the prices of ``fit_calibration``. Where a hundred labels cannot
    decide between them, the average is closer than the best guess.
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
        # Half a wrong and half a right label at the center keep one-sided samples finite.
        at_center = center + offset
        return (
            fit
            + 0.5 * float(np.logaddexp(0, at_center) + np.logaddexp(0, -at_center))
            + 0.5 * (slope - 1) ** 2
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
