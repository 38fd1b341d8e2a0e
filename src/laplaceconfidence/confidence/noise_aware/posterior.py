"""Posteriors of the true class under a pool, and their calibration.

Two noise rates form a bracket. The optimistic one is the mean of 1 - w, where w = p(true = given | x, given)
is computed with the fitted noise matrix. The pessimistic one is the mean of 1 - p_y, where p_y is the
probability of the given label according to evidence that does not include it. If annotators confuse the same
classes as the evidence does, no noise is found and w is near 1 everywhere: the noise is not identified, and
the true rate may be anywhere in the bracket.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray
from laplaceconfidence.confidence.calibration import (
    LogOddsCalibration,
    fit_calibration_of_both,
    is_rare,
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
    confidence : ndarray of shape (labeled,)
        w, the probability that the given label is right.
    support : ndarray of shape (labeled,)
        p_y, the probability of the given label according to evidence that does not include it.
    identifiable : bool
        Whether the noise was identified, which overlapping classes can prevent.
    """

    rows: IntArray
    distributions: FloatArray
    codes: IntArray
    confidence: FloatArray
    support: FloatArray
    identifiable: bool

    @property
    def bracket(self) -> tuple[float, float]:
        """Optimistic and pessimistic noise rate."""
        low, high = 1 - float(self.confidence.mean()), 1 - float(self.support.mean())
        return min(low, high), max(low, high)

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

    def rank_by(self, score: FloatArray) -> None:
        """Replace the confidences by ones in the order of a score, with the same mean.

        Parameters
        ----------
        score : ndarray of shape (labeled,)
            Scores in (0, 1).
        """
        one_group = np.zeros(len(self.rows), dtype=np.int64)
        mean = np.array([float(self.confidence.mean())])
        self.replace_confidence(shifted_to_mean(score, one_group, mean))


def pool_posterior(
    pool: Pool, evidence: list[FloatArray], given: IntArray, candidates: Candidates | None
) -> Posterior:
    """Compute the posteriors under a pool; if the noise is not identified, ``support`` orders the labels.

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
    posteriors, _ = posterior(probabilities[rows], pool.transition, codes, some)
    confidence = own_posterior(posteriors, pool.transition, codes, some)
    low, high = 1 - float(confidence.mean()), 1 - float(support.mean())
    found = high - low <= POSTERIOR.wide_bracket or low >= POSTERIOR.found_share * high
    if found:
        probabilities[rows] = posteriors
    result = Posterior(rows, widen(probabilities, candidates, n_classes), codes, confidence, support, found)
    if not found:
        # Under a matrix without noise all confidences are near 1, and their order means little.
        result.rank_by(support)
    elif candidates is not None:
        result.replace_confidence(confidence)
    return result


def mean_confidence(
    alternatives: list[tuple[Pool, list[FloatArray]]], given: IntArray, candidates: Candidates | None
) -> FloatArray:
    """Mean over several pools of the probability that a label is right.

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
    ndarray of shape (labeled,)
    """
    each = [pool_posterior(pool, evidence, given, candidates).confidence for pool, evidence in alternatives]
    return np.asarray(np.mean(each, axis=0))


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
    given: IntArray,
    verified: IntArray | None,
    n_classes: int,
    *,
    fallback: bool,
    at_random: BoolArray | None = None,
) -> CalibratedNoise:
    """Calibrate the confidences of a posterior, in place.

    If the noise was identified, the mean confidence of small classes is moved toward the overall mean;
    otherwise only that of rare classes. Verified labels get the confidence 0 or 1, and if enough of them were
    drawn at random, they calibrate the others.

    Parameters
    ----------
    found : Posterior
        The posterior, which is changed.
    cautious : ndarray of shape (labeled,)
        Mean confidence over the rounds, which is calibrated the same way; if the noise was not identified,
        the confidences replace it.
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
    low = 0.0 if fallback else low
    identifiable = found.identifiable and not fallback
    codes = given[found.rows]

    def shrunk(confidence: FloatArray) -> FloatArray:
        limits = (POSTERIOR.least_shrinkage, POSTERIOR.most_shrinkage)
        return shrunk_by_class(confidence, codes, n_classes, limits)

    if identifiable:
        found.replace_confidence(shrunk(found.confidence))
        cautious = shrunk(cautious)
    else:
        # At the optimistic end confidences are near 1, the mean of a class depends on its one or two lowest
        # ones, and moving it toward the overall mean makes the order worse (decision 9). Without the
        # exception for rare classes, for which there is little evidence, all their labels would come first.
        rare = is_rare(codes, n_classes, POSTERIOR.rare_share)[codes]
        found.replace_confidence(np.where(rare, shrunk(found.confidence), found.confidence))
        cautious = found.confidence
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
