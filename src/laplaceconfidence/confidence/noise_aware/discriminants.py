"""Discriminants in closed form, one per choice of held-out folds.

A class is a Gaussian around its own mean, with the same variance on an axis for all classes, and the means
are themselves Gaussian around the grand mean. Both variances are estimated axis by axis, so that the scale of
an axis does not matter, and the means of classes with few samples are shrunk toward the grand mean.
Discriminants need few samples per class and cost little with many classes.

Where that makes held-out labels more likely, classes have heavy tails: Student's t distributions in place of
Gaussians. A t distribution is a Gaussian whose width differs from sample to sample: the farther a sample is
from all means, the wider its own Gaussian, and the less the differences of its distances mean. How much the
widths differ is read off the distances to the nearest mean.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.special import gammaln, softmax

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.confidence.held_out_folds import clearly_worse, make_held_out_folds
from laplaceconfidence.confidence.noise_aware.settings import SETTINGS
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.threads import limited_threads, thread_count

PROBE = SETTINGS.probe
_HALVINGS = 60


@dataclass(frozen=True, slots=True)
class Discriminants:
    """The discriminants of all fits.

    Attributes
    ----------
    weights : ndarray of float32, shape (axes + 1, fits, C)
        What the squared distance to a class mean, divided by -2, adds to a term that is the same for all
        classes; the last row is the intercept.
    precisions, centers : ndarray of float32, shape (fits, axes)
        Reciprocal variances within classes, and grand means.
    log_shares : ndarray of float32, shape (fits, C)
        Logarithms of the shares of the classes.
    freedom : ndarray of float32, shape (fits,)
        Degrees of freedom of the t distributions; infinite for Gaussians.
    """

    weights: FloatArray
    precisions: FloatArray
    centers: FloatArray
    log_shares: FloatArray
    freedom: FloatArray

    def logits(self, features: FloatArray) -> FloatArray:
        """Compute the logits of every fit.

        Parameters
        ----------
        features : ndarray of shape (n, d)
            Feature vectors.

        Returns
        -------
        ndarray of shape (n, fits, C)
        """
        if np.isinf(self.freedom).all():
            return self._closeness(features) + self.log_shares
        n_axes = len(self.weights) - 1
        nearest, farther = self._squared_distances(features)
        # The variance of a t distribution is nu / (nu - 2) times its squared scale.
        farther /= (self.freedom - 2 + nearest)[:, :, None]
        np.log1p(farther, out=farther)
        farther *= (-(self.freedom + n_axes) / 2)[:, None]
        farther += self.log_shares
        return farther

    def nearest(self, features: FloatArray) -> FloatArray:
        """Compute squared distances to the nearest class mean.

        Parameters
        ----------
        features : ndarray of shape (n, d)
            Feature vectors.

        Returns
        -------
        ndarray of shape (n, fits)
            In units of the variances within classes.
        """
        return self._squared_distances(features)[0]

    def _closeness(self, features: FloatArray) -> FloatArray:
        """(n, fits, C): squared distances divided by -2, without what is the same for all classes."""
        d1, n_fits, n_classes = self.weights.shape
        flat = features @ self.weights[:-1].reshape(d1 - 1, -1) + self.weights[-1].reshape(-1)
        return np.asarray(flat.reshape(len(features), n_fits, n_classes))

    def _squared_distances(self, features: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Squared distances (n, fits) to the nearest mean; by how much the others (n, fits, C) are larger."""
        closeness = self._closeness(features)
        largest = closeness.max(axis=2)
        scaled_centers = self.precisions * self.centers
        common = np.square(features) @ self.precisions.T - 2 * (features @ scaled_centers.T)
        common += (scaled_centers * self.centers).sum(axis=1)
        nearest = np.maximum(common - 2 * largest, 0)
        closeness -= largest[:, :, None]
        closeness *= -2
        return nearest, closeness


def fit_discriminants(
    features: FloatArray,
    targets: FloatArray | IntArray,
    visible: FloatArray,
    n_classes: int,
    *,
    heavy_tails: bool = False,
    n_jobs: int | None = None,
) -> Discriminants:
    """Fit discriminants.

    Parameters
    ----------
    features : ndarray of shape (n, d)
        Feature vectors.
    targets, visible : ndarray
        As in ``fit_probes``.
    n_classes : int
        Number of classes.
    heavy_tails : bool, default=False
        Whether classes are t distributions in place of Gaussians.
    n_jobs : int or None, default=None
        Number of threads.

    Returns
    -------
    Discriminants
    """
    n, d = features.shape
    n_fits = visible.shape[1]
    found = Discriminants(
        weights=np.zeros((d + 1, n_fits, n_classes), dtype=np.float32),
        precisions=np.ones((n_fits, d), dtype=np.float32),
        centers=np.zeros((n_fits, d), dtype=np.float32),
        log_shares=np.zeros((n_fits, n_classes), dtype=np.float32),
        freedom=np.full(n_fits, np.inf, dtype=np.float32),
    )
    with limited_threads(thread_count(n_jobs)):
        squares = np.square(features)
        for fit in range(n_fits):
            if targets.ndim == 1:
                inside = np.flatnonzero(visible[:, fit] > 0)
                membership = sparse.csr_array(
                    (visible[inside, fit], (targets[inside], inside)), shape=(n_classes, n)
                )
                sums, sizes, masses = membership @ features, membership.sum(axis=1), visible[:, fit]
            else:
                shares = targets[:, fit] * visible[:, fit, None]
                sums, sizes, masses = shares.T @ features, shares.sum(axis=0), shares.sum(axis=1)
            _set_gaussians(
                found,
                fit,
                sums.astype(np.float64),
                sizes.astype(np.float64),
                (masses @ squares).astype(np.float64),
            )
        used = np.flatnonzero((visible > 0).any(axis=1))
        if heavy_tails and len(used) > 0:
            rows = _some(used)
            distances = np.sqrt(found.nearest(features[rows])).astype(np.float64)
            seen = (visible[rows] > 0).astype(np.float64)
            found.freedom[:] = [
                _degrees_of_freedom(distances[:, fit], seen[:, fit], d) for fit in range(n_fits)
            ]
    return found


def tails_are_heavy(
    features: FloatArray, codes: IntArray, n_classes: int, *, n_jobs: int | None = None
) -> bool:
    """Whether held-out labels are clearly more likely under t distributions than under Gaussians.

    Parameters
    ----------
    features : ndarray of shape (n, d)
        Feature vectors.
    codes : ndarray of shape (n,)
        Labels, ``MISSING`` where there is none.
    n_classes : int
        Number of classes.
    n_jobs : int or None, default=None
        Number of threads.

    Returns
    -------
    bool
    """
    labeled = np.flatnonzero(codes != MISSING)
    if len(labeled) < SETTINGS.selection.fewest_labels:
        return False
    folds = make_held_out_folds(codes, PROBE.folds_for_tails, np.random.default_rng(0))
    visible = folds.visible_without_folds()
    heavy = fit_discriminants(features, codes, visible, n_classes, heavy_tails=True, n_jobs=n_jobs)
    light = replace(heavy, freedom=np.full_like(heavy.freedom, np.inf))
    rows = _some(labeled)
    own = np.arange(len(rows)), folds.folds[rows]
    with limited_threads(thread_count(n_jobs)):
        each = [one.logits(features[rows])[own] for one in (light, heavy)]
    return clearly_worse(*(_log_likelihoods(logits, codes[rows]) for logits in each))


def _log_likelihoods(logits: FloatArray, codes: IntArray) -> FloatArray:
    """Log-likelihoods (n,) of labels under the best of a few weights and rates of symmetric noise."""
    n_classes = logits.shape[1]
    found = []
    for weight in PROBE.weights_for_tails:
        p = softmax(weight * logits.astype(np.float64), axis=1)[np.arange(len(codes)), codes]
        found += [np.log((1 - rate) * p + rate / n_classes) for rate in PROBE.rates_for_tails]
    return max(found, key=np.mean)


def _some(rows: IntArray) -> IntArray:
    """Evenly spaced rows: enough to tell how heavy tails are."""
    return rows[:: max(1, len(rows) // PROBE.rows_for_tails)]


def _set_gaussians(
    found: Discriminants, fit: int, sums: FloatArray, sizes: FloatArray, squares: FloatArray
) -> None:
    """Set means and variances of a fit from sums (C, d) and sizes (C,) of the classes, and squares (d,)."""
    n_classes, d = sums.shape
    total = max(float(sizes.sum()), PROBE.least_mass)
    grand_mean = sums.sum(axis=0) / total
    means = sums / np.maximum(sizes, PROBE.least_mass)[:, None] - grand_mean
    means[sizes <= PROBE.least_mass] = 0
    scatter = np.maximum(squares - total * grand_mean**2, 0)
    between = sizes @ means**2
    # The overall variance counts as d further samples, so that the one within classes is positive.
    freedom = max(total - float((sizes > PROBE.least_mass).sum()), 0.0)
    inside = (np.maximum(scatter - between, 0) + d * scatter / total) / (freedom + d)
    inside += PROBE.least_mass
    spreads = np.maximum((between / inside - n_classes) / total, 0)  # minus the part that chance explains
    shrunk = means * (spreads * sizes[:, None] / (spreads * sizes[:, None] + 1))
    typical = total / n_classes
    # The error of the mean adds to the variance.
    variances = inside * (1 + spreads / (spreads * typical + 1))
    scaled = shrunk / variances
    found.weights[:-1, fit] = scaled.T
    found.weights[-1, fit] = -0.5 * np.einsum("cd,cd->c", scaled, shrunk) - scaled @ grand_mean
    found.precisions[fit], found.centers[fit] = 1 / variances, grand_mean
    found.log_shares[fit] = np.log((sizes + PROBE.prior_count) / (total + PROBE.prior_count * n_classes))


def _degrees_of_freedom(distances: FloatArray, weights: FloatArray, n_axes: int) -> float:
    """Match the ratio of the mean distance to the root mean square, which determines them."""
    total = weights.sum()
    mean_square = (weights @ distances**2) / total if total > 0 else 0.0
    if mean_square <= 0:
        return PROBE.most_freedom
    ratio = (weights @ distances) / total / np.sqrt(mean_square)
    low, high = np.log(PROBE.least_freedom), np.log(PROBE.most_freedom)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _mean_over_root_mean_square(np.exp(middle), n_axes) < ratio:
            low = middle
        else:
            high = middle
    return float(np.exp((low + high) / 2))


def _mean_over_root_mean_square(freedom: float, n_axes: int) -> float:
    """Mean distance from the center of a t distribution, divided by the root mean square."""
    log_mean = gammaln((n_axes + 1) / 2) - gammaln(n_axes / 2)
    log_mean += gammaln((freedom - 1) / 2) - gammaln(freedom / 2)
    return float(np.exp(log_mean) * np.sqrt((freedom - 2) / n_axes))
