"""Label noise for benchmarks: noisy labels drawn from clean ones, which are kept as true labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.data.cifar_classes import CIFAR10_CLASSES, CIFAR100_CLASSES
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.instance_noise import draw_instance_labels
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.data.transitions import (
    CIFAR10_ASYMMETRIC,
    CIFAR100_ASYMMETRIC,
    asymmetric_transition,
    check_transition,
    pair_transition,
    symmetric_transition,
)
from laplaceconfidence.validation import check_choice, check_random_state, check_real, must_be

NOISE_KINDS = ("symmetric", "symmetric-excluding", "asymmetric", "pair", "instance", "matrix")


def add_noise(
    dataset: NoisyDataset,
    kind: str,
    rate: float | None = None,
    *,
    mapping: Mapping[Any, Any] | None = None,
    matrix: Any = None,
    random_state: Any = None,
) -> NoisyDataset:
    """Replace labels by noisy ones drawn from the clean labels, which are kept as ``true_labels``.

    Parameters
    ----------
    dataset : NoisyDataset
        The clean labels are its ``true_labels`` if it has them, else its labels. Missing labels stay missing.
    kind : {"symmetric", "symmetric-excluding", "asymmetric", "pair", "instance", "matrix"}
        How labels are drawn:

        - "symmetric": a share ``rate`` is drawn from all classes, the true one included, as in the paper;
        - "symmetric-excluding": a share ``rate`` is drawn from the other classes;
        - "asymmetric": a share ``rate`` of each class in ``mapping`` becomes the class it maps to;
        - "pair": a share ``rate`` of each class becomes the next class;
        - "instance": the features (or images) decide which samples are mislabeled and as what;
        - "matrix": row i of ``matrix`` holds the probabilities of the labels of true class i.
    rate : float or None, default=None
        Noise rate from 0 to 1; required unless ``kind`` is "matrix".
    mapping : mapping of class to class or None, default=None
        For "asymmetric", by names or codes; not needed for the classes of CIFAR-10 and CIFAR-100.
    matrix : array-like of shape (C, C) or None, default=None
        Transition matrix for "matrix".
    random_state : int, Generator, RandomState or None, default=None
        Seed of the draws.

    Returns
    -------
    NoisyDataset

    Examples
    --------
    >>> from laplaceconfidence import add_noise, load_digits
    >>> noisy = add_noise(load_digits(), "symmetric", 0.4, random_state=0)
    >>> round(float((noisy.labels != noisy.true_labels).mean()), 2)
    0.38
    """
    check_choice(kind, "kind", NOISE_KINDS)
    if mapping is not None and kind != "asymmetric":
        raise must_be("mapping", "left out unless 'kind' is 'asymmetric'", mapping)
    if (matrix is not None) != (kind == "matrix"):
        raise must_be("matrix", "given where 'kind' is 'matrix' and only there", matrix)
    if dataset.n_classes < 2:
        raise must_be("dataset", "of at least two classes", f"the only class {dataset.class_names[0]!r}")
    generator = check_random_state(random_state)
    clean = dataset.labels if dataset.true_labels is None else dataset.true_labels
    known = (clean != MISSING) & (dataset.labels != MISSING)
    noisy = dataset.labels.copy()
    if kind == "instance":
        features = _describing(dataset)
        share = check_real(rate, "rate", at_least=0, at_most=1)
        described = features if known.all() else features[known]
        noisy[known] = draw_instance_labels(clean[known], described, dataset.n_classes, share, generator)
    else:
        transition = _transition(dataset, kind, rate, mapping, matrix)
        noisy[known] = draw_labels(clean[known], transition, generator)
    return replace(dataset, labels=noisy, true_labels=clean)


def draw_labels(true_labels: IntArray, transition: FloatArray, generator: np.random.Generator) -> IntArray:
    """Draw a label for every true label from its row of a transition matrix.

    Parameters
    ----------
    true_labels : ndarray of shape (n,)
        Codes of the true labels.
    transition : ndarray of shape (C, C)
        Probabilities of the labels per true class.
    generator : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of shape (n,)
    """
    cumulative = transition.cumsum(axis=1)
    cumulative /= cumulative[:, -1:]  # so that rounding leaves no gap after the last possible class
    choice = generator.random(len(true_labels))
    labels = np.empty_like(true_labels)
    for true_class in np.unique(true_labels):
        rows = true_labels == true_class
        labels[rows] = np.searchsorted(cumulative[true_class], choice[rows], side="right")
    return labels


def _transition(
    dataset: NoisyDataset, kind: str, rate: float | None, mapping: Mapping[Any, Any] | None, matrix: Any
) -> FloatArray:
    if kind == "matrix":
        if rate is not None:
            raise must_be("rate", "left out where 'matrix' is given, which holds it", rate)
        return check_transition(matrix, dataset.n_classes)
    share = check_real(rate, "rate", at_least=0, at_most=1)
    if kind == "asymmetric":
        mapping = _known_mapping(dataset) if mapping is None else mapping
        return asymmetric_transition(dataset.class_names, mapping, share)
    if kind == "pair":
        return pair_transition(dataset.n_classes, share)
    return symmetric_transition(dataset.n_classes, share, include_true=kind == "symmetric")


def _known_mapping(dataset: NoisyDataset) -> Mapping[str, str]:
    names = set(dataset.class_names)
    if names == set(CIFAR10_CLASSES):
        return CIFAR10_ASYMMETRIC
    if names == set(CIFAR100_CLASSES):
        return CIFAR100_ASYMMETRIC
    rule = "given for asymmetric noise, from classes to the classes they become"
    raise must_be("mapping", rule, None, "Only the classes of CIFAR-10 and CIFAR-100 are known by name.")


def _describing(dataset: NoisyDataset) -> Any:
    if dataset.features is not None:
        return dataset.features
    if dataset.images is not None:
        return dataset.images.reshape(len(dataset), -1)
    rule = "a data set with features or images for noise of the kind 'instance'"
    raise must_be("dataset", rule, "one without")
