"""Conjugate gradients on (I - alpha S) X = B over blocks of rows, with S = D^-1/2 A D^-1/2.

The vectors of a chunk of classes live in blocks where the tasks run. In every iteration a block needs the
search directions of the blocks in which its columns lie, divided by the square roots of their own degrees, so
that no block has to know the degrees of others. Inner products of blocks are summed here, in their order:
wherever a task runs, and if it runs twice, the answer is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray, row_blocks
from laplaceconfidence.blocks.executor import Executor
from laplaceconfidence.blocks.graph_blocks import GraphBlock, load_graph
from laplaceconfidence.blocks.lists import Shards
from laplaceconfidence.blocks.work_folder import WorkFolder
from laplaceconfidence.solve.conjugate_gradient import ROWS_PER_BLOCK, add_scaled, column_dots
from laplaceconfidence.solve.propagation import one_hot

SOLVE = "solve"


@dataclass(frozen=True, slots=True)
class BlockSystem:
    """The system in blocks, and where its tasks run.

    Attributes
    ----------
    executor : Executor
        Where tasks run.
    work : WorkFolder
        Where the blocks of the graph are.
    shards : Shards
        The blocks.
    needs : list of list of int
        For every block, the blocks in which its columns lie.
    alpha : float
        How far labels are propagated.
    total_degree : float
        Sum of all degrees.
    """

    executor: Executor
    work: WorkFolder
    shards: Shards
    needs: list[list[int]]
    alpha: float
    total_degree: float

    def each(self, task: Any, *by_block: Sequence[Any]) -> list[Any]:
        """Run a task for every block.

        Parameters
        ----------
        task : callable
            Called with the folder, the number of the block and its arguments.
        *by_block : sequence
            One argument per block each.

        Returns
        -------
        list of object
            What stands for the results.
        """
        return [
            self.executor.submit(SOLVE, task, self.work, block, *arguments)
            for block, arguments in enumerate(zip(*by_block, strict=True))
        ]

    def products(self, vectors: Sequence[Any]) -> list[Any]:
        """Multiply (I - alpha S) with vectors in blocks.

        Parameters
        ----------
        vectors : sequence of object
            What stands for the blocks of the vectors, or of states, whose search directions are used.

        Returns
        -------
        list of object
            What stands for the blocks of the products.
        """
        scaled = self.each(_scaled, vectors)
        needed = [[scaled[other] for other in others] for others in self.needs]
        return self.each(
            _product, [self.shards] * len(needed), [self.alpha] * len(needed), vectors, needed, self.needs
        )

    def product_of(self, block: int, vectors: Sequence[Any]) -> Any:
        """Multiply the rows of (I - alpha S) of one block with vectors in blocks.

        Parameters
        ----------
        block : int
            Number of the block.
        vectors : sequence of object
            What stands for the blocks of the vectors.

        Returns
        -------
        object
            What stands for this block of the product.
        """
        others, submit = self.needs[block], self.executor.submit
        scaled = [submit(SOLVE, _scaled, self.work, other, vectors[other]) for other in others]
        arguments = self.shards, self.alpha, vectors[block], scaled, others
        return submit(SOLVE, _product, self.work, block, *arguments)

    def sums(self, parts: Sequence[Any]) -> FloatArray:
        """Sum small results over the blocks, in float64.

        Parameters
        ----------
        parts : sequence of object
            What stands for the results.

        Returns
        -------
        ndarray
        """
        total: FloatArray = np.sum(self.executor.gather(parts), axis=0, dtype=np.float64)
        return total


class ChunkSolution(NamedTuple):
    """The solution for a chunk of classes.

    Attributes
    ----------
    values : list of object
        What stands for the blocks of the solution.
    residuals : ndarray of shape (c,)
        True relative residuals.
    n_iterations : ndarray of shape (c,)
        Iterations per class.
    converged : ndarray of bool, shape (c,)
        Whether the class converged.
    energy : tuple of float
        Laplacian energy of the given labels and of the solution, summed over the classes.
    """

    values: list[Any]
    residuals: FloatArray
    n_iterations: IntArray
    converged: BoolArray
    energy: tuple[float, float]


class _State(NamedTuple):
    """The vectors of a block: solution, residual and search direction."""

    x: FloatArray
    r: FloatArray
    p: FloatArray


def solve_chunk(
    system: BlockSystem,
    codes: Sequence[IntArray],
    columns: slice,
    *,
    tol: float,
    max_iter: int,
    start: Sequence[Any] | None = None,
) -> ChunkSolution:
    """Solve for a chunk of classes.

    Parameters
    ----------
    system : BlockSystem
        The system.
    codes : sequence of ndarray
        Codes of the given labels, block by block.
    columns : slice
        The classes.
    tol : float
        Relative residual at which a class stops.
    max_iter : int
        Largest number of iterations.
    start : sequence of object or None, default=None
        Blocks of the solution of a similar system; ``None`` starts from the component that converges slowest.

    Returns
    -------
    ChunkSolution
    """
    n_blocks = system.shards.n_blocks
    given = system.each(_given, codes, [columns] * n_blocks)
    a_given = system.products(given)
    energy_given = 0.5 * float(
        system.sums(system.each(_energy, [system.alpha] * n_blocks, given, a_given, given))
    )
    sizes = np.sqrt(system.sums(system.each(_dots, given, given)))
    if start is None:
        overlap = system.sums(system.each(_slow_overlap, given)) / (system.total_degree * (1 - system.alpha))
        start = system.each(_slow_start, [overlap] * n_blocks, given)
        states = system.each(_first_state, given, start, system.products(start))
    else:
        states = _best_in_span(system, given, start)
    rr = system.sums(system.each(_residual_dots, states))
    n_iterations = np.zeros(len(sizes), dtype=np.int64)
    active = np.sqrt(rr) > tol * sizes
    for _ in range(max_iter):
        if not active.any():
            break
        products = system.products(states)
        step = _ratio(rr, system.sums(system.each(_dots, states, products)), active)
        states = system.each(_advance, states, products, [step] * n_blocks)
        rr_next = system.sums(system.each(_residual_dots, states))
        turn = _ratio(rr_next, rr, active)
        n_iterations[active] += 1
        rr = rr_next
        active &= np.sqrt(rr) > tol * sizes
        states = system.each(_turn, states, [turn] * n_blocks)
    solution = system.each(_solution, states)
    products = system.products(solution)
    squared = system.sums(system.each(_squared_error, given, products))
    factor = 1 - system.alpha
    energies = system.sums(
        system.each(_scaled_energy, [system.alpha] * n_blocks, [factor] * n_blocks, solution, products, given)
    )
    residuals = np.sqrt(_ratio(squared, sizes**2, np.ones(len(sizes), dtype=bool)))
    return ChunkSolution(solution, residuals, n_iterations, ~active, (energy_given, 0.5 * float(energies)))


def _best_in_span(system: BlockSystem, given: Sequence[Any], start: Sequence[Any]) -> list[Any]:
    """The best start among the sums of given vectors and combinations of them and of the slowest component.

    What changes little by little over the graph converges slowly, and solutions of a similar system span most
    of it: without this step, a start from them saves half as many iterations.
    """
    n_blocks = system.shards.n_blocks
    alpha, products = [system.alpha] * n_blocks, system.products(start)
    spans = system.sums(system.each(_span_products, alpha, given, start, products))  # (c + 1, 2 c + 1)
    n_span = len(spans)
    scale = np.sqrt(np.maximum(np.diag(spans), np.finfo(np.float64).tiny))
    energy = spans[:, :n_span] / np.outer(scale, scale)
    found, *_ = np.linalg.lstsq(energy, spans[:, n_span:] / scale[:, None], rcond=1e-10)
    mixing = found / scale[:, None]
    return system.each(_combined_state, alpha, [mixing] * n_blocks, given, start, products)


def _ratio(numerator: FloatArray, denominator: FloatArray, where: BoolArray) -> FloatArray:
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=where & (denominator > 0))


def _column_dots(left: FloatArray, right: FloatArray) -> FloatArray:
    dots = np.zeros(left.shape[1])
    for rows in row_blocks(len(left), ROWS_PER_BLOCK):
        dots += column_dots(left[rows], right[rows])
    return dots


def _with_scaled(vectors: FloatArray, others: FloatArray, factors: FloatArray) -> FloatArray:
    """The sum of vectors and of others, every column times its factor."""
    total, factors = vectors.copy(), factors.astype(np.float32)
    for rows in row_blocks(len(total), ROWS_PER_BLOCK):
        add_scaled(total[rows], others[rows], factors)
    return total


def _root_degree(graph: GraphBlock) -> FloatArray:
    root: FloatArray = np.sqrt(graph.degree).astype(np.float32)[:, None]
    return root


def _given(work: WorkFolder, block: int, codes: IntArray, columns: slice) -> FloatArray:
    return one_hot(codes.astype(np.int64, copy=False), columns, np.ones(len(codes), dtype=np.float32))


def _direction(vectors: FloatArray | _State) -> FloatArray:
    """The search direction of a state; vectors themselves otherwise. A task of its own would cost more."""
    return vectors.p if isinstance(vectors, _State) else vectors


def _scaled(work: WorkFolder, block: int, vectors: FloatArray | _State) -> FloatArray:
    scaled: FloatArray = _direction(vectors) / _root_degree(load_graph(work, block))
    return scaled


def _product(
    work: WorkFolder,
    block: int,
    shards: Shards,
    alpha: float,
    vectors: FloatArray | _State,
    scaled: list[FloatArray],
    others: list[int],
) -> FloatArray:
    graph, own = load_graph(work, block), _direction(vectors)
    ends = np.searchsorted(graph.columns, shards.starts)
    gathered = np.empty((len(graph.columns), own.shape[1]), dtype=np.float32)
    for other, theirs in zip(others, scaled, strict=True):
        some = slice(ends[other], ends[other + 1])
        np.take(theirs, graph.columns[some] - shards.starts[other], axis=0, out=gathered[some])
    product: FloatArray = graph.matrix @ gathered
    product *= np.float32(-alpha) / _root_degree(graph)
    product += own
    return product


def _dots(work: WorkFolder, block: int, left: FloatArray | _State, right: FloatArray) -> FloatArray:
    return _column_dots(_direction(left), right)


def _slow_overlap(work: WorkFolder, block: int, given: FloatArray) -> FloatArray:
    return _column_dots(np.broadcast_to(_root_degree(load_graph(work, block)), given.shape), given)


def _slow_start(work: WorkFolder, block: int, overlap: FloatArray, given: FloatArray) -> FloatArray:
    # S sqrt(d) = sqrt(d): the component that converges slowest is known in advance.
    return _root_degree(load_graph(work, block)) * overlap.astype(np.float32)


def _first_state(
    work: WorkFolder, block: int, given: FloatArray, x: FloatArray, product: FloatArray
) -> _State:
    r = given - product
    return _State(x, r, r)


def _slowest(graph: GraphBlock, alpha: float) -> tuple[FloatArray, FloatArray]:
    """The component that converges slowest, and (I - alpha S) times it; samples without neighbors keep it."""
    root = _root_degree(graph)
    isolated = np.diff(graph.matrix.indptr) == 0
    return root, np.where(isolated[:, None], root, np.float32(1 - alpha) * root)


def _span_products(
    work: WorkFolder, block: int, alpha: float, given: FloatArray, x: FloatArray, product: FloatArray
) -> FloatArray:
    """V^T A V and V^T (B - A X), side by side, where V are the vectors X and the slowest component."""
    slow, slow_product = _slowest(load_graph(work, block), alpha)
    n_classes = x.shape[1]
    both = np.zeros((n_classes + 1, 2 * n_classes + 1))
    for rows in row_blocks(len(x), ROWS_PER_BLOCK):
        span = np.hstack([x[rows], slow[rows]])
        both += span.T @ np.hstack([product[rows], slow_product[rows], given[rows] - product[rows]])
    return both


def _combined_state(
    work: WorkFolder,
    block: int,
    alpha: float,
    mixing: FloatArray,
    given: FloatArray,
    x: FloatArray,
    product: FloatArray,
) -> _State:
    slow, slow_product = _slowest(load_graph(work, block), alpha)
    mixing = mixing.astype(np.float32)
    r = given - product - np.hstack([product, slow_product]) @ mixing
    return _State(x + np.hstack([x, slow]) @ mixing, r, r)


def _residual_dots(work: WorkFolder, block: int, state: _State) -> FloatArray:
    return _column_dots(state.r, state.r)


def _solution(work: WorkFolder, block: int, state: _State) -> FloatArray:
    return state.x


def _advance(work: WorkFolder, block: int, state: _State, product: FloatArray, step: FloatArray) -> _State:
    return _State(_with_scaled(state.x, state.p, step), _with_scaled(state.r, product, -step), state.p)


def _turn(work: WorkFolder, block: int, state: _State, turn: FloatArray) -> _State:
    return _State(state.x, state.r, _with_scaled(state.r, state.p, turn))


def _squared_error(work: WorkFolder, block: int, given: FloatArray, product: FloatArray) -> FloatArray:
    difference = given - product
    return _column_dots(difference, difference)


def _energy(
    work: WorkFolder, block: int, alpha: float, vectors: FloatArray, product: FloatArray, given: FloatArray
) -> float:
    """Twice the energy: (I - alpha S) y is known, so y - S y = y - (y - product) / alpha."""
    change = vectors - (vectors - product) / np.float32(alpha)
    disagreement = np.sum(vectors * change, dtype=np.float64)
    fidelity = np.sum((vectors - given) ** 2, dtype=np.float64)
    return float(disagreement + (1 / alpha - 1) * fidelity)


def _scaled_energy(
    work: WorkFolder,
    block: int,
    alpha: float,
    factor: float,
    solution: FloatArray,
    product: FloatArray,
    given: FloatArray,
) -> float:
    return _energy(work, block, alpha, solution * np.float32(factor), product * np.float32(factor), given)
