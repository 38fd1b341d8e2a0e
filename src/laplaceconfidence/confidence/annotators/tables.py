"""What was found about every annotator, and which label to ask for next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.confidence.annotators.consensus import Consensus
from laplaceconfidence.confidence.annotators.labels import CodedLabels

if TYPE_CHECKING:
    import pandas as pd

_NORMAL_95 = 1.96
_SAMPLES_PER_QUESTION = 10  # of the least certain samples that are considered
_MOST_ANNOTATORS = 200  # that are considered, the most accurate ones


def annotator_table(
    labels: CodedLabels, consensus: Consensus, names: NDArray[Any], classes: NDArray[Any]
) -> pd.DataFrame:
    """Describe every annotator.

    Parameters
    ----------
    labels : CodedLabels
        All labels.
    consensus : Consensus
        What was found.
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

    posteriors = consensus.model.posteriors
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
    for copy, original in consensus.copied_from.items():
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


def questions(labels: CodedLabels, consensus: Consensus, n: int) -> list[tuple[int, int, float]]:
    """Find the labels that would tell most about the true classes.

    Parameters
    ----------
    labels : CodedLabels
        All labels.
    consensus : Consensus
        What was found.
    n : int
        Number of labels.

    Returns
    -------
    list of (sample, annotator, gain)
        One annotator per sample, who has not labeled it and does not copy; the gain is the expected decrease
        of the entropy of its class, in nats. Largest gain first.
    """
    posteriors = consensus.model.posteriors
    entropy = _entropy(posteriors)
    rows = np.argsort(-entropy, kind="stable")[: _SAMPLES_PER_QUESTION * n]
    annotators = _considered(labels, consensus)
    gains = np.empty((len(rows), len(annotators)))
    for column, annotator in enumerate(annotators.tolist()):
        matrix = consensus.model.matrix(consensus.labels, annotator)
        gains[:, column] = _entropy(posteriors[rows] @ matrix) - posteriors[rows] @ _entropy(matrix)
    place = np.full(labels.n_samples, -1)
    place[rows] = np.arange(len(rows))
    column_of = np.full(labels.n_annotators, -1)
    column_of[annotators] = np.arange(len(annotators))
    done = np.flatnonzero((place[labels.samples] >= 0) & (column_of[labels.annotators] >= 0))
    gains[place[labels.samples[done]], column_of[labels.annotators[done]]] = -np.inf
    best = gains.argmax(axis=1)
    gain = gains[np.arange(len(rows)), best]
    order = [number for number in np.argsort(-gain, kind="stable") if gain[number] > 0][:n]
    return [(int(rows[k]), int(annotators[best[k]]), float(gain[k])) for k in order]


def _considered(labels: CodedLabels, consensus: Consensus) -> IntArray:
    """Annotators who do not copy, the most accurate ones if there are many."""
    accuracy = consensus.model.expected_accuracy.mean(axis=1)
    accuracy[list(consensus.copied_from)] = -1
    best = np.argsort(-accuracy, kind="stable")[:_MOST_ANNOTATORS]
    return np.asarray(best[accuracy[best] >= 0])


def _entropy(probabilities: FloatArray) -> FloatArray:
    safe = np.maximum(probabilities, np.finfo(float).tiny)
    return np.asarray(-(safe * np.log(safe)).sum(axis=-1))
