"""The noise-aware estimate of more data than fits in memory: fitted on a bounded sample, applied in blocks.

The estimator is fitted in memory on a random sample. For every other sample it predicts the class
probabilities p from the features, without the sample's own label; the noise matrix T of the fit then gives
the posterior of the true class, proportional to p_z T[z, given]. Where the fit could not identify the noise,
the confidence is the probability of the given label, moved by the same log odds as in the sample.
``benchmarks/bounded_sample.py`` compares this with a fit to all data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.blocks.executor import Executor, run_parts
from laplaceconfidence.blocks.read_out import TOP_CLASSES
from laplaceconfidence.blocks.results import RESULTS
from laplaceconfidence.blocks.sources import FeatureSource, Piece
from laplaceconfidence.blocks.work_folder import Facts, WorkFolder
from laplaceconfidence.confidence.noise_aware import NoiseAwareConfidence
from laplaceconfidence.data.identity import feature_digests
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.stages import stage
from laplaceconfidence.validation import must_be

SAMPLE, DIGESTS = "sample", "digests"  # stages

SAMPLE_SIZE = 20_000
MOST_ENTRIES = 20_000_000  # samples x classes of the fit, which takes about 100 bytes per entry
FEWEST_PER_CLASS = 30  # samples of rare classes are added up to this number
_TINY = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class SampleFit:
    """An estimator that was fitted on a sample, as tasks need it.

    Attributes
    ----------
    estimator : NoiseAwareConfidence
        Fitted; labels are codes.
    rows : ndarray of int64, shape (s,)
        The rows of the sample, sorted.
    n_classes : int
        Number of classes of the whole data.
    shift : float
        Log odds by which the probability of the given label is moved, where the noise is not identified.
    """

    estimator: NoiseAwareConfidence
    rows: IntArray
    n_classes: int
    shift: float

    def posterior(self, features: FloatArray, given: IntArray) -> tuple[FloatArray, FloatArray]:
        """Compute the posterior of the true class of samples that are not in the sample.

        Parameters
        ----------
        features : ndarray of shape (m, d)
            Feature vectors.
        given : ndarray of int, shape (m,)
            Codes of the given labels, MISSING where there is none.

        Returns
        -------
        distributions : ndarray of float64, shape (m, C)
            Probability of every class.
        confidence : ndarray of float64, shape (m,)
            Probability that the given label is right, NaN where there is none.
        """
        codes = np.asarray(self.estimator.classes_)
        p = np.zeros((len(given), self.n_classes))
        p[:, codes] = self.estimator.predict_proba(features)
        labeled = np.flatnonzero(given != MISSING)
        own = given[labeled]
        if self.estimator.identifiable_:
            transition = np.eye(self.n_classes)
            transition[np.ix_(codes, codes)] = self.estimator.transition_matrix_
            joint = p[labeled] * transition[:, own].T
            total = joint.sum(axis=1, keepdims=True)
            p[labeled] = np.divide(joint, total, out=p[labeled].copy(), where=total > 0)
        else:
            support = np.clip(p[labeled, own], _TINY, 1 - _TINY)
            moved = 1 / (1 + np.exp(-(np.log(support / (1 - support)) + self.shift)))
            others = p[labeled]
            others[np.arange(len(own)), own] = 0
            others *= ((1 - moved) / np.maximum(others.sum(axis=1), _TINY))[:, None]
            others[np.arange(len(own)), own] = moved
            p[labeled] = others / others.sum(axis=1, keepdims=True)
        confidence = np.full(len(given), np.nan)
        confidence[labeled] = p[labeled, own]
        return p, confidence


def sample_rows(labels: NDArray[Any], n_classes: int, size: int, seed: int) -> IntArray:
    """Draw the sample: rows at random, and more of classes that it would hardly have.

    Parameters
    ----------
    labels : ndarray of int, shape (n,)
        Codes of the given labels.
    n_classes : int
        Number of classes.
    size : int
        Number of rows, without those that are added.
    seed : int
        Seed.

    Returns
    -------
    ndarray of int64
        Sorted.
    """
    rng = np.random.default_rng(seed)
    n = len(labels)
    drawn = rng.permutation(n)[:size] if n <= 4 * size else np.unique(rng.integers(0, n, size))
    counts = np.bincount(labels[drawn][labels[drawn] != MISSING], minlength=n_classes)
    more = [
        np.flatnonzero(labels == code)[: FEWEST_PER_CLASS - counts[code]]
        for code in np.flatnonzero(counts < FEWEST_PER_CLASS).tolist()
    ]
    return np.unique(np.concatenate([drawn, *more]))


def fit_on_sample(
    source: FeatureSource,
    labels: NDArray[Any],
    n_classes: int,
    *,
    size: int,
    seed: int,
    rows_per_batch: int,
    settings: dict[str, Any],
) -> SampleFit:
    """Fit the estimator on a sample.

    Parameters
    ----------
    source : FeatureSource
        The features.
    labels : ndarray of int, shape (n,)
        Codes of the given labels.
    n_classes : int
        Number of classes.
    size : int
        Number of samples.
    seed : int
        Seed of the sample and of the estimator.
    rows_per_batch : int
        Rows that are in memory at a time.
    settings : dict
        Settings of the estimator.

    Returns
    -------
    SampleFit
    """
    rows = sample_rows(labels, n_classes, size, seed)
    with stage("sampling", total=len(source.pieces)) as advance:
        parts = []
        for piece in source.pieces:
            first, last = np.searchsorted(rows, (piece.start, piece.stop))
            if first < last:
                for start, features in source.batches(piece, rows_per_batch):
                    some = rows[first:last]
                    inside = some[(some >= start) & (some < start + len(features))] - start
                    parts.append(features[inside])
            advance(1)
    features = np.concatenate(parts)
    given = labels[rows].astype(np.int64)
    if (given == given[0]).all():
        raise must_be("labels", "of at least two classes in a random sample", "one class")
    estimator = NoiseAwareConfidence(**settings, random_state=seed, missing_label=MISSING)
    estimator.fit(features, given)
    estimator.predict_proba(features[:2])  # what predictions need is computed at the first call
    known = ~np.isnan(estimator.confidence_)
    odds = [
        np.log(np.clip(values[known], _TINY, 1 - _TINY) / np.clip(1 - values[known], _TINY, 1 - _TINY))
        for values in (estimator.confidence_, estimator.label_support_)
    ]
    return SampleFit(estimator, rows, n_classes, float(np.median(odds[0] - odds[1])))


def write_posteriors(
    executor: Executor,
    work: WorkFolder,
    source: FeatureSource,
    labels: NDArray[Any],
    fitted: SampleFit,
    *,
    rows_per_batch: int,
    with_digests: bool,
) -> None:
    """Write the results of all samples, one part per piece of the source.

    Parameters
    ----------
    executor : Executor
        Where tasks run.
    work : WorkFolder
        Where the parts are.
    source : FeatureSource
        The features.
    labels : ndarray of int, shape (n,)
        Codes of the given labels.
    fitted : SampleFit
        The fit.
    rows_per_batch : int
        Rows that are in memory at a time.
    with_digests : bool
        Whether digests of the features are kept, as ids.
    """
    shared = executor.share(fitted)
    arguments = [
        (source, piece, labels[piece.start : piece.stop], shared, rows_per_batch, with_digests)
        for piece in source.pieces
    ]
    run_parts(executor, work, RESULTS, _results_of_piece, arguments)


def _results_of_piece(
    work: WorkFolder,
    part: int,
    source: FeatureSource,
    piece: Piece,
    labels: NDArray[Any],
    fitted: SampleFit,
    rows_per_batch: int,
    with_digests: bool,
) -> Facts:
    columns: dict[str, list[NDArray[Any]]] = {}
    digests = []
    for start, features in source.batches(piece, rows_per_batch):
        given = labels[start - piece.start : start - piece.start + len(features)].astype(np.int64)
        p, confidence = fitted.posterior(features, given)
        first, last = np.searchsorted(fitted.rows, (start, start + len(features)))
        inside = fitted.rows[first:last] - start
        codes = np.asarray(fitted.estimator.classes_)
        p[inside] = 0
        p[np.ix_(inside, codes)] = fitted.estimator.label_distributions_[first:last]
        confidence[inside] = fitted.estimator.confidence_[first:last]
        for name, values in _columns(p, confidence, given).items():
            columns.setdefault(name, []).append(values)
        if with_digests:
            own = feature_digests(features), feature_digests(features, telling_apart=True)
            digests.append(np.array(own, dtype="S16").T)
    if with_digests:
        work.save(DIGESTS, part, {"digests": np.concatenate(digests)}, {})
    arrays = {name: np.concatenate(values) for name, values in columns.items()}
    return work.save(RESULTS, part, {"rows": np.arange(piece.start, piece.stop), **arrays}, {})


def _columns(p: FloatArray, confidence: FloatArray, given: IntArray) -> dict[str, NDArray[Any]]:
    every_row = np.arange(len(given))
    order = np.argsort(-p, axis=1, kind="stable")[:, : TOP_CLASSES + 1]
    best = order[:, 0]
    own = p[every_row, np.maximum(given, 0)]
    predicted = np.where((given != MISSING) & (own >= p[every_row, best]), given, best)
    alternative = np.where(best == given, order[:, 1], best)
    return {
        "scores": confidence,
        "predicted": predicted.astype(np.int32),
        "predicted_probability": p[every_row, predicted],
        "alternative": alternative.astype(np.int32),
        "alternative_probability": p[every_row, alternative],
        "top_classes": order[:, :TOP_CLASSES].astype(np.int32),
        "top_probabilities": np.take_along_axis(p, order, axis=1)[:, :TOP_CLASSES].astype(np.float32),
    }
