"""Disagreement of given labels with predictions, and the noise matrix that can be read from it.

Classes overlap in some regions only, whereas noise is everywhere: if classes overlap and there is no noise,
the most certain predictions of every class agree with the given labels; under noise they disagree nearly as
often as less certain ones (decision 10). There, at the anchors, the labels of a class show its row of T
(decision 35).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray
from laplaceconfidence.confidence.noise_aware.noise_model import Pool
from laplaceconfidence.confidence.noise_aware.settings import SETTINGS
from laplaceconfidence.confidence.noise_aware.transition import Candidates, widen

LOCAL = SETTINGS.local_noise
SHARE_COUNT = SETTINGS.selection.share_count


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Shares of given labels that differ from the label that held-out evidence predicts.

    Attributes
    ----------
    surest : float
        Smallest share among the most certain tenth, fifth, ... half of the predictions of every class.
    surer_half : float
        Share among the most certain half.
    overall : float
        Share among all.
    standard_error : float
        Standard error of ``surest``.
    """

    surest: float
    surer_half: float
    overall: float
    standard_error: float

    @property
    def is_even(self) -> bool:
        """Whether the disagreement is about the same everywhere, unlike that of overlapping classes."""
        plateau = self.surer_half <= LOCAL.even * (self.surest - self.standard_error)
        return plateau and self.surest < LOCAL.most_noise

    @property
    def noise_rate(self) -> float:
        """The noise rate if the disagreement is even: ``surest``, but at most ``overall``."""
        return min(self.surest, self.overall)

    def overrules(self, noise_rate: float) -> bool:
        """Return whether the disagreement is even, and a noise matrix finds too small a part of it.

        Parameters
        ----------
        noise_rate : float
            Noise rate according to a noise matrix.

        Returns
        -------
        bool
        """
        return self.is_even and noise_rate < LOCAL.believed_share * (self.noise_rate - self.standard_error)


def measure_disagreement(chances: FloatArray, codes: IntArray) -> Disagreement:
    """Measure how often given labels differ from predictions that do not depend on them.

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
    predicted, place = _predictions(chances)
    differs = predicted != codes
    surest = half = _share_and_error(differs[place < LOCAL.surest[0]])
    for share in LOCAL.surest[1:]:
        half = _share_and_error(differs[place < share])
        surest = min(surest, half)  # without chance, the first share would be the smallest
    return Disagreement(surest[0], half[0], float(differs.mean()), surest[1])


def _predictions(chances: FloatArray) -> tuple[IntArray, FloatArray]:
    """The predicted classes, and places by certainty among all of the same class, from 0 to 1."""
    n, n_classes = chances.shape
    predicted = chances.argmax(axis=1)
    by_class_and_certainty = np.lexsort((-chances.max(axis=1), predicted))
    sizes = np.bincount(predicted, minlength=n_classes)
    starts = np.cumsum(sizes) - sizes
    sorted_classes = predicted[by_class_and_certainty]
    place = np.empty(n)
    place[by_class_and_certainty] = (np.arange(n) - starts[sorted_classes] + 0.5) / sizes[sorted_classes]
    return predicted, place


def _share_and_error(differs: BoolArray) -> tuple[float, float]:
    """The share of true entries and its standard error."""
    n = max(len(differs), 1)
    share = float(differs.sum()) / n
    # Half a true and half a false entry more, so that the error is not 0 if all of a few entries agree.
    guarded = (n * share + SHARE_COUNT) / (n + 2 * SHARE_COUNT)
    return share, float(np.sqrt(guarded * (1 - guarded) / n))


def matrix_at_anchors(chances: FloatArray, codes: IntArray, expected: FloatArray) -> FloatArray:
    """Estimate the noise matrix from the labels of the more certain half of every predicted class.

    Parameters
    ----------
    chances : ndarray of shape (n, C)
        Predicted probability of every label.
    codes : ndarray of shape (n,)
        Given labels.
    expected : ndarray of shape (C, C)
        Counts that are added, for classes of few samples.

    Returns
    -------
    ndarray of shape (C, C)
    """
    predicted, place = _predictions(chances)
    is_anchor = place < LOCAL.surest[-1]
    counts = expected.copy()
    np.add.at(counts, (predicted[is_anchor], codes[is_anchor]), 1)
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def label_chances(pool: Pool, evidence: list[FloatArray], candidates: Candidates | None) -> FloatArray:
    """Compute the probability of every label under evidence that does not include the given one.

    Parameters
    ----------
    pool : Pool
        Weights, biases and noise matrix.
    evidence : list of ndarray of shape (n, R)
        One array per kind of evidence.
    candidates : Candidates or None
        The classes of the columns; ``None`` for all in order.

    Returns
    -------
    ndarray of shape (n, C)
    """
    # With many classes this is a large product, so single precision has to do.
    precision = "float64" if candidates is None else "float32"
    probabilities: FloatArray = pool.probabilities(evidence, candidates).astype(precision)
    wide = widen(probabilities, candidates, len(pool.transition))
    return np.asarray(wide @ pool.transition.astype(precision))
