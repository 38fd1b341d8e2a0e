"""Labels drawn at random: what a person looks at to learn how right all the others are."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from laplaceconfidence.arrays import IntArray
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.validation import check_integer, must_be


def labeled_rows_at_random(
    labels: IntArray, *, seed: int | None = None, leave_out: Collection[int] = ()
) -> IntArray:
    """Rows with a label in an order drawn at random; without a seed, the same every time."""
    rows = np.flatnonzero(labels != MISSING)
    rows = rows[~np.isin(rows, np.fromiter(leave_out, dtype=np.int64))]
    return np.random.default_rng(len(labels) if seed is None else seed).permutation(rows)


def draw_for_review(labels: IntArray, n: int, *, seed: int, verified: Collection[int] = ()) -> IntArray:
    """``n`` labeled rows drawn uniformly, suspects or not; those already ``verified`` are left out."""
    check_integer(n, "sample_for_review", minimum=1)
    order = labeled_rows_at_random(labels, seed=seed, leave_out=verified)
    if n > len(order):
        raise must_be("sample_for_review", f"at most the {len(order)} labels that nobody has verified yet", n)
    return order[:n]
