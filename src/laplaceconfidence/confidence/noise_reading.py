"""What a fitted pool says about every label, and how far it can say anything.

Two readings bracket the truth. The optimistic one believes the noise that was found: w = p(true = given |
x, given). The pessimistic one takes every doubt of the evidence as a doubt of the label: p_y, the probability
the evidence gives to the label before it was looked at. If people confuse classes as the evidence does, no
noise is found, w is near 1 everywhere, and only the bracket is honest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.confidence.calibration import shifted_to_mean
from laplaceconfidence.confidence.evidence_pool import Pool
from laplaceconfidence.confidence.transition import posterior
from laplaceconfidence.data.labels import MISSING

WIDE_BRACKET = 0.1  # difference of the two noise rates above which it matters which one is right
FOUND_SHARE = 0.1  # share of all doubt that the noise must explain to count as found
_NOTHING = 1e-100


@dataclass(slots=True)
class Reading:
    """Posteriors of the true class; ``confidence`` and ``support`` are of the labeled rows only."""

    rows: IntArray  # the labeled samples
    distributions: FloatArray  # (n, R)
    columns: IntArray  # (rows,) column of the given label
    confidence: FloatArray  # (rows,) w
    support: FloatArray  # (rows,) p_y
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
        # Where nothing else has any mass, what the label gives up is spread evenly.
        posteriors[posteriors.sum(axis=1) < _NOTHING] = 1.0
        posteriors[everyone, self.columns] = 0
        rest = posteriors.sum(axis=1)
        posteriors *= ((1 - confidence) / rest)[:, None]
        posteriors[everyone, self.columns] = confidence
        self.distributions[self.rows] = posteriors
        self.confidence = confidence

    def rank_by(self, score: FloatArray) -> None:
        """Put the labels in the order of a score in (0, 1), and leave the mean confidence where it is."""
        everywhere = np.zeros(len(self.rows), dtype=np.int64)
        mean = np.array([float(self.confidence.mean())])
        self.replace_confidence(shifted_to_mean(score, everywhere, mean))


def read_pool(
    pool: Pool,
    evidence: list[FloatArray],
    given: IntArray,
    candidates: IntArray | None,
) -> Reading:
    """The posteriors under a pool; ranked by support where the noise was not found."""
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
    found = high - low <= WIDE_BRACKET or low >= FOUND_SHARE * high
    if found:
        probabilities[rows] = posteriors
    reading = Reading(rows, probabilities, columns, confidence, support, found)
    if not found:
        # The matrix that found no noise has nothing to say about which label is worse either.
        reading.rank_by(support)
    return reading


def mean_confidence(
    readings: list[tuple[Pool, list[FloatArray]]], given: IntArray, candidates: IntArray | None
) -> FloatArray:
    """Mean over several pools of the probability that the labeled samples' labels are right.

    Where the pools disagree nobody knows: the mean is the more cautious number to count with.
    """
    each = [read_pool(pool, evidence, given, candidates).confidence for pool, evidence in readings]
    return np.asarray(np.mean(each, axis=0))
