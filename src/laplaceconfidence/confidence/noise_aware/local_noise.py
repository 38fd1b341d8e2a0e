"""Local noise, which the features predict: recognized by disagreement that is nearly the same everywhere.

If similar samples are mislabeled as the same class, models learn the wrong labels too, and no noise matrix T
makes the given labels more likely than a matrix without noise. The even disagreement of ``disagreement.py``
is then an estimate of the noise rate (decision 10).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.confidence.calibration import log_odds, shifted_to_mean
from laplaceconfidence.confidence.noise_aware.disagreement import (
    Disagreement,
    label_chances,
    measure_disagreement,
)
from laplaceconfidence.confidence.noise_aware.noise_model import Pool
from laplaceconfidence.confidence.noise_aware.posterior import Posterior, over_rounds, pool_posterior
from laplaceconfidence.confidence.noise_aware.propagation import close_votes
from laplaceconfidence.confidence.noise_aware.round_selection import SelectedPool
from laplaceconfidence.confidence.noise_aware.settings import SETTINGS
from laplaceconfidence.confidence.noise_aware.transition import Candidates, class_pair_counts
from laplaceconfidence.confidence.noise_aware.views import FeatureViews

TINY = SETTINGS.noise_model.tiny


def _mixed_with_majority(
    confidence: FloatArray,
    distributions: FloatArray,
    majority: FloatArray,
    rows: IntArray,
    codes: IntArray,
    *,
    explained: float,
    noise_rate: float,
) -> tuple[FloatArray, FloatArray]:
    """Mix the confidences and distributions under a noise matrix with those of the local majority.

    Log-odds are averaged with the weights ``explained`` and 1 - ``explained``, then shifted such that the
    mean confidence is 1 - ``noise_rate``.

    Parameters
    ----------
    confidence : ndarray of shape (rows,)
        Probability under the matrix that the label is right.
    distributions : ndarray of shape (n, C)
        Posteriors under the matrix.
    majority : ndarray of shape (n, C)
        Products of predicted probabilities and votes of close neighbors, not normalized.
    rows, codes : ndarray of shape (rows,)
        Row numbers of the labeled samples, and their given labels.
    explained : float
        Part of the noise that the matrix explains.
    noise_rate : float
        Share of wrong labels.

    Returns
    -------
    confidence : ndarray of shape (rows,)
    distributions : ndarray of shape (n, C)
        Rows sum to 1; the entry at the given label is not yet the confidence.
    """
    every_row = np.arange(len(rows))
    majority = _rows_to_one(majority)
    own = majority[rows, codes]
    rivals = majority[rows]
    rivals[every_row, codes] = 0
    odds = log_odds(own / np.maximum(own + rivals.max(axis=1), TINY))

    def shifted(scores: FloatArray) -> FloatArray:
        one_group = np.zeros(len(rows), dtype=np.int64)
        return shifted_to_mean(expit(scores), one_group, np.array([1 - noise_rate]))

    odds = log_odds(shifted(odds)) * (1 - explained)
    if explained > 0:
        odds += log_odds(shifted(log_odds(confidence))) * explained
    return shifted(odds), _rows_to_one(distributions**explained * majority ** (1 - explained))


def _rows_to_one(values: FloatArray) -> FloatArray:
    return np.asarray(values / np.maximum(values.sum(axis=1, keepdims=True), TINY))


@dataclass(frozen=True, slots=True)
class LabelPosterior:
    """The posterior that the confidences come from, and how it was selected.

    Attributes
    ----------
    posterior : Posterior
        The posterior.
    cautious : ndarray of shape (labeled,)
        Mean confidence over the rounds.
    least_support : ndarray of shape (labeled,)
        Smallest probability of every label over the rounds, by evidence that does not include it.
    pool : Pool
        The pool it comes from.
    noise_model : str
        The kind of noise; "local" is noise that the features predict.
    round : int
        The entry of ``history`` it comes from, from 1; 0 in a fallback.
    transition : ndarray of shape (C, C)
        The noise matrix.
    history : list of dict
        The results of every round and of the disagreement, as in ``rounds_``.
    disagreement : Disagreement or None
        ``None`` if it was not measured.
    """

    posterior: Posterior
    cautious: FloatArray
    least_support: FloatArray
    pool: Pool
    noise_model: str
    round: int
    transition: FloatArray
    history: list[dict[str, Any]]
    disagreement: Disagreement | None


def label_posterior(
    selected: SelectedPool, views: FeatureViews, given: IntArray, n_classes: int
) -> LabelPosterior:
    """Compute the posterior of the selected pool, or that of local noise if the disagreement shows it.

    If the noise is not identified, votes of close neighbors help to order the labels. Without a graph,
    neither disagreement nor votes are computed.

    Parameters
    ----------
    selected : SelectedPool
        The selected pool.
    views : FeatureViews
        Coordinates and graphs.
    given : ndarray of shape (n,)
        Given labels, ``MISSING`` where there is none.
    n_classes : int
        Number of classes.

    Returns
    -------
    LabelPosterior
    """
    of_pool = pool_posterior(selected.pool, selected.evidence, given, selected.candidates)
    disagreement = None
    if views.widest_graph is not None:
        disagreement = None if selected.fallback else _disagreement(selected, of_pool, given)
        is_local = disagreement is not None and disagreement.overrules(of_pool.bracket[0])
        if is_local or of_pool.explained < 1:
            votes = votes_of_all_graphs(views, selected.graph_weights(views), given, n_classes)
            if disagreement is not None and is_local:
                return _as_local_noise(selected, votes, given, n_classes, disagreement)
            # The evidence may have learned the wrong labels; among close neighbors true labels still have the
            # majority (decision 9).
            of_pool.order_by(np.sqrt(of_pool.support * votes[of_pool.rows, given[of_pool.rows]]))
    cautious, least_support = over_rounds(selected.alternatives, given, selected.candidates)
    return LabelPosterior(
        of_pool,
        cautious,
        least_support,
        selected.pool,
        selected.noise_model,
        selected.round,
        selected.pool.transition,
        selected.history,
        disagreement,
    )


def votes_of_all_graphs(
    views: FeatureViews, weights: FloatArray, given: IntArray, n_classes: int
) -> FloatArray:
    """Votes of close neighbors: the geometric mean over the graphs that a sample is in, weighted.

    Parameters
    ----------
    views : FeatureViews
        Views of which at least one has a graph.
    weights : ndarray of shape (graphs,)
        Weight of every graph.
    given : ndarray of shape (n,)
        Given labels, ``MISSING`` where there is none.
    n_classes : int
        Number of classes.

    Returns
    -------
    ndarray of shape (n, C)
        Rows sum to at most 1.
    """
    logarithms = np.zeros((len(given), n_classes))
    total = np.full((len(given), 1), TINY)
    graphs = [(graph, view.present) for view in views.each for graph in view.graphs]
    for (graph, present), weight in zip(graphs, weights + TINY, strict=True):
        inside = slice(None) if present is None else present
        votes = close_votes(graph.closest(), given, n_classes, views.propagate)
        logarithms[inside] += weight * np.log(votes[inside])
        total[inside] += weight
    return np.asarray(np.exp(logarithms / total))


def _disagreement(selected: SelectedPool, of_pool: Posterior, given: IntArray) -> Disagreement:
    chances = label_chances(selected.pool, selected.evidence, selected.candidates)
    return measure_disagreement(chances[of_pool.rows], given[of_pool.rows])


def local_noise_posterior(
    pool: Pool,
    evidence: list[FloatArray],
    candidates: Candidates | None,
    votes: FloatArray,
    given: IntArray,
    noise_rate: float,
) -> tuple[Posterior, float]:
    """Compute posteriors under local noise.

    The noise matrix of the pool explains a part of the noise, and its posteriors have that weight. The rest
    are the odds of a label against the most probable other class, by evidence times votes.

    Parameters
    ----------
    pool : Pool
        Weights, biases and noise matrix.
    evidence : list of ndarray of shape (n, R)
        One array per kind of evidence.
    candidates : Candidates or None
        The classes of the columns; ``None`` for all in order.
    votes : ndarray of shape (n, C)
        Votes of close neighbors.
    given : ndarray of shape (n,)
        Given labels, ``MISSING`` where there is none.
    noise_rate : float
        Share of wrong labels.

    Returns
    -------
    posterior : Posterior
        Its mean confidence is 1 - ``noise_rate``.
    explained : float
        Part of the noise that the matrix explains.
    """
    by_matrix = pool_posterior(pool, evidence, given, candidates)
    found = 1 - float(by_matrix.by_matrix.mean()) if by_matrix.identifiable else 0.0
    explained = min(1.0, found / max(noise_rate, TINY))
    chances = label_chances(pool, evidence, candidates)
    rows, codes = by_matrix.rows, given[by_matrix.rows]
    confidence, distributions = _mixed_with_majority(
        by_matrix.by_matrix,
        by_matrix.distributions,
        chances * votes,
        rows,
        codes,
        explained=explained,
        noise_rate=noise_rate,
    )
    result = Posterior(rows, distributions, codes, confidence, by_matrix.support)
    result.replace_confidence(confidence)
    return result, explained


def _as_local_noise(
    selected: SelectedPool, votes: FloatArray, given: IntArray, n_classes: int, disagreement: Disagreement
) -> LabelPosterior:
    rounds = [
        local_noise_posterior(pool, evidence, selected.candidates, votes, given, disagreement.noise_rate)
        for pool, evidence in selected.alternatives
    ]
    # The likelihood of given labels does not favor rounds that learn less of the noise, so the round whose
    # matrix explains most is selected.
    explained = [part for _, part in rounds]
    is_selected = [pool is selected.pool for pool, _ in selected.alternatives]
    number = is_selected.index(True) if max(explained) == 0 else int(np.argmax(explained))
    round_number = selected.round if is_selected[number] else number + 1
    local = rounds[number][0]
    counts = class_pair_counts(local.distributions[local.rows], given[local.rows])
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
        np.asarray(np.min([each.support for each, _ in rounds], axis=0)),
        selected.alternatives[number][0],
        "local",
        round_number,
        counts / counts.sum(axis=1, keepdims=True),
        [{**earlier, "won": False} for earlier in selected.history] + [step],
        disagreement,
    )
