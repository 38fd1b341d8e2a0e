"""What an audit shows about every sample, in parts that follow the order of the data.

Every block sorts its results by the row of the data; a part of the results reads its slice from all blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import FloatArray, IntArray, row_blocks
from laplaceconfidence.blocks.estimate import BlockEstimate, load_read_out
from laplaceconfidence.blocks.executor import Executor, run_parts
from laplaceconfidence.blocks.graph_blocks import GRAPH, GraphBlock, load_graph
from laplaceconfidence.blocks.lists import SHARDS
from laplaceconfidence.blocks.read_out import TOP_CLASSES
from laplaceconfidence.blocks.work_folder import Facts, WorkFolder

NODES, SHOWN, RESULTS = "nodes", "neighborhoods", "results"  # stages

TOP_NEIGHBORS = 10
_ENTRIES_AT_ONCE = 2**18
COLUMNS = (
    *("scores", "predicted", "predicted_probability", "alternative", "alternative_probability"),
    *("top_classes", "top_probabilities"),
)
NEIGHBOR_COLUMNS = ("neighbors", "similarities", "weights", "n_neighbors")


def write_results(executor: Executor, estimate: BlockEstimate) -> None:
    """Write the results of all blocks, sorted by row.

    Neighbors depend on the graph only: where it did not change, an audit that goes on from another one takes
    them over.

    Parameters
    ----------
    executor : Executor
        Where tasks run.
    estimate : BlockEstimate
        The finished estimate.
    """
    work, shards = estimate.work, estimate.shards
    n_blocks = shards.n_blocks
    is_shown = all(work.is_done(SHOWN, block) for block in range(n_blocks))
    if not is_shown and not work.is_done(NODES, 0):
        n = int(shards.starts[-1])
        with (
            work.writing_array(NODES, 0, "rows", (n,), np.int64) as rows,
            work.writing_array(NODES, 0, "degree", (n,), np.float64) as degree,
        ):
            for block in range(n_blocks):
                own = slice(shards.starts[block], shards.starts[block + 1])
                rows[own] = work.load(SHARDS, block, "rows")
                degree[own] = work.load(GRAPH, block, "degree")
        work.save(NODES, 0, {}, {}, written=("rows", "degree"))
    run_parts(executor, work, SHOWN, _neighbors_of_block, [()] * n_blocks)
    arguments = [
        (estimate.last_chunk, estimate.codes[work.load(SHARDS, block, "rows")]) for block in range(n_blocks)
    ]
    run_parts(executor, work, RESULTS, _results_of_block, arguments)


def scores_by_row(work: WorkFolder, n_parts: int, n: int) -> tuple[FloatArray, NDArray[Any]]:
    """Gather the scores and the most probable classes of all samples.

    Parameters
    ----------
    work : WorkFolder
        Where the parts are.
    n_parts : int
        Number of parts of the results.
    n : int
        Number of samples.

    Returns
    -------
    scores : ndarray of float64, shape (n,)
        Probability that the given label is right, NaN where there is none.
    predicted : ndarray of int32, shape (n,)
        Codes of the most probable classes.
    """
    scores = np.empty(n)
    predicted = np.empty(n, dtype=np.int32)
    for part in range(n_parts):
        rows = work.load(RESULTS, part, "rows")
        scores[rows] = work.load(RESULTS, part, "scores")
        predicted[rows] = work.load(RESULTS, part, "predicted")
    return scores, predicted


def results_of_rows(work: WorkFolder, n_parts: int, start: int, stop: int) -> Mapping[str, NDArray[Any]]:
    """Read the results of consecutive rows of the data.

    Parameters
    ----------
    work : WorkFolder
        Where the parts are.
    n_parts : int
        Number of parts of the results.
    start, stop : int
        The rows.

    Returns
    -------
    mapping of str to ndarray
        ``COLUMNS``, one row per sample, and ``NEIGHBOR_COLUMNS`` where the estimator used some. Neighbors
        are rows of the data, the largest weight first, -1 where there are fewer than ``TOP_NEIGHBORS``.
    """
    found: dict[str, NDArray[Any]] = {}
    for block in range(n_parts):
        rows = work.load(RESULTS, block, "rows")
        some = slice(*np.searchsorted(rows, (start, stop)))
        if some.start == some.stop:
            continue
        shown = NEIGHBOR_COLUMNS if work.is_done(SHOWN, block) else ()
        for stage, name in (*((RESULTS, name) for name in COLUMNS), *((SHOWN, name) for name in shown)):
            part = work.load(stage, block, name)[some]
            if name not in found:
                found[name] = np.empty((stop - start, *part.shape[1:]), dtype=part.dtype)
            found[name][rows[some] - start] = part
    return found


def _results_of_block(work: WorkFolder, block: int, chunk: int, codes: IntArray) -> Facts:
    read = load_read_out(work, chunk, block)
    given = codes.astype(np.int64)
    predicted, predicted_probability = read.predicted(given)
    alternative, alternative_probability = read.alternatives(given)
    arrays: dict[str, NDArray[Any]] = {
        "scores": read.confidence,
        "predicted": predicted.astype(np.int32),
        "predicted_probability": predicted_probability,
        "alternative": alternative.astype(np.int32),
        "alternative_probability": alternative_probability,
        "top_classes": read.codes[:, :TOP_CLASSES],
        "top_probabilities": read.probabilities(read.values[:, :TOP_CLASSES]).astype(np.float32),
    }
    rows = np.asarray(work.load(SHARDS, block, "rows"))
    order = np.argsort(rows)
    sorted_arrays = {name: array[order] for name, array in arrays.items()}
    return work.save(RESULTS, block, {"rows": rows[order], **sorted_arrays}, {})


def _neighbors_of_block(work: WorkFolder, block: int) -> Facts:
    order = np.argsort(work.load(SHARDS, block, "rows"))
    arrays = _heaviest_neighbors(work, load_graph(work, block))
    return work.save(SHOWN, block, {name: array[order] for name, array in arrays.items()}, {})


def _heaviest_neighbors(work: WorkFolder, graph: GraphBlock) -> dict[str, NDArray[Any]]:
    """The neighbors of largest weight in the normalized graph, and their shares of all weights."""
    m = len(graph.degree)
    rows_of_data = work.load(NODES, 0, "rows")[graph.columns]
    scale = (1 / np.sqrt(work.load(NODES, 0, "degree")[graph.columns])).astype(np.float32)
    neighbors = np.full((m, TOP_NEIGHBORS), -1, dtype=np.int64)
    similarities = np.zeros((m, TOP_NEIGHBORS), dtype=np.float32)
    weights = np.zeros((m, TOP_NEIGHBORS), dtype=np.float32)
    indptr, indices, data = graph.matrix.indptr, graph.matrix.indices, graph.matrix.data
    counts = np.diff(indptr)
    every_weight = data * scale[indices]
    total = np.ones(m)
    total[counts > 0] = np.add.reduceat(every_weight, indptr[:-1][counts > 0], dtype=np.float64)
    # Rows of about the same number of neighbors are laid side by side, and sorted as one matrix.
    widths = 2 ** np.ceil(np.log2(np.maximum(counts, 1))).astype(np.int64)
    for width in np.unique(widths[counts > 0]).tolist():
        for some in _in_turn(np.flatnonzero((widths == width) & (counts > 0)), _ENTRIES_AT_ONCE // width):
            exists = np.arange(width) < counts[some, None]
            places = np.where(exists, indptr[some, None] + np.arange(width), 0)
            lightness = np.where(exists, -every_weight[places], np.float32(1))
            n_kept = min(width, TOP_NEIGHBORS)
            top = np.argpartition(lightness, n_kept - 1, axis=1)[:, :n_kept]
            places, best = (np.take_along_axis(array, top, axis=1) for array in (places, -lightness))
            named = rows_of_data[indices[places]]
            order = np.lexsort((named, -best), axis=1)
            places, named, best = (
                np.take_along_axis(array, order, axis=1) for array in (places, named, best)
            )
            are_there, into = best >= 0, (some[:, None], np.arange(n_kept))
            neighbors[into] = np.where(are_there, named, -1)
            similarities[into] = np.where(are_there, data[places], 0)
            weights[into] = np.where(are_there, best / total[some, None], 0)
    return {
        "neighbors": neighbors,
        "similarities": similarities,
        "weights": weights,
        "n_neighbors": counts.astype(np.int32),
    }


def _in_turn(rows: IntArray, n_rows: int) -> list[IntArray]:
    return [rows[some] for some in row_blocks(len(rows), max(1, n_rows))]
