"""The confidence of every label by the paper's estimator, over blocks of rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from laplaceconfidence.arrays import FloatArray, IntArray, row_blocks
from laplaceconfidence.blocks.block_solve import SOLVE, BlockSystem, ChunkSolution, solve_chunk
from laplaceconfidence.blocks.effort import choose_search
from laplaceconfidence.blocks.executor import Executor, SerialExecutor, wait_for
from laplaceconfidence.blocks.graph_blocks import GRAPH, NormalizedGraph, build_graph
from laplaceconfidence.blocks.lists import SHARDS, Shards, sort_into_shards, train_lists
from laplaceconfidence.blocks.preparation import prepare
from laplaceconfidence.blocks.read_out import ReadOut
from laplaceconfidence.blocks.recall_sample import measured_recall, sample_recall
from laplaceconfidence.blocks.search import search_blocks, search_exactly
from laplaceconfidence.blocks.sources import FeatureSource
from laplaceconfidence.blocks.times import exact_nanoseconds, finishing_seconds, search_seconds
from laplaceconfidence.blocks.work_folder import Facts, WorkFolder
from laplaceconfidence.exceptions import LaplaceConfidenceWarning
from laplaceconfidence.stages import stage
from laplaceconfidence.wording import counted, duration

READ_OUT = "confidence"
SOLVED = "solved"  # what the solver reports, one part per chunk of classes
GIVEN = "given"  # codes of the given labels by position, where tasks read them
READ_APART = "classes"  # what was read of one chunk of classes alone; one stage per chunk
SOLUTION = "solution"  # the solution itself, where it is kept; one stage per chunk of classes


Start = Callable[[BlockSystem, int, slice], list[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockSettings:
    """Settings of the estimate, as those of ``LaplaceConfidence``, and the sizes of a plan.

    Attributes
    ----------
    n_neighbors, alpha, n_components, search, target_recall, tol, max_iter, random_state :
        As in ``LaplaceConfidence``; ``search`` "auto" is approximate unless an exact
        search takes less time.
    rows_per_block : int
        Samples per block.
    classes_at_once : int
        Classes that are solved for together.
    classes_apart : bool
        Whether every worker solves for classes of its own on the whole graph, in place of rows of its own.
    """

    n_neighbors: int = 50
    alpha: float = 0.99
    n_components: int | None = None
    search: str = "ivf"
    target_recall: float = 0.95
    tol: float = 1e-3
    max_iter: int = 30
    random_state: int = 0
    rows_per_block: int
    classes_at_once: int
    classes_apart: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class BlockEstimate:
    """A finished estimate; its parts are in the work folder.

    Attributes
    ----------
    work : WorkFolder
        Where the parts are.
    shards : Shards
        The blocks.
    codes : ndarray of int32, shape (n,)
        Codes of the given labels, by row.
    n_classes : int
        Number of classes.
    recall : float
        Share of the true neighbors that the search found, on a sample.
    n_iter : int
        Largest number of iterations of any class.
    residual : float
        Largest true relative residual of any class.
    converged : bool
        Whether every class converged.
    energy : tuple of float
        Laplacian energy of the given labels and of the solution.
    last_chunk : int
        Number of the last chunk of classes, whose read-out holds all of them.
    n_lists : int
        Lists that a query asked.
    is_exact : bool
        Whether every sample was compared with every other one.
    """

    work: WorkFolder
    shards: Shards
    codes: IntArray
    n_classes: int
    recall: float
    n_iter: int
    residual: float
    converged: bool
    energy: tuple[float, float]
    last_chunk: int
    n_lists: int
    is_exact: bool

    def rows(self, block: int) -> IntArray:
        """Return the rows of the data in a block.

        Parameters
        ----------
        block : int
            Number of the block.

        Returns
        -------
        ndarray of int64, shape (m,)
        """
        return np.asarray(self.work.load(SHARDS, block, "rows"))

    def read_out(self, block: int) -> ReadOut:
        """Load what was read of a block.

        Parameters
        ----------
        block : int
            Number of the block.

        Returns
        -------
        ReadOut
        """
        return load_read_out(self.work, self.last_chunk, block)


def estimate(
    executor: Executor,
    work: WorkFolder,
    source: FeatureSource,
    codes: IntArray,
    n_classes: int,
    settings: BlockSettings,
    *,
    with_digests: bool = False,
    keep_solution: bool = False,
    stating: Callable[[str], None] | None = None,
) -> BlockEstimate:
    """Estimate the confidence of every label; parts that an earlier run finished are not computed again.

    Parameters
    ----------
    executor : Executor
        Where tasks run.
    work : WorkFolder
        Where parts are.
    source : FeatureSource
        The features.
    codes : ndarray of int, shape (n,)
        Codes of the given labels, -1 where there is none.
    n_classes : int
        Number of classes.
    settings : BlockSettings
        The settings.
    with_digests : bool, default=False
        Whether digests of the features are kept, as ids.
    keep_solution : bool, default=False
        Whether the solution is written, for an audit that goes on from it.
    stating : callable or None, default=None
        Called with a sentence about the search and the time that is left, once the search is chosen.

    Returns
    -------
    BlockEstimate
    """
    seed, k = settings.random_state, settings.n_neighbors
    prepared = prepare(
        executor,
        work,
        source,
        n_components=settings.n_components,
        rows_per_batch=min(settings.rows_per_block, 65_536),
        with_digests=with_digests,
    )
    lists = train_lists(executor, work, prepared, seed)
    shards = sort_into_shards(executor, work, prepared, lists, settings.rows_per_block)
    sample = sample_recall(executor, work, lists, shards, k, seed + 1)
    search, nanoseconds = None, exact_nanoseconds(source.n_rows, prepared.n_features)
    if settings.search != "exact":
        at_any_cost = settings.search == "ivf"
        search, nanoseconds = choose_search(
            executor, work, lists, shards, sample, k, settings.target_recall, at_any_cost=at_any_cost
        )
    if stating is not None:
        left = search_seconds(source.n_rows, nanoseconds) + finishing_seconds(source.n_rows, k, n_classes)
        about = "exact" if search is None else f"by {counted(search.n_lists, 'list')} per sample"
        stating(f"Search: {about}; about {duration(max(1.0, left / executor.n_workers))} are left.")
    if search is None:
        search_exactly(executor, work, shards, k)
    else:
        search_blocks(executor, work, lists, shards, search)
    recall = measured_recall(work, shards, sample)
    if recall < settings.target_recall - 0.02:
        warnings.warn(
            f"The search found {recall:.1%} of the neighbors of a sample, below the target of "
            f"{settings.target_recall:.1%}. Reduce the features with 'n_components', or search with 'exact'.",
            LaplaceConfidenceWarning,
            stacklevel=2,
        )
    build_graph(executor, work, shards)
    return solve_and_read(
        executor,
        work,
        shards,
        codes,
        n_classes,
        settings,
        recall=recall,
        n_lists=len(lists.centers) if search is None else search.n_lists,
        is_exact=search is None,
        keep_solution=keep_solution,
    )


def solve_and_read(
    executor: Executor,
    work: WorkFolder,
    shards: Shards,
    codes: IntArray,
    n_classes: int,
    settings: BlockSettings,
    *,
    recall: float,
    n_lists: int,
    is_exact: bool,
    start: Start | None = None,
    keep_solution: bool = False,
) -> BlockEstimate:
    """Solve on a graph that is there, and read confidences and best classes.

    Parameters
    ----------
    executor : Executor
        Where tasks run.
    work : WorkFolder
        Where the parts are, those of the graph among them.
    shards : Shards
        The blocks.
    codes : ndarray of int, shape (n,)
        Codes of the given labels, by row.
    n_classes : int
        Number of classes.
    settings : BlockSettings
        The settings.
    recall : float
        Recall of the search.
    n_lists : int
        Lists that a query asked.
    is_exact : bool
        Whether every sample was compared with every other one.
    start : callable or None, default=None
        Called with the system, the number of a chunk of classes and the classes; returns the blocks of an
        initial solution.
    keep_solution : bool, default=False
        Whether the solution is written.

    Returns
    -------
    BlockEstimate
    """
    facts = [work.facts(GRAPH, block) for block in range(shards.n_blocks)]
    total_degree = float(np.sum([fact["total_degree"] for fact in facts]))
    needs = [fact["needs"] for fact in facts]
    system = BlockSystem(executor, NormalizedGraph(work, shards.starts), needs, settings.alpha, total_degree)
    by_block = [codes[work.load(SHARDS, block, "rows")].astype(np.int32) for block in range(shards.n_blocks)]
    reports = _solve_all(system, by_block, n_classes, settings, start, keep_solution)
    residual = max(report["residual"] for report in reports)
    converged = all(report["converged"] for report in reports)
    if not converged:
        warnings.warn(
            f"The conjugate gradients stopped after max_iter={settings.max_iter} iterations at a relative "
            f"residual of {residual:.2g}, above tol={settings.tol:g}. The ranking of the samples rarely "
            "changes in further iterations; raise 'max_iter' for more precise confidences.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return BlockEstimate(
        work=work,
        shards=shards,
        codes=codes,
        n_classes=n_classes,
        recall=recall,
        n_iter=max(1, *(report["n_iter"] for report in reports)),
        residual=residual,
        converged=converged,
        energy=(
            sum(report["energy_given"] for report in reports),
            sum(report["energy_solution"] for report in reports),
        ),
        last_chunk=len(reports) - 1,
        n_lists=n_lists,
        is_exact=is_exact,
    )


def load_read_out(work: WorkFolder, chunk: int, block: int) -> ReadOut:
    """Load what was read of a block up to a chunk of classes.

    Parameters
    ----------
    work : WorkFolder
        Where the parts are.
    chunk : int
        Number of the chunk.
    block : int
        Number of the block.

    Returns
    -------
    ReadOut
    """
    return _load_part(work, f"{READ_OUT}-{chunk}", block)


def _solve_all(
    system: BlockSystem,
    codes: list[IntArray],
    n_classes: int,
    settings: BlockSettings,
    start: Start | None,
    keep_solution: bool,
) -> list[Facts]:
    """Solve chunk by chunk; a chunk that an earlier run finished is not solved again."""
    work, chunks = system.graph.work, list(row_blocks(n_classes, settings.classes_at_once))
    with stage(SOLVE, total=n_classes) as advance:
        if settings.classes_apart and start is None:
            _solve_apart(system, codes, chunks, settings, keep_solution, advance)
        else:
            _solve_in_turn(system, codes, chunks, settings, start, keep_solution, advance)
    return [work.facts(SOLVED, number) for number in range(len(chunks))]


def _solve_in_turn(
    system: BlockSystem,
    codes: list[IntArray],
    chunks: list[slice],
    settings: BlockSettings,
    start: Start | None,
    keep_solution: bool,
    advance: Callable[[int], None],
) -> None:
    """All workers solve for the same chunk of classes, each for its rows."""
    work, n_blocks = system.graph.work, system.graph.n_blocks
    for number, columns in enumerate(chunks):
        if not work.is_done(SOLVED, number):
            found = solve_chunk(
                system,
                codes,
                columns,
                tol=settings.tol,
                max_iter=settings.max_iter,
                start=None if start is None else start(system, number, columns),
            )
            chunk = [(number, columns.start, keep_solution)] * n_blocks
            system.executor.gather(system.each(_read_chunk, chunk, found.values, codes))
            work.save(SOLVED, number, {}, _report(found))
            del found
        work.remove(f"{READ_OUT}-{number - 1}")
        advance(columns.stop - columns.start)


def _solve_apart(
    system: BlockSystem,
    codes: list[IntArray],
    chunks: list[slice],
    settings: BlockSettings,
    keep_solution: bool,
    advance: Callable[[int], None],
) -> None:
    """Every worker solves for a chunk of classes of its own; what they read is joined in the end."""
    executor, work, n_blocks = system.executor, system.graph.work, system.graph.n_blocks
    alone = replace(system, executor=SerialExecutor())
    if not work.is_done(GIVEN, 0):
        work.save(GIVEN, 0, {"codes": np.concatenate(codes)}, {})
    sizes = {}
    for number, columns in enumerate(chunks):
        if work.is_done(SOLVED, number):
            advance(columns.stop - columns.start)
        else:
            arguments = alone, (number, columns), settings, keep_solution
            sizes[executor.submit(SOLVE, _solve_alone, *arguments)] = columns.stop - columns.start
    wait_for(executor, sizes, advance)
    if not all(work.is_done(f"{READ_OUT}-{len(chunks) - 1}", block) for block in range(n_blocks)):
        executor.gather(system.each(_join_chunks, [len(chunks)] * n_blocks))
    for number in range(len(chunks)):
        work.remove(f"{READ_APART}-{number}")
    work.remove(GIVEN)


def _solve_alone(
    system: BlockSystem,
    chunk: tuple[int, slice],
    settings: BlockSettings,
    keep_solution: bool,
) -> None:
    """Solve for a chunk of classes in one task, and read the solution."""
    work, starts, (number, columns) = system.graph.work, system.graph.starts, chunk
    by_block = np.split(np.asarray(work.load(GIVEN, 0, "codes")), starts[1:-1])
    found = solve_chunk(system, by_block, columns, tol=settings.tol, max_iter=settings.max_iter)
    for block, (solution, given) in enumerate(zip(found.values, by_block, strict=True)):
        read = ReadOut.empty(len(given)).with_classes(solution, columns.start, given)
        work.save(f"{READ_APART}-{number}", block, read._asdict(), {})
        if keep_solution:
            work.save(f"{SOLUTION}-{number}", block, {"values": solution}, {})
    work.save(SOLVED, number, {}, _report(found))


def _report(found: ChunkSolution) -> Facts:
    return {
        "residual": float(found.residuals.max()),
        "n_iter": int(found.n_iterations.max()),
        "converged": bool(found.converged.all()),
        "energy_given": found.energy[0],
        "energy_solution": found.energy[1],
    }


def _read_chunk(
    graph: NormalizedGraph,
    block: int,
    chunk: tuple[int, int, bool],
    solution: FloatArray,
    codes: IntArray,
) -> None:
    """Add a chunk of classes to what was read of a block."""
    work, (number, first, keep_solution) = graph.work, chunk
    before = load_read_out(work, number - 1, block) if number else ReadOut.empty(len(codes))
    after = before.with_classes(solution, first, codes)
    work.save(f"{READ_OUT}-{number}", block, after._asdict(), {})
    if keep_solution:
        work.save(f"{SOLUTION}-{number}", block, {"values": solution}, {})


def _join_chunks(graph: NormalizedGraph, block: int, n_chunks: int) -> None:
    """Join what was read of a block chunk by chunk."""
    chunks = (_load_part(graph.work, f"{READ_APART}-{number}", block) for number in range(n_chunks))
    joined = reduce(ReadOut.joined, chunks)
    graph.work.save(f"{READ_OUT}-{n_chunks - 1}", block, joined._asdict(), {})


def _load_part(work: WorkFolder, stage_name: str, block: int) -> ReadOut:
    return ReadOut(*(np.asarray(work.load(stage_name, block, name)) for name in ReadOut._fields))
