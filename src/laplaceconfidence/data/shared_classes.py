"""Conversion of the label codes of one data set to those of another with the same classes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from laplaceconfidence.arrays import IntArray
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.validation import must_be


def with_classes_of(dataset: NoisyDataset, other: NoisyDataset, parameter: str = "test") -> NoisyDataset:
    """Return a data set whose labels are codes of the classes of another one.

    Parameters
    ----------
    dataset : NoisyDataset
        The data set to convert.
    other : NoisyDataset
        Has all classes that occur in ``dataset``.
    parameter : str, default="test"
        Name of ``dataset`` in error messages.

    Returns
    -------
    NoisyDataset
    """
    return with_class_names(dataset, other.class_names, parameter)


def with_class_names(dataset: NoisyDataset, class_names: tuple[str, ...], parameter: str) -> NoisyDataset:
    """Return a data set whose labels are codes of the classes of these names.

    Parameters
    ----------
    dataset : NoisyDataset
        The data set to convert.
    class_names : tuple of str
        Names of all classes that occur in ``dataset``.
    parameter : str
        Name of ``dataset`` in error messages.

    Returns
    -------
    NoisyDataset
    """
    if dataset.class_names == class_names:
        return replace(dataset, given=None)
    code_of = {name: code for code, name in enumerate(class_names)}
    present = {dataset.class_names[code] for code in np.unique(dataset.labels) if code != MISSING}
    if unknown := sorted(present - code_of.keys()):
        known = ", ".join(repr(name) for name in class_names[:10])
        known += ", ..." * (len(class_names) > 10)
        raise must_be(parameter, f"labeled with the classes {known}", unknown[0])
    codes = np.array([*(code_of.get(name, MISSING) for name in dataset.class_names), MISSING])

    def moved(labels: IntArray | None) -> IntArray | None:
        return None if labels is None else codes[labels]

    return replace(
        dataset,
        labels=codes[dataset.labels],
        class_names=class_names,
        true_labels=moved(dataset.true_labels),
        given=None,
    )
