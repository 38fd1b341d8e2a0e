"""Weights of samples: how often each of them occurs in a pass, whatever the method (decision 18)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from laplaceconfidence.arrays import FloatArray, IntArray, to_numpy
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.exceptions import TrainingStopped
from laplaceconfidence.validation import check_finite, check_real, check_same_length, must_be
from laplaceconfidence.wording import listed

ClassWeight = str | Mapping[Any, float] | None
"""How much classes count: "balanced", weights by class, or ``None`` where all samples count alike."""


def combined_weights(
    sample_weight: Any, class_weight: ClassWeight, labels: IntArray, classes: Any
) -> FloatArray | None:
    """The weight of every sample: its own, times that of its class.

    Parameters
    ----------
    sample_weight : array-like of shape (n_samples,) or None
        Weights that are not negative.
    class_weight : {"balanced"}, mapping of classes to float, or None
        "balanced" gives all classes the same total weight. Classes that a mapping leaves out have weight 1.
    labels : ndarray of shape (n_samples,)
        Codes of the given labels, -1 where missing: such samples have the weight 1 of a class.
    classes : sequence of length n_classes
        The classes as the user writes them.

    Returns
    -------
    ndarray of shape (n_samples,) or None
        ``None`` where neither is given.
    """
    if sample_weight is None and class_weight is None:
        return None
    weights = np.ones(len(labels)) if sample_weight is None else _checked(sample_weight, len(labels))
    if class_weight is not None:
        by_class = _weights_of_classes(class_weight, labels, np.asarray(classes).tolist())
        weights = weights * np.append(by_class, 1.0)[labels]  # -1 reads the last entry
    if not (weights[labels != MISSING] > 0).any():
        raise must_be("sample_weight", "above 0 for at least one labeled sample", "no such weight")
    return weights


def resampled(rows: Tensor, weights: Tensor, generator: torch.Generator, stream: str) -> Tensor:
    """As many rows, in random order, each as often as its weight says.

    A row whose weight is ``w`` times the mean occurs ``w`` times, rounded up or down at random so that the
    expectation is ``w``: with equal weights every row occurs exactly once (systematic sampling).

    Parameters
    ----------
    rows : Tensor of shape (n,)
        Sample numbers.
    weights : Tensor of shape (n_samples,)
        Weights of all samples.
    generator : torch.Generator
        Source of the random numbers.
    stream : str
        What the rows are called in an error.

    Returns
    -------
    Tensor of shape (n,)
    """
    n = len(rows)
    rows = rows[torch.randperm(n, generator=generator)]
    own = weights[rows].double()
    if not own.sum() > 0:
        raise TrainingStopped(f"All samples that are left in '{stream}' have weight 0. Give some a weight.")
    ends = (own * (n / own.sum())).cumsum(0)
    ends[-1] = n
    marks = (ends + torch.rand(1, generator=generator, dtype=torch.float64)).floor().long()
    counts = marks.diff(prepend=torch.zeros(1, dtype=torch.long))
    chosen = rows.repeat_interleave(counts)
    return chosen[torch.randperm(n, generator=generator)]


def _checked(sample_weight: Any, n_samples: int) -> FloatArray:
    weights = np.asarray(to_numpy(sample_weight))
    if weights.ndim != 1 or weights.dtype.kind not in "fiub":
        raise must_be("sample_weight", "one number per sample", f"{weights.dtype} of shape {weights.shape}")
    check_same_length("sample_weight", len(weights), "X", n_samples)
    weights = weights.astype(np.float64)
    check_finite(weights, "sample_weight")
    if (weights < 0).any():
        raise must_be("sample_weight", "at least 0 for every sample", float(weights.min()))
    return weights


def _weights_of_classes(class_weight: ClassWeight, labels: IntArray, classes: list[Any]) -> FloatArray:
    if isinstance(class_weight, Mapping):
        for name, weight in class_weight.items():
            if name not in classes:
                raise must_be("class_weight", f"weights of the classes ({listed(classes)})", name)
            check_real(weight, "class_weight", at_least=0)
        return np.array([float(class_weight.get(name, 1.0)) for name in classes])
    if class_weight != "balanced":
        raise must_be("class_weight", "'balanced', a mapping of classes to weights, or None", class_weight)
    counts = np.bincount(labels[labels != MISSING], minlength=len(classes))
    balanced: FloatArray = counts.sum() / (np.count_nonzero(counts) * np.maximum(counts, 1.0))
    return balanced
