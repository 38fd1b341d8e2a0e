"""Groups of similar samples whose labels are worse than those of the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binom

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray
from laplaceconfidence.features.scale import unit_length
from laplaceconfidence.stages import stage
from laplaceconfidence.threads import limited_threads

SAMPLES_PER_GROUP = 50  # fewer tell little about a share of wrong labels
MOST_GROUPS = 50
MOST_CLUSTERED = 20_000  # samples that the groups are made of; the others join the nearest
CHANCE = 0.001  # probability that any group is flagged although all groups are alike
WORSE = 1.5  # a flagged group has at least this many times the share of wrong labels of all samples


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Samples by similarity, and how many of their labels are expected to be wrong.

    Parameters
    ----------
    group : ndarray of int of shape (n,)
        The group of every sample; group 0 has the largest share of wrong labels.
    noise : ndarray of shape (n,)
        Expected share of wrong labels in the group of the sample; NaN where it has no label.
    flagged : ndarray of bool of shape (n,)
        Whether labels in the group are worse than chance explains.
    """

    group: IntArray
    noise: FloatArray
    flagged: BoolArray


def find_groups(features: FloatArray, scores: FloatArray, *, random_state: Any = None) -> Groups | None:
    """Cluster the samples and compare the expected wrong labels of the clusters.

    A group is flagged if its expected number of wrong labels exceeds that of as many labels drawn at random
    by more than chance explains (binomial distribution, corrected for the number of groups), and its share is
    at least 1.5 times that of all labels.

    Parameters
    ----------
    features : ndarray of shape (n, d)
        Feature vectors; only their directions are compared.
    scores : ndarray of shape (n,)
        Probability that the label is right; NaN where there is none.
    random_state : int or None, optional
        Seed of the clustering.

    Returns
    -------
    Groups or None
        None if there are too few samples for two groups.
    """
    from sklearn.cluster import MiniBatchKMeans

    n_groups = min(MOST_GROUPS, len(features) // SAMPLES_PER_GROUP)
    if n_groups < 2:
        return None
    wrong = 1 - scores
    labeled = ~np.isnan(wrong)
    if not labeled.any():
        return None
    # One thread: the calls are short, and a second pool of threads beside that of the search slows both down.
    with stage("groups"), limited_threads(1):
        unit = unit_length(features).astype(np.float32, copy=False)
        seed = int(random_state) if isinstance(random_state, (int, np.integer)) else 0
        drawn = np.random.default_rng(seed).permutation(len(unit))[:MOST_CLUSTERED]
        clusters = MiniBatchKMeans(n_groups, batch_size=2048, n_init=3, random_state=seed).fit(unit[drawn])
        found: IntArray = clusters.predict(unit).astype(np.int64)
    n_labels = np.bincount(found[labeled], minlength=n_groups)
    n_wrong = np.bincount(found[labeled], weights=wrong[labeled], minlength=n_groups)
    rate = float(wrong[labeled].mean())
    with np.errstate(invalid="ignore"):
        share = n_wrong / n_labels
    chance = binom.sf(np.floor(n_wrong) - 1, n_labels, rate)  # of as many wrong labels, or more
    is_worse = (chance < CHANCE / n_groups) & (share >= WORSE * rate)
    order = np.argsort(np.where(np.isnan(share), np.inf, -share), kind="stable")
    place = np.empty(n_groups, dtype=np.int64)
    place[order] = np.arange(n_groups)
    return Groups(place[found], share[found], np.nan_to_num(is_worse, nan=0).astype(bool)[found])
