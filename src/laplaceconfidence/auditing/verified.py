"""Labels that a person has verified, in a fit."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.auditing.fit_request import FitRequest
from laplaceconfidence.data.annotator_labels import AnnotatorLabels
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.validation import check_integer, must_be


def labeled_rows_at_random(
    labels: IntArray, *, seed: int | None = None, leave_out: Collection[int] = ()
) -> IntArray:
    """Return the rows with a label in random order.

    Parameters
    ----------
    labels : ndarray of int of shape (n,)
        Codes of the labels.
    seed : int, optional
        Seed of the order; by default it depends on the number of labels only.
    leave_out : collection of int, default=()
        Rows to leave out.

    Returns
    -------
    ndarray of int
    """
    rows = np.flatnonzero(labels != MISSING)
    rows = rows[~np.isin(rows, np.fromiter(leave_out, dtype=np.int64))]
    return np.random.default_rng(len(labels) if seed is None else seed).permutation(rows)


def with_verified(dataset: NoisyDataset, audited: Mapping[int, Any]) -> NoisyDataset:
    """Replace given labels with verified ones.

    Parameters
    ----------
    dataset : NoisyDataset
        The data set.
    audited : mapping of int to label
        Verified labels by row, None where no class fits.

    Returns
    -------
    NoisyDataset
    """
    code_of: dict[Any, int] = {value: code for code, value in enumerate(dataset.class_values.tolist())}
    codes = dataset.labels.copy()
    for row, label in audited.items():
        check_integer(row, "audited", minimum=0, maximum=len(dataset) - 1)
        if label is not None and label not in code_of:
            raise must_be("audited", f"labels among the {len(code_of)} classes of the data", label)
        codes[row] = MISSING if label is None else code_of[label]
    verified = dataset.with_labels(codes)
    without_class = [row for row, label in audited.items() if label is None]
    if dataset.annotations is None or not without_class:
        return verified
    return replace(verified, annotations=dataset.annotations.without_samples(without_class))


def learns_from_verified(estimator: Any) -> bool:
    """Return whether the ``fit`` of an estimator takes verified labels besides the given ones.

    Parameters
    ----------
    estimator : ConfidenceEstimator or type
        An estimator, or its class.

    Returns
    -------
    bool
    """
    return "audited" in inspect.signature(estimator.fit).parameters


def request_with_verified(
    request: FitRequest,
    dataset: NoisyDataset,
    audited: Mapping[int, Any],
    at_random: Collection[int] | None = None,
) -> FitRequest:
    """Add verified labels to the arguments of a fit.

    They are passed to an estimator whose ``fit`` takes ``audited``; for other estimators they replace the
    given labels.

    Parameters
    ----------
    request : FitRequest
        The request without verified labels.
    dataset : NoisyDataset
        The audited data set.
    audited : mapping of int to label
        Verified labels by row, None where no class fits.
    at_random : collection of int, optional
        Rows that were drawn at random, which calibrate the confidences of all others; None means all.

    Returns
    -------
    FitRequest
    """
    verified = with_verified(dataset, audited)
    if not learns_from_verified(request.estimator):
        return replace(request, y=verified.label_values())
    y = request.y if verified.annotations is None else verified.annotations
    without_class = [row for row, label in audited.items() if label is None]
    if without_class and not isinstance(y, AnnotatorLabels):
        y = y.astype(object)
        y[without_class] = None
    certain = {int(row): label for row, label in audited.items() if label is not None}
    arguments: dict[str, Any] = {**request.fit_arguments, "audited": certain}
    if at_random is not None:
        arguments["audited_at_random"] = at_random
    return replace(request, y=y, fit_arguments=arguments)


def make_certain(
    scores: FloatArray, distributions: FloatArray, codes: IntArray, audited: Mapping[int, Any]
) -> tuple[FloatArray, FloatArray]:
    """Set the probability of every verified label to 1.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Probability that the label is right.
    distributions : ndarray of shape (n, C)
        Probability of every class.
    codes : ndarray of int of shape (n,)
        Codes of the labels, with the verified ones.
    audited : mapping of int to label
        Verified labels by row, None where no class fits.

    Returns
    -------
    scores : ndarray of shape (n,)
        NaN where there is no label.
    distributions : ndarray of shape (n, C)
        1 at the verified labels.
    """
    rows = np.array([row for row, label in audited.items() if label is not None], dtype=np.int64)
    scores, distributions = scores.copy(), distributions.copy()
    scores[codes == MISSING] = np.nan
    scores[rows] = 1.0
    distributions[rows] = 0.0
    distributions[rows, codes[rows]] = 1.0
    return scores, distributions
