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
from laplaceconfidence.confidence.noise_aware.feature_sets import ONLY_VIEW, FeatureSet
from laplaceconfidence.confidence.noise_aware.prediction import Predictor
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
    """What was fitted on a sample, as tasks need it.

    Attributes
    ----------
    predictor : Predictor
        Class probabilities of new samples.
    classes : ndarray of int64, shape (c,)
        Codes of the classes that the sample has.
    transition : ndarray of shape (c, c)
        The noise matrix.
    identified : bool
        Whether the noise was identified.
    shift : float
        Log odds by which the probability of the given label is moved, where it was not.
    n_classes : int
        Number of classes of the whole data.
    rows : ndarray of int64, shape (s,)
        The rows of the sample, sorted.
    given : ndarray of int64, shape (s,)
        Codes of their given labels.
    distributions : ndarray of shape (s, c)
        Their class probabilities, from folds that had not seen their labels.
    confidence : ndarray of shape (s,)
        Probability that their labels are right, NaN where there is none.
    """

    predictor: Predictor
    classes: IntArray
    transition: FloatArray
    identified: bool
    shift: float
    n_classes: int
    rows: IntArray
    given: IntArray
    distributions: FloatArray
    confidence: FloatArray

    @classmethod
    def of(
        cls, estimator: NoiseAwareConfidence, rows: IntArray, given: IntArray, n_classes: int
    ) -> SampleFit:
        """Take from a fitted estimator what is applied to all samples.

        Parameters
        ----------
        estimator : NoiseAwareConfidence
            Fitted on the sample; it must have predicted something. Labels are codes.
        rows : ndarray of int64, shape (s,)
            The rows of the sample, sorted.
        given : ndarray of int64, shape (s,)
            Codes of their given labels.
        n_classes : int
            Number of classes of the whole data.

        Returns
        -------
        SampleFit
        """
        known = ~np.isnan(estimator.confidence_)
        odds = [
            np.log(np.clip(values[known], _TINY, 1 - _TINY) / np.clip(1 - values[known], _TINY, 1 - _TINY))
            for values in (estimator.confidence_, estimator.label_support_)
        ]
        return cls(
            predictor=estimator._predictor,
            classes=np.asarray(estimator.classes_, dtype=np.int64),
            transition=np.asarray(estimator.transition_matrix_),
            identified=bool(estimator.identifiable_),
            shift=float(np.median(odds[0] - odds[1])),
            n_classes=n_classes,
            rows=rows,
            given=given,
            distributions=np.asarray(estimator.label_distributions_),
            confidence=np.asarray(estimator.confidence_),
        )

    def probabilities(self, features: FloatArray) -> FloatArray:
        """Compute the class probabilities of samples that are not in the sample, without their labels.

        Parameters
        ----------
        features : ndarray of shape (m, d)
            Feature vectors.

        Returns
        -------
        ndarray of float64, shape (m, C)
        """
        p = np.zeros((len(features), self.n_classes))
        p[:, self.classes] = self.predictor([FeatureSet(ONLY_VIEW, features, None)], None)
        return p

    def posterior(self, p: FloatArray, given: IntArray) -> tuple[FloatArray, FloatArray]:
        """Compute the posterior of the true class.

        Parameters
        ----------
        p : ndarray of float64, shape (m, C)
            Class probabilities without the given labels.
        given : ndarray of int, shape (m,)
            Codes of the given labels, MISSING where there is none.

        Returns
        -------
        distributions : ndarray of float64, shape (m, C)
            Probability of every class.
        confidence : ndarray of float64, shape (m,)
            Probability that the given label is right, NaN where there is none.
        """
        p = p.copy()
        labeled = np.flatnonzero(given != MISSING)
        own = given[labeled]
        if self.identified:
            p[labeled] = _normalized(p[labeled] * self._chances(own), p[labeled])
        else:
            p[labeled] = _moved(p[labeled], own, self.shift)
        confidence = np.full(len(given), np.nan)
        confidence[labeled] = p[labeled, own]
        return p, confidence

    def probabilities_in_sample(self, places: IntArray) -> FloatArray:
        """Compute the class probabilities of samples of the fit as if they had no label.

        Parameters
        ----------
        places : ndarray of int, shape (m,)
            Places in ``rows``.

        Returns
        -------
        ndarray of float64, shape (m, C)
        """
        p = np.zeros((len(places), self.n_classes))
        p[:, self.classes] = self.distributions[places]
        labeled = np.flatnonzero(self.given[places] != MISSING)
        own = self.given[places][labeled]
        if self.identified:
            p[labeled] = _normalized(p[labeled] / np.maximum(self._chances(own), _TINY), p[labeled])
        else:
            p[labeled] = _moved(p[labeled], own, -self.shift)
        return p

    def _chances(self, given: IntArray) -> FloatArray:
        """(m, C) probability of the given label if every class is the true one."""
        by_given = np.eye(self.n_classes)  # rows are read one after the other, columns would be far apart
        by_given[np.ix_(self.classes, self.classes)] = self.transition.T
        chances: FloatArray = by_given[given]
        return chances


def _normalized(p: FloatArray, otherwise: FloatArray) -> FloatArray:
    total = p.sum(axis=1, keepdims=True)
    result: FloatArray = np.divide(p, total, out=otherwise.copy(), where=total > 0)
    return result


def _moved(p: FloatArray, given: IntArray, shift: float) -> FloatArray:
    """Move the log odds of the given labels, and share the rest as before."""
    every_row = np.arange(len(given))
    support = np.clip(p[every_row, given], _TINY, 1 - _TINY)
    moved = 1 / (1 + np.exp(-(np.log(support / (1 - support)) + shift)))
    others: FloatArray = p.copy()
    others[every_row, given] = 0
    others *= ((1 - moved) / np.maximum(others.sum(axis=1), _TINY))[:, None]
    others[every_row, given] = moved
    others /= others.sum(axis=1, keepdims=True)
    return others


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
) -> tuple[NoiseAwareConfidence, SampleFit]:
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
    estimator : NoiseAwareConfidence
        Fitted; labels are codes.
    fitted : SampleFit
        What is applied to all samples.
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
    return estimator, SampleFit.of(estimator, rows, given, n_classes)


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
        p, confidence = fitted.posterior(fitted.probabilities(features), given)
        first, last = np.searchsorted(fitted.rows, (start, start + len(features)))
        inside = fitted.rows[first:last] - start
        p[inside] = 0
        p[np.ix_(inside, fitted.classes)] = fitted.distributions[first:last]
        confidence[inside] = fitted.confidence[first:last]
        for name, values in result_columns(p, confidence, given).items():
            columns.setdefault(name, []).append(values)
        if with_digests:
            own = feature_digests(features), feature_digests(features, telling_apart=True)
            digests.append(np.array(own, dtype="S16").T)
    if with_digests:
        work.save(DIGESTS, part, {"digests": np.concatenate(digests)}, {})
    arrays = {name: np.concatenate(values) for name, values in columns.items()}
    arrays |= {"rows": np.arange(piece.start, piece.stop), "given": labels.astype(np.int32)}
    return work.save(RESULTS, part, arrays, {})


def result_columns(p: FloatArray, confidence: FloatArray, given: IntArray) -> dict[str, NDArray[Any]]:
    """Compute what an audit shows about samples.

    Parameters
    ----------
    p : ndarray of float64, shape (m, C)
        Probability of every class.
    confidence : ndarray of float64, shape (m,)
        Probability that the given label is right, NaN where there is none.
    given : ndarray of int, shape (m,)
        Codes of the given labels.

    Returns
    -------
    dict of str to ndarray
        Columns of the results, as in ``results.COLUMNS``.
    """
    every_row = np.arange(len(given))
    n_kept = min(TOP_CLASSES + 1, p.shape[1])
    top = np.sort(np.argpartition(-p, n_kept - 1, axis=1)[:, :n_kept], axis=1)
    best_first = np.argsort(-np.take_along_axis(p, top, axis=1), axis=1, kind="stable")
    order = np.take_along_axis(top, best_first, axis=1)
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
