"""The pool that held-out given labels support best, over rounds, kinds of noise and outside evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.confidence.candidate_classes import narrow
from laplaceconfidence.confidence.cross_fitting import make_worlds
from laplaceconfidence.confidence.evidence_pool import Pool
from laplaceconfidence.confidence.inputs import class_shares
from laplaceconfidence.confidence.noise_inputs import labels_to_learn
from laplaceconfidence.confidence.pool_choice import PoolCandidate, choose_pool
from laplaceconfidence.confidence.self_training import Views, first_evidence, run_rounds
from laplaceconfidence.confidence.transition import uniform_noise
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.stages import stage

FEWEST_LABELS = 10  # below, nothing can be held out
PRIOR_NOISE = 0.1  # what is assumed where the data cannot say
STANDARD_ERRORS = 2.0
LARGEST_LOSS = 0.005  # nats a label that a later round may be less likely
_PROBABILITY_FLOOR = 0.1


@dataclass(frozen=True, slots=True)
class BestPool:
    """A pool, the evidence it reads, and how it came to be chosen."""

    pool: Pool
    noise_model: str
    round: int
    evidence: list[FloatArray]  # of (n, R)
    alternatives: list[tuple[Pool, list[FloatArray]]]  # what the other rounds made of it
    candidates: IntArray | None  # (n, R) the classes of the columns; None for all
    history: list[dict[str, Any]]
    fallback: str | None


def find_best_pool(
    views: Views,
    pred_probs: FloatArray | None,
    given: IntArray,
    verified: IntArray | None,
    n_classes: int,
    *,
    n_rounds: int,
    n_folds: int,
    rng: np.random.Generator,
) -> BestPool:
    """Run the rounds, add ``pred_probs`` last, and fall back to fixed weights if labels support no more."""
    labeled = np.flatnonzero(given != MISSING)
    to_learn = labels_to_learn(given, verified)
    worlds = make_worlds(to_learn, n_folds, rng)
    has_views = views.coordinates is not None or bool(views.graphs)
    outside = (
        [] if pred_probs is None else [np.log(pred_probs + _PROBABILITY_FLOOR / n_classes).astype(np.float32)]
    )
    if len(labeled) < FEWEST_LABELS:
        evidence, candidates = outside, None
        if has_views:
            in_worlds, candidates = first_evidence(views, to_learn, given, n_classes, worlds)
            evidence = [worlds.average(part) for part in in_worlds] + [
                narrow(part, candidates) for part in outside
            ]
        reason = f"{len(labeled)} labels are too few to hold any out; at least {FEWEST_LABELS} are needed"
        return _fixed(evidence, candidates, n_classes, [], reason)

    history: list[dict[str, Any]] = []
    best: PoolCandidate | None = None
    number, candidates, evidence = 0, None, []
    alternatives: list[tuple[Pool, list[FloatArray]]] = []
    if has_views:
        rounds, candidates = run_rounds(views, to_learn, given, n_classes, worlds, n_rounds=n_rounds, rng=rng)
        number = _latest_supported([one.chosen for one in rounds])
        alternatives = [(one.chosen.pool, one.evidence) for one in rounds]
        best, evidence = rounds[number].chosen, rounds[number].evidence
        for index, one in enumerate(rounds):
            history.append(_summary(f"round {index + 1}", one.chosen, one.tried))
    if outside:
        with stage("pred_probs"):
            joined = evidence + [narrow(part, candidates) for part in outside]
            some = None if candidates is None else candidates[labeled]
            chosen, tried = choose_pool(
                [part[labeled] for part in joined], given[labeled], n_classes, some, rng
            )
        history.append(_summary("with pred_probs", chosen, tried))
        if best is None or chosen.score > best.score:
            best, evidence, number = chosen, joined, len(history) - 1
            alternatives = [(chosen.pool, joined)]
    if best is None:
        raise AssertionError("there is always evidence: features, a graph or probabilities")
    history[number]["won"] = True

    shares = class_shares(given, n_classes)[given[labeled]]
    gain = best.held_out - np.log(shares)
    if gain.mean() <= STANDARD_ERRORS * gain.std() / np.sqrt(len(gain)):
        reason = (
            "held-out labels are no more likely with the features than without: they say nothing about them"
        )
        return _fixed(evidence, candidates, n_classes, history, reason)
    return BestPool(best.pool, best.kind, number + 1, evidence, alternatives, candidates, history, None)


def _latest_supported(chosen: list[PoolCandidate]) -> int:
    """The latest round that is not clearly less likely than the best one.

    Noise that the features can predict is part of what the first round learns; later rounds learn it less and
    make given labels no more likely for it. They are kept as long as the labels do not speak against them.
    """
    best = max(chosen, key=lambda one: one.score)
    latest = 0
    for number, one in enumerate(chosen):
        loss = best.held_out - one.held_out
        allowed = min(STANDARD_ERRORS * loss.std() / np.sqrt(len(loss)), LARGEST_LOSS)
        if loss.mean() <= allowed:
            latest = number
    return latest


def _fixed(
    evidence: list[FloatArray],
    candidates: IntArray | None,
    n_classes: int,
    history: list[dict[str, Any]],
    reason: str,
) -> BestPool:
    """Equal weights and the noise that is assumed where nothing can be learned."""
    even = np.full(n_classes, 1 / n_classes)
    weights = np.full(len(evidence), 1 / len(evidence))
    pool = Pool(weights, np.zeros(n_classes), uniform_noise(PRIOR_NOISE, even))
    return BestPool(pool, "assumed", 0, evidence, [(pool, evidence)], candidates, history, reason)


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
