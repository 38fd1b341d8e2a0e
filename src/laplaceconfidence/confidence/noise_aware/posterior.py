"""Posteriors of the true class under a pool, and their calibration.

Two noise rates form a bracket. The optimistic one is the mean of 1 - w, where w = p(true = given | x, given)
is computed with the fitted noise matrix. The pessimistic one is the mean of 1 - p_y, where p_y is the
probability of the given label according to evidence that does not include it. If annotators confuse the same
classes as the evidence does, no noise is found and w is near 1 everywhere: the noise is not identified, and
the true rate may be anywhere in the bracket. The confidences are then the mean of two readings. The less of
the pessimistic rate the matrix explains, the more p_y instead of w orders the labels (decision 25).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.special import expit

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray
from laplaceconfidence.confidence.calibration import (
    LogOddsCalibration,
    fit_calibration_of_both,
    is_rare,
    log_odds,
    shifted_to_mean,
    shrunk_by_class,
)
from laplaceconfidence.confidence.noise_aware.noise_model import Pool
from laplaceconfidence.confidence.noise_aware.settings import SETTINGS
from laplaceconfidence.confidence.noise_aware.transition import (
    Candidates,
    own_columns,
    own_posterior,
    posterior,
    posterior_without_own,
    widen,
)
from laplaceconfidence.data.labels import MISSING

POSTERIOR = SETTINGS.posterior


@dataclass(slots=True)
class Posterior:
    """Posteriors of the true class of all samples, and the confidences of the labeled ones.

    Attributes
    ----------
    rows : ndarray of shape (labeled,)
        Row numbers of the labeled samples.
    distributions : ndarray of shape (n, C)
        Probability of every class.
    codes : ndarray of shape (labeled,)
        The given labels.
    by_matrix : ndarray of shape (labeled,)
        w, the probability under the noise matrix that the given label is right.
    support : ndarray of shape (labeled,)
        p_y, the probability of the given label according to evidence that does not include it.
    confidence : ndarray of shape (labeled,)
        The probability that the given label is right: w, until another order or level replaces it.
    """

    rows: IntArray
    distributions: FloatArray
    codes: IntArray
    by_matrix: FloatArray
    support: FloatArray
    confidence: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        self.confidence = self.by_matrix

    @property
    def bracket(self) -> tuple[float, float]:
        """Optimistic and pessimistic noise rate."""
        low, high = 1 - float(self.by_matrix.mean()), 1 - float(self.support.mean())
        return min(low, high), max(low, high)

    @property
    def explained(self) -> float:
        """Noise that the matrix finds, as a share of half the pessimistic rate; at most 1."""
        low, high = self.bracket
        return min(1.0, low / max(high * POSTERIOR.explained_share, POSTERIOR.least_mass))

    @property
    def identifiable(self) -> bool:
        """Whether the noise was identified, which overlapping classes can prevent."""
        low, high = self.bracket
        return high - low <= POSTERIOR.wide_bracket or low >= POSTERIOR.found_share * high

    def replace_confidence(self, confidence: FloatArray) -> None:
        """Set the confidences, and scale the other classes such that rows sum to 1.

        Parameters
        ----------
        confidence : ndarray of shape (labeled,)
            Probability that each given label is right.
        """
        posteriors = self.distributions[self.rows]
        every_row = np.arange(len(self.rows))
        posteriors[every_row, self.codes] = 0
        # If all other classes have probability 0, the rest is divided evenly among them.
        posteriors[posteriors.sum(axis=1) < POSTERIOR.least_mass] = 1.0
        posteriors[every_row, self.codes] = 0
        rest = posteriors.sum(axis=1)
        posteriors *= ((1 - confidence) / rest)[:, None]
        posteriors[every_row, self.codes] = confidence
        self.distributions[self.rows] = posteriors
        self.confidence = confidence

    def order_by(self, score: FloatArray) -> None:
        """Mix the order under the matrix with that of a score, as far as the matrix explains too little.

        If the noise was identified, the mean confidence is that of the matrix. Otherwise the confidences are
        the mean of two readings, since nothing in the labels favors one of them: that all labels are right,
        and the pessimistic one. The given class stays the most probable one.

        Parameters
        ----------
        score : ndarray of shape (labeled,)
            Scores in (0, 1), which do not depend on the matrix.
        """
        low, high = self.bracket
        found = self.identifiable
        part = self.explained if found else 0.0
        mixed = expit(part * log_odds(self.by_matrix) + (1 - part) * log_odds(score))
        one_group = np.zeros(len(self.rows), dtype=np.int64)
        shifted = shifted_to_mean(mixed, one_group, np.array([1 - (low if found else high)]))
        self.replace_confidence(shifted if found else (1 + shifted) / 2)


def pool_posterior(
    pool: Pool, evidence: list[FloatArray], given: IntArray, candidates: Candidates | None
) -> Posterior:
    """Compute the posteriors under a pool; where the matrix explains too little, ``support`` orders labels.

    Parameters
    ----------
    pool : Pool
        Weights, biases and noise matrix.
    evidence : list of ndarray of shape (n, R)
        One array per kind of evidence.
    given : ndarray of shape (n,)
        Given labels, ``MISSING`` where there is none.
    candidates : Candidates or None
        The classes of the columns; ``None`` for all in order.

    Returns
    -------
    Posterior
    """
    n_classes = len(pool.transition)
    rows = np.flatnonzero(given != MISSING)
    codes = given[rows]
    probabilities = pool.probabilities(evidence, candidates).astype(np.float64)
    some = None if candidates is None else candidates.at(rows)
    columns, parts = own_columns(codes, some)
    support = probabilities[rows, columns] * parts
    transition = pool.transition
    if pool.prior_counts is None:
        posteriors, _ = posterior(probabilities[rows], transition, codes, some)
    else:
        posteriors, transition = posterior_without_own(
            probabilities[rows], transition, pool.prior_counts, codes, some
        )
    confidence = own_posterior(posteriors, transition, codes, some)
    result = Posterior(rows, np.empty(0), codes, confidence, support)
    if result.identifiable:
        probabilities[rows] = posteriors
    result.distributions = widen(probabilities, candidates, n_classes)
    if result.explained < 1:
        # Under a matrix with hardly any noise all confidences are near 1, and their order means little.
        result.order_by(support)
    elif candidates is not None:
        result.replace_confidence(confidence)
    return result


def over_rounds(
    alternatives: list[tuple[Pool, list[FloatArray]]], given: IntArray, candidates: Candidates | None
) -> tuple[FloatArray, FloatArray]:
    """What the rounds agree on: the mean of their confidences, and the smallest support.

    Parameters
    ----------
    alternatives : list of (Pool, list of ndarray)
        Pools and the evidence they weight.
    given : ndarray of shape (n,)
        Given labels, ``MISSING`` where there is none.
    candidates : Candidates or None
        The classes of the columns; ``None`` for all in order.

    Returns
    -------
    confidence, support : ndarray of shape (labeled,)
    """
    each = [pool_posterior(pool, evidence, given, candidates) for pool, evidence in alternatives]
    confidence = np.mean([one.confidence for one in each], axis=0)
    return np.asarray(confidence), np.asarray(np.min([one.support for one in each], axis=0))


@dataclass(frozen=True, slots=True)
class CalibratedNoise:
    """Noise rate and calibration that belong to the confidences of a posterior.

    Attributes
    ----------
    cautious : ndarray of shape (labeled,)
        Calibrated mean confidence over the rounds, or the confidences if the noise was not identified.
    noise_rate : float
        Expected share of wrong labels.
    bracket : tuple of float
        Its lower and upper end.
    identifiable : bool
        Whether the noise was identified, or enough audited labels replace that.
    calibration : LogOddsCalibration or None
        The calibration by audited labels, if there were enough.
    """

    cautious: FloatArray
    noise_rate: float
    bracket: tuple[float, float]
    identifiable: bool
    calibration: LogOddsCalibration | None


def calibrate_posterior(
    found: Posterior,
    cautious: FloatArray,
    least_support: FloatArray,
    given: IntArray,
    verified: IntArray | None,
    n_classes: int,
    *,
    fallback: bool,
    at_random: BoolArray | None = None,
) -> CalibratedNoise:
    """Calibrate the confidences of a posterior, in place.

    The mean confidence of rare classes is moved toward the overall mean. Verified labels get the confidence 0
    or 1, and if enough of them were drawn at random, they calibrate the others.

    Parameters
    ----------
    found : Posterior
        The posterior, which is changed.
    cautious : ndarray of shape (labeled,)
        Mean confidence over the rounds, which is calibrated the same way; if the noise was not identified,
        the confidences replace it.
    least_support : ndarray of shape (labeled,)
        Smallest probability of every label over the rounds, by evidence that does not include it: the upper
        end of the bracket.
    given : ndarray of shape (n,)
        Given labels, ``MISSING`` where there is none.
    verified : ndarray of shape (n,) or None
        Verified labels, ``MISSING`` where there is none.
    n_classes : int
        Number of classes.
    fallback : bool
        Whether the noise rate was assumed; the lower end of the bracket is then 0.
    at_random : ndarray of bool, shape (n,), or None, default=None
        Which samples were drawn at random for verification; ``None`` means all verified ones.

    Returns
    -------
    CalibratedNoise
    """
    low, high = found.bracket
    low, high = 0.0 if fallback else low, max(high, 1 - float(least_support.mean()))
    identifiable = found.identifiable and not fallback
    codes = given[found.rows]
    rare = is_rare(codes, n_classes, POSTERIOR.rare_share)[codes]

    def with_rare_classes_shrunk(confidence: FloatArray) -> FloatArray:
        """There is little evidence for rare classes: otherwise all their labels would come first."""
        limits = (POSTERIOR.least_shrinkage, POSTERIOR.most_shrinkage)
        return np.where(rare, shrunk_by_class(confidence, codes, n_classes, limits), confidence)

    found.replace_confidence(with_rare_classes_shrunk(found.confidence))
    cautious = with_rare_classes_shrunk(cautious) if identifiable else found.confidence
    calibration = None
    if verified is not None:
        known = verified[found.rows] != MISSING
        right = verified[found.rows] == codes
        drawn = known if at_random is None else known & at_random[found.rows]
        if (n_drawn := int(drawn.sum())) >= POSTERIOR.fewest_audited:
            calibration = fit_calibration_of_both(
                found.confidence[drawn], found.support[drawn], right[drawn], trusted=identifiable
            )
            found.replace_confidence(calibration(found.confidence, found.support))
            cautious = calibration(cautious, found.support)
            rate = 1 - float(found.confidence.mean())
            variance = max(rate * (1 - rate), 1 / n_drawn) / n_drawn
            error = POSTERIOR.bracket_standard_errors * float(np.sqrt(variance))
            low, high = max(0.0, rate - error), min(1.0, rate + error)
            identifiable = True
        certain = found.confidence.copy()
        certain[known] = cautious[known] = right[known]
        found.replace_confidence(certain)
    rate = 1 - float(found.confidence.mean())
    return CalibratedNoise(cautious, rate, (min(low, rate), max(high, rate)), identifiable, calibration)
