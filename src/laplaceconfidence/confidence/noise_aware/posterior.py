"""From the selected pool to the confidence of every label, and how far it can be trusted.

Two numbers bracket the truth. The optimistic one believes the noise that was found: w = p(true = given | x,
given). The pessimistic one is p_y, the probability that the evidence gives to the label without having seen
it. If people confuse classes as the evidence does, no noise is found, w is near 1 everywhere, and only the
bracket of the two is honest.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray
from laplaceconfidence.confidence.calibration import (
    LogOddsCalibration,
    fit_calibration_of_both,
    is_rare,
    shifted_to_mean,
    shrunk_by_class,
)
from laplaceconfidence.confidence.noise_aware.local_noise import (
    Disagreement,
    explained_part,
    measure_disagreement,
    mixed_with_majority,
)
from laplaceconfidence.confidence.noise_aware.noise_model import Pool
from laplaceconfidence.confidence.noise_aware.propagation import close_votes
from laplaceconfidence.confidence.noise_aware.round_selection import SelectedPool
from laplaceconfidence.confidence.noise_aware.settings import SETTINGS
from laplaceconfidence.confidence.noise_aware.transition import pair_counts, posterior
from laplaceconfidence.confidence.noise_aware.views import FeatureViews
from laplaceconfidence.data.labels import MISSING

POSTERIOR = SETTINGS.posterior


@dataclass(slots=True)
class Posterior:
    """Posteriors of the true class.

    Attributes
    ----------
    rows : ndarray of shape (labeled,)
        The labeled samples.
    distributions : ndarray of shape (n, R)
        Probability of every class, for all samples.
    columns : ndarray of shape (labeled,)
        Column of the given label.
    confidence : ndarray of shape (labeled,)
        w, the probability that the given label is right.
    support : ndarray of shape (labeled,)
        p_y, the probability that the evidence gives to the label without having seen it.
    identifiable : bool
        Whether the noise can be told from the overlap of the classes.
    """

    rows: IntArray
    distributions: FloatArray
    columns: IntArray
    confidence: FloatArray
    support: FloatArray
    identifiable: bool

    @property
    def bracket(self) -> tuple[float, float]:
        """Optimistic and pessimistic noise rate."""
        low, high = 1 - float(self.confidence.mean()), 1 - float(self.support.mean())
        return min(low, high), max(low, high)

    def replace_confidence(self, confidence: FloatArray) -> None:
        """Set the entry at the given label and scale the other classes to fill up to 1."""
        posteriors = self.distributions[self.rows]
        everyone = np.arange(len(self.rows))
        posteriors[everyone, self.columns] = 0
        # Where no other class has any mass, what the label loses is divided evenly.
        posteriors[posteriors.sum(axis=1) < POSTERIOR.least_mass] = 1.0
        posteriors[everyone, self.columns] = 0
        rest = posteriors.sum(axis=1)
        posteriors *= ((1 - confidence) / rest)[:, None]
        posteriors[everyone, self.columns] = confidence
        self.distributions[self.rows] = posteriors
        self.confidence = confidence

    def rank_by(self, score: FloatArray) -> None:
        """Put the labels in the order of a score in (0, 1), and leave the mean confidence where it is."""
        one_group = np.zeros(len(self.rows), dtype=np.int64)
        mean = np.array([float(self.confidence.mean())])
        self.replace_confidence(shifted_to_mean(score, one_group, mean))


@dataclass(frozen=True, slots=True)
class LabelPosterior:
    """The posterior that the labels get, and what goes with it.

    Attributes
    ----------
    posterior : Posterior
    cautious : ndarray of shape (labeled,)
        Mean confidence over the rounds.
    pool : Pool
        The pool it comes from.
    noise_model : str
        The kind of noise; "local" is noise that the features predict.
    round : int
        The step it comes from, from 1; 0 in a fallback.
    transition : ndarray of shape (C, C)
        The noise matrix.
    history : list of dict
        What was tried, and what was selected.
    disagreement : Disagreement or None
        ``None`` where it was not measured.
    """

    posterior: Posterior
    cautious: FloatArray
    pool: Pool
    noise_model: str
    round: int
    transition: FloatArray
    history: list[dict[str, Any]]
    disagreement: Disagreement | None


def label_posterior(
    selected: SelectedPool, views: FeatureViews, given: IntArray, n_classes: int
) -> LabelPosterior:
    """The posterior of the selected pool, unless even disagreement shows noise that its matrix misses.

    Where noise is not identified, votes of close neighbors help to order the labels. Neither is done above 50
    classes or without a graph.
    """
    of_pool = pool_posterior(selected.pool, selected.evidence, given, selected.candidates)
    disagreement = None
    if views.graphs is not None and n_classes <= SETTINGS.classes.many_above:
        disagreement = None if selected.fallback else _disagreement(selected, of_pool, given)
        is_local = disagreement is not None and disagreement.overrules(1 - float(of_pool.confidence.mean()))
        if is_local or not of_pool.identifiable:
            votes = close_votes(views.graphs.closest(), given, n_classes, views.propagate)
            if disagreement is not None and is_local:
                return _as_local_noise(selected, votes, given, n_classes, disagreement)
            # Evidence may have learned the annotators' errors; among close neighbors the truth leads.
            of_pool.rank_by(np.sqrt(of_pool.support * votes[of_pool.rows, given[of_pool.rows]]))
    return LabelPosterior(
        of_pool,
        mean_confidence(selected.alternatives, given, selected.candidates),
        selected.pool,
        selected.noise_model,
        selected.round,
        selected.pool.transition,
        selected.history,
        disagreement,
    )


def pool_posterior(
    pool: Pool, evidence: list[FloatArray], given: IntArray, candidates: IntArray | None
) -> Posterior:
    """The posteriors under a pool, ordered by support where the noise was not found."""
    probabilities = pool.probabilities(evidence, candidates).astype(np.float64)
    rows = np.flatnonzero(given != MISSING)
    codes = given[rows]
    some = None if candidates is None else candidates[rows]
    columns = codes if some is None else (some == codes[:, None]).argmax(axis=1)
    everyone = np.arange(len(rows))
    support = probabilities[rows][everyone, columns]
    posteriors, _ = posterior(probabilities[rows], pool.transition, codes, some)
    confidence = posteriors[everyone, columns]
    low, high = 1 - float(confidence.mean()), 1 - float(support.mean())
    found = high - low <= POSTERIOR.wide_bracket or low >= POSTERIOR.found_share * high
    if found:
        probabilities[rows] = posteriors
    result = Posterior(rows, probabilities, columns, confidence, support, found)
    if not found:
        # A matrix that found no noise cannot tell which label is worse either.
        result.rank_by(support)
    return result


def mean_confidence(
    alternatives: list[tuple[Pool, list[FloatArray]]], given: IntArray, candidates: IntArray | None
) -> FloatArray:
    """(labeled,) mean over several pools of the probability that a label is right.

    Where the pools disagree, the mean is the more cautious number to count with.
    """
    each = [pool_posterior(pool, evidence, given, candidates).confidence for pool, evidence in alternatives]
    return np.asarray(np.mean(each, axis=0))


def _disagreement(selected: SelectedPool, of_pool: Posterior, given: IntArray) -> Disagreement:
    chances = selected.pool.probabilities(selected.evidence, None)[of_pool.rows] @ selected.pool.transition
    return measure_disagreement(chances, given[of_pool.rows])


def local_noise_posterior(
    pool: Pool, evidence: list[FloatArray], votes: FloatArray, given: IntArray, noise_rate: float
) -> tuple[Posterior, float]:
    """Posteriors where a share ``noise_rate`` of the labels is wrong, and the part of it that T explains.

    The posterior under T counts for that part. The rest follows the local majority: evidence times the
    ``votes`` (n, C) of close neighbors, and the odds of a label against its best rival.
    """
    by_matrix = pool_posterior(pool, evidence, given, None)
    found = 1 - float(by_matrix.confidence.mean()) if by_matrix.identifiable else 0.0
    explained = explained_part(found, noise_rate)
    chances = pool.probabilities(evidence, None).astype(np.float64) @ pool.transition
    rows, codes = by_matrix.rows, given[by_matrix.rows]
    confidence, distributions = mixed_with_majority(
        by_matrix.confidence,
        by_matrix.distributions,
        chances * votes,
        rows,
        codes,
        explained=explained,
        noise_rate=noise_rate,
    )
    result = Posterior(rows, distributions, codes, confidence, by_matrix.support, identifiable=True)
    result.replace_confidence(confidence)
    return result, explained


def _as_local_noise(
    selected: SelectedPool, votes: FloatArray, given: IntArray, n_classes: int, disagreement: Disagreement
) -> LabelPosterior:
    rounds = [
        local_noise_posterior(pool, evidence, votes, given, disagreement.noise_rate)
        for pool, evidence in selected.alternatives
    ]
    # Given labels cannot reward a round for learning less of the noise: the one that explains most is taken.
    explained = [part for _, part in rounds]
    is_selected = [pool is selected.pool for pool, _ in selected.alternatives]
    number = is_selected.index(True) if max(explained) == 0 else int(np.argmax(explained))
    round_number = selected.round if is_selected[number] else number + 1
    local = rounds[number][0]
    counts = pair_counts(local.distributions[local.rows], given[local.rows], n_classes, None)
    counts += SETTINGS.local_noise.transition_count * np.eye(n_classes)
    step = {
        "step": "disagreement of the surest labels",
        "noise_model": "local",
        "noise_rate": disagreement.noise_rate,
        "explained_by_a_matrix": explained[number],
        **asdict(disagreement),
        "won": True,
    }
    return LabelPosterior(
        local,
        np.asarray(np.mean([each.confidence for each, _ in rounds], axis=0)),
        selected.alternatives[number][0],
        "local",
        round_number,
        counts / counts.sum(axis=1, keepdims=True),
        [{**earlier, "won": False} for earlier in selected.history] + [step],
        disagreement,
    )


@dataclass(frozen=True, slots=True)
class CalibratedNoise:
    """What goes with the calibrated confidences of a posterior.

    Attributes
    ----------
    cautious : ndarray of shape (labeled,)
        Calibrated mean confidence over the rounds.
    noise_rate : float
        Expected share of wrong labels.
    bracket : tuple of float
        Its lower and upper end.
    identifiable : bool
        Whether the noise can be told from the overlap of the classes.
    calibration : LogOddsCalibration or None
        What audited labels taught, if there were enough.
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
    """Write calibrated confidences into ``found``; ``cautious`` ones are changed the same way.

    Small classes are drawn to the others where noise was identified; verified labels become certain, and
    calibrate the others if enough of them are ``at_random`` (``None`` means that all are). In a ``fallback``
    the lower end of the bracket is 0.
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
        # At the optimistic end confidences are near 1, the mean of a class depends on its one or two worst
        # labels, and drawing it to the others' would only spoil the order. Classes so rare that the evidence
        # hardly knows them are the exception: all their labels would come first.
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
