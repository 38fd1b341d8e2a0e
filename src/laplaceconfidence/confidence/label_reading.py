"""Which reading of the evidence the labels get: a noise matrix, local noise, or overlap of the classes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.confidence.best_pool import BestPool
from laplaceconfidence.confidence.graph_evidence import far_votes
from laplaceconfidence.confidence.local_noise import Doubt, measure_doubt, read_local_noise
from laplaceconfidence.confidence.noise_reading import Reading, mean_confidence, read_pool
from laplaceconfidence.confidence.self_training import Views
from laplaceconfidence.confidence.transition import pair_counts


@dataclass(frozen=True, slots=True)
class LabelReading:
    """The reading that was chosen and what goes with it."""

    reading: Reading
    cautious: FloatArray  # (rows,) mean confidence over the rounds
    noise_model: str
    round: int
    transition: FloatArray  # (C, C)
    history: list[dict[str, Any]]  # what was tried, and what won
    doubt: Doubt | None  # None where it was not looked at


def read_labels(best: BestPool, views: Views, given: IntArray, n_classes: int) -> LabelReading:
    """Read the best pool; local noise overrules a matrix that misses it, and close votes rank overlap."""
    reading = read_pool(best.pool, best.evidence, given, best.candidates)
    doubt = None
    if views.closest is not None:
        doubt = None if best.fallback else _doubt_of(best, reading, given)
        local = doubt is not None and doubt.overrules(1 - float(reading.confidence.mean()))
        if local or not reading.identifiable:
            votes = far_votes(views.closest(), given, n_classes, views.spread)
            if doubt is not None and local:
                return _as_local_noise(best, votes, given, n_classes, doubt)
            # Evidence may have learned the annotators' errors; among close neighbors the truth leads.
            reading.rank_by(np.sqrt(reading.support * votes[reading.rows, given[reading.rows]]))
    cautious = mean_confidence(best.alternatives, given, best.candidates)
    return LabelReading(
        reading, cautious, best.noise_model, best.round, best.pool.transition, best.history, doubt
    )


def _doubt_of(best: BestPool, reading: Reading, given: IntArray) -> Doubt:
    chances = best.pool.probabilities(best.evidence, None)[reading.rows] @ best.pool.transition
    return measure_doubt(chances, given[reading.rows])


def _as_local_noise(
    best: BestPool, votes: FloatArray, given: IntArray, n_classes: int, doubt: Doubt
) -> LabelReading:
    rounds = [
        read_local_noise(pool, evidence, votes, given, doubt.noise_rate)
        for pool, evidence in best.alternatives
    ]
    # Given labels cannot reward a round for learning less of the noise: the one that explains most is taken.
    explained = [part for _, part in rounds]
    is_best = [pool is best.pool for pool, _ in best.alternatives]
    number = is_best.index(True) if max(explained) == 0 else int(np.argmax(explained))
    round_number = best.round if is_best[number] else number + 1
    reading = rounds[number][0]
    cautious = np.asarray(np.mean([each.confidence for each, _ in rounds], axis=0))
    counts = pair_counts(reading.distributions[reading.rows], given[reading.rows], n_classes, None)
    counts += np.eye(n_classes)  # a class without samples keeps its labels
    transition = counts / counts.sum(axis=1, keepdims=True)
    step = {
        "step": "doubt of the surest labels",
        "noise_model": "local",
        "noise_rate": doubt.noise_rate,
        "explained_by_a_matrix": explained[number],
        **asdict(doubt),
        "won": True,
    }
    history = [{**earlier, "won": False} for earlier in best.history] + [step]
    return LabelReading(reading, cautious, "local", round_number, transition, history, doubt)
