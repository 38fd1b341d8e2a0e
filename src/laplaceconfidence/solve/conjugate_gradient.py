"""Conjugate gradients on (I - alpha S) X = B for all columns of B at once.

Every column has its own step lengths and stopping point. Several threads process blocks of rows: a block of
the product and its inner products are computed while they are in the cache, and inner products are summed
over blocks in float64, which limits the error of iterations in float32. Where every column has a factor of
its own, the rows of many nodes are joined to one long row, because numpy is slow on short ones.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray, row_blocks
from laplaceconfidence.threads import thread_count

ROWS_PER_BLOCK = 4_096
_JOINED_ROWS = 64


@dataclass(frozen=True, slots=True)
class Solution:
    """The solution and its accuracy per column.

    Attributes
    ----------
    values : ndarray of shape (n, C)
        The solution.
    residuals : ndarray of shape (C,)
        Relative residuals |b - A x| / |b|, computed from the solution unless ``true_residuals`` was False.
    n_iterations : ndarray of shape (C,)
        Number of iterations until the column converged or the limit was reached.
    converged : ndarray of bool, shape (C,)
        Whether the column converged.
    quadratic_form : ndarray of shape (C,) or None
        x^T A x; ``None`` if ``true_residuals`` was False.
    """

    values: FloatArray
    residuals: FloatArray
    n_iterations: IntArray
    converged: BoolArray
    quadratic_form: FloatArray | None


class _BlockedSystem:
    """I - alpha S in blocks of rows."""

    def __init__(self, graph: sparse.csr_array, alpha: float, pool: ThreadPoolExecutor | None) -> None:
        self.alpha = graph.dtype.type(alpha)
        self.pool = pool
        self.slices = list(row_blocks(graph.shape[0], ROWS_PER_BLOCK))
        self.blocks = [_rows_of(graph, rows) for rows in self.slices]

    def sums(self, work: Callable[[int], FloatArray]) -> FloatArray:
        """Sum, in float64, what ``work`` returns for every block of rows."""
        total: FloatArray = np.sum(self.each(work), axis=0, dtype=np.float64)
        return total

    def each(self, work: Callable[[int], Any]) -> list[Any]:
        """Run ``work`` for every block of rows."""
        numbers = range(len(self.slices))
        return (
            [work(number) for number in numbers] if self.pool is None else list(self.pool.map(work, numbers))
        )

    def multiply(self, block: int, vectors: FloatArray) -> FloatArray:
        product: FloatArray = self.blocks[block] @ vectors
        product *= -self.alpha
        product += vectors[self.slices[block]]
        return product


def conjugate_gradient(
    graph: sparse.csr_array,
    alpha: float,
    right_hand_sides: FloatArray,
    *,
    start: FloatArray | None = None,
    start_product: FloatArray | None = None,
    tol: float = 1e-3,
    max_iter: int = 30,
    true_residuals: bool = True,
    n_jobs: int | None = None,
) -> Solution:
    """Solve (I - alpha S) X = B, where the matrix is positive definite.

    A column stops when its residual, updated in every iteration, is at most ``tol`` times the norm of its
    right-hand side. In float32 the updated residual is inexact, so the reported one is computed from the
    solution, unless ``true_residuals`` is False.

    Parameters
    ----------
    graph : scipy.sparse.csr_array of shape (n, n)
        The normalized graph S.
    alpha : float
        In (0, 1).
    right_hand_sides : ndarray of shape (n, C)
        The matrix B.
    start : ndarray of shape (n, C) or None, default=None
        Initial solution; ``None`` starts from 0.
    start_product : ndarray of shape (n, C) or None, default=None
        The matrix times ``start``, if it is known, which saves one product.
    tol : float, default=1e-3
        Relative residual at which a column stops.
    max_iter : int, default=30
        Largest number of iterations.
    true_residuals : bool, default=True
        Whether residuals are computed from the solution, for one more product with the matrix, or are those
        that were updated, which are exact enough for a large ``tol``.
    n_jobs : int or None, default=None
        Number of threads; ``None`` and -1 use all cores.

    Returns
    -------
    Solution
    """
    rhs = np.ascontiguousarray(right_hand_sides, dtype=graph.dtype)
    n_columns = rhs.shape[1]
    x = np.zeros_like(rhs) if start is None else np.array(start, dtype=rhs.dtype, order="C")
    r = rhs.copy()
    a_p = np.empty_like(rhs)
    n_iterations = np.zeros(n_columns, dtype=np.int64)
    n_threads = thread_count(n_jobs)
    with ThreadPoolExecutor(n_threads) if n_threads > 1 else nullcontext() as pool:  # one thread: no detour
        system = _BlockedSystem(graph, alpha, pool)
        target = tol * np.sqrt(_squared_sizes(system, rhs))

        def first_residual(b: int) -> FloatArray:
            rows = system.slices[b]
            if start is not None:
                r[rows] -= system.multiply(b, x) if start_product is None else start_product[rows]
            return column_dots(r[rows], r[rows])

        rr = system.sums(first_residual)
        p = r.copy()
        active = np.sqrt(rr) > target

        def product_and_dot(b: int) -> FloatArray:
            rows = system.slices[b]
            a_p[rows] = system.multiply(b, p)
            return column_dots(p[rows], a_p[rows])

        for _ in range(max_iter):
            if not active.any():
                break
            p_a_p = system.sums(product_and_dot)
            step = _ratio(rr, p_a_p, active).astype(rhs.dtype)

            def advance(b: int, step: FloatArray = step) -> FloatArray:
                rows = system.slices[b]
                add_scaled(x[rows], p[rows], step)
                add_scaled(r[rows], a_p[rows], -step)
                return column_dots(r[rows], r[rows])

            rr_next = system.sums(advance)
            turn = _ratio(rr_next, rr, active).astype(rhs.dtype)
            n_iterations[active] += 1
            rr = rr_next
            active &= np.sqrt(rr) > target

            def turn_direction(b: int, turn: FloatArray = turn) -> None:
                rows = system.slices[b]
                direction = _joined(p[rows])
                direction *= _for_each(direction, turn)
                p[rows] += r[rows]

            system.each(turn_direction)
        quadratic_form = None
        if true_residuals:
            residuals, quadratic_form = _true_residuals(system, rhs, x)
        else:
            residuals = _ratio(np.sqrt(rr), target / tol, np.ones(n_columns, dtype=bool))
    return Solution(x, residuals, n_iterations, ~active, quadratic_form)


def _true_residuals(system: _BlockedSystem, rhs: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Relative residuals and x^T A x, by one product with the matrix."""

    def squared_error_and_form(b: int) -> FloatArray:
        rows = system.slices[b]
        product = system.multiply(b, x)
        form = column_dots(x[rows], product)
        difference = np.subtract(rhs[rows], product, out=product)
        return np.stack([column_dots(difference, difference), form])

    squared, form = system.sums(squared_error_and_form)
    everywhere = np.ones(rhs.shape[1], dtype=bool)
    return np.sqrt(_ratio(squared, _squared_sizes(system, rhs), everywhere)), form


def _squared_sizes(system: _BlockedSystem, vectors: FloatArray) -> FloatArray:
    return system.sums(lambda b: column_dots(vectors[system.slices[b]], vectors[system.slices[b]]))


def column_dots(left: FloatArray, right: FloatArray) -> FloatArray:
    """Inner products of the columns of two matrices of at most some thousand rows.

    Parameters
    ----------
    left, right : ndarray of shape (m, c)
        The matrices.

    Returns
    -------
    ndarray of float64, shape (c,)
    """
    products = _joined(left * right)
    dots: FloatArray = products.sum(axis=0).reshape(-1, left.shape[1]).sum(axis=0, dtype=np.float64)
    return dots


def add_scaled(target: FloatArray, vectors: FloatArray, factors: FloatArray) -> None:
    """Add vectors to others in place, every column times its factor.

    Parameters
    ----------
    target : ndarray of shape (m, c)
        What is added to.
    vectors : ndarray of shape (m, c)
        The vectors.
    factors : ndarray of shape (c,)
        The factors.
    """
    long, scaled = _joined(target), _joined(vectors)
    long += scaled * _for_each(scaled, factors)


def _joined(rows: FloatArray) -> FloatArray:
    """The same memory as long rows, of many nodes each, if the number of rows allows it."""
    n_joined = 1 if len(rows) % _JOINED_ROWS else _JOINED_ROWS
    return rows.reshape(-1, n_joined * rows.shape[1])


def _for_each(joined: FloatArray, factors: FloatArray) -> FloatArray:
    """The factors of the columns, repeated for every node of a long row."""
    return np.tile(factors, joined.shape[1] // len(factors))


def _ratio(numerator: FloatArray, denominator: FloatArray, where: BoolArray) -> FloatArray:
    """numerator / denominator for the columns in ``where``, else 0, so that other columns do not change."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=where & (denominator > 0))


def _rows_of(graph: sparse.csr_array, rows: slice) -> sparse.csr_array:
    """Some rows of a graph, without a copy: scipy's constructor would copy parts of larger arrays."""
    start, stop = graph.indptr[rows.start], graph.indptr[rows.stop]
    block = sparse.csr_array((rows.stop - rows.start, graph.shape[1]), dtype=graph.dtype)
    block.data, block.indices = graph.data[start:stop], graph.indices[start:stop]
    block.indptr = graph.indptr[rows.start : rows.stop + 1] - start
    return block
