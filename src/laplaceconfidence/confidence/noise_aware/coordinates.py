"""Principal coordinates of features, and the map of new samples to them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.utils.extmath import randomized_svd

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.confidence.noise_aware.settings import SETTINGS
from laplaceconfidence.features.scale import principal_axes, project
from laplaceconfidence.stages import stage
from laplaceconfidence.threads import limited_threads, thread_count
from laplaceconfidence.validation import check_integer, must_be

VIEWS = SETTINGS.views


@dataclass(frozen=True, slots=True, eq=False)
class PrincipalAxes:
    """The map from features to the fitted principal coordinates.

    Attributes
    ----------
    largest : float
        Features are divided by it first, so that their squares are representable in single precision.
    mean : ndarray of float32, shape (d,)
        Mean of the divided features.
    axes : ndarray of float32, shape (d, k)
        Principal axes, all divided by the same scale.
    half_whitening : ndarray of float32, shape (k,)
        Factors that divide every axis by the root of its standard deviation, and by a common scale.
    center : ndarray of float32, shape (k + 1,)
        The mean of the features in these coordinates; the last entry is the length of its part outside them.
    """

    largest: float
    mean: FloatArray
    axes: FloatArray
    half_whitening: FloatArray
    center: FloatArray

    def __call__(self, features: FloatArray) -> FloatArray:
        """Compute coordinates of shape (m, k) from features of shape (m, d)."""
        return project((features / self.largest).astype(np.float32, copy=False), self.mean, self.axes)

    def half_whitened(self, coordinates: FloatArray) -> FloatArray:
        """Divide every coordinate by the root of its standard deviation.

        Full whitening would give axes of noise the same weight as axes of signal; without whitening, the
        first few axes outweigh the rest.

        Parameters
        ----------
        coordinates : ndarray of float32, shape (m, k)
            Principal coordinates.

        Returns
        -------
        ndarray of float32, shape (m, k)
            The mean square of the fitted ones is 1.
        """
        return coordinates * self.half_whitening

    def uncentered(self, coordinates: FloatArray) -> FloatArray:
        """Add the mean again: up to a rotation these are the features as they were given.

        Cosines of such vectors are those of the features, except for what is outside the kept axes.

        Parameters
        ----------
        coordinates : ndarray of float32, shape (m, k)
            Principal coordinates.

        Returns
        -------
        ndarray of float32, shape (m, k + 1)
        """
        return np.pad(coordinates, ((0, 0), (0, 1))) + self.center


def principal_coordinates(
    features: FloatArray, n_components: int | None, *, n_jobs: int | None, rng: np.random.Generator
) -> tuple[FloatArray, PrincipalAxes]:
    """Compute principal coordinates, those of most variance first; the mean square of all entries is 1.

    Parameters
    ----------
    features : ndarray of shape (n, d)
        One row per sample.
    n_components : int or None
        Number of principal axes to keep; ``None`` keeps up to 256.
    n_jobs : int or None
        Number of threads.
    rng : numpy.random.Generator
        Seeds the randomized decomposition of very wide features.

    Returns
    -------
    coordinates : ndarray of float32, shape (n, k)
        The principal coordinates.
    axes : PrincipalAxes
        The map, for new samples.
    """
    with stage("features"), limited_threads(thread_count(n_jobs)):
        largest = np.abs(features).max() or features.dtype.type(1)
        features = (features / largest).astype(np.float32, copy=False)
        n, d = features.shape
        if n_components is not None:
            check_integer(n_components, "n_components", minimum=1, maximum=min(n, d))
        width = n_components or min(VIEWS.most_axes, n, d)
        if d <= VIEWS.widest_covariance:
            mean, axes, variances = principal_axes(features, width)
            coordinates = project(features, mean, axes)
        else:
            mean = features.mean(axis=0, dtype=np.float64).astype(np.float32)
            left, sizes, right = randomized_svd(
                features - mean, width, random_state=int(rng.integers(2**31 - 1))
            )
            coordinates, axes, variances = left * sizes, right.T, sizes**2 / n
        least = max(float(variances[0]) * VIEWS.least_variance, VIEWS.least_absolute_variance)
        kept = variances > least
        if not kept.any():
            raise must_be("X", "different between samples in single precision", f"{n} nearly equal rows")
        coordinates = coordinates[:, kept]
        scale = np.sqrt(np.square(coordinates).mean(dtype=np.float64))
        coordinates = np.ascontiguousarray(coordinates / scale, dtype=np.float32)
        deviations = np.sqrt(variances[kept]) / scale
        half = 1 / np.sqrt(deviations * deviations.mean())
        axes = (axes[:, kept] / scale).astype(np.float32)
        inside = mean.astype(np.float64) @ axes
        outside = np.sqrt(max(0.0, float(np.square(mean / scale, dtype=np.float64).sum() - inside @ inside)))
        center = np.append(inside, outside).astype(np.float32)
        return coordinates, PrincipalAxes(float(largest), mean, axes, half.astype(np.float32), center)
