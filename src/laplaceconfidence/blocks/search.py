"""Neighbors of every sample, block by block: a block of queries asks the blocks of its nearest lists.

How many lists a query asks is chosen on a sample of queries whose exact neighbors are computed: a neighbor is
found if its list is among the nearest ones, so one pass tells the recall for every number of lists. Wide
vectors are compared along principal axes first, and the candidates again in all features, from the disk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import faiss
import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray, row_blocks
from laplaceconfidence.blocks.block_cache import cached
from laplaceconfidence.blocks.executor import Executor, run_parts
from laplaceconfidence.blocks.lists import SHARDS, Lists, Shards
from laplaceconfidence.blocks.work_folder import Facts, WorkFolder

EXACT, NEIGHBORS = "recall", "neighbors"  # stages

RECALL_QUERIES = 256
CANDIDATES_PER_NEIGHBOR = 3  # of wide vectors, along principal axes
_QUERIES_AT_ONCE = 4_096
_RERANKED_AT_ONCE = 512


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """How neighbors are searched.

    Attributes
    ----------
    k : int
        Neighbors per sample.
    n_lists : int
        Lists that a query asks.
    """

    k: int
    n_lists: int


@dataclass(frozen=True, slots=True)
class RecallSample:
    """Queries drawn at random, and how similar their k-th exact neighbor is.

    Attributes
    ----------
    positions : ndarray of int64, shape (m,)
        Positions of the queries.
    accepted : ndarray of float32, shape (m,)
        Any other sample that is at least so similar is a true neighbor.
    recall_by_lists : ndarray of float64, shape (n_lists,)
        Share of the true neighbors in the nearest 1, 2, ... lists.
    """

    positions: IntArray
    accepted: FloatArray
    recall_by_lists: FloatArray


def sample_recall(
    executor: Executor, work: WorkFolder, lists: Lists, shards: Shards, k: int, seed: int
) -> RecallSample:
    """Compute the exact neighbors of a sample of queries.

    Parameters
    ----------
    executor : Executor
        Where tasks run.
    work : WorkFolder
        Where the parts are.
    lists : Lists
        The centers.
    shards : Shards
        The blocks.
    k : int
        Neighbors per sample.
    seed : int
        Seed of the sample.

    Returns
    -------
    RecallSample
    """
    n = int(shards.starts[-1])
    rng = np.random.default_rng(seed)
    positions = np.sort(rng.choice(n, size=min(RECALL_QUERIES, n), replace=False))
    queries, similar, found = exact_neighbors(executor, work, shards, positions, k)
    own_lists = np.searchsorted(shards.list_starts, found, side="right") - 1
    nearest = lists.nearest(lists.coarse(queries), len(lists.centers))
    rank_of = np.argsort(nearest, axis=1)
    ranks = np.take_along_axis(rank_of, own_lists, axis=1)
    by_lists = np.cumsum(np.bincount(ranks.ravel(), minlength=len(lists.centers))) / ranks.size
    return RecallSample(positions, similar[:, -1] - np.float32(1e-6), by_lists)


def exact_neighbors(
    executor: Executor, work: WorkFolder, shards: Shards, positions: IntArray, k: int
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Compare some samples with all others.

    Parameters
    ----------
    executor : Executor
        Where tasks run.
    work : WorkFolder
        Where the parts are.
    shards : Shards
        The blocks.
    positions : ndarray of int64, shape (m,)
        Positions of the samples, sorted.
    k : int
        Neighbors per sample.

    Returns
    -------
    queries : ndarray of float32, shape (m, d)
        Vectors of the samples.
    similarities : ndarray of float32, shape (m, k)
        Most similar first.
    neighbors : ndarray of int64, shape (m, k)
        Positions of the neighbors.
    """
    queries = vectors_at(work, shards, positions)
    run_parts(executor, work, EXACT, _exact_in_block, [(queries, shards, k)] * shards.n_blocks)
    similar = np.concatenate([work.load(EXACT, b, "similarities") for b in range(shards.n_blocks)], axis=1)
    found = np.concatenate([work.load(EXACT, b, "positions") for b in range(shards.n_blocks)], axis=1)
    similar = np.where(found == positions[:, None], -np.inf, similar)
    order = np.argsort(-similar, axis=1, kind="stable")[:, :k]
    return queries, np.take_along_axis(similar, order, axis=1), np.take_along_axis(found, order, axis=1)


def lists_for_recall(sample: RecallSample, target: float) -> int:
    """Return the smallest number of lists per query that reaches a recall on the sample.

    Parameters
    ----------
    sample : RecallSample
        The sample.
    target : float
        The recall.

    Returns
    -------
    int
    """
    return min(int(np.searchsorted(sample.recall_by_lists, target - 1e-12)) + 1, len(sample.recall_by_lists))


def search_blocks(
    executor: Executor, work: WorkFolder, lists: Lists, shards: Shards, settings: SearchSettings
) -> None:
    """Search the neighbors of all samples.

    Parameters
    ----------
    executor : Executor
        Where tasks run.
    work : WorkFolder
        Where the parts are; every block gets ``positions`` and ``similarities``, most similar first.
    lists : Lists
        The centers.
    shards : Shards
        The blocks.
    settings : SearchSettings
        How to search.
    """
    run_parts(executor, work, NEIGHBORS, _search_block, [(lists, shards, settings)] * shards.n_blocks)


def measured_recall(work: WorkFolder, shards: Shards, sample: RecallSample) -> float:
    """Compute the share of the true neighbors of the sample that the search found.

    Parameters
    ----------
    work : WorkFolder
        Where the parts are.
    shards : Shards
        The blocks.
    sample : RecallSample
        The sample.

    Returns
    -------
    float
    """
    blocks = shards.blocks_of(sample.positions)
    hits = [
        work.load(NEIGHBORS, block, "similarities")[sample.positions[blocks == block] - shards.starts[block]]
        >= sample.accepted[blocks == block, None]
        for block in np.unique(blocks).tolist()
    ]
    return float(np.concatenate(hits).mean())


def vectors_at(work: WorkFolder, shards: Shards, positions: IntArray) -> FloatArray:
    """Read the vectors at sorted positions.

    Parameters
    ----------
    work : WorkFolder
        Where the parts are.
    shards : Shards
        The blocks.
    positions : ndarray of int64, shape (m,)
        Sorted positions.

    Returns
    -------
    ndarray of float32, shape (m, d)
    """
    ends = np.searchsorted(positions, shards.starts)
    parts = [
        work.load(SHARDS, block, "vectors")[positions[ends[block] : ends[block + 1]] - shards.starts[block]]
        for block in range(shards.n_blocks)
        if ends[block] < ends[block + 1]
    ]
    return np.concatenate(parts)


def _exact_in_block(work: WorkFolder, block: int, queries: FloatArray, shards: Shards, k: int) -> Facts:
    vectors = np.asarray(work.load(SHARDS, block, "vectors"))
    n_found = min(k + 1, len(vectors))
    similar, found = faiss.knn(queries, vectors, n_found, metric=faiss.METRIC_INNER_PRODUCT)
    arrays = {"similarities": similar, "positions": found + shards.starts[block]}
    return work.save(EXACT, block, arrays, {})


def _search_block(
    work: WorkFolder, block: int, lists: Lists, shards: Shards, settings: SearchSettings
) -> Facts:
    k = settings.k
    vectors = np.asarray(work.load(SHARDS, block, "vectors"))
    is_wide = lists.projection is not None
    queries = np.asarray(work.load(SHARDS, block, "coarse")) if is_wide else vectors
    n = int(shards.starts[-1])
    n_candidates = min(n, CANDIDATES_PER_NEIGHBOR * k + 1 if is_wide else k + 1)
    probes = np.empty((len(queries), settings.n_lists), dtype=np.int32)
    for rows in row_blocks(len(queries), _QUERIES_AT_ONCE):
        probes[rows] = lists.nearest(queries[rows], settings.n_lists)
    best = Best(len(queries), n_candidates)
    asked = np.unique(np.searchsorted(shards.first_lists, np.unique(probes), side="right") - 1)
    for other in asked.tolist():
        first, last = shards.first_lists[other : other + 2]
        inside = (probes >= first) & (probes < last)
        who = np.flatnonzero(inside.any(axis=1))
        index = cached(("search", str(work.path), other), _index_of, work, other, lists, shards)
        for some in row_blocks(len(who), _QUERIES_AT_ONCE):
            asking = who[some]
            local = np.where(inside[asking], probes[asking] - first, -1).astype(np.int64)
            # Only as many columns as lists are asked: absent ones come last.
            most = int((local >= 0).sum(axis=1).max())
            local = -np.sort(-local, axis=1)[:, :most]
            scores, found = _search_lists(index, queries[asking], n_candidates, local)
            scores = -scores if is_wide else scores  # distances there, inner products here
            best.merge(asking, scores, np.where(found >= 0, found + shards.starts[other], -1))
    positions, similarities = best.positions, best.scores
    if is_wide:
        similarities = _inner_products(work, shards, vectors, positions)
    own = np.arange(shards.starts[block], shards.starts[block + 1])[:, None]
    similarities = np.where((positions == own) | (positions < 0), -np.inf, similarities)
    order = np.lexsort((positions, -similarities), axis=1)[:, :k]
    positions = np.take_along_axis(positions, order, axis=1)
    similarities = np.take_along_axis(similarities, order, axis=1).astype(np.float32)
    positions = np.where(np.isneginf(similarities), -1, positions)
    if positions.shape[1] < k:
        gap = ((0, 0), (0, k - positions.shape[1]))
        positions = np.pad(positions, gap, constant_values=-1)
        similarities = np.pad(similarities, gap, constant_values=-np.inf)
    return work.save(NEIGHBORS, block, {"positions": positions, "similarities": similarities}, {})


class Best:
    """The best candidates of every query so far.

    Parameters
    ----------
    n_queries : int
        Number of queries.
    n_candidates : int
        Candidates per query.

    Attributes
    ----------
    scores : ndarray of float32, shape (n_queries, n_candidates)
        Best first, -inf where there are fewer candidates.
    positions : ndarray of int64, shape (n_queries, n_candidates)
        Their positions, -1 where there are fewer.
    """

    def __init__(self, n_queries: int, n_candidates: int) -> None:
        self.scores = np.full((n_queries, n_candidates), -np.inf, dtype=np.float32)
        self.positions = np.full((n_queries, n_candidates), -1, dtype=np.int64)

    def merge(self, rows: IntArray, scores: FloatArray, positions: IntArray) -> None:
        """Add candidates of some queries.

        Parameters
        ----------
        rows : ndarray of int, shape (m,)
            The queries, each of them once.
        scores : ndarray of float32, shape (m, c)
            Scores of the candidates, larger is better.
        positions : ndarray of int64, shape (m, c)
            Their positions, -1 for none.
        """
        n_kept = self.scores.shape[1]
        scores = np.where(positions >= 0, scores, -np.inf)
        both = np.concatenate([self.scores[rows], scores], axis=1)
        found = np.concatenate([self.positions[rows], positions], axis=1)
        # Sorted, not partitioned: of equal candidates the same ones must be kept wherever this runs.
        kept = np.argsort(-both, axis=1, kind="stable")[:, :n_kept]
        self.scores[rows] = np.take_along_axis(both, kept, axis=1)
        self.positions[rows] = np.take_along_axis(found, kept, axis=1)


def _index_of(work: WorkFolder, block: int, lists: Lists, shards: Shards) -> tuple[Any, int]:
    """The lists of a block as an inverted file, and its bytes."""
    is_wide = lists.projection is not None
    content = np.ascontiguousarray(work.load(SHARDS, block, "coarse" if is_wide else "vectors"))
    first, last = shards.first_lists[block : block + 2]
    numbers = np.repeat(np.arange(last - first), np.diff(shards.list_starts[first : last + 1]))
    metric = faiss.METRIC_L2 if is_wide else faiss.METRIC_INNER_PRODUCT
    centers = faiss.IndexFlatL2(content.shape[1])
    centers.add(lists.centers[first:last])
    index = faiss.IndexIVFFlat(centers, content.shape[1], int(last - first), metric)
    index.add_core(len(content), faiss.swig_ptr(content), None, faiss.swig_ptr(numbers))
    return index, content.nbytes + 8 * len(content)


def _search_lists(
    index: Any, queries: FloatArray, n_candidates: int, numbers: IntArray
) -> tuple[FloatArray, IntArray]:
    """The best candidates in given lists of an inverted file; -1 stands for no list, and no candidate."""
    queries, numbers = np.ascontiguousarray(queries), np.ascontiguousarray(numbers)
    distances = np.zeros(numbers.shape, dtype=np.float32)  # to the centers, which only other indexes use
    scores = np.empty((len(queries), n_candidates), dtype=np.float32)
    found = np.empty((len(queries), n_candidates), dtype=np.int64)
    index.search_preassigned_c(
        len(queries),
        faiss.swig_ptr(queries),
        n_candidates,
        faiss.swig_ptr(numbers),
        faiss.swig_ptr(distances),
        faiss.swig_ptr(scores),
        faiss.swig_ptr(found),
        False,
        # Not an attribute of the index, which several threads search.
        faiss.SearchParametersIVF(nprobe=numbers.shape[1]),  # type: ignore[call-arg]  # missing in its stubs
    )
    return scores, found


def _inner_products(work: WorkFolder, shards: Shards, queries: FloatArray, positions: IntArray) -> FloatArray:
    """Inner products with candidates in all features, which are read from the disk."""
    similarities = np.empty(positions.shape, dtype=np.float32)
    for rows in row_blocks(len(queries), _RERANKED_AT_ONCE):
        wanted, places = np.unique(np.maximum(positions[rows], 0), return_inverse=True)
        vectors = vectors_at(work, shards, wanted)
        places = places.reshape(positions[rows].shape)
        for row, (query, own) in enumerate(zip(queries[rows], places, strict=True), rows.start):
            similarities[row] = vectors[own] @ query
    return similarities
