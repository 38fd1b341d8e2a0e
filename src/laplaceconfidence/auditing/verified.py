"""Labels that a person has verified: certain, whatever the estimator thinks of them."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.auditing.evidence import Case
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.validation import check_integer, must_be


def with_verified(dataset: NoisyDataset, audited: Mapping[int, Any]) -> NoisyDataset:
    """The data set with the verified labels, given by row; ``None`` means that no class fits."""
    code_of: dict[Any, int] = {value: code for code, value in enumerate(dataset.class_values.tolist())}
    codes = dataset.labels.copy()
    for row, label in audited.items():
        check_integer(row, "audited", minimum=0, maximum=len(dataset) - 1)
        if label is not None and label not in code_of:
            raise must_be("audited", f"labels among the {len(code_of)} classes of the data", label)
        codes[row] = MISSING if label is None else code_of[label]
    return dataset.with_labels(codes)


def learns_from_verified(estimator: Any) -> bool:
    """Whether an estimator, or its class, takes verified labels beside the given ones."""
    return "audited" in inspect.signature(estimator.fit).parameters


def told_verified(
    case: Case, dataset: NoisyDataset, audited: Mapping[int, Any], at_random: Collection[int] | None = None
) -> Case:
    """The case with the verified labels known to its estimator.

    An estimator that takes ``audited`` learns from where they differ from the given ones; others are given
    the verified labels in place of those, from where they spread to the neighbors. Those ``at_random`` (all,
    for ``None``) calibrate the rest.
    """
    verified = with_verified(dataset, audited).label_values()
    if not learns_from_verified(case.estimator):
        return replace(case, y=verified)
    y = case.y.astype(object)
    unfit = [row for row, label in audited.items() if label is None]
    y[unfit] = None
    certain = {int(row): label for row, label in audited.items() if label is not None}
    told: dict[str, Any] = {"audited": certain}
    if at_random is not None:
        told["audited_at_random"] = at_random
    return replace(case, y=y if unfit else case.y, more={**case.more, **told})


def made_certain(
    scores: FloatArray, distributions: FloatArray, codes: IntArray, audited: Mapping[int, Any]
) -> tuple[FloatArray, FloatArray]:
    """Scores and distributions in which every verified label is certain."""
    rows = np.array([row for row, label in audited.items() if label is not None], dtype=np.int64)
    scores, distributions = scores.copy(), distributions.copy()
    scores[codes == MISSING] = np.nan
    scores[rows] = 1.0
    distributions[rows] = 0.0
    distributions[rows, codes[rows]] = 1.0
    return scores, distributions
