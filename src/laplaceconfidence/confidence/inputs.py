"""Checks of the features, given labels and sample weights that estimators are fitted on."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import column_or_1d
from sklearn.utils.validation import validate_data

from laplaceconfidence.arrays import FloatArray, IntArray, sized_row_blocks, to_numpy
from laplaceconfidence.data.labels import MISSING, EncodedLabels, encode_labels
from laplaceconfidence.exceptions import InvalidInputError, LaplaceConfidenceWarning
from laplaceconfidence.features.scale import principal_axes, project, unit_length
from laplaceconfidence.memory import available_memory
from laplaceconfidence.validation import check_finite, check_same_length, must_be

MINUS_ONE_IS_A_CLASS = "The label -1 is taken as a class."
KNN_VOTE_BYTES = 10  # per sample and class, measured as all numbers that are passed to ``check_memory``


def check_feature_vectors(estimator: BaseEstimator, X: Any, *, reset: bool = True) -> FloatArray:
    """Check features the way scikit-learn does, and that they are finite.

    Parameters
    ----------
    estimator : BaseEstimator
        The estimator that is fitted or predicts.
    X : array-like of shape (n, d)
        Feature vectors.
    reset : bool, default=True
        Whether to set ``n_features_in_`` of the estimator; otherwise ``X`` is checked against it.

    Returns
    -------
    ndarray of shape (n, d)
        C-contiguous, float32 or float64.
    """
    X = to_numpy(X) if hasattr(X, "detach") else X  # scikit-learn does not convert torch tensors
    features: FloatArray = validate_data(
        estimator, X, reset=reset, dtype=[np.float32, np.float64], ensure_all_finite=False, order="C"
    )
    check_finite(features, "X")
    return features


def has_equal_rows(features: FloatArray) -> bool:
    """Return whether all rows are the same.

    Parameters
    ----------
    features : ndarray of shape (n, d)
        Feature vectors of at least one sample.

    Returns
    -------
    bool
    """
    return all(bool((features[rows] == features[0]).all()) for rows in sized_row_blocks(*features.shape))


def unit_features(features: FloatArray, n_components: int | None) -> FloatArray:
    """Project features on their first principal axes, if requested, and scale the rows to unit length.

    Parameters
    ----------
    features : ndarray of shape (n, d)
        Feature vectors.
    n_components : int or None
        Number of principal components; ``None`` keeps the features.

    Returns
    -------
    ndarray of shape (n, n_components or d)
    """
    if n_components is not None:
        mean, axes, _ = principal_axes(features, n_components)
        features = project(features, mean, axes)
    return unit_length(features)


def check_given_labels(
    y: Any, n_samples: int, *, missing_label: object = None, classes: Any = None
) -> EncodedLabels:
    """Encode the given labels; at least one of them must not be missing.

    Warns if -1 is a class although it may mean a missing label.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Given labels.
    n_samples : int
        Number of samples that ``X`` has.
    missing_label : object, default=None
        A value that means "no label", besides ``None``, NaN and the empty string.
    classes : array-like of shape (C,) or None, default=None
        All classes in the order of their codes; ``None`` takes the distinct labels, sorted.

    Returns
    -------
    EncodedLabels
    """
    if y is None:
        raise must_be("y", "the given labels, one per sample", None)
    given = encode_labels(y, classes=classes, missing_label=missing_label, parameter="y")
    check_same_length("X", n_samples, "y", len(given.codes))
    if (given.codes == MISSING).all():
        raise InvalidInputError(
            f"'y' must hold at least one label that is not missing. Got {n_samples} labels, all missing."
        )
    warn_about_minus_one(given.class_values, missing_label)
    return given


def check_contrasting_labels(y: Any, missing_label: object) -> EncodedLabels:
    """Encode labels of at least two classes.

    Warns if a class has a single member, and if -1 is a class although it may mean a missing label.

    Parameters
    ----------
    y : array-like of shape (n,)
        Given labels.
    missing_label : object
        A value that means "no label", besides ``None``, NaN and the empty string.

    Returns
    -------
    EncodedLabels
    """
    if y is None:
        raise InvalidInputError("This estimator requires y to be passed, but the target y is None.")
    given = to_numpy(y)
    labels = encode_labels(
        column_or_1d(given, warn=True) if given.ndim == 2 else given,
        missing_label=missing_label,
        parameter="y",
    )
    n_classes = len(labels.class_values)
    if n_classes < 2:
        found = f"{n_classes} class{'es' * (n_classes != 1)}: {labels.class_values.tolist()}"
        raise must_be("y", "labels of at least two classes", found)
    counts = np.bincount(labels.codes[labels.codes != MISSING], minlength=n_classes)
    if (alone := counts == 1).any():
        names = ", ".join(str(value) for value in labels.class_values[alone][:5])
        warnings.warn(
            f"{alone.sum()} of {n_classes} classes have a single member ({names}): no other sample can "
            "confirm those labels, so their confidence is low whether they are right or not.",
            LaplaceConfidenceWarning,
            stacklevel=4,
        )
    warn_about_minus_one(labels.class_values, missing_label)
    return labels


def warn_about_minus_one(class_values: NDArray[Any], missing_label: object) -> None:
    """Warn if -1 is one of three or more classes although it may mean a missing label.

    Parameters
    ----------
    class_values : ndarray of shape (C,)
        The classes, sorted.
    missing_label : object
        A value that means "no label"; ``None`` if there is none.
    """
    if missing_label is None and len(class_values) > 2 and class_values[0] == -1:
        warnings.warn(
            f"{MINUS_ONE_IS_A_CLASS} Pass missing_label=-1 if it means that there is no label.",
            LaplaceConfidenceWarning,
            stacklevel=5,
        )


def check_memory(
    estimator: object, n_samples: int, n_classes: int, *, per_probability: int, per_class_pair: int = 0
) -> None:
    """Raise before a fit that needs more memory than there is.

    Parameters
    ----------
    estimator : object
        The estimator that is fitted.
    n_samples : int
        Number of samples.
    n_classes : int
        Number of classes.
    per_probability : int
        Bytes that the fit needs at its peak per sample and class, measured.
    per_class_pair : int, default=0
        Bytes that it needs per pair of classes, measured.

    Raises
    ------
    InvalidInputError
        If the memory that is available does not suffice.
    """
    available = available_memory()
    needed = per_probability * n_samples * n_classes + per_class_pair * n_classes**2
    if available is None or needed <= available:
        return
    hint = (
        " There are nearly as many classes as samples: is 'y' the right column?"
        if 2 * n_classes > n_samples
        else ""
    )
    raise InvalidInputError(
        f"{type(estimator).__name__} needs about {needed / 1e9:,.1f} GB of memory for {n_samples:,} samples "
        f"of {n_classes:,} classes in 'y', but {available / 1e9:,.1f} GB are available.{hint} Merge rare "
        "classes, fit groups of related classes one after the other, or use a machine with more memory. "
        f"KNNVote needs the least: {KNN_VOTE_BYTES * n_samples * n_classes / 1e9:,.1f} GB."
    )


def check_sample_weight(sample_weight: Any, n_samples: int) -> FloatArray | None:
    """Check weights: finite, non-negative, one per sample and not all zero.

    Parameters
    ----------
    sample_weight : array-like of shape (n_samples,) or None
        Weights of the samples.
    n_samples : int
        Number of samples.

    Returns
    -------
    ndarray of shape (n_samples,) or None
        The weights in float64; ``None`` if none were given.
    """
    if sample_weight is None:
        return None
    weights = to_numpy(sample_weight)
    if weights.ndim != 1:
        raise must_be("sample_weight", "one-dimensional, one weight per sample", f"shape {weights.shape}")
    check_same_length("sample_weight", len(weights), "y", n_samples)
    weights = weights.astype(np.float64)
    check_finite(weights, "sample_weight")
    if weights.min() < 0 or weights.max() == 0:
        raise must_be("sample_weight", "non-negative weights, not all zero", float(weights.min()))
    return weights


def refuse_sample_weight(estimator: object, sample_weight: Any, reason: str) -> None:
    """Raise if weights are passed to an estimator that cannot use them.

    Parameters
    ----------
    estimator : object
        The estimator that is fitted.
    sample_weight : array-like or None
        What was passed to ``fit``.
    reason : str
        Why the estimator cannot use weights, as a clause after "because".

    Raises
    ------
    InvalidInputError
        If ``sample_weight`` is not ``None``.
    """
    if sample_weight is not None:
        raise InvalidInputError(
            f"The 'sample_weight' parameter must be None for {type(estimator).__name__}, because {reason}. "
            "LaplaceConfidence, RefinedCrossEntropy and KNNVote accept weights."
        )


def at_given_labels(distributions: FloatArray, codes: IntArray) -> FloatArray:
    """Read every row at its given label.

    Parameters
    ----------
    distributions : ndarray of shape (n, C)
        One row per sample.
    codes : ndarray of shape (n,)
        Codes of the given labels, ``MISSING`` where none was given.

    Returns
    -------
    ndarray of shape (n,)
        NaN where no label was given.
    """
    entries = distributions[np.arange(len(codes)), np.maximum(codes, 0)]
    return np.where(codes == MISSING, np.nan, entries)


def class_shares(codes: IntArray, n_classes: int, weights: FloatArray | None = None) -> FloatArray:
    """Compute the share of every class among the labels that are not missing.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Codes of the given labels, ``MISSING`` where none was given.
    n_classes : int
        Number of classes.
    weights : ndarray of shape (n,) or None, default=None
        Weights of the samples; ``None`` counts every sample once.

    Returns
    -------
    ndarray of shape (n_classes,)
    """
    labeled = codes != MISSING
    counts = np.bincount(
        codes[labeled], weights=None if weights is None else weights[labeled], minlength=n_classes
    )
    shares: FloatArray = counts / counts.sum()
    return shares
