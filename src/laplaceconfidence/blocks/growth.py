"""Samples that are added to a finished estimate: searched, connected, and solved from the last solution.

New samples form one more block. Each is compared with the samples in the lists that it asks: those that are
most similar to it become its neighbors, and it becomes a neighbor of those to which it is more similar than
their last one. Only the edges that come and go are changed in the blocks of the graph, and the conjugate
gradients start from the last solution. Centers of lists, principal axes and the number of lists that are
asked stay as they were.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray, row_blocks
from laplaceconfidence.blocks.block_solve import SOLVE, BlockSystem
from laplaceconfidence.blocks.estimate import SOLUTION, Start
from laplaceconfidence.blocks.executor import Executor
from laplaceconfidence.blocks.graph_blocks import GRAPH, read_graph, save_graph
from laplaceconfidence.blocks.lists import SHARDS, Lists, Shards
from laplaceconfidence.blocks.recall_sample import RecallSample, exact_neighbors, measured_recall
from laplaceconfidence.blocks.results import SHOWN
from laplaceconfidence.blocks.search import NEIGHBORS, Best, SearchSettings
from laplaceconfidence.blocks.work_folder import WorkFolder
from laplaceconfidence.solve.propagation import one_hot
from laplaceconfidence.stages import stage

COMPARED = "comparison"  # stage
RECALL_QUERIES = 64  # of the new samples
_QUERIES_AT_ONCE = 4_096


class _Edges(NamedTuple):
    """Directed entries of W: positions of both ends, and similarities."""

    rows: IntArray
    columns: IntArray
    similarities: FloatArray

    @classmethod
    def joined(cls, parts: list[_Edges]) -> _Edges:
        return cls(
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.columns for part in parts]),
            np.concatenate([part.similarities for part in parts]),
        )

    def both_ways(self, n: int) -> _Edges:
        """Every pair in both directions, once, sorted by row and column."""
        rows, columns = (
            np.concatenate(ends) for ends in ((self.rows, self.columns), (self.columns, self.rows))
        )
        similar = np.concatenate([self.similarities, self.similarities])
        keys = rows * n + columns
        order = np.lexsort((-similar, keys))
        kept = order[np.concatenate([[True], np.diff(keys[order]) > 0])] if len(order) else order
        return _Edges(rows[kept], columns[kept], similar[kept])

    def only(self, which: IntArray | BoolArray) -> _Edges:
        """Some of them."""
        return _Edges(self.rows[which], self.columns[which], self.similarities[which])

    def within(self, start: int, stop: int) -> _Edges:
        """Those of some rows, where edges are sorted; rows are counted from the first of these."""
        some = slice(*np.searchsorted(self.rows, (start, stop)))
        return _Edges(self.rows[some] - start, self.columns[some], self.similarities[some])


@dataclass(frozen=True, slots=True)
class _Questions:
    """Which new samples ask which lists.

    Attributes
    ----------
    vectors : ndarray of float32, shape (m, d)
        Unit vectors of the new samples.
    queries : ndarray of int32, shape (m * n_asked,)
        New samples, by the list that they ask.
    ends : ndarray of int64, shape (n_lists + 1,)
        Where those of every list begin.
    k : int
        Neighbors per sample.
    """

    vectors: FloatArray
    queries: NDArray[Any]
    ends: IntArray
    k: int

    @classmethod
    def of(cls, vectors: FloatArray, asked: NDArray[Any], n_lists: int, k: int) -> _Questions:
        by_list = np.argsort(asked, axis=None, kind="stable")
        ends = np.searchsorted(asked.ravel()[by_list], np.arange(n_lists + 1))
        return cls(vectors, (by_list // asked.shape[1]).astype(np.int32), ends, k)


def add_samples(
    executor: Executor,
    kept: WorkFolder,
    work: WorkFolder,
    lists: Lists,
    starts: IntArray,
    vectors: FloatArray,
    search: SearchSettings,
) -> tuple[Shards, float | None]:
    """Add samples to the blocks, the neighbors and the graph of a finished estimate.

    Parameters
    ----------
    executor : Executor
        Where tasks run.
    kept : WorkFolder
        The parts of the finished estimate, which are not changed.
    work : WorkFolder
        Where the parts of the larger one are written.
    lists : Lists
        The centers.
    starts : ndarray of int64, shape (n_blocks + 1,)
        First position of every block, and the number of samples.
    vectors : ndarray of float32, shape (m, d)
        Unit vectors of the new samples, which get the rows after all others; there may be none.
    search : SearchSettings
        How neighbors were searched.

    Returns
    -------
    shards : Shards
        The blocks, the new samples in the last one.
    recall : float or None
        Share of the true neighbors of new samples that was found, on some of them; ``None`` without any.
    """
    n, n_blocks = int(starts[-1]), len(starts) - 1
    for block in range(n_blocks):
        work.take(kept, SHARDS, block)
    if not len(vectors):
        for name in (NEIGHBORS, GRAPH, SHOWN):
            for block in range(n_blocks):
                work.take(kept, name, block)
        return _shards(starts), None
    shards = _shards(np.append(starts, n + len(vectors)))
    questions = _new_block(work, lists, shards, vectors, search)
    with stage(COMPARED, total=shards.n_blocks) as advance:
        best = Best(len(vectors), search.k)
        results = [
            executor.submit(COMPARED, _compare, work, block, kept, shards, questions)
            for block in range(shards.n_blocks)
        ]
        every, closer = np.arange(len(vectors)), []
        for result in results:
            ((scores, positions), nearer) = executor.gather([result])[0]
            best.merge(every, scores, positions)
            closer.append(nearer)
            advance(1)
    added, removed = _update_neighbors(executor, kept, work, shards, best, closer)
    _update_graph(executor, kept, work, shards, added, removed)
    return shards, _recall(executor, work, shards, search.k)


def start_from(kept: WorkFolder, before: list[IntArray], after: list[IntArray]) -> Start:
    """Make the initial solution from the one of a finished estimate.

    Parameters
    ----------
    kept : WorkFolder
        The parts of the finished estimate.
    before, after : list of ndarray of int32
        Codes of the labels then and now, block by block; a block of new samples is in ``after`` only.

    Returns
    -------
    callable
        The ``start`` of ``solve_and_read``.
    """

    def start(system: BlockSystem, number: int, columns: slice) -> list[Any]:
        submit, work = system.executor.submit, system.graph.work
        blocks = [
            submit(SOLVE, _scaled_solution, work, block, kept, (number, columns), old, new)
            for block, (old, new) in enumerate(zip(before, after, strict=False))
        ]
        if len(after) > len(before):
            last = len(before)
            unknown = np.zeros((len(after[last]), columns.stop - columns.start), dtype=np.float32)
            around = system.product_of(last, [*blocks, unknown])
            blocks.append(submit(SOLVE, _from_neighbors, work, last, around, after[last], columns))
        return blocks

    return start


def _shards(starts: IntArray) -> Shards:
    empty = np.empty(0, dtype=np.int64)  # lists are stored block by block, as blocks share some now
    return Shards(np.asarray(starts, dtype=np.int64), empty, empty)


def _new_block(
    work: WorkFolder, lists: Lists, shards: Shards, vectors: FloatArray, search: SearchSettings
) -> _Questions:
    """Write the block of new samples, in the order of their lists."""
    asked = np.empty((len(vectors), search.n_lists), dtype=np.int32)
    for rows in row_blocks(len(vectors), _QUERIES_AT_ONCE):
        asked[rows] = lists.nearest(lists.coarse(vectors[rows]), search.n_lists)
    order = np.argsort(asked[:, 0], kind="stable")
    vectors, asked = vectors[order], asked[order]
    n_lists = len(lists.centers)
    arrays = {
        "vectors": vectors,
        "rows": int(shards.starts[-2]) + order,
        "list_starts": np.searchsorted(asked[:, 0], np.arange(n_lists + 1)).astype(np.int32),
    }
    work.save(SHARDS, shards.n_blocks - 1, arrays, {})
    return _Questions.of(vectors, asked, n_lists, search.k)


def _compare(
    work: WorkFolder, block: int, kept: WorkFolder, shards: Shards, questions: _Questions
) -> tuple[tuple[FloatArray, IntArray], _Edges]:
    """Compare new samples with a block: their best candidates in it, and whom they are closer to.

    A new sample is closer to another one if it is more similar to it than its last neighbor so far.
    """
    start, is_new = int(shards.starts[block]), block == shards.n_blocks - 1
    vectors = work.load(SHARDS, block, "vectors")
    list_starts = np.asarray(work.load(SHARDS, block, "list_starts"))
    least = None if is_new else np.asarray(kept.load(NEIGHBORS, block, "similarities")[:, -1])
    best = Best(len(questions.vectors), questions.k)
    first_new = int(shards.starts[-2])
    closer = [_Edges(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))]
    for number in np.flatnonzero((np.diff(list_starts) > 0) & (np.diff(questions.ends) > 0)).tolist():
        first, last = list_starts[number : number + 2].tolist()
        own = np.asarray(vectors[first:last])
        asking = questions.queries[questions.ends[number] : questions.ends[number + 1]].astype(np.int64)
        for some in row_blocks(len(asking), _QUERIES_AT_ONCE):
            who = asking[some]
            similar = questions.vectors[who] @ own.T
            if is_new:
                similar[who[:, None] == np.arange(first, last)] = -np.inf
            n_kept = min(questions.k, last - first)
            top = np.argpartition(-similar, n_kept - 1, axis=1)[:, :n_kept]
            best.merge(who, np.take_along_axis(similar, top, axis=1), top + (start + first))
            if least is not None:
                query, place = np.nonzero(similar > least[first:last])
                closer.append(_Edges(place + first + start, who[query] + first_new, similar[query, place]))
    return (best.scores, best.positions), _Edges.joined(closer)


def _update_neighbors(
    executor: Executor,
    kept: WorkFolder,
    work: WorkFolder,
    shards: Shards,
    best: Best,
    closer: list[_Edges],
) -> tuple[_Edges, _Edges]:
    """Write the neighbors of all blocks; return the pairs that are new in the graph, and those that left."""
    last = shards.n_blocks - 1
    positions = np.where(np.isneginf(best.scores), -1, best.positions)
    work.save(NEIGHBORS, last, {"positions": positions, "similarities": best.scores}, {})
    row, place = np.nonzero(positions >= 0)
    found = [_Edges(row + shards.starts[last], positions[row, place], best.scores[row, place])]
    results = [
        executor.submit(COMPARED, _updated_rows, work, block, kept, int(shards.starts[block]), closer[block])
        for block in range(last)
    ]
    changes = executor.gather(results)
    added = _Edges.joined(found + [change[0] for change in changes])
    added = added.only(added.similarities > 0)
    removed = _Edges.joined([change[1] for change in changes])
    removed = removed.only(removed.similarities > 0)  # others are no edges of the graph
    return added, removed.only(~_still_there(work, shards, removed))


def _updated_rows(
    work: WorkFolder, block: int, kept: WorkFolder, start: int, closer: _Edges
) -> tuple[_Edges, _Edges]:
    """Put new samples among the neighbors of old ones; return the entries that came and those that left."""
    if not len(closer.rows):
        work.take(kept, NEIGHBORS, block)
        return closer, closer
    positions = kept.load(NEIGHBORS, block, "positions", mapped=False)
    similarities = kept.load(NEIGHBORS, block, "similarities", mapped=False)
    k = positions.shape[1]
    closer = closer.only(np.lexsort((closer.columns, -closer.similarities, closer.rows)))
    rows, firsts, counts = np.unique(closer.rows - start, return_index=True, return_counts=True)
    place = np.arange(len(closer.rows)) - np.repeat(firsts, counts)
    best = place < k  # no more can come among the neighbors of one sample
    closer, place, numbers = closer.only(best), place[best] + k, np.repeat(np.arange(len(rows)), counts)[best]
    # The neighbors so far come first: of equally similar ones, those of lower position stay.
    shape = len(rows), k + min(k, int(counts.max()))
    other, similar = np.full(shape, -1, dtype=np.int64), np.full(shape, -np.inf, dtype=np.float32)
    other[:, :k], similar[:, :k] = positions[rows], similarities[rows]
    other[numbers, place], similar[numbers, place] = closer.columns, closer.similarities
    order = np.argsort(-similar, axis=1, kind="stable")
    positions[rows] = np.take_along_axis(other, order[:, :k], axis=1)
    similarities[rows] = np.take_along_axis(similar, order[:, :k], axis=1)
    work.save(NEIGHBORS, block, {"positions": positions, "similarities": similarities}, {})
    stays = np.zeros(shape, dtype=bool)
    np.put_along_axis(stays, order[:, :k], True, axis=1)
    is_new = np.arange(shape[1]) >= k
    changes = [np.nonzero(where & (other >= 0)) for where in (stays & is_new, ~stays & ~is_new)]
    came, left = (_Edges(rows[row] + start, other[row, at], similar[row, at]) for row, at in changes)
    return came, left


def _still_there(work: WorkFolder, shards: Shards, removed: _Edges) -> BoolArray:
    """Which pairs stay in the graph because the other sample still has this one as a neighbor."""
    stays = np.zeros(len(removed.rows), dtype=bool)
    blocks = shards.blocks_of(removed.columns)
    for block in np.unique(blocks).tolist():
        some = np.flatnonzero(blocks == block)
        theirs = work.load(NEIGHBORS, block, "positions")[removed.columns[some] - shards.starts[block]]
        stays[some] = (theirs == removed.rows[some, None]).any(axis=1)
    return stays


def _update_graph(
    executor: Executor, kept: WorkFolder, work: WorkFolder, shards: Shards, added: _Edges, removed: _Edges
) -> None:
    n = int(shards.starts[-1])
    added, removed = added.both_ways(n), removed.both_ways(n)
    with stage(GRAPH, total=shards.n_blocks) as advance:
        results = []
        for block in range(shards.n_blocks):
            own = shards.starts[block : block + 2].tolist()
            changes = added.within(*own), removed.within(*own)
            results.append(executor.submit(GRAPH, _updated_block, work, block, kept, shards, *changes))
        for result in results:
            executor.gather([result])
            advance(1)


def _updated_block(
    work: WorkFolder, block: int, kept: WorkFolder, shards: Shards, added: _Edges, removed: _Edges
) -> None:
    m = int(shards.starts[block + 1] - shards.starts[block])
    if block == shards.n_blocks - 1:
        columns, numbers = np.unique(added.columns, return_inverse=True)
        shape = m, len(columns)
        new = sparse.csr_array((added.similarities, (added.rows, numbers)), shape=shape, dtype=np.float32)
        save_graph(work, block, shards, new, columns)
        return
    touched = np.union1d(added.rows, removed.rows)
    if not len(touched):
        work.take(kept, GRAPH, block)
        return
    graph = read_graph(kept, block)
    columns = np.union1d(graph.columns, added.columns)
    indices = np.searchsorted(columns, graph.columns).astype(np.int32)[graph.matrix.indices]
    old = sparse.csr_array((graph.matrix.data, indices, graph.matrix.indptr), shape=(m, len(columns)))
    changed = old[touched]
    if len(removed.rows):
        keys = np.repeat(np.arange(len(touched)), np.diff(changed.indptr)) * len(columns) + changed.indices
        numbers = np.minimum(np.searchsorted(columns, removed.columns), len(columns) - 1)
        wanted = np.searchsorted(touched, removed.rows) * len(columns) + numbers
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        changed.data[at[(keys[at] == wanted) & (columns[numbers] == removed.columns)]] = 0
    places = np.searchsorted(touched, added.rows), np.searchsorted(columns, added.columns)
    changed = changed + sparse.csr_array((added.similarities, places), shape=changed.shape, dtype=np.float32)
    changed.eliminate_zeros()
    rows = np.arange(m)
    rows[touched] = m + np.arange(len(touched))
    save_graph(work, block, shards, sparse.vstack([old, changed], format="csr")[rows], columns)


def _recall(executor: Executor, work: WorkFolder, shards: Shards, k: int) -> float:
    """The share of the true neighbors of new samples that was found, on evenly spaced ones."""
    first, n = shards.starts[-2:].tolist()
    positions = np.unique(np.linspace(first, n - 1, min(RECALL_QUERIES, n - first)).astype(np.int64))
    queries, similar, _ = exact_neighbors(executor, work, shards, positions, k)
    sample = RecallSample(positions, queries, similar[:, -1] - np.float32(1e-6), np.empty(0))
    return measured_recall(work, shards, sample)


def _scaled_solution(
    work: WorkFolder,
    block: int,
    kept: WorkFolder,
    chunk: tuple[int, slice],
    before: IntArray,
    after: IntArray,
) -> FloatArray:
    """The last solution for the degrees of now; a label that changed moves its own entry."""
    number, columns = chunk
    values = kept.load(f"{SOLUTION}-{number}", block, "values", mapped=False)
    degrees = (np.asarray(folder.load(GRAPH, block, "degree")) for folder in (work, kept))
    values *= np.sqrt(np.divide(*degrees)).astype(np.float32)[:, None]
    if (changed := np.flatnonzero(before != after)).size:
        ones = np.ones(len(changed), dtype=np.float32)
        labels = (codes[changed].astype(np.int64) for codes in (after, before))
        values[changed] += np.subtract(*(one_hot(own, columns, ones) for own in labels))
    return values


def _from_neighbors(
    work: WorkFolder, block: int, product: FloatArray, codes: IntArray, columns: slice
) -> FloatArray:
    """The solution of new samples if that of all others does not change."""
    given = one_hot(codes.astype(np.int64), columns, np.ones(len(codes), dtype=np.float32))
    return given - product
