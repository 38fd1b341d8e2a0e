"""The symmetric graph in blocks of rows: A = max(W, W^T), where W contains the similarities of neighbors.

Every block writes its entries of W sorted by column; a block of A is made of its own rows of W and of the
entries of all blocks whose column lies in it. Columns of a block are numbered by the distinct positions that
occur in it, so that a product gathers only what it needs from other blocks. Products are those with the
normalized graph, whose blocks are made as they are loaded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.blocks.block_cache import cached
from laplaceconfidence.blocks.executor import Executor, run_parts
from laplaceconfidence.blocks.lists import Shards
from laplaceconfidence.blocks.search import NEIGHBORS
from laplaceconfidence.blocks.work_folder import Facts, WorkFolder

EDGES, GRAPH = "edges", "affinity"  # stages


@dataclass(frozen=True, slots=True)
class GraphBlock:
    """Rows of the symmetric graph.

    Attributes
    ----------
    matrix : scipy.sparse.csr_array of shape (m, n_columns)
        The rows of A, in the columns that occur.
    columns : ndarray of int64, shape (n_columns,)
        Positions of the columns, sorted.
    degree : ndarray of float64, shape (m,)
        Degrees of the rows; 1 where a row is empty.
    """

    matrix: sparse.csr_array
    columns: IntArray
    degree: FloatArray


@dataclass(frozen=True, slots=True)
class NormalizedBlock:
    """Rows of the normalized graph S = D^-1/2 A D^-1/2.

    Attributes
    ----------
    matrix : scipy.sparse.csr_array of shape (m, n_columns)
        The rows of S, in the columns that occur.
    columns : ndarray of int64, shape (n_columns,)
        Positions of the columns, sorted.
    root : ndarray of float32, shape (m, 1)
        Square roots of the degrees of the rows.
    """

    matrix: sparse.csr_array
    columns: IntArray
    root: FloatArray


@dataclass(frozen=True, slots=True)
class NormalizedGraph:
    """The normalized graph in blocks.

    Attributes
    ----------
    work : WorkFolder
        Where the parts of A are.
    starts : ndarray of int64, shape (n_blocks + 1,)
        First position of every block, and the number of samples.
    """

    work: WorkFolder
    starts: IntArray

    @property
    def n_blocks(self) -> int:
        """int: number of blocks."""
        return len(self.starts) - 1

    def load(self, block: int) -> NormalizedBlock:
        """Load a block; a process keeps blocks in memory as far as its limit allows.

        Parameters
        ----------
        block : int
            Number of the block.

        Returns
        -------
        NormalizedBlock
        """
        key = "normalized", str(self.work.path), block
        found: NormalizedBlock = cached(key, _normalize, self.work, block, self.starts)
        return found


def build_graph(executor: Executor, work: WorkFolder, shards: Shards) -> list[list[int]]:
    """Write the blocks of the graph.

    Parameters
    ----------
    executor : Executor
        Where tasks run.
    work : WorkFolder
        Where the parts are.
    shards : Shards
        The blocks.

    Returns
    -------
    list of list of int
        For every block, the blocks in which its columns lie.
    """
    if not all(work.is_done(GRAPH, block) for block in range(shards.n_blocks)):
        run_parts(executor, work, EDGES, _sort_edges, [(shards,)] * shards.n_blocks)
    facts = run_parts(executor, work, GRAPH, _build_block, [(shards,)] * shards.n_blocks)
    work.remove(EDGES)
    return [fact["needs"] for fact in facts]


def load_graph(work: WorkFolder, block: int) -> GraphBlock:
    """Load a block of the graph; a process keeps blocks in memory as far as its limit allows.

    Parameters
    ----------
    work : WorkFolder
        Where the parts are.
    block : int
        Number of the block.

    Returns
    -------
    GraphBlock
    """
    found: GraphBlock = cached((GRAPH, str(work.path), block), _read, work, block)
    return found


def read_graph(work: WorkFolder, block: int) -> GraphBlock:
    """Read a block of the graph from the disk.

    Parameters
    ----------
    work : WorkFolder
        Where the parts are.
    block : int
        Number of the block.

    Returns
    -------
    GraphBlock
    """
    return _read(work, block)[0]


def _normalize(work: WorkFolder, block: int, starts: IntArray) -> tuple[NormalizedBlock, int]:
    graph, n_bytes = _read(work, block)
    ends = np.searchsorted(graph.columns, starts)
    root, root_of_columns = np.sqrt(graph.degree), np.empty(len(graph.columns))
    for other in work.facts(GRAPH, block)["needs"]:
        some = slice(ends[other], ends[other + 1])
        root_of_columns[some] = work.load(GRAPH, other, "degree")[graph.columns[some] - starts[other]]
    np.sqrt(root_of_columns, out=root_of_columns)
    matrix = graph.matrix
    matrix.data /= np.repeat(root.astype(np.float32), np.diff(matrix.indptr))
    matrix.data /= root_of_columns.astype(np.float32)[matrix.indices]
    return NormalizedBlock(matrix, graph.columns, root.astype(np.float32)[:, None]), n_bytes


def _read(work: WorkFolder, block: int) -> tuple[GraphBlock, int]:
    names = ("data", "indices", "indptr", "columns", "degree")
    data, indices, indptr, columns, degree = (work.load(GRAPH, block, name, mapped=False) for name in names)
    matrix = sparse.csr_array((data, indices, indptr), shape=(len(degree), len(columns)))
    n_bytes = sum(array.nbytes for array in (data, indices, indptr, columns, degree))
    return GraphBlock(matrix, columns, degree), n_bytes


def _sort_edges(work: WorkFolder, block: int, shards: Shards) -> Facts:
    """The entries of W of a block, sorted by column."""
    positions = work.load(NEIGHBORS, block, "positions")
    similarities = work.load(NEIGHBORS, block, "similarities")
    rows, places = np.nonzero((positions >= 0) & (similarities > 0))
    columns = positions[rows, places]
    order = np.argsort(columns, kind="stable")
    columns = columns[order]
    arrays = {
        "columns": columns,
        "rows": rows[order] + shards.starts[block],
        "similarities": similarities[rows, places][order],
        "ends": np.searchsorted(columns, shards.starts),
    }
    return work.save(EDGES, block, arrays, {})


def _build_block(work: WorkFolder, block: int, shards: Shards) -> Facts:
    start, stop = int(shards.starts[block]), int(shards.starts[block + 1])
    m = stop - start
    columns = np.asarray(work.load(EDGES, block, "columns"))
    rows = np.asarray(work.load(EDGES, block, "rows")) - start
    weights = np.asarray(work.load(EDGES, block, "similarities"))
    from_others = []
    for other in range(shards.n_blocks):
        first, last = work.load(EDGES, other, "ends")[block : block + 2]
        from_others.append(
            [
                np.asarray(work.load(EDGES, other, name)[first:last])
                for name in ("columns", "rows", "similarities")
            ]
        )
    into, came_from, their_weights = (np.concatenate(parts) for parts in zip(*from_others, strict=True))
    distinct, numbers = np.unique(np.concatenate([columns, came_from]), return_inverse=True)
    shape = (m, len(distinct))
    own = sparse.csr_array((weights, (rows, numbers[: len(columns)])), shape=shape)
    transposed = sparse.csr_array((their_weights, (into - start, numbers[len(columns) :])), shape=shape)
    return save_graph(work, block, shards, own.maximum(transposed).tocsr(), distinct)


def save_graph(
    work: WorkFolder, block: int, shards: Shards, matrix: sparse.csr_array, columns: IntArray
) -> Facts:
    """Write a block of the graph.

    Parameters
    ----------
    work : WorkFolder
        Where the parts are.
    block : int
        Number of the block.
    shards : Shards
        The blocks.
    matrix : scipy.sparse.csr_array of shape (m, n_columns)
        The rows of A.
    columns : ndarray of int64, shape (n_columns,)
        Positions of the columns, sorted.

    Returns
    -------
    dict of str to object
        The blocks in which the columns lie, and the sum of the degrees.
    """
    matrix.sort_indices()
    degree = np.asarray(matrix.sum(axis=1, dtype=np.float64)).ravel()
    isolated = degree <= 0
    degree[isolated] = 1.0
    arrays = {
        "data": matrix.data.astype(np.float32),
        "indices": matrix.indices.astype(np.int32),
        "indptr": matrix.indptr.astype(np.int64 if matrix.nnz >= 2**31 else np.int32),
        "columns": columns.astype(np.int64),
        "degree": degree,
    }
    needs = np.unique(shards.blocks_of(columns)).tolist() if len(columns) else []
    return work.save(GRAPH, block, arrays, {"needs": needs, "total_degree": float(degree.sum())})
