"""What was found about every annotator, and which label to ask for next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.confidence.annotators.consensus import Consensus
from laplaceconfidence.confidence.annotators.labels import CodedLabels
from laplaceconfidence.data.labels import MISSING

if TYPE_CHECKING:
    import pandas as pd

_NORMAL_95 = 1.96
_MOST_SAMPLES = 20_000  # that somebody is found to ask about, the least certain ones
_LEAST_GAIN = 1e-3  # nats; less is not worth asking for
_MOST_ANNOTATORS = 200  # that are considered, the most accurate ones


def annotator_table(
    labels: CodedLabels,
    posteriors: FloatArray,
    copied_from: Mapping[int, int],
    names: NDArray[Any],
    classes: NDArray[Any],
) -> pd.DataFrame:
    """Describe every annotator.

    Parameters
    ----------
    labels : CodedLabels
        All labels.
    posteriors : ndarray of shape (n, C)
        Probability of every class given the features and all labels of the sample.
    copied_from : mapping of int to int
        Annotators whose labels are identical to those of another one, and that one.
    names : ndarray of shape (A,)
        The annotators.
    classes : ndarray of shape (C,)
        The classes.

    Returns
    -------
    DataFrame
        One row per annotator; the columns are those of ``AnnotatorConfidence.annotators_``.
    """
    import pandas as pd

    right = posteriors[labels.samples, labels.codes]
    agrees = posteriors.argmax(axis=1)[labels.samples] == labels.codes
    n_annotators = labels.n_annotators
    n_labels = np.bincount(labels.annotators, minlength=n_annotators)
    at_least_one = np.maximum(n_labels, 1)

    def mean(values: FloatArray) -> FloatArray:
        return np.bincount(labels.annotators, weights=values, minlength=n_annotators) / at_least_one

    accuracy = mean(right)
    # Half a right and half a wrong label more, so that the interval is not empty if all labels are right.
    guarded = (accuracy * n_labels + 0.5) / (n_labels + 1)
    variance = (mean(right * (1 - right)) + guarded * (1 - guarded)) / at_least_one
    half = _NORMAL_95 * np.sqrt(variance)
    frame = pd.DataFrame(
        {
            "annotator": names,
            "n_labels": n_labels,
            "accuracy": accuracy,
            "accuracy_low": np.maximum(accuracy - half, 0),
            "accuracy_high": np.minimum(accuracy + half, 1),
            "agreement": mean(agrees.astype(np.float64)),
            "true_class": None,
            "confused_with": None,
            "confused_share": np.nan,
            "copies": None,
        }
    )
    for column in ("true_class", "confused_with", "copies"):
        frame[column] = frame[column].astype(object)
    _add_confusions(frame, labels, posteriors, classes)
    for copy, original in copied_from.items():
        frame.at[copy, "copies"] = names[original]
    frame.loc[n_labels == 0, ["accuracy", "accuracy_low", "accuracy_high", "agreement"]] = np.nan
    return frame


def _add_confusions(
    frame: pd.DataFrame, labels: CodedLabels, posteriors: FloatArray, classes: NDArray[Any]
) -> None:
    """The most frequent expected error of every annotator, and its share of the samples of that class."""
    counts = labels.by_sample.T @ posteriors
    totals = labels.by_annotator @ counts
    errors = counts.copy()
    errors[np.arange(len(errors)), labels.pair_codes] = 0
    truths = errors.argmax(axis=1)
    largest = errors[np.arange(len(errors)), truths]
    order = np.lexsort((-largest, labels.pair_annotators))
    _, firsts = np.unique(labels.pair_annotators[order], return_index=True)
    for pair in order[firsts].tolist():
        if largest[pair] < 0.5:  # no error is expected
            continue
        annotator, truth = int(labels.pair_annotators[pair]), int(truths[pair])
        frame.at[annotator, "true_class"] = classes[truth]
        frame.at[annotator, "confused_with"] = classes[labels.pair_codes[pair]]
        frame.at[annotator, "confused_share"] = largest[pair] / totals[annotator, truth]


def best_questions(labels: CodedLabels, consensus: Consensus) -> tuple[IntArray, FloatArray]:
    """Find whom to ask about every sample.

    Parameters
    ----------
    labels : CodedLabels
        All labels.
    consensus : Consensus
        What was found.

    Returns
    -------
    annotators : ndarray of int64 of shape (n,)
        Who has not labeled the sample, does not copy, and is expected to tell most about its class;
        ``MISSING`` where nobody is expected to tell anything, and for all but the 20,000 least certain
        samples.
    gains : ndarray of shape (n,)
        The expected decrease of the entropy of the class, in nats; 0 where nobody is asked.
    """
    posteriors = consensus.model.posteriors
    rows = np.argsort(-_entropy(posteriors), kind="stable")[:_MOST_SAMPLES]
    place = np.full(labels.n_samples, MISSING)
    place[rows] = np.arange(len(rows))
    considered = _considered(labels, consensus)
    by_annotator = np.argsort(labels.annotators, kind="stable")
    starts = np.searchsorted(labels.annotators[by_annotator], np.arange(labels.n_annotators + 1))
    best = np.full(len(rows), MISSING)
    largest = np.full(len(rows), _LEAST_GAIN)
    for annotator in considered.tolist():
        matrix = consensus.model.matrix(consensus.labels, annotator)
        gain = _entropy(posteriors[rows] @ matrix) - posteriors[rows] @ _entropy(matrix)
        done = place[labels.samples[by_annotator[starts[annotator] : starts[annotator + 1]]]]
        gain[done[done != MISSING]] = 0
        better = gain > largest
        best[better], largest[better] = annotator, gain[better]
    annotators, gains = np.full(labels.n_samples, MISSING), np.zeros(labels.n_samples)
    annotators[rows], gains[rows] = best, np.where(best == MISSING, 0, largest)
    return annotators, gains


def _considered(labels: CodedLabels, consensus: Consensus) -> IntArray:
    """Annotators who do not copy, the most accurate ones if there are many."""
    accuracy = consensus.model.accuracy.mean(axis=1)
    accuracy[list(consensus.copied_from)] = -1
    best = np.argsort(-accuracy, kind="stable")[:_MOST_ANNOTATORS]
    return np.asarray(best[accuracy[best] >= 0])


def _entropy(probabilities: FloatArray) -> FloatArray:
    safe = np.maximum(probabilities, np.finfo(float).tiny)
    return np.asarray(-(safe * np.log(safe)).sum(axis=-1))
