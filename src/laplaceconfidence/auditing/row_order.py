"""Whether samples are stored in random order, or similar ones near each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.auditing.closeness import Closest
from laplaceconfidence.data.labels import MISSING

N_PERMUTATIONS = 199
MOST_SAMPLES = 2_000  # whose neighbors are looked at
SIGNIFICANT = 0.01
CLOSER = 0.9  # similar samples are at least a tenth nearer to each other than by chance
FEWEST_PAIRS = 100


@dataclass(frozen=True, slots=True)
class RowOrder:
    """How near similar samples of one class are to each other in the order of the rows.

    Parameters
    ----------
    closeness : float
        Their mean distance in rows, divided by that in a random order of the rows of each class.
    p_value : float
        Probability of a distance that small in such an order.
    """

    closeness: float
    p_value: float

    @property
    def is_random(self) -> bool:
        """bool: whether the rows may well be in random order within their classes."""
        return self.p_value > SIGNIFICANT or self.closeness > CLOSER

    @property
    def statement(self) -> str | None:
        """str or None: what was found and what follows from it; None if the order may be random."""
        if self.is_random:
            return None
        return (
            "The rows are not in random order: similar samples of one class are "
            f"{1 - self.closeness:.0%} nearer to each other than by chance. Rows that were recorded together "
            "may be near-copies: split the data by source or time, and not at random."
        )


def row_closeness(closest: Closest, labels: IntArray) -> FloatArray:
    """Compare how far, in rows of its class, a sample is from its nearest neighbors with a random order.

    Parameters
    ----------
    closest : Closest
        The nearest other samples of every sample.
    labels : ndarray of int of shape (n,)
        Codes of the labels.

    Returns
    -------
    ndarray of shape (n,)
        The mean distance to the neighbors of the same label, divided by that to all samples of this label,
        at most 1; 1 without such a neighbor.
    """
    n = len(closest.rows)
    by_class = np.argsort(labels, kind="stable")
    _, starts, sizes = np.unique(labels[by_class], return_index=True, return_counts=True)
    rank, size = np.empty(n), np.empty(n)
    rank[by_class] = np.arange(n) - np.repeat(starts, sizes)
    size[by_class] = np.repeat(sizes, sizes)
    is_pair = (closest.rows >= 0) & (labels[closest.rows] == labels[:, None]) & (labels != MISSING)[:, None]
    distances = np.abs(rank[closest.rows] - rank[:, None])
    n_pairs = is_pair.sum(axis=1)
    mean = (distances * is_pair).sum(axis=1) / np.maximum(n_pairs, 1)
    after = size - 1 - rank  # the sums of 1 to rank, and of 1 to after, are all distances of the class
    usual = (rank * (rank + 1) + after * (after + 1)) / 2 / np.maximum(size - 1, 1)
    return np.where(n_pairs > 0, np.minimum(mean / np.maximum(usual, 1e-12), 1.0), 1.0)


def measure_row_order(closest: Closest, labels: IntArray, *, random_state: Any = None) -> RowOrder | None:
    """Compare the distances in rows of nearest neighbors with those in random orders.

    Rows change places within their class only, so that data that is sorted by class, such as a folder of
    images, is not reported for that.

    Parameters
    ----------
    closest : Closest
        The nearest other samples of every sample.
    labels : ndarray of int of shape (n,)
        Codes of the labels.
    random_state : int or None, optional
        Seed of the orders.

    Returns
    -------
    RowOrder or None
        None if there are too few pairs of neighbors with the same label.
    """
    rng = np.random.default_rng(random_state if isinstance(random_state, (int, np.integer)) else 0)
    n, width = closest.rows.shape
    looked_at = rng.permutation(n)[:MOST_SAMPLES]
    one, other = np.repeat(looked_at, width), closest.rows[looked_at].reshape(-1)
    is_pair = (other >= 0) & (labels[one] != MISSING) & (labels[one] == labels[other])
    if is_pair.sum() < FEWEST_PAIRS:
        return None
    # From here on, rows are counted among those that occur in a pair.
    rows, numbers = np.unique(np.concatenate([one[is_pair], other[is_pair]]), return_inverse=True)
    one, other = np.split(numbers, 2)
    labels, n = labels[rows], len(rows)
    by_class = np.argsort(labels, kind="stable")
    sizes = np.unique(labels[by_class], return_counts=True)[1]
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)  # of the class of every sorted row
    distances: FloatArray = np.empty(N_PERMUTATIONS)
    for number in range(N_PERMUTATIONS):
        # Sorting by class and then by random numbers shuffles every class.
        order = np.lexsort(np.stack([rng.random(n), starts]))
        shuffled = by_class[order]
        place = np.empty(n, dtype=np.int64)
        place[by_class] = shuffled
        distances[number] = np.abs(place[one] - place[other]).mean()
    observed = float(np.abs(one - other).mean())
    p_value = (1 + int((distances <= observed).sum())) / (1 + N_PERMUTATIONS)
    return RowOrder(observed / max(float(distances.mean()), 1e-12), p_value)
