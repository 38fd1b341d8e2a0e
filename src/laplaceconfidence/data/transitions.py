"""Transition matrices of label noise: entry [i, j] is the probability that true class i is given label j."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray, to_numpy
from laplaceconfidence.data.cifar_classes import CIFAR100_SUPERCLASSES
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.validation import check_integer, check_real, check_same_length, must_be
from laplaceconfidence.wording import listed

CIFAR10_ASYMMETRIC: Mapping[str, str] = {
    "truck": "automobile",
    "bird": "airplane",
    "deer": "horse",
    "cat": "dog",
    "dog": "cat",
}
"""Classes of CIFAR-10 and the classes they become under asymmetric noise (Patrini et al., 2017)."""

CIFAR100_ASYMMETRIC: Mapping[str, str] = {
    name: names[(position + 1) % len(names)]
    for names in CIFAR100_SUPERCLASSES.values()
    for position, name in enumerate(names)
}
"""Every class of CIFAR-100 and the next one within its superclass (Patrini et al., 2017)."""

DIGITS_ASYMMETRIC: Mapping[str, str] = {"2": "7", "3": "8", "5": "6", "6": "5", "7": "1"}
"""Digits and the digits they become under asymmetric noise (Patrini et al., 2017)."""


def symmetric_transition(n_classes: int, rate: float, *, include_true: bool = True) -> FloatArray:
    """Transition matrix of symmetric noise.

    Parameters
    ----------
    n_classes : int
        Number of classes, at least 2.
    rate : float
        Noise rate from 0 to 1.
    include_true : bool, default=True
        Whether the new label is drawn from all classes, as in the paper, or from all but the true one.

    Returns
    -------
    ndarray of shape (C, C)
    """
    n_classes = check_integer(n_classes, "n_classes", minimum=2)
    rate = check_real(rate, "rate", at_least=0, at_most=1)
    if include_true:
        return (1 - rate) * np.eye(n_classes) + rate / n_classes
    wrong = np.full((n_classes, n_classes), rate / (n_classes - 1))
    np.fill_diagonal(wrong, 1 - rate)
    return wrong


def pair_transition(n_classes: int, rate: float) -> FloatArray:
    """Transition matrix of noise that turns every class into the next one, the last into the first.

    Parameters
    ----------
    n_classes : int
        Number of classes, at least 2.
    rate : float
        Noise rate from 0 to 1.

    Returns
    -------
    ndarray of shape (C, C)
    """
    n_classes = check_integer(n_classes, "n_classes", minimum=2)
    rate = check_real(rate, "rate", at_least=0, at_most=1)
    kept = np.eye(n_classes)
    return (1 - rate) * kept + rate * np.roll(kept, 1, axis=1)


def asymmetric_transition(class_names: Sequence[str], mapping: Mapping[Any, Any], rate: float) -> FloatArray:
    """Transition matrix of asymmetric noise; classes that are not in ``mapping`` stay clean.

    Parameters
    ----------
    class_names : sequence of str
        Names of the classes.
    mapping : mapping of class to class
        By names or codes.
    rate : float
        Noise rate from 0 to 1.

    Returns
    -------
    ndarray of shape (C, C)
    """
    rate = check_real(rate, "rate", at_least=0, at_most=1)
    if not isinstance(mapping, Mapping):
        raise must_be("mapping", "a dict from classes to classes", mapping)
    transition = np.eye(len(class_names))
    for true_class, taken_for in mapping.items():
        source, target = _code_of(true_class, class_names), _code_of(taken_for, class_names)
        transition[source, source] -= rate
        transition[source, target] += rate
    return transition


def check_transition(matrix: Any, n_classes: int) -> FloatArray:
    """Check that a matrix has one row and one column per class, and rows of probabilities.

    Parameters
    ----------
    matrix : array-like of shape (C, C)
        The transition matrix.
    n_classes : int
        Number of classes.

    Returns
    -------
    ndarray of shape (C, C)
    """
    try:
        transition = to_numpy(matrix)
    except ValueError as error:  # rows of different lengths
        raise must_be("matrix", "made of rows of the same length", matrix) from error
    if transition.shape != (n_classes, n_classes) or transition.dtype.kind not in "fiu":
        rule = f"numbers of shape ({n_classes}, {n_classes}), one row and one column per class"
        raise must_be("matrix", rule, f"{transition.dtype} of shape {transition.shape}")
    transition = transition.astype(np.float64)
    if not (transition >= 0).all():  # also false for NaN
        row = int(np.flatnonzero(~(transition >= 0).all(axis=1))[0])
        raise must_be(
            "matrix", "of probabilities, none negative or NaN", f"row {row}: {transition[row].tolist()}"
        )
    totals = transition.sum(axis=1)
    if not np.allclose(totals, 1, atol=1e-6):
        row = int(np.abs(totals - 1).argmax())
        raise must_be("matrix", "made of rows that sum to one", f"{totals[row]:.6g} in row {row}")
    return transition


def empirical_transition(true_labels: IntArray, labels: IntArray, n_classes: int) -> FloatArray:
    """Share of every label per true class; a class without samples keeps its own label.

    Parameters
    ----------
    true_labels : ndarray of shape (n,)
        Codes of the true labels.
    labels : ndarray of shape (n,)
        Codes of the given labels.
    n_classes : int
        Number of classes.

    Returns
    -------
    ndarray of shape (C, C)
    """
    check_same_length("true_labels", len(true_labels), "labels", len(labels))
    known = (true_labels != MISSING) & (labels != MISSING)
    pairs = true_labels[known] * n_classes + labels[known]
    counts = np.bincount(pairs, minlength=n_classes**2).reshape(n_classes, n_classes).astype(np.float64)
    counts[counts.sum(axis=1) == 0] = np.eye(n_classes)[counts.sum(axis=1) == 0]
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def _code_of(name_or_code: Any, class_names: Sequence[str]) -> int:
    if isinstance(name_or_code, str) and name_or_code in class_names:
        return list(class_names).index(name_or_code)
    is_code = isinstance(name_or_code, (int, np.integer)) and not isinstance(name_or_code, bool)
    if is_code and 0 <= name_or_code < len(class_names):
        return int(name_or_code)
    rule = f"made of names of the {len(class_names)} classes ({listed(class_names)}) or their codes"
    raise must_be("mapping", rule, name_or_code)
