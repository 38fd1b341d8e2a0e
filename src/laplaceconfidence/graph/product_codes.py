"""4-bit product codes of vectors: the axes that are coded, and the codes along them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import FloatArray, row_blocks
from laplaceconfidence.features.scale import principal_axes

CODED_FROM = 256  # samples; codes are not fitted to fewer
CODED_VARIANCE = {2: 0.98, 1: 0.999}  # share of the variance in the codes, by axes per code
AXES_SAMPLE, _CODE_SAMPLE = 5_000, 4_096  # samples that axes and codes are fitted to
_ITERATIONS = 6
_ROWS_AT_ONCE = 65_536


@dataclass(frozen=True, slots=True, eq=False)
class ProductCodes:
    """Principal axes of vectors, and 16 centroids for every axis or pair of axes.

    Attributes
    ----------
    axes : ndarray of float32, shape (d, m)
        The axes.
    centroids : ndarray of float32, shape (n_codes, 16, m / n_codes)
        The centroids of every code.
    """

    axes: FloatArray
    centroids: FloatArray

    @classmethod
    def fitted(cls, vectors: FloatArray, axes_per_code: int) -> ProductCodes:
        """Fit axes and centroids.

        Parameters
        ----------
        vectors : ndarray of float32, shape (n, d)
            Vectors; some of them, evenly spread, are used.
        axes_per_code : {1, 2}
            Number of axes per code.

        Returns
        -------
        ProductCodes
        """
        axes = paired_axes(evenly(vectors, AXES_SAMPLE), CODED_VARIANCE[axes_per_code])
        width = axes.shape[1]
        quantizer: Any = faiss.ProductQuantizer(width, width // axes_per_code, 4)
        quantizer.cp.niter = _ITERATIONS
        quantizer.cp.min_points_per_centroid = 1  # faiss prints a warning otherwise
        quantizer.train(evenly(vectors, _CODE_SAMPLE) @ axes)
        centroids = faiss.vector_to_array(quantizer.centroids)
        return cls(axes, centroids.reshape(width // axes_per_code, 16, axes_per_code))

    @property
    def n_codes(self) -> int:
        """int: number of codes per vector."""
        return len(self.centroids)

    @property
    def axes_per_code(self) -> int:
        """int: number of axes per code."""
        return int(self.centroids.shape[2])

    def encoded(self, vectors: FloatArray) -> NDArray[np.uint8]:
        """Code vectors.

        Parameters
        ----------
        vectors : ndarray of float32, shape (n, d)
            The vectors.

        Returns
        -------
        ndarray of uint8, shape (n, ceil(n_codes / 2))
            Numbers of the nearest centroids, two to a byte.
        """
        quantizer: Any = faiss.ProductQuantizer(self.axes.shape[1], self.n_codes, 4)
        faiss.copy_array_to_vector(self.centroids.ravel(), quantizer.centroids)
        codes = np.empty((len(vectors), quantizer.code_size), dtype=np.uint8)
        for rows in row_blocks(len(vectors), _ROWS_AT_ONCE):
            along = vectors[rows] @ self.axes
            if self.axes_per_code == 1:
                codes[rows] = scalar_codes(along, self.centroids[:, :, 0])
            else:
                codes[rows] = quantizer.compute_codes(along)
        return codes


def scalar_codes(vectors: FloatArray, levels: FloatArray) -> NDArray[np.uint8]:
    """Find the nearest level of every coordinate; faiss's own way takes ten times as long.

    Parameters
    ----------
    vectors : ndarray of float32, shape (n, m)
        The coordinates, an even number.
    levels : ndarray of float32, shape (m, 16)
        The levels of every coordinate, in any order.

    Returns
    -------
    ndarray of uint8, shape (n, m / 2)
        Numbers of the levels, two to a byte.
    """
    ranks = np.argsort(levels, axis=1).astype(np.uint8)
    codes = np.empty(vectors.shape, dtype=np.uint8)
    for axis, (own, rank) in enumerate(zip(levels, ranks, strict=True)):
        ascending = own[rank]
        bounds = (ascending[1:] + ascending[:-1]) / 2
        codes[:, axis] = rank[np.searchsorted(bounds, vectors[:, axis])]
    return codes[:, ::2] | np.left_shift(codes[:, 1::2], np.uint8(4))


def paired_axes(sample: FloatArray, kept_variance: float) -> FloatArray:
    """Compute principal axes in pairs of about the same variance: the first with the last, and so on.

    Parameters
    ----------
    sample : ndarray of float32, shape (n, d)
        Vectors to fit the axes to.
    kept_variance : float
        Share of the variance to keep.

    Returns
    -------
    ndarray of float32, shape (d, m)
        An even number of axes; the last of an odd number is paired with zeros.
    """
    _, axes, variances = principal_axes(sample, min(sample.shape))
    shares = np.cumsum(variances) / max(float(variances.sum()), float(np.finfo(np.float32).tiny))
    n_axes = min(int(np.searchsorted(shares, kept_variance)) + 1, axes.shape[1])
    axes = np.pad(axes[:, :n_axes], ((0, 0), (0, n_axes % 2)))  # an axis of zeros completes the last pair
    pairs = np.arange(axes.shape[1]).reshape(2, -1)
    pairs[1] = pairs[1, ::-1]
    return np.ascontiguousarray(axes[:, pairs.T.ravel()])


def evenly(vectors: FloatArray, n: int) -> FloatArray:
    """Take at most about n rows, evenly spread.

    Parameters
    ----------
    vectors : ndarray of shape (m, d)
        The rows.
    n : int
        About how many to take.

    Returns
    -------
    ndarray of shape (about n, d)
    """
    return vectors[:: max(1, len(vectors) // n)]
