"""Queries whose exact neighbors are known: what the effort of a search is chosen on, and its recall measured.

A neighbor is found if its list is among those that are asked, so the ranks of the neighbors' lists tell the
recall for every number of lists.
"""

from __future__ import annotations

from dataclasses import dataclass

import faiss
import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.blocks.executor import Executor, run_parts
from laplaceconfidence.blocks.lists import SHARDS, Lists, Shards
from laplaceconfidence.blocks.search import NEIGHBORS, vectors_at
from laplaceconfidence.blocks.work_folder import Facts, WorkFolder

EXACT = "recall"  # stage
RECALL_QUERIES = 256


@dataclass(frozen=True, slots=True)
class RecallSample:
    """Queries drawn at random, and how similar their k-th exact neighbor is.

    Attributes
    ----------
    positions : ndarray of int64, shape (m,)
        Positions of the queries.
    vectors : ndarray of float32, shape (m, d)
        Their vectors.
    accepted : ndarray of float32, shape (m,)
        Any other sample that is at least so similar is a true neighbor.
    recall_by_lists : ndarray of float64, shape (n_lists,)
        Share of the true neighbors in the nearest 1, 2, ... lists.
    """

    positions: IntArray
    vectors: FloatArray
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
    return RecallSample(positions, queries, similar[:, -1] - np.float32(1e-6), by_lists)


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


def _exact_in_block(work: WorkFolder, block: int, queries: FloatArray, shards: Shards, k: int) -> Facts:
    vectors = np.asarray(work.load(SHARDS, block, "vectors"))
    n_found = min(k + 1, len(vectors))
    similar, found = faiss.knn(queries, vectors, n_found, metric=faiss.METRIC_INNER_PRODUCT)
    arrays = {"similarities": similar, "positions": found + shards.starts[block]}
    return work.save(EXACT, block, arrays, {})
