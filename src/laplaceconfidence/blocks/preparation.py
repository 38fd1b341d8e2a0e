"""Features as the search needs them, block by block: principal components if asked for, and unit length."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.blocks.executor import Executor, run_parts
from laplaceconfidence.blocks.sources import FeatureSource, Piece
from laplaceconfidence.blocks.work_folder import Facts, WorkFolder
from laplaceconfidence.data.identity import feature_digests
from laplaceconfidence.features.scale import project, unit_length
from laplaceconfidence.validation import check_integer, must_be

MOMENTS, AXES, PREPARED = "principal axes", "axes", "features"  # stages


@dataclass(frozen=True, slots=True)
class Prepared:
    """Unit vectors in parts, one part per piece of the source.

    Attributes
    ----------
    starts : ndarray of int64, shape (n_parts + 1,)
        First row of every part, and the number of rows.
    n_features : int
        Length of the vectors.
    """

    starts: IntArray
    n_features: int


def prepare(
    executor: Executor,
    work: WorkFolder,
    source: FeatureSource,
    *,
    n_components: int | None,
    rows_per_batch: int,
    with_digests: bool = False,
) -> Prepared:
    """Write the unit vectors of a source.

    Parameters
    ----------
    executor : Executor
        Where tasks run.
    work : WorkFolder
        Where the parts are written.
    source : FeatureSource
        The features.
    n_components : int or None
        Number of principal components; ``None`` keeps the features.
    rows_per_batch : int
        Rows that are in memory at a time.
    with_digests : bool, default=False
        Whether digests of the features are kept, as ids of samples that have none.

    Returns
    -------
    Prepared
    """
    axes: tuple[FloatArray, FloatArray] | None = None
    if n_components is not None:
        check_integer(n_components, "n_components", minimum=1, maximum=min(source.n_rows, source.n_features))
        if not work.is_done(AXES, 0):
            mean, vectors = _principal_axes(executor, work, source, n_components, rows_per_batch)
            work.save(AXES, 0, {"mean": mean, "axes": vectors}, {})
        axes = load_axes(work)
    facts = prepare_pieces(executor, work, source, axes, rows_per_batch, with_digests=with_digests)
    if (
        source.n_rows > 1
        and len({fact["first_row"] for fact in facts}) == 1
        and all(fact["all_equal"] for fact in facts)
    ):
        raise must_be("X", "different between samples", f"{source.n_rows} equal rows")
    starts = np.array([0, *(piece.stop for piece in source.pieces)], dtype=np.int64)
    width = source.n_features if n_components is None else n_components
    return Prepared(starts, width)


def prepare_pieces(
    executor: Executor,
    work: WorkFolder,
    source: FeatureSource,
    axes: tuple[FloatArray, FloatArray] | None,
    rows_per_batch: int,
    *,
    with_digests: bool,
) -> list[Facts]:
    """Write the unit vectors of the pieces of a source, along axes that are known.

    Parameters
    ----------
    executor : Executor
        Where tasks run.
    work : WorkFolder
        Where the parts are written.
    source : FeatureSource
        The features.
    axes : tuple of ndarray or None
        Mean and axes of the principal components, if these are searched.
    rows_per_batch : int
        Rows that are in memory at a time.
    with_digests : bool
        Whether digests of the features are kept.

    Returns
    -------
    list of dict
        For every piece, whether all rows are equal, and a digest of the first.
    """
    arguments = [(source, piece, axes, rows_per_batch, with_digests) for piece in source.pieces]
    return run_parts(executor, work, PREPARED, _prepare_piece, arguments)


def load_axes(work: WorkFolder) -> tuple[FloatArray, FloatArray] | None:
    """Load the principal axes of a run.

    Parameters
    ----------
    work : WorkFolder
        Where the parts are.

    Returns
    -------
    tuple of ndarray or None
        Mean and axes; ``None`` if the features were kept as they are.
    """
    if not work.is_done(AXES, 0):
        return None
    return work.load(AXES, 0, "mean", mapped=False), work.load(AXES, 0, "axes", mapped=False)


def unit_vectors(features: FloatArray, axes: tuple[FloatArray, FloatArray] | None) -> FloatArray:
    """Compute the vectors that are searched.

    Parameters
    ----------
    features : ndarray of shape (m, d)
        Feature vectors.
    axes : tuple of ndarray or None
        Mean and axes of the principal components, if these are searched.

    Returns
    -------
    ndarray of float32, shape (m, d')
        Rows of unit length.
    """
    vectors = unit_length(features if axes is None else project(features, *axes))
    return vectors.astype(np.float32, copy=False)


def _principal_axes(
    executor: Executor, work: WorkFolder, source: FeatureSource, n_components: int, rows_per_batch: int
) -> tuple[FloatArray, FloatArray]:
    """Mean and axes as ``features.scale.principal_axes`` computes them, from one pass over the pieces."""
    _, first = next(source.batches(source.pieces[0], rows_per_batch))
    shift = first.mean(axis=0, dtype=np.float64)  # near the mean, so that no digits are lost
    facts = run_parts(
        executor,
        work,
        MOMENTS,
        _moments_of_piece,
        [(source, piece, shift, rows_per_batch) for piece in source.pieces],
    )
    n, d = source.n_rows, source.n_features
    total, squares = np.zeros(d), np.zeros((d, d))
    for part in range(len(facts)):
        total += work.load(MOMENTS, part, "total")
        squares += work.load(MOMENTS, part, "squares")
    offset = total / n
    variances, axes = np.linalg.eigh(squares / n - np.outer(offset, offset))
    axes = axes[:, np.argsort(variances)[::-1][:n_components]]
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(n_components)])
    return (shift + offset).astype(first.dtype), axes.astype(first.dtype)


def _moments_of_piece(
    work: WorkFolder, part: int, source: FeatureSource, piece: Piece, shift: FloatArray, rows_per_batch: int
) -> Facts:
    d = source.n_features
    total, squares = np.zeros(d), np.zeros((d, d))
    for _, features in source.batches(piece, rows_per_batch):
        centered = features - shift.astype(features.dtype)
        total += centered.sum(axis=0, dtype=np.float64)
        squares += centered.T @ centered
    return work.save(MOMENTS, part, {"total": total, "squares": squares}, {})


def _prepare_piece(
    work: WorkFolder,
    part: int,
    source: FeatureSource,
    piece: Piece,
    axes: tuple[FloatArray, FloatArray] | None,
    rows_per_batch: int,
    with_digests: bool,
) -> Facts:
    n_rows = piece.stop - piece.start
    width = source.n_features if axes is None else axes[1].shape[1]
    digests = np.empty((n_rows if with_digests else 0, 2), dtype="S16")
    first, all_equal = None, True
    with work.writing_array(PREPARED, part, "vectors", (n_rows, width), np.float32) as vectors:
        for start, features in source.batches(piece, rows_per_batch):
            first = features[0].copy() if first is None else first
            all_equal = all_equal and bool((features == first).all())
            rows = slice(start - piece.start, start - piece.start + len(features))
            if with_digests:
                digests[rows, 0] = feature_digests(features)
                digests[rows, 1] = feature_digests(features, telling_apart=True)
            vectors[rows] = unit_vectors(features, axes)
    assert first is not None  # pieces are not empty
    facts = {"all_equal": all_equal, "first_row": feature_digests(first[None])[0]}
    return work.save(PREPARED, part, {"digests": digests}, facts, written=("vectors",))
