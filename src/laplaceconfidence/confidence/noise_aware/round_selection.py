"""Selection of the round, and of ``pred_probs`` as further evidence.

The round is selected under which held-out given labels are most likely. ``pred_probs`` are used if they make
them more likely still.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.confidence.audited_labels import labels_to_learn
from laplaceconfidence.confidence.held_out_folds import clearly_worse, make_held_out_folds
from laplaceconfidence.confidence.inputs import class_shares
from laplaceconfidence.confidence.noise_aware.noise_model import Pool
from laplaceconfidence.confidence.noise_aware.noise_selection import (
    PoolCandidate,
    choose_pool,
    pool_of_targets,
)
from laplaceconfidence.confidence.noise_aware.rounds import RoundEvidence, first_round, later_round
from laplaceconfidence.confidence.noise_aware.settings import SETTINGS
from laplaceconfidence.confidence.noise_aware.transition import Candidates, narrow, uniform_noise
from laplaceconfidence.confidence.noise_aware.views import FeatureViews
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.stages import stage

SELECTION = SETTINGS.selection


@dataclass(frozen=True, slots=True)
class SelectedPool:
    """The selected pool, the evidence it weights, and how it was selected.

    Attributes
    ----------
    pool : Pool
        Weights, biases and noise matrix.
    noise_model : str
        The kind of noise; "assumed" in a fallback.
    round : int
        Number of the selected entry of ``history``, from 1; 0 in a fallback.
    evidence : list of ndarray, shape (n, R)
        One array per kind of evidence.
    alternatives : list of (Pool, list of ndarray)
        Pool and evidence of every round.
    candidates : Candidates or None
        The classes of the columns; ``None`` for all in order.
    history : list of dict
        The results of every round, as in ``rounds_``.
    fallback : str or None
        The reason why fixed weights are used; ``None`` if they are not.
    feature_pool : Pool or None
        The pool without ``pred_probs``; ``None`` if these are the only evidence.
    feature_round : int
        The round that ``feature_pool`` was fitted in, from 1; 0 without features and graph.
    uses_pred_probs : bool
        Whether the last kind of evidence of ``pool`` is ``pred_probs``.
    """

    pool: Pool
    noise_model: str
    round: int
    evidence: list[FloatArray]
    alternatives: list[tuple[Pool, list[FloatArray]]]
    candidates: Candidates | None
    history: list[dict[str, Any]]
    fallback: str | None
    feature_pool: Pool | None
    feature_round: int
    uses_pred_probs: bool

    def graph_weights(self, views: FeatureViews) -> FloatArray:
        """Influence of every graph on the selected pool.

        Parameters
        ----------
        views : FeatureViews
            The views of the evidence.

        Returns
        -------
        ndarray of shape (graphs,)
        """
        return self.pool.influence(self.evidence)[: len(views.is_graph)][views.is_graph]


def log_probabilities(pred_probs: FloatArray) -> FloatArray:
    """Convert predicted probabilities to evidence: their logarithms, with a floor.

    Parameters
    ----------
    pred_probs : ndarray of shape (n, C)
        Predicted probabilities.

    Returns
    -------
    ndarray of float32, shape (n, C)
    """
    floor = SELECTION.probability_floor / pred_probs.shape[1]
    return np.asarray(np.log(pred_probs + floor).astype(np.float32))


def select_pool(
    views: FeatureViews,
    pred_probs: FloatArray | None,
    given: IntArray,
    verified: IntArray | None,
    n_classes: int,
    *,
    n_rounds: int,
    n_folds: int,
    rng: np.random.Generator,
) -> SelectedPool:
    """Compute all rounds, then try ``pred_probs`` as further evidence, and select a pool.

    Parameters
    ----------
    views : FeatureViews
        Coordinates and graphs; may be empty.
    pred_probs : ndarray of shape (n, C) or None
        Predicted probabilities.
    given : ndarray of shape (n,)
        Given labels, ``MISSING`` where there is none.
    verified : ndarray of shape (n,) or None
        Verified labels, ``MISSING`` where there is none.
    n_classes : int
        Number of classes.
    n_rounds, n_folds : int
        Rounds of self-training and held-out folds.
    rng : numpy.random.Generator
        Draws folds and the rows that pools are fitted on.

    Returns
    -------
    SelectedPool
        It has fixed weights if there are fewer than 10 labels, or if held-out labels are not clearly more
        likely under the selected pool than under the shares of the classes.
    """
    labeled = np.flatnonzero(given != MISSING)
    targets = labels_to_learn(given, verified)
    folds = make_held_out_folds(targets, n_folds, rng)
    outside = [] if pred_probs is None else [log_probabilities(pred_probs)]
    shares = class_shares(given, n_classes)
    if len(labeled) < SELECTION.fewest_labels:
        inside, candidates = [], None
        if not views.is_empty:
            first, candidates = first_round(views, targets, given, n_classes, folds)
            inside = first.parts
        evidence = inside + [narrow(part, candidates) for part in outside]
        reason = f"{len(labeled)} labels are too few to hold any out: {SELECTION.fewest_labels} are needed"
        return _fixed(evidence, len(inside), candidates, shares, [], reason)

    def at_labeled(evidence: list[FloatArray]) -> tuple[list[FloatArray], IntArray, Candidates | None]:
        """Evidence, labels and candidates of the labeled samples, not copied if that is all of them."""
        if len(labeled) == len(given):
            return evidence, given, candidates
        some = None if candidates is None else candidates.at(labeled)
        return [part[labeled] for part in evidence], given[labeled], some

    def choose(evidence: list[FloatArray]) -> tuple[PoolCandidate, list[PoolCandidate]]:
        parts, codes, some = at_labeled(evidence)
        return choose_pool(parts, codes, n_classes, some, rng)

    history: list[dict[str, Any]] = []
    best: PoolCandidate | None = None
    number, candidates, evidence = 0, None, []
    alternatives: list[tuple[Pool, list[FloatArray]]] = []
    rounds: list[RoundEvidence] = []
    if not views.is_empty:
        chosen: list[PoolCandidate] = []
        for index in range(n_rounds):
            with stage(f"round {index + 1}"):
                if index == 0:
                    found, candidates = first_round(views, targets, given, n_classes, folds)
                else:
                    pool = pool_of_targets(chosen[-1], *at_labeled(rounds[-1].parts), rng)
                    history[-1]["overruled"] = pool is not chosen[-1].pool
                    found = later_round(
                        views,
                        rounds[-1],
                        pool,
                        targets,
                        given,
                        n_classes,
                        candidates,
                        folds,
                        is_last=index + 1 == n_rounds,
                    )
                rounds.append(found)
                one, tried = choose(found.parts)
                chosen.append(one)
                history.append(_summary(f"round {index + 1}", one, tried))
        number = int(np.argmax([one.score for one in chosen]))
        alternatives = [(one.pool, found.parts) for one, found in zip(chosen, rounds, strict=True)]
        best, evidence = chosen[number], rounds[number].parts
    feature_pool, feature_round = (None, 0) if best is None else (best.pool, number + 1)
    n_inside, uses_pred_probs = len(evidence), False
    if outside:
        joined = evidence + [narrow(part, candidates) for part in outside]
        with stage("pred_probs"):
            one, tried = choose(joined)
        history.append(_summary("with pred_probs", one, tried))
        if best is None or one.score > best.score:
            best, evidence, number, uses_pred_probs = one, joined, len(history) - 1, True
            alternatives = [(one.pool, joined)]
    if best is None:
        raise AssertionError("there is always evidence: features, a graph or probabilities")
    history[number]["won"] = True

    if not clearly_worse(np.log(shares[given[labeled]]), best.held_out):
        reason = "held-out labels are not clearly more likely than by the shares of the classes alone"
        learned = rounds[0].parts if rounds else []  # what later rounds learn is not in the labels
        return _fixed(learned + evidence[n_inside:], len(learned), candidates, shares, history, reason)
    return SelectedPool(
        best.pool,
        best.kind,
        number + 1,
        evidence,
        alternatives,
        candidates,
        history,
        None,
        feature_pool,
        feature_round,
        uses_pred_probs,
    )


def _fixed(
    evidence: list[FloatArray],
    n_inside: int,
    candidates: Candidates | None,
    shares: FloatArray,
    history: list[dict[str, Any]],
    reason: str,
) -> SelectedPool:
    """Make a pool of equal weights and an assumed noise rate.

    Wrong labels are assumed to follow the shares of the classes: where evidence says nothing, labels of rare
    classes are then as probably right as all others. ``n_inside`` kinds of evidence are those of round 1.
    """
    noise = uniform_noise(SELECTION.assumed_noise, shares)

    def equal(n_kinds: int) -> Pool:
        return Pool(np.full(n_kinds, 1 / n_kinds), np.zeros(len(shares) + 1), noise)

    pool = equal(len(evidence))
    return SelectedPool(
        pool,
        "assumed",
        0,
        evidence,
        [(pool, evidence)],
        candidates,
        history,
        reason,
        equal(n_inside) if n_inside else None,
        int(n_inside > 0),
        len(evidence) > n_inside,
    )


def _summary(name: str, chosen: PoolCandidate, tried: list[PoolCandidate]) -> dict[str, Any]:
    return {
        "step": name,
        "noise_model": chosen.kind,
        "held_out_log_likelihood": chosen.score,
        "noise_rate": chosen.noise_rate,
        "evidence_weights": chosen.pool.weights.tolist(),
        "won": False,
        "candidates": [one.summary() for one in tried],
    }
