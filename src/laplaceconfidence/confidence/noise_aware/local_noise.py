"""Noise that the features predict: told from overlapping classes by disagreement that is the same everywhere.

Where similar samples are mistaken for the same class, evidence learns the mistakes too, and no matrix T makes
the given labels more likely than plain overlap of the classes does. But classes overlap in some places, and
noise is everywhere: if classes only overlap, the surest predictions of every class agree with the given
labels; under noise they disagree about as often as predictions half as sure. That disagreement is then the
noise rate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray
from laplaceconfidence.confidence.calibration import log_odds, shifted_to_mean
from laplaceconfidence.confidence.noise_aware.settings import SETTINGS

LOCAL = SETTINGS.local_noise


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Shares of given labels that differ from the label that held-out evidence predicts.

    Attributes
    ----------
    surest : float
        Smallest share among the surest tenth, fifth, ... half of the predictions of every class.
    surer_half : float
        Share among the surer half.
    overall : float
        Share among all.
    standard_error : float
        Of ``surest``.
    every_class_predicted : bool
        Whether every class of 30 labels or more is predicted at least half as often as its label is given.
    """

    surest: float
    surer_half: float
    overall: float
    standard_error: float
    every_class_predicted: bool

    @property
    def is_even(self) -> bool:
        """Whether it cannot come from classes that overlap in places."""
        plateau = self.surer_half <= LOCAL.even * (self.surest - self.standard_error)
        return plateau and self.surest < LOCAL.most_noise and self.every_class_predicted

    @property
    def noise_rate(self) -> float:
        """The disagreement of the surest predictions, at most that of all."""
        return min(self.surest, self.overall)

    def overrules(self, noise_rate: float) -> bool:
        """Whether it is even and clearly larger than a ``noise_rate`` found by a matrix."""
        return self.is_even and noise_rate < self.noise_rate - self.standard_error - LOCAL.less_noise


def measure_disagreement(chances: FloatArray, codes: IntArray) -> Disagreement:
    """Disagreement of given labels with predictions that have not seen them.

    Parameters
    ----------
    chances : ndarray of shape (n, C)
        Predicted probability of every label.
    codes : ndarray of shape (n,)
        Given labels.

    Returns
    -------
    Disagreement
    """
    n, n_classes = chances.shape
    predicted = chances.argmax(axis=1)
    by_class_and_surety = np.lexsort((-chances.max(axis=1), predicted))
    sizes = np.bincount(predicted, minlength=n_classes)
    starts = np.cumsum(sizes) - sizes
    sorted_classes = predicted[by_class_and_surety]
    place = np.empty(n)
    place[by_class_and_surety] = (np.arange(n) - starts[sorted_classes] + 0.5) / sizes[sorted_classes]
    differs = predicted != codes
    overall = float(differs.mean())
    surest = half = _share_and_error(differs[place < LOCAL.surest[0]])
    for share in LOCAL.surest[1:]:
        half = _share_and_error(differs[place < share])
        surest = min(surest, half)  # it can only grow from the surest on, except by chance
    labels = np.bincount(codes, minlength=n_classes)
    enough = sizes >= LOCAL.predicted_share * labels
    return Disagreement(
        surest[0], half[0], overall, surest[1], bool(enough[labels >= LOCAL.fewest_labels].all())
    )


def _share_and_error(differs: BoolArray) -> tuple[float, float]:
    """The share of true entries and its standard error."""
    n = max(len(differs), 1)
    share = float(differs.sum()) / n
    # Half a true and half a false entry more: a handful that agree do not make certain.
    guarded = (n * share + LOCAL.share_count) / (n + 2 * LOCAL.share_count)
    return share, float(np.sqrt(guarded * (1 - guarded) / n))


def explained_part(found: float, noise_rate: float) -> float:
    """Part of a ``noise_rate`` that a matrix explains which finds the rate ``found``."""
    return min(1.0, found / max(noise_rate, LOCAL.tiny))


def mixed_with_majority(
    confidence: FloatArray,
    distributions: FloatArray,
    majority: FloatArray,
    rows: IntArray,
    codes: IntArray,
    *,
    explained: float,
    noise_rate: float,
) -> tuple[FloatArray, FloatArray]:
    """Confidences and distributions of a matrix, mixed with the local majority for what it does not explain.

    Log-odds are shifted so that on average a share ``noise_rate`` of the labels is wrong.

    Parameters
    ----------
    confidence : ndarray of shape (rows,)
        Probability under the matrix that the label is right.
    distributions : ndarray of shape (n, C)
        Posteriors under the matrix.
    majority : ndarray of shape (n, C)
        Products of predicted chances and votes of close neighbors, not normalized.
    rows, codes : ndarray of shape (rows,)
        The labeled samples and their given labels.
    explained : float
        Part of the noise that the matrix explains; the weight of its confidences.
    noise_rate : float
        Share of wrong labels.

    Returns
    -------
    confidence : ndarray of shape (rows,)
    distributions : ndarray of shape (n, C)
        Rows sum to 1; the entry at the given label is not yet the confidence.
    """
    everyone = np.arange(len(rows))
    majority = _rows_to_one(majority)
    own = majority[rows, codes]
    rivals = majority[rows]
    rivals[everyone, codes] = 0
    odds = log_odds(own / np.maximum(own + rivals.max(axis=1), LOCAL.tiny))

    def shifted(scores: FloatArray) -> FloatArray:
        one_group = np.zeros(len(rows), dtype=np.int64)
        return shifted_to_mean(expit(scores), one_group, np.array([1 - noise_rate]))

    odds = log_odds(shifted(odds)) * (1 - explained)
    if explained > 0:
        odds += log_odds(shifted(log_odds(confidence))) * explained
    return shifted(odds), _rows_to_one(distributions**explained * majority ** (1 - explained))


def _rows_to_one(values: FloatArray) -> FloatArray:
    return np.asarray(values / np.maximum(values.sum(axis=1, keepdims=True), LOCAL.tiny))
