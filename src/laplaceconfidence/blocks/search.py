"""Neighbors of every sample, block by block: a block of queries asks the blocks of its nearest lists.

Lists are scanned by 4-bit codes of the samples, and what is found is compared again in all features, which
are read from the disk. Where codes do not pay, the vectors themselves are scanned. ``effort.py`` chooses what
is scanned, and how many lists and candidates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import FloatArray, IntArray, row_blocks
from laplaceconfidence.blocks.block_cache import cached
from laplaceconfidence.blocks.executor import Executor, run_parts
from laplaceconfidence.blocks.lists import SHARDS, Lists, Shards
from laplaceconfidence.blocks.work_folder import Facts, WorkFolder
from laplaceconfidence.graph.cells import NEARBY, nearby_cells, nearest_cells
from laplaceconfidence.graph.list_scan import (
    coded_lists,
    inner_products,
    most_similar,
    scan_lists,
    vector_lists,
)
from laplaceconfidence.graph.product_codes import ProductCodes

NEIGHBORS = "neighbors"  # stage
CODES = "codes"  # stage, one for every number of axes per code

_QUERIES_AT_ONCE = 2_048


@dataclass(frozen=True, slots=True, eq=False)
class SearchSettings:
    """How neighbors are searched.

    Attributes
    ----------
    k : int
        Neighbors per sample.
    n_lists : int
        Lists that a query asks.
    n_candidates : int, default=0
        Samples of a block that codes find and that are compared in all features.
    codes : ProductCodes or None, default=None
        What is scanned; ``None`` scans the vectors.
    """

    k: int
    n_lists: int
    n_candidates: int = 0
    codes: ProductCodes | None = None


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
        The blocks; their codes must be there if these are scanned.
    settings : SearchSettings
        How to search.
    """
    run_parts(executor, work, NEIGHBORS, _search_block, [(lists, shards, settings)] * shards.n_blocks)


def search_exactly(executor: Executor, work: WorkFolder, shards: Shards, k: int) -> None:
    """Compare every sample with every other one; the parts are those of ``search_blocks``.

    Parameters
    ----------
    executor : Executor
        Where tasks run.
    work : WorkFolder
        Where the parts are.
    shards : Shards
        The blocks.
    k : int
        Neighbors per sample.
    """
    run_parts(executor, work, NEIGHBORS, _compare_block, [(shards, k)] * shards.n_blocks)


def code_blocks(
    executor: Executor, work: WorkFolder, lists: Lists, shards: Shards, codes: ProductCodes
) -> None:
    """Write the codes of all samples.

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
    codes : ProductCodes
        The codes.
    """
    run_parts(executor, work, codes_stage(codes), _code_block, [(lists, codes)] * shards.n_blocks)


def codes_stage(codes: ProductCodes) -> str:
    """Return the name of the stage that writes codes.

    Parameters
    ----------
    codes : ProductCodes
        The codes.

    Returns
    -------
    str
    """
    return f"{CODES}-{codes.axes_per_code}"


def lists_in_memory(work: WorkFolder, block: int, shards: Shards, codes: ProductCodes | None) -> Any:
    """Load the lists of a block, or return those that this process keeps.

    Parameters
    ----------
    work : WorkFolder
        Where the parts are.
    block : int
        Number of the block.
    shards : Shards
        The blocks.
    codes : ProductCodes or None
        What the lists hold; ``None`` for vectors.

    Returns
    -------
    faiss.IndexIVF
    """
    per_code = None if codes is None else codes.axes_per_code
    return cached(("search", str(work.path), block, per_code), _loaded_lists, work, block, shards, codes)


def asked_lists(lists: Lists, coarse: FloatArray, own: IntArray, n_lists: int) -> NDArray[np.int32]:
    """Find the lists that samples ask, among those near their own list.

    Parameters
    ----------
    lists : Lists
        The centers.
    coarse : ndarray of float32, shape (m, d')
        The samples, as ``Lists.coarse`` returns them, in the order of their lists.
    own : ndarray of int64, shape (m,)
        Their lists, ascending.
    n_lists : int
        Lists per sample.

    Returns
    -------
    ndarray of int32, shape (m, n_lists)
        Nearest first.
    """
    numbers, places = np.unique(own, return_inverse=True)
    nearby = nearby_cells(lists.centers[numbers], lists.centers, max(NEARBY, 4 * n_lists))
    asked = np.empty((len(coarse), n_lists), dtype=np.int32)
    for rows in row_blocks(len(coarse), _QUERIES_AT_ONCE):
        asked[rows] = nearest_cells(coarse[rows], places[rows], lists.centers, nearby, n_lists)
    return asked


def vectors_to_compare(work: WorkFolder, block: int, lists: Lists) -> FloatArray:
    """Map the vectors of a block that are compared with the centers.

    Parameters
    ----------
    work : WorkFolder
        Where the parts are.
    block : int
        Number of the block.
    lists : Lists
        The centers.

    Returns
    -------
    ndarray of float32, shape (m, d')
        As ``Lists.coarse`` returns them.
    """
    return np.asarray(work.load(SHARDS, block, "vectors" if lists.projection is None else "coarse"))


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


def _search_block(
    work: WorkFolder, block: int, lists: Lists, shards: Shards, settings: SearchSettings
) -> Facts:
    codes = settings.codes
    n_candidates = settings.k + 1 if codes is None else settings.n_candidates
    vectors = np.asarray(work.load(SHARDS, block, "vectors"))
    coarse = vectors_to_compare(work, block, lists)
    first, last = shards.first_lists[block : block + 2]
    own = np.repeat(np.arange(first, last), np.diff(shards.list_starts[first : last + 1]))
    asked = asked_lists(lists, coarse, own, settings.n_lists)
    scanned = vectors if codes is None else coarse @ codes.axes
    best = Best(len(vectors), settings.k + 1)
    farthest = np.full((len(vectors), 1), np.inf, dtype=np.float32)
    is_asked = np.zeros(len(lists.centers), dtype=bool)
    is_asked[asked] = True
    others = np.unique(np.searchsorted(shards.first_lists, np.flatnonzero(is_asked), side="right") - 1)
    # The own block comes first: it has most of the neighbors, so few candidates of others are left.
    for other in sorted(others.tolist(), key=lambda number: number != block):
        first, last = shards.first_lists[other : other + 2]
        inside = (asked >= first) & (asked < last)
        who = np.flatnonzero(inside.any(axis=1))
        index = lists_in_memory(work, other, shards, codes)
        theirs = np.asarray(work.load(SHARDS, other, "vectors"))
        for some in row_blocks(len(who), _QUERIES_AT_ONCE):
            asking = who[some]
            numbers = np.where(inside[asking], asked[asking] - first, -1)
            scores, found = scan_lists(index, scanned[asking], numbers, n_candidates)
            if codes is not None:
                found[scores > farthest[asking]] = -1  # as many of another block are nearer
                farthest[asking] = np.minimum(farthest[asking], scores[:, -1:])
                scores = inner_products(vectors[asking], theirs, found)
                found, scores = most_similar(found, scores, settings.k + 1)
            best.merge(asking, scores, np.where(found >= 0, found + shards.starts[other], -1))
    return _save_neighbors(work, block, shards, best, settings.k)


def _compare_block(work: WorkFolder, block: int, shards: Shards, k: int) -> Facts:
    vectors = np.asarray(work.load(SHARDS, block, "vectors"))
    best = Best(len(vectors), k + 1)
    for other in range(shards.n_blocks):
        theirs = np.asarray(work.load(SHARDS, other, "vectors"))
        for rows in row_blocks(len(vectors), _QUERIES_AT_ONCE):
            scores, found = faiss.knn(
                vectors[rows], theirs, min(k + 1, len(theirs)), metric=faiss.METRIC_INNER_PRODUCT
            )
            best.merge(np.arange(rows.start, rows.stop), scores, found + shards.starts[other])
    return _save_neighbors(work, block, shards, best, k)


def _save_neighbors(work: WorkFolder, block: int, shards: Shards, best: Best, k: int) -> Facts:
    own = np.arange(shards.starts[block], shards.starts[block + 1])[:, None]
    similarities = np.where((best.positions == own) | (best.positions < 0), -np.inf, best.scores)
    order = np.lexsort((best.positions, -similarities), axis=1)[:, :k]
    similarities = np.take_along_axis(similarities, order, axis=1).astype(np.float32)
    positions = np.where(np.isneginf(similarities), -1, np.take_along_axis(best.positions, order, axis=1))
    return work.save(NEIGHBORS, block, {"positions": positions, "similarities": similarities}, {})


def _code_block(work: WorkFolder, block: int, lists: Lists, codes: ProductCodes) -> Facts:
    rows = codes.encoded(vectors_to_compare(work, block, lists))
    return work.save(codes_stage(codes), block, {"codes": rows}, {})


def _loaded_lists(
    work: WorkFolder, block: int, shards: Shards, codes: ProductCodes | None
) -> tuple[Any, int]:
    """The lists of a block, and their bytes."""
    first, last = shards.first_lists[block : block + 2]
    sizes = np.diff(shards.list_starts[first : last + 1])
    if codes is not None:
        rows = work.load(codes_stage(codes), block, "codes")
        return coded_lists(codes, rows, sizes), rows.nbytes + 8 * len(rows)
    vectors = np.asarray(work.load(SHARDS, block, "vectors"))
    return vector_lists(vectors, sizes, faiss.METRIC_INNER_PRODUCT), vectors.nbytes + 8 * len(vectors)
