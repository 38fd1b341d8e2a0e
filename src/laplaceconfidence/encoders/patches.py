"""Images as their mean responses to small patches of other images.

Nothing is downloaded, no network is trained and no label is seen: wrong labels leave no trace in features.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from laplaceconfidence.arrays import ByteImages, FloatArray, row_blocks
from laplaceconfidence.encoders.samples import RawSamples, SampleKind
from laplaceconfidence.stages import stage
from laplaceconfidence.threads import limited_threads, thread_count
from laplaceconfidence.validation import check_boolean, check_integer, must_be

CELLS = 2
"""Responses are averaged over this many rows and columns of equal parts of an image."""

THRESHOLD = 0.7
"""Part of a response that is subtracted before it counts: most patches are no match for most others."""

_SIDES = (3 / 16, 5 / 16)  # of patches, as parts of the shorter side of the images
_SMALLEST_PATCH = 3
_PATCHES_FOR_WHITENING = 60_000
_IMAGES_FOR_COMPONENTS = 10_000  # bounds memory and time of the principal components
_CONTRAST_FLOOR = 10.0  # added to the variance of a patch of 8-bit pixels
_WHITENING_FLOOR = 0.3  # added to the variances of normalized patches
_IMAGES_PER_BLOCK = 2
_FORMAT = 2


@dataclass(frozen=True, slots=True, eq=False)
class _Dictionary:
    """Whitened patches, each with its mirror image, and the projection that finds their responses."""

    side: int
    projection: FloatArray  # (pixels of a patch, 2 * n_patches)
    offset: FloatArray  # (2 * n_patches,)


@dataclass(slots=True, eq=False)
class PatchEncoder:
    """Mean responses to random patches of the images, reduced to principal components.

    Patches of two sizes, of all images, are normalized in contrast and whitened. Every position of an image
    responds to each of ``n_patches`` random ones of a size by its inner product, positive and negative parts
    apart, each less a threshold. The responses are averaged over the quarters of the image, together with
    those of the mirrored image, and the square roots of the averages are standardized and reduced.

    Parameters
    ----------
    n_patches : int, default=400
        Number of random patches of each size.
    n_components : int, default=512
        Largest number of principal components; there are at most half as many as images.
    size : int, default=32
        Images with a longer side are resized to a square of this side.
    mirror : bool, default=True
        Whether an image and its mirror image have the same features. Leave it out for digits and letters.
    random_state : int, default=0
        Seed of the patches, and of the images that the components are computed from if there are many.
    n_jobs : int or None, default=None
        Number of threads; ``None`` means all cores.

    References
    ----------
    Coates, Ng, Lee, "An analysis of single-layer networks in unsupervised feature learning", 2011; Coates,
    Ng, "The importance of encoding versus training with sparse coding and vector quantization", 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from laplaceconfidence.encoders.patches import PatchEncoder
    >>> from laplaceconfidence.encoders.samples import RawSamples
    >>> images = np.random.default_rng(0).integers(256, size=(20, 16, 16, 3), dtype=np.uint8)
    >>> PatchEncoder(n_patches=10).fit_transform(RawSamples("image", images)).shape
    (20, 10)
    """

    learns: ClassVar[bool] = True
    is_cached: ClassVar[bool] = True

    n_patches: int = 400
    n_components: int = 512
    size: int = 32
    mirror: bool = True
    random_state: int = 0
    n_jobs: int | None = None
    name: str = field(default="patches", init=False)
    takes: tuple[SampleKind, ...] = field(default=("image",), init=False)
    _dictionaries: tuple[_Dictionary, ...] = field(default=(), init=False, repr=False)
    _scale: FloatArray | None = field(default=None, init=False, repr=False)  # (2, d): means and deviations
    _components: PCA | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        check_integer(self.n_patches, "n_patches", minimum=1)
        check_integer(self.n_components, "n_components", minimum=1)
        check_integer(self.size, "size", minimum=2 * _SMALLEST_PATCH)
        check_boolean(self.mirror, "mirror")

    def fit_transform(self, samples: RawSamples) -> FloatArray:
        rng = np.random.default_rng(self.random_state)
        seen = np.arange(len(samples))
        if len(seen) > _IMAGES_FOR_COMPONENTS:
            seen = np.sort(rng.choice(len(seen), _IMAGES_FOR_COMPONENTS, replace=False))
        self._dictionaries = self._learned_dictionaries(samples, seen, rng)
        with stage("encoding", total=len(samples)) as advance:
            responses = self._responses(samples.part(seen), advance)
            responses, self._scale = _standardized(responses)
            n_components = max(1, min(self.n_components, len(seen) // 2, responses.shape[1]))
            self._components = PCA(n_components, svd_solver="randomized", random_state=self.random_state)
            # The share of the variance, which nobody asks for, is 0 / 0 for images that are all alike.
            with limited_threads(thread_count(self.n_jobs)), np.errstate(invalid="ignore"):
                features: FloatArray = self._components.fit_transform(responses).astype(np.float32)
            if len(seen) == len(samples):
                return features
            encoded = np.empty((len(samples), n_components), np.float32)
            encoded[seen] = features
            others = np.setdiff1d(np.arange(len(samples)), seen)
            encoded[others] = self._transformed(samples.part(others), advance)
        return encoded

    def transform(self, samples: RawSamples) -> FloatArray:
        with stage("encoding", total=len(samples)) as advance:
            return self._transformed(samples, advance)

    def describe(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "n_patches": self.n_patches,
            "n_components": self.n_components,
            "size": self.size,
            "mirror": self.mirror,
            "random_state": self.random_state,
            "format": _FORMAT,
            "versions": {"numpy": np.__version__, "scikit-learn": sklearn.__version__},
        }

    def summary(self) -> str:
        assert self._components is not None
        sizes = " and ".join(f"{one.side} x {one.side}" for one in self._dictionaries)
        return (
            f"responses to {len(self._dictionaries) * self.n_patches:,} random patches of {sizes} pixels, "
            f"reduced to {self._components.n_components_:,} principal components"
        )

    def _transformed(self, samples: RawSamples, advance: Any) -> FloatArray:
        """Features of samples, in blocks so that the responses of all of them are never in memory."""
        assert self._components is not None
        assert self._scale is not None
        encoded = np.empty((len(samples), self._components.n_components_), np.float32)
        for rows in row_blocks(len(samples), _IMAGES_FOR_COMPONENTS):
            responses = self._responses(samples.part(np.arange(len(samples))[rows]), advance)
            responses = (responses - self._scale[0]) / self._scale[1]
            encoded[rows] = self._components.transform(responses)
        return encoded

    def _learned_dictionaries(
        self, samples: RawSamples, seen: NDArray[np.intp], rng: np.random.Generator
    ) -> tuple[_Dictionary, ...]:
        """Random patches of every size, of some images."""
        chosen = np.sort(rng.choice(seen, min(len(seen), 1_000), replace=False))
        images = samples.part(chosen).squares(slice(None), self.size)
        shorter = min(images.shape[1:3])
        if shorter < _SMALLEST_PATCH:
            rule = (
                f"images of at least {_SMALLEST_PATCH} x {_SMALLEST_PATCH} pixels for the encoder {self.name}"
            )
            raise must_be("samples", rule, "{} x {}".format(*images.shape[1:3]))
        sides = sorted({max(_SMALLEST_PATCH, round(part * shorter)) for part in _SIDES})
        return tuple(self._learned_dictionary(images, side, rng) for side in sides)

    def _learned_dictionary(self, images: ByteImages, side: int, rng: np.random.Generator) -> _Dictionary:
        """Random patches of one size, whitened by the covariance of many more."""
        windows = _windows(images, side)
        positions = (rng.integers(bound, size=_PATCHES_FOR_WHITENING) for bound in windows.shape[:3])
        drawn = windows[tuple(positions)]  # (n, channels, side, side)
        views = [drawn, drawn[..., ::-1]] if self.mirror else [drawn]
        patches = [_normalized(view.reshape(len(drawn), -1)) for view in views]
        mean = np.mean([each.mean(axis=0) for each in patches], axis=0)
        covariance = np.mean([np.cov(each - mean, rowvar=False) for each in patches], axis=0)
        variances, axes = np.linalg.eigh(covariance)
        whitening = ((axes / np.sqrt(np.maximum(variances, 0) + _WHITENING_FLOOR)) @ axes.T).astype(
            np.float32
        )
        known = np.concatenate([each[: self.n_patches] for each in patches])
        known = (known - mean) @ whitening
        known /= np.linalg.norm(known, axis=1, keepdims=True) + np.finfo(np.float32).eps
        projection = np.ascontiguousarray(whitening @ known.T)
        return _Dictionary(side, projection, mean @ projection)

    def _responses(self, samples: RawSamples, advance: Any) -> FloatArray:
        """(n, sizes * 2 * CELLS**2 * n_patches) square roots of the mean responses of images, in order."""
        blocks = list(row_blocks(len(samples), _IMAGES_PER_BLOCK))
        width = len(self._dictionaries) * 2 * CELLS**2 * self.n_patches
        found = np.empty((len(samples), width), np.float32)

        def respond(rows: slice) -> tuple[slice, FloatArray]:
            images = samples.squares(rows, self.size)
            return rows, np.hstack([self._mean_responses(images, one) for one in self._dictionaries])

        # One thread of linear algebra each: most of the time is spent outside of it.
        with limited_threads(1), ThreadPoolExecutor(thread_count(self.n_jobs)) as threads:
            for rows, responses in threads.map(respond, blocks):
                found[rows] = responses
                advance(len(responses))
        return np.sqrt(found, out=found)

    def _mean_responses(self, images: ByteImages, dictionary: _Dictionary) -> FloatArray:
        """(n, 2 * CELLS**2 * n_patches) mean responses of some images to the patches of one size."""
        windows = _windows(images, dictionary.side)
        n, height, width = windows.shape[:3]
        responses = _normalized(windows.reshape(n * height * width, -1)) @ dictionary.projection
        responses -= dictionary.offset
        responses = responses.reshape(n, height, width, -1)
        cells = np.empty((2, CELLS, CELLS, n, responses.shape[3]), np.float32)
        part = np.empty_like(responses)
        for sign in (0, 1):
            if sign:
                np.negative(responses, out=responses)
            np.maximum(np.subtract(responses, np.float32(THRESHOLD), out=part), 0, out=part)
            for row, column, of_cell in _cells(height, width):
                cells[sign, row, column] = part[(slice(None), *of_cell)].mean(axis=(1, 2))
        if self.mirror:  # the mirrored patch responds on the other side
            cells = cells[..., : self.n_patches] + cells[:, :, ::-1, :, self.n_patches :]
        return np.moveaxis(cells, 3, 0).reshape(n, -1)


def _windows(images: ByteImages, side: int) -> NDArray[Any]:
    """(n, rows, columns, channels, side, side) all patches of images."""
    return np.lib.stride_tricks.sliding_window_view(images, (side, side), axis=(1, 2))


def _normalized(patches: NDArray[Any]) -> FloatArray:
    """Patches of mean 0 and of about the same contrast."""
    centered = patches.astype(np.float32)
    centered -= centered.mean(axis=1, keepdims=True)
    centered /= np.sqrt(np.square(centered).mean(axis=1, keepdims=True) + _CONTRAST_FLOOR)
    return centered


def _cells(height: int, width: int) -> Iterator[tuple[int, int, tuple[slice, slice]]]:
    """The cells of a grid of positions: row and column of the cell, and its positions."""
    rows = pairwise(np.linspace(0, height, CELLS + 1).round().astype(int))
    columns = list(pairwise(np.linspace(0, width, CELLS + 1).round().astype(int)))
    for row, (top, bottom) in enumerate(rows):
        for column, (left, right) in enumerate(columns):
            yield row, column, (slice(top, bottom), slice(left, right))


def _standardized(responses: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Responses on one scale, in place, and (2, d) their means and deviations."""
    scale = np.stack([responses.mean(axis=0), responses.std(axis=0)])
    scale[1] += 1e-6 * (scale[1].max() or 1.0)
    responses -= scale[0]
    responses /= scale[1]
    return responses, scale
