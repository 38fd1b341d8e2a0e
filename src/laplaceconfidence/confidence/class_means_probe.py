"""Linear discriminants from class means: the probe for many classes, in closed form.

A regression's cost grows with classes x samples x steps, and with few samples a class it has little to learn
from. Here every class is a Gaussian around its own mean, all with the same covariance, and the means are
themselves drawn around the grand mean. Both covariances are estimated, and a mean that few samples stand
behind is drawn to the grand mean, axis by axis, as far as chance alone would have moved it.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.linalg import cholesky, eigh, solve_triangular

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.confidence.linear_probe import LinearProbe
from laplaceconfidence.threads import limited_threads, thread_count

_LEAST = 1e-9


def fit_class_means_probe(
    features: FloatArray,
    targets: FloatArray | IntArray,
    heard: FloatArray,
    n_classes: int,
    *,
    n_jobs: int | None = None,
) -> LinearProbe:
    """Discriminants of ``targets``: labels (n,) or distributions (n, worlds, C), weighed by ``heard``."""
    n, d = features.shape
    n_worlds = heard.shape[1]
    weights = np.zeros((d + 1, n_worlds, n_classes), dtype=np.float32)
    with limited_threads(thread_count(n_jobs)):
        for world in range(n_worlds):
            if targets.ndim == 1:
                inside = np.flatnonzero(heard[:, world] > 0)
                membership = sparse.csr_array(
                    (heard[inside, world], (targets[inside], inside)), shape=(n_classes, n)
                )
                sums, sizes, masses = membership @ features, membership.sum(axis=1), heard[:, world]
            else:
                shares = targets[:, world] * heard[:, world, None]
                sums, sizes, masses = shares.T @ features, shares.sum(axis=0), shares.sum(axis=1)
            scatter = (features * masses[:, None]).T @ features
            slopes, intercepts = _discriminants(
                sums.astype(np.float64), sizes.astype(np.float64), scatter.astype(np.float64)
            )
            weights[:-1, world], weights[-1, world] = slopes, intercepts
    return LinearProbe(weights)


def _discriminants(sums: FloatArray, sizes: FloatArray, scatter: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Slopes (d, C) and intercepts (C,) from the classes' sums (C, d), sizes (C,) and X'X (d, d)."""
    n_classes, d = sums.shape
    total = max(float(sizes.sum()), _LEAST)
    grand_mean = sums.sum(axis=0) / total
    means = sums / np.maximum(sizes, _LEAST)[:, None] - grand_mean
    means[sizes <= _LEAST] = 0
    scatter = scatter - total * np.outer(grand_mean, grand_mean)
    between = (means * sizes[:, None]).T @ means
    # d samples' worth of the covariance without classes keep the one inside them regular.
    freedom = max(total - float((sizes > _LEAST).sum()), 0.0)
    inside = (scatter - between + d * scatter / total) / (freedom + d)
    inside[np.diag_indices(d)] += 1e-6 * max(float(np.trace(inside)) / d, _LEAST)
    factor = cholesky(inside, lower=True)
    whitened = solve_triangular(factor, solve_triangular(factor, between, lower=True).T, lower=True) / total
    spreads, axes = eigh(whitened)
    spreads = np.maximum(spreads - n_classes / total, 0)  # the rest is what chance does to means
    to_axes = solve_triangular(factor, axes, lower=True, trans="T")
    on_axes = means @ to_axes
    on_axes *= spreads * sizes[:, None] / (spreads * sizes[:, None] + 1)
    typical = total / n_classes
    scaled = on_axes / (1 + spreads / (spreads * typical + 1))  # a new sample also feels the mean's error
    intercepts = np.log((sizes + 1) / (total + n_classes)) - 0.5 * np.einsum("cd,cd->c", scaled, on_axes)
    slopes = to_axes @ scaled.T
    return slopes, intercepts - grand_mean @ slopes
