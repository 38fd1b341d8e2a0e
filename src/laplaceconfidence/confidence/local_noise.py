"""Noise that the features predict: told from overlapping classes by doubt that is the same everywhere.

Where alike samples are mistaken for the same thing, evidence learns the mistakes too, and no matrix T makes
the given labels more likely than plain overlap of the classes does. But overlap is somewhere and noise is
everywhere: if classes only overlap, the surest samples of every class are sure; under noise they are doubted
about as much as those half as sure. That doubt is then the noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray
from laplaceconfidence.confidence.calibration import log_odds, shifted_to_mean
from laplaceconfidence.confidence.evidence_pool import Pool
from laplaceconfidence.confidence.noise_reading import Reading, read_pool

SUREST = (0.1, 0.2, 0.3, 0.4, 0.5)  # shares of the samples of every predicted class
EVEN = 1.25  # doubt of the surer half over that of the surest up to which doubt counts as even
MOST_NOISE = 0.5  # above, the majority at a place is no longer the truth
LESS_NOISE = 0.02  # how much less noise a matrix must find than the surest labels show to be overruled
LEADS = 0.5  # of a class's labels, as many predictions it needs: else its samples may hide among others
FEWEST = 30  # labels of a class that must lead
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Doubt:
    """Shares of given labels that are not the predicted ones: of the surest predictions, and of all."""

    surest: float
    surer_half: float
    overall: float
    standard_error: float  # of ``surest``
    every_class_leads: bool  # somewhere, about as often as its label is given

    @property
    def is_even(self) -> bool:
        """Whether the doubt cannot come from classes that overlap in places."""
        plateau = self.surer_half <= EVEN * (self.surest - self.standard_error)
        return plateau and self.surest < MOST_NOISE and self.every_class_leads

    @property
    def noise_rate(self) -> float:
        """What is left at the surest places; nowhere can there be less doubt than noise."""
        return min(self.surest, self.overall)

    def overrules(self, noise_rate: float) -> bool:
        """Whether a noise rate is too low to be true."""
        return self.is_even and noise_rate < self.noise_rate - self.standard_error - LESS_NOISE


def measure_doubt(chances: FloatArray, codes: IntArray) -> Doubt:
    """The doubt of given labels ``codes`` under their predicted ``chances`` (n, C), which never saw them."""
    n, n_classes = chances.shape
    predicted = chances.argmax(axis=1)
    by_class_and_surety = np.lexsort((-chances.max(axis=1), predicted))
    sizes = np.bincount(predicted, minlength=n_classes)
    starts = np.cumsum(sizes) - sizes
    sorted_classes = predicted[by_class_and_surety]
    place = np.empty(n)
    place[by_class_and_surety] = (np.arange(n) - starts[sorted_classes] + 0.5) / sizes[sorted_classes]
    doubted = predicted != codes
    overall = float(doubted.mean())
    surest = half = _share_and_error(doubted[place < SUREST[0]])
    for share in SUREST[1:]:
        half = _share_and_error(doubted[place < share])
        surest = min(surest, half)  # doubt can only grow from the surest on, but for chance
    labels = np.bincount(codes, minlength=n_classes)
    leads = sizes >= LEADS * labels
    return Doubt(surest[0], half[0], overall, surest[1], bool(leads[labels >= FEWEST].all()))


def _share_and_error(doubted: BoolArray) -> tuple[float, float]:
    """The share of true entries and its standard error."""
    n = max(len(doubted), 1)
    share = float(doubted.sum()) / n
    # Half a true and half a false entry more: a handful that agree do not make certain.
    guarded = (n * share + 0.5) / (n + 1)
    return share, float(np.sqrt(guarded * (1 - guarded) / n))


def read_local_noise(
    pool: Pool, evidence: list[FloatArray], votes: FloatArray, given: IntArray, noise_rate: float
) -> tuple[Reading, float]:
    """Posteriors where a share ``noise_rate`` of the labels is wrong, and the part of it that T explains.

    The reading by T has the say for that part. For the rest there are no rules but the majority of the place:
    evidence times the votes of close neighbors, as two opinions, and the odds of a label against its best
    rival. Log-odds are moved so that on average as many labels are right as the rate says.
    """
    by_matrix = read_pool(pool, evidence, given, None)
    found = 1 - float(by_matrix.confidence.mean()) if by_matrix.identifiable else 0.0
    explained = min(1.0, found / max(noise_rate, _TINY))

    rows = by_matrix.rows
    codes, everyone = given[rows], np.arange(len(rows))
    chances = pool.probabilities(evidence, None).astype(np.float64) @ pool.transition
    majority = _rows_to_one(chances * votes)
    own = majority[rows, codes]
    rivals = majority[rows]
    rivals[everyone, codes] = 0
    odds = log_odds(own / np.maximum(own + rivals.max(axis=1), _TINY))

    def moved(scores: FloatArray) -> FloatArray:
        everywhere = np.zeros(len(rows), dtype=np.int64)
        return shifted_to_mean(expit(scores), everywhere, np.array([1 - noise_rate]))

    odds = log_odds(moved(odds)) * (1 - explained)
    if explained > 0:
        odds += log_odds(moved(log_odds(by_matrix.confidence))) * explained
    confidence = moved(odds)
    distributions = _rows_to_one(by_matrix.distributions**explained * majority ** (1 - explained))
    reading = Reading(rows, distributions, codes, confidence, by_matrix.support, identifiable=True)
    reading.replace_confidence(confidence)
    return reading, explained


def _rows_to_one(values: FloatArray) -> FloatArray:
    return np.asarray(values / np.maximum(values.sum(axis=1, keepdims=True), _TINY))
