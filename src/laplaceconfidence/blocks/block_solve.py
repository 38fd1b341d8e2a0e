"""Conjugate gradients on (I - alpha S) X = B over blocks of rows, with S = D^-1/2 A D^-1/2.

The vectors of a chunk of classes live in blocks where the tasks run. In every iteration a block needs the
residuals of the blocks in which its columns lie. Inner products of blocks are summed in the order of the
blocks: wherever a task runs, and if it runs twice, the answer is the same.

Iterations are those of Chronopoulos and Gear (1989), *s-Step Iterative Methods for Symmetric Linear Systems*:
the product with the search direction follows from that with the residual, so that all inner products of an
iteration are summed at once, by a task. Nothing has to come back here between iterations. Other blocks wait
for a residual only, so solution and direction are moved on in a task of their own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray, row_blocks
from laplaceconfidence.blocks.executor import Executor
from laplaceconfidence.blocks.graph_blocks import NormalizedBlock, NormalizedGraph
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
    graph : NormalizedGraph
        The normalized graph S.
    needs : list of list of int
        For every block, the blocks in which its columns lie.
    alpha : float
        How far labels are propagated.
    total_degree : float
        Sum of all degrees.
    """

    executor: Executor
    graph: NormalizedGraph
    needs: list[list[int]]
    alpha: float
    total_degree: float

    def each(self, task: Any, *by_block: Sequence[Any]) -> list[Any]:
        """Run a task for every block.

        Parameters
        ----------
        task : callable
            Called with the graph, the number of the block and its arguments.
        *by_block : sequence
            One argument per block each.

        Returns
        -------
        list of object
            What stands for the results.
        """
        blocks = enumerate(zip(*by_block, strict=True))
        calls = [(self.graph, block, *arguments) for block, arguments in blocks]
        return self.executor.submit_each(SOLVE, task, calls)

    def products(self, vectors: Sequence[Any]) -> list[Any]:
        """Multiply (I - alpha S) with vectors in blocks.

        Parameters
        ----------
        vectors : sequence of object
            What stands for the blocks of the vectors.

        Returns
        -------
        list of object
            What stands for the blocks of the products.
        """
        needed = [[vectors[other] for other in others] for others in self.needs]
        return self.each(_product, [self.alpha] * len(needed), vectors, needed, self.needs)

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
        needed = [vectors[other] for other in self.needs[block]]
        arguments = self.graph, block, self.alpha, vectors[block], needed, self.needs[block]
        return self.executor.submit(SOLVE, _product, *arguments)

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


class _Directions(NamedTuple):
    """What a block alone needs: solution, search direction and the product with the direction."""

    x: FloatArray
    p: FloatArray
    s: FloatArray


class _Coefficients(NamedTuple):
    """What an iteration does, class by class.

    Attributes
    ----------
    step : ndarray of shape (c,)
        Multiple of the search direction that is added to the solution; 0 where a class has converged.
    turn : ndarray of shape (c,)
        Multiple of the last direction in the next one.
    rr : ndarray of shape (c,)
        Squared norms of the residuals.
    active : ndarray of bool, shape (c,)
        Which classes have not converged.
    n_iterations : ndarray of int64, shape (c,)
        Iterations so far.
    """

    step: FloatArray
    turn: FloatArray
    rr: FloatArray
    active: BoolArray
    n_iterations: IntArray


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
    n_blocks = system.graph.n_blocks
    alphas = [system.alpha] * n_blocks
    given = system.each(_given, codes, [columns] * n_blocks)
    products = system.products(given)
    energy_given = system.each(_energy, alphas, given, products, given)
    sizes = np.sqrt(system.sums(system.each(_dots, given, given)))
    if start is None:
        overlap = system.sums(system.each(_slow_overlap, given)) / (system.total_degree * (1 - system.alpha))
        start = system.each(_slow_start, [overlap] * n_blocks, given)
        a_start = system.each(_slow_product, alphas, [overlap] * n_blocks, given)
    else:
        start, a_start = _best_in_span(system, given, start)
    residuals = system.each(_difference, given, a_start)
    directions = system.each(_first_directions, start)
    products = system.products(residuals)
    del given, start, a_start  # so that they are not kept during the iterations
    submit, target = system.executor.submit, tol * sizes
    coefficients = submit(SOLVE, _first_coefficients, system.each(_both_dots, residuals, products), target)
    known = deque([coefficients])
    for _ in range(max_iter):
        if len(known) > system.executor.n_ahead:
            (oldest,) = system.executor.gather([known.popleft()])
            if not oldest.active.any():
                break
        before = residuals, directions, products, [coefficients] * n_blocks
        residuals = system.each(_next_residual, *before)
        directions = system.each(_next_directions, *before)
        products = system.products(residuals)
        dots = system.each(_both_dots, residuals, products)
        coefficients = submit(SOLVE, _next_coefficients, dots, coefficients, target)
        known.append(coefficients)
        del before
    (last,) = system.executor.gather([coefficients])
    solution = system.each(_solution, directions)
    del residuals, directions, known
    products = system.products(solution)
    given = system.each(_given, codes, [columns] * n_blocks)
    squared = system.sums(system.each(_squared_error, given, products))
    factors = [1 - system.alpha] * n_blocks
    energies = system.each(_scaled_energy, alphas, factors, solution, products, given)
    relative = np.sqrt(_ratio(squared, sizes**2, np.ones(len(sizes), dtype=bool)))
    energy = 0.5 * float(system.sums(energy_given)), 0.5 * float(system.sums(energies))
    return ChunkSolution(solution, relative, last.n_iterations, ~last.active, energy)


def _best_in_span(
    system: BlockSystem, given: Sequence[Any], start: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """The best start among the sums of given vectors and combinations of them and of the slowest component.

    What changes little by little over the graph converges slowly, and solutions of a similar system span most
    of it: without this step, a start from them saves half as many iterations. Returned with its product.
    """
    n_blocks = system.graph.n_blocks
    alphas, products = [system.alpha] * n_blocks, system.products(start)
    spans = system.sums(system.each(_span_products, alphas, given, start, products))  # (c + 1, 2 c + 1)
    n_span = len(spans)
    scale = np.sqrt(np.maximum(np.diag(spans), np.finfo(np.float64).tiny))
    energy = spans[:, :n_span] / np.outer(scale, scale)
    found, *_ = np.linalg.lstsq(energy, spans[:, n_span:] / scale[:, None], rcond=1e-10)
    mixing = [(found / scale[:, None]).astype(np.float32)] * n_blocks
    combined = system.each(_combined, mixing, start)
    return combined, system.each(_combined_product, alphas, mixing, products)


def _ratio(numerator: FloatArray, denominator: FloatArray, where: BoolArray) -> FloatArray:
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=where & (denominator > 0))


def _column_dots(left: FloatArray, right: FloatArray) -> FloatArray:
    dots = np.zeros(left.shape[1])
    for rows in row_blocks(len(left), ROWS_PER_BLOCK):
        dots += column_dots(left[rows], right[rows])
    return dots


def _given(graph: NormalizedGraph, block: int, codes: IntArray, columns: slice) -> FloatArray:
    return one_hot(codes.astype(np.int64, copy=False), columns, np.ones(len(codes), dtype=np.float32))


def _product(
    graph: NormalizedGraph,
    block: int,
    alpha: float,
    own: FloatArray,
    needed: list[FloatArray],
    others: list[int],
) -> FloatArray:
    part = graph.load(block)
    ends = np.searchsorted(part.columns, graph.starts)
    gathered = np.empty((len(part.columns), own.shape[1]), dtype=np.float32)
    for other, theirs in zip(others, needed, strict=True):
        some = slice(ends[other], ends[other + 1])
        np.take(theirs, part.columns[some] - graph.starts[other], axis=0, out=gathered[some])
    product: FloatArray = part.matrix @ gathered
    product *= np.float32(-alpha)
    product += own
    return product


def _dots(graph: NormalizedGraph, block: int, left: FloatArray, right: FloatArray) -> FloatArray:
    return _column_dots(left, right)


def _both_dots(graph: NormalizedGraph, block: int, residual: FloatArray, product: FloatArray) -> FloatArray:
    """Inner products of the residual with itself and with its product, shape (2, c)."""
    return np.stack([_column_dots(residual, residual), _column_dots(residual, product)])


def _first_coefficients(dots: list[FloatArray], target: FloatArray) -> _Coefficients:
    rr, r_a_r = np.asarray(np.sum(dots, axis=0, dtype=np.float64))
    active = np.sqrt(rr) > target
    counts = np.zeros(len(rr), dtype=np.int64)
    return _Coefficients(_ratio(rr, r_a_r, active), np.zeros(len(rr)), rr, active, counts)


def _next_coefficients(dots: list[FloatArray], before: _Coefficients, target: FloatArray) -> _Coefficients:
    rr, r_a_r = np.asarray(np.sum(dots, axis=0, dtype=np.float64))
    active = before.active & (np.sqrt(rr) > target)
    turn = _ratio(rr, before.rr, active)
    p_a_p = r_a_r - turn * _ratio(rr, before.step, active)
    counts = before.n_iterations + before.active
    return _Coefficients(_ratio(rr, p_a_p, active), turn, rr, active, counts)


def _slow_overlap(graph: NormalizedGraph, block: int, given: FloatArray) -> FloatArray:
    return _column_dots(np.broadcast_to(graph.load(block).root, given.shape), given)


def _slow_start(graph: NormalizedGraph, block: int, overlap: FloatArray, given: FloatArray) -> FloatArray:
    # S sqrt(d) = sqrt(d): the component that converges slowest is known in advance.
    return graph.load(block).root * overlap.astype(np.float32)


def _slow_product(
    graph: NormalizedGraph, block: int, alpha: float, overlap: FloatArray, given: FloatArray
) -> FloatArray:
    _, slow_product = _slowest(graph.load(block), alpha)
    return slow_product * overlap.astype(np.float32)


def _slowest(part: NormalizedBlock, alpha: float) -> tuple[FloatArray, FloatArray]:
    """The component that converges slowest, and (I - alpha S) times it; samples without neighbors keep it."""
    isolated = np.diff(part.matrix.indptr) == 0
    return part.root, np.where(isolated[:, None], part.root, np.float32(1 - alpha) * part.root)


def _span_products(
    graph: NormalizedGraph, block: int, alpha: float, given: FloatArray, x: FloatArray, product: FloatArray
) -> FloatArray:
    """V^T A V and V^T (B - A X), side by side, where V are the vectors X and the slowest component."""
    slow, slow_product = _slowest(graph.load(block), alpha)
    n_classes = x.shape[1]
    both = np.zeros((n_classes + 1, 2 * n_classes + 1))
    for rows in row_blocks(len(x), ROWS_PER_BLOCK):
        span = np.hstack([x[rows], slow[rows]])
        both += span.T @ np.hstack([product[rows], slow_product[rows], given[rows] - product[rows]])
    return both


def _combined(graph: NormalizedGraph, block: int, mixing: FloatArray, x: FloatArray) -> FloatArray:
    combined: FloatArray = x + np.hstack([x, graph.load(block).root]) @ mixing
    return combined


def _combined_product(
    graph: NormalizedGraph, block: int, alpha: float, mixing: FloatArray, product: FloatArray
) -> FloatArray:
    _, slow_product = _slowest(graph.load(block), alpha)
    combined: FloatArray = product + np.hstack([product, slow_product]) @ mixing
    return combined


def _difference(graph: NormalizedGraph, block: int, left: FloatArray, right: FloatArray) -> FloatArray:
    difference: FloatArray = left - right
    return difference


def _first_directions(graph: NormalizedGraph, block: int, start: FloatArray) -> _Directions:
    nothing = np.zeros_like(start)
    return _Directions(start, nothing, nothing)


def _next_residual(
    graph: NormalizedGraph,
    block: int,
    residual: FloatArray,
    directions: _Directions,
    product: FloatArray,
    coefficients: _Coefficients,
) -> FloatArray:
    """The residual after a step."""
    step = coefficients.step.astype(np.float32)
    turned = (coefficients.step * coefficients.turn).astype(np.float32)
    after = residual.copy()
    for rows in row_blocks(len(after), ROWS_PER_BLOCK):
        add_scaled(after[rows], product[rows], -step)
        add_scaled(after[rows], directions.s[rows], -turned)
    return after


def _next_directions(
    graph: NormalizedGraph,
    block: int,
    residual: FloatArray,
    directions: _Directions,
    product: FloatArray,
    coefficients: _Coefficients,
) -> _Directions:
    """The solution after a step along the direction that the residual before it gives."""
    step, turn = coefficients.step.astype(np.float32), coefficients.turn.astype(np.float32)
    x, p, s = directions.x.copy(), residual.copy(), product.copy()
    for rows in row_blocks(len(x), ROWS_PER_BLOCK):
        add_scaled(p[rows], directions.p[rows], turn)
        add_scaled(s[rows], directions.s[rows], turn)
        add_scaled(x[rows], p[rows], step)
    return _Directions(x, p, s)


def _solution(graph: NormalizedGraph, block: int, directions: _Directions) -> FloatArray:
    return directions.x


def _squared_error(graph: NormalizedGraph, block: int, given: FloatArray, product: FloatArray) -> FloatArray:
    difference = given - product
    return _column_dots(difference, difference)


def _energy(
    graph: NormalizedGraph,
    block: int,
    alpha: float,
    vectors: FloatArray,
    product: FloatArray,
    given: FloatArray,
) -> float:
    """Twice the energy: (I - alpha S) y is known, so y - S y = y - (y - product) / alpha."""
    change = vectors - (vectors - product) / np.float32(alpha)
    disagreement = np.sum(vectors * change, dtype=np.float64)
    fidelity = np.sum((vectors - given) ** 2, dtype=np.float64)
    return float(disagreement + (1 / alpha - 1) * fidelity)


def _scaled_energy(
    graph: NormalizedGraph,
    block: int,
    alpha: float,
    factor: float,
    solution: FloatArray,
    product: FloatArray,
    given: FloatArray,
) -> float:
    return _energy(graph, block, alpha, solution * np.float32(factor), product * np.float32(factor), given)
