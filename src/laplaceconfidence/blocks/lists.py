"""Coarse lists: every sample belongs to the list of its nearest center, and consecutive lists form a block.

Centers are trained on a sample whose size does not grow with the data. Lists are numbered such that lists
near each other have near numbers: the set of centers is halved along its first principal axis, again and
again. Samples in the order of their lists are then cut into blocks, so that a block is a compact region and
most neighbors of its samples lie in few blocks. From here on, samples are named by their position in that
order; ``rows`` holds the row of the data at every position.
"""

from __future__ import annotations

from dataclasses import dataclass

import faiss
import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray, row_blocks
from laplaceconfidence.blocks.executor import Executor, run_parts
from laplaceconfidence.blocks.preparation import PREPARED, Prepared
from laplaceconfidence.blocks.work_folder import Facts, WorkFolder
from laplaceconfidence.features.scale import principal_axes, project
from laplaceconfidence.threads import limited_threads

TRAINED, ASSIGNED, SHARDS = "index", "lists", "shards"  # stages

WIDE = 128  # features; wider vectors are compared along this many principal axes first
MOST_LISTS = 16_384
SAMPLES_PER_LIST = 20
_ITERATIONS = 6
_ROWS_AT_ONCE = 8_192


@dataclass(frozen=True, slots=True)
class Lists:
    """The centers of the lists, and the space in which samples are compared with them.

    Attributes
    ----------
    centers : ndarray of float32, shape (n_lists, d')
        In the order of the lists.
    projection : tuple of ndarray or None
        Mean and axes, where vectors are wide.
    """

    centers: FloatArray
    projection: tuple[FloatArray, FloatArray] | None

    def coarse(self, vectors: FloatArray) -> FloatArray:
        """Return vectors as they are compared with the centers.

        Parameters
        ----------
        vectors : ndarray of float32, shape (m, d)
            Unit vectors.

        Returns
        -------
        ndarray of float32, shape (m, d')
        """
        return vectors if self.projection is None else project(vectors, *self.projection)

    def nearest(self, coarse: FloatArray, n_lists: int) -> IntArray:
        """Find the lists with the nearest centers.

        Parameters
        ----------
        coarse : ndarray of float32, shape (m, d')
            Vectors, as ``coarse`` returns them.
        n_lists : int
            How many per vector.

        Returns
        -------
        ndarray of int64, shape (m, n_lists)
            Nearest first.
        """
        index = faiss.IndexFlatL2(self.centers.shape[1])
        index.add(self.centers)
        found: IntArray = index.search(np.ascontiguousarray(coarse), n_lists)[1]
        return found


@dataclass(frozen=True, slots=True)
class Shards:
    """The samples in blocks, in the order of their lists.

    Attributes
    ----------
    starts : ndarray of int64, shape (n_blocks + 1,)
        First position of every block, and the number of samples.
    first_lists : ndarray of int64, shape (n_blocks + 1,)
        First list of every block, and the number of lists.
    list_starts : ndarray of int64, shape (n_lists + 1,)
        First position of every list, and the number of samples.
    """

    starts: IntArray
    first_lists: IntArray
    list_starts: IntArray

    @property
    def n_blocks(self) -> int:
        """int: number of blocks."""
        return len(self.starts) - 1

    def blocks_of(self, positions: IntArray) -> IntArray:
        """Return the blocks of positions.

        Parameters
        ----------
        positions : ndarray of int
            Positions.

        Returns
        -------
        ndarray of int64
        """
        return np.searchsorted(self.starts, positions, side="right") - 1


def number_of_lists(n: int) -> int:
    """Return how many lists there are for so many samples.

    Parameters
    ----------
    n : int
        Number of samples.

    Returns
    -------
    int
    """
    # As for an inverted file in memory: comparing with centers takes time in proportion to their number,
    # scanning lists to their length.
    return min(MOST_LISTS, max(1, int(500 * (n / 50_000) ** 0.6)))


def train_lists(executor: Executor, work: WorkFolder, prepared: Prepared, seed: int) -> Lists:
    """Train the centers on a sample.

    Parameters
    ----------
    executor : Executor
        Where the task runs.
    work : WorkFolder
        Where the parts are.
    prepared : Prepared
        The unit vectors.
    seed : int
        Seed of the sample and of k-means.

    Returns
    -------
    Lists
    """
    (facts,) = run_parts(executor, work, TRAINED, _train, [(prepared, seed)])
    return load_lists(work, wide=facts["wide"])


def load_lists(work: WorkFolder, *, wide: bool) -> Lists:
    """Load trained centers.

    Parameters
    ----------
    work : WorkFolder
        Where the parts are.
    wide : bool
        Whether vectors are projected.

    Returns
    -------
    Lists
    """
    centers, *projection = (
        work.load(TRAINED, 0, name, mapped=False) for name in ("centers", *(("mean", "axes") if wide else ()))
    )
    return Lists(centers, (projection[0], projection[1]) if wide else None)


def sort_into_shards(
    executor: Executor, work: WorkFolder, prepared: Prepared, lists: Lists, rows_per_block: int
) -> Shards:
    """Assign every sample to its list, and write the samples in blocks in the order of the lists.

    Parameters
    ----------
    executor : Executor
        Where tasks run.
    work : WorkFolder
        Where the parts are.
    prepared : Prepared
        The unit vectors; its parts are removed in the end.
    lists : Lists
        The centers.
    rows_per_block : int
        Samples per block, up to the length of a list more.

    Returns
    -------
    Shards
    """
    n_parts = len(prepared.starts) - 1
    run_parts(executor, work, ASSIGNED, _assign, [(lists,)] * n_parts)
    n_lists = len(lists.centers)
    counts = np.zeros(n_lists, dtype=np.int64)
    for part in range(n_parts):
        counts += np.diff(work.load(ASSIGNED, part, "list_starts"))
    list_starts = np.concatenate([[0], np.cumsum(counts)])
    n = int(list_starts[-1])
    n_blocks = max(1, round(n / rows_per_block))
    ends = np.searchsorted(list_starts, np.arange(1, n_blocks) * n / n_blocks)
    first_lists = np.unique(np.concatenate([[0], ends, [n_lists]]))
    first_lists = first_lists[np.concatenate([[True], np.diff(list_starts[first_lists]) > 0])]
    first_lists[-1] = n_lists
    shards = Shards(list_starts[first_lists], first_lists, list_starts)
    arguments = [(prepared, lists, shards) for _ in range(shards.n_blocks)]
    run_parts(executor, work, SHARDS, _collect, arguments)
    work.drop_array(PREPARED, "vectors")
    return shards


def _train(work: WorkFolder, part: int, prepared: Prepared, seed: int) -> Facts:
    n = int(prepared.starts[-1])
    n_lists = number_of_lists(n)
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.choice(n, size=min(n, SAMPLES_PER_LIST * n_lists), replace=False))
    sample = np.empty((len(rows), prepared.n_features), dtype=np.float32)
    for source in range(len(prepared.starts) - 1):
        start, stop = np.searchsorted(rows, prepared.starts[source : source + 2])
        vectors = work.load(PREPARED, source, "vectors")
        sample[start:stop] = vectors[rows[start:stop] - prepared.starts[source]]
    arrays = {}
    if is_wide := prepared.n_features > WIDE:
        mean, axes, _ = principal_axes(sample, min(WIDE, len(sample)))
        arrays = {"mean": mean, "axes": axes}
        sample = project(sample, mean, axes)
    means = faiss.Kmeans(
        sample.shape[1],
        n_lists,
        niter=_ITERATIONS,
        seed=seed % 2**31,
        min_points_per_centroid=1,  # faiss prints a warning otherwise
        max_points_per_centroid=SAMPLES_PER_LIST,
    )
    with limited_threads(1):
        means.train(sample)
    centers = np.asarray(means.centroids)
    arrays["centers"] = centers[_neighbors_together(centers)]
    return work.save(TRAINED, part, arrays, {"wide": bool(is_wide)})


def _neighbors_together(points: FloatArray) -> IntArray:
    """An order of points in which near points are near each other, by halving along principal axes."""
    order = np.arange(len(points))
    pending = [(0, len(points))]
    while pending:
        start, stop = pending.pop()
        if stop - start <= 2:
            continue
        along = _along_principal_axis(points[order[start:stop]])
        order[start:stop] = order[start:stop][np.argsort(along, kind="stable")]
        middle = (start + stop) // 2
        pending += [(start, middle), (middle, stop)]
    return order


def _along_principal_axis(points: FloatArray) -> FloatArray:
    """Coordinates of points along their principal axis, whose entry of largest absolute value is positive."""
    if len(points) > points.shape[1]:
        _, axes, _ = principal_axes(points, 1)
        axis: FloatArray = axes[:, 0]
    else:  # the inner products of few points are a much smaller matrix than the covariance
        centered = points - points.mean(axis=0)
        axis = centered.T @ np.linalg.eigh(centered @ centered.T)[1][:, -1]
        axis *= np.sign(axis[np.abs(axis).argmax()])
    along: FloatArray = points @ axis
    return along


def _assign(work: WorkFolder, part: int, lists: Lists) -> Facts:
    vectors = work.load(PREPARED, part, "vectors")
    nearest = np.empty(len(vectors), dtype=np.int32)
    for rows in row_blocks(len(vectors), _ROWS_AT_ONCE):
        nearest[rows] = lists.nearest(lists.coarse(np.asarray(vectors[rows])), 1)[:, 0]
    order = np.argsort(nearest, kind="stable")
    starts = np.searchsorted(nearest[order], np.arange(len(lists.centers) + 1))
    return work.save(ASSIGNED, part, {"order": order, "list_starts": starts}, {})


def _collect(work: WorkFolder, block: int, prepared: Prepared, lists: Lists, shards: Shards) -> Facts:
    """Write the samples of a block: from every part those of its lists, list by list."""
    first, last = shards.first_lists[block : block + 2]
    start, stop = shards.starts[block : block + 2]
    rows = np.empty(stop - start, dtype=np.int64)
    # Where the samples of the next part go, for every list.
    free = shards.list_starts[first:last] - start
    with work.writing_array(SHARDS, block, "vectors", (stop - start, prepared.n_features), np.float32) as out:
        for part in range(len(prepared.starts) - 1):
            starts = np.asarray(work.load(ASSIGNED, part, "list_starts")[first : last + 1])
            own = np.asarray(work.load(ASSIGNED, part, "order")[starts[0] : starts[-1]])
            counts = np.diff(starts)
            places = np.repeat(free - (starts[:-1] - starts[0]), counts) + np.arange(len(own))
            free = free + counts
            rows[places] = prepared.starts[part] + own
            vectors = work.load(PREPARED, part, "vectors")
            for some in row_blocks(len(own), _ROWS_AT_ONCE):
                out[places[some]] = vectors[own[some]]
    own_starts = np.clip(shards.list_starts, start, stop) - start
    arrays = {"rows": rows, "list_starts": own_starts.astype(np.int32)}
    if lists.projection is not None:
        arrays["coarse"] = np.concatenate(
            [
                lists.coarse(np.asarray(out_rows))
                for out_rows in _in_slices(work.load(SHARDS, block, "vectors"))
            ]
        )
    return work.save(SHARDS, block, arrays, {}, written=("vectors",))


def _in_slices(vectors: FloatArray) -> list[FloatArray]:
    return [vectors[rows] for rows in row_blocks(len(vectors), _ROWS_AT_ONCE)]
