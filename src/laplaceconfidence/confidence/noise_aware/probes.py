"""Probes: classifiers of the features, one per choice of held-out folds, fitted together.

There are two kinds: discriminants, and multinomial logistic regressions, penalized in the metric of the
features: axes of much variance are used first. All regressions share the features, so that the logits of a
block of rows are one matrix product. L-BFGS has a separate step length for every fit. On principal axes the
curvature is nearly diagonal and known in advance; it is the initial metric of L-BFGS. The cost grows with
classes x samples x axes x steps; where that is much, only the first axes and fewer steps are used.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray, sized_row_blocks
from laplaceconfidence.confidence.noise_aware.discriminants import Discriminants, fit_discriminants
from laplaceconfidence.confidence.noise_aware.settings import SETTINGS
from laplaceconfidence.threads import limited_threads, thread_count

PROBE = SETTINGS.probe
_ENTRIES_PER_BLOCK = 1 << 18  # logits that a thread works on at once: about a megabyte
_FEWEST_ROWS_PER_BLOCK = 64


@dataclass(frozen=True, slots=True)
class LinearProbe:
    """The weights of all regressions.

    Attributes
    ----------
    weights : ndarray of float32, shape (axes + 1, fits, C)
        Weights of the first axes; the last row is the intercept.
    """

    weights: FloatArray

    def logits(self, features: FloatArray) -> FloatArray:
        """Compute the logits of every fit.

        Parameters
        ----------
        features : ndarray of shape (n, d)
            Feature vectors.

        Returns
        -------
        ndarray of shape (n, fits, C)
        """
        d1, n_fits, n_classes = self.weights.shape
        flat = features[:, : d1 - 1] @ self.weights[:-1].reshape(d1 - 1, -1) + self.weights[-1].reshape(-1)
        return np.asarray(flat.reshape(len(features), n_fits, n_classes))

    def on_axes(self, n_axes: int) -> LinearProbe:
        """The same probes on more or fewer axes.

        Parameters
        ----------
        n_axes : int
            Number of axes; the weights of further ones are 0.

        Returns
        -------
        LinearProbe
        """
        weights = np.zeros((n_axes + 1, *self.weights.shape[1:]), dtype=np.float32)
        shared = min(n_axes, len(self.weights) - 1)
        weights[:shared], weights[-1] = self.weights[:shared], self.weights[-1]
        return LinearProbe(weights)

    def averaged(self, fits: IntArray) -> LinearProbe:
        """Mean weights over several fits.

        Parameters
        ----------
        fits : ndarray of shape (m, k)
            The k fits of each mean.

        Returns
        -------
        LinearProbe
            With m fits.
        """
        return LinearProbe(self.weights[:, fits].mean(axis=2))


class Probes(NamedTuple):
    """Both kinds of probes of one view."""

    regressions: LinearProbe
    discriminants: Discriminants


def even_curvature(n_classes: int) -> float:
    """p (1 - p) at p = 1 / C: the curvature of the logistic loss at equal probabilities.

    Parameters
    ----------
    n_classes : int
        Number of classes C.

    Returns
    -------
    float
    """
    return (1 - 1 / n_classes) / n_classes


def fit_probes(
    coordinates: FloatArray,
    targets: FloatArray | IntArray,
    visible: FloatArray,
    n_classes: int,
    *,
    l2: float,
    heavy_tails: bool = False,
    start: LinearProbe | None = None,
    n_jobs: int | None,
) -> Probes:
    """Fit a regression and discriminants per choice of visible labels.

    Parameters
    ----------
    coordinates : ndarray of float32, shape (n, d)
        Principal coordinates, those of most variance first.
    targets : ndarray of int64, shape (n,), or of float32, shape (n, fits, C)
        Labels, the same for all fits, or distributions.
    visible : ndarray of float32, shape (n, fits)
        Weight of every sample in every fit; 0 where its label is held out or missing.
    n_classes : int
        Number of classes.
    l2 : float
        Ridge penalty of the regressions, in units of ``even_curvature``.
    heavy_tails : bool, default=False
        Whether the classes of the discriminants have heavy tails.
    start : LinearProbe or None, default=None
        The regressions to start from; they must not have learned labels that are held out here.
    n_jobs : int or None
        Number of threads.

    Returns
    -------
    Probes
    """
    entries = max(1, visible.size * n_classes)
    n_axes = max(PROBE.fewest_axes, PROBE.entries_of_one_step // entries)
    n_steps = max(PROBE.fewest_steps, PROBE.entries_of_all_steps // entries)
    regressions = fit_regression(
        coordinates[:, :n_axes],
        targets,
        visible,
        n_classes,
        l2=l2 * even_curvature(n_classes),
        max_iter=min(n_steps, PROBE.most_steps),
        start=None if start is None else start.on_axes(min(n_axes, coordinates.shape[1])).weights,
        n_jobs=n_jobs,
    )
    discriminants = fit_discriminants(
        coordinates, targets, visible, n_classes, heavy_tails=heavy_tails, n_jobs=n_jobs
    )
    return Probes(regressions, discriminants)


class _Block(NamedTuple):
    """Rows that are computed together, and the fits that they are computed for."""

    rows: slice | IntArray
    fits: slice | IntArray


class _Loss:
    """Mean cross-entropy of every fit plus its ridge penalty, with the gradient, block by block.

    Rows whose labels are held out in the same fits are in the same blocks, which these fits leave out.
    Distributions would have to be copied for that, and are held out in one fit of five.
    """

    def __init__(
        self,
        features: FloatArray,
        targets: FloatArray | IntArray,
        visible: FloatArray,
        shape: tuple[int, int],
        l2: float,
        pool: ThreadPoolExecutor,
    ) -> None:
        self.features, self.targets, self.visible = features, targets, visible
        self.n_fits, self.n_classes = shape
        self.l2, self.pool = np.float32(l2), pool
        self.n_visible = max(1.0, float((visible > 0).any(axis=1).sum()))
        if targets.ndim == 1:
            shown, group = np.unique(visible > 0, axis=0, return_inverse=True)
            members = [np.flatnonzero(group == number) for number in range(len(shown))]
            self.blocks = [
                _Block(rows[block], np.flatnonzero(fits))
                for rows, fits in zip(members, shown, strict=True)
                if fits.any()
                for block in self._blocks(len(rows), int(fits.sum()))
            ]
        else:
            self.blocks = [_Block(block, slice(None)) for block in self._blocks(len(features), self.n_fits)]

    def _blocks(self, n_rows: int, n_fits: int) -> Iterator[slice]:
        return sized_row_blocks(n_rows, n_fits * self.n_classes, _ENTRIES_PER_BLOCK, _FEWEST_ROWS_PER_BLOCK)

    def __call__(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Losses (fits,) and the gradient, shaped as the weights."""
        parts = self.pool.map(lambda block: self._block(block, weights), self.blocks)
        loss = np.zeros(self.n_fits)
        gradient = np.zeros_like(weights)
        for block, (part_loss, part_gradient) in zip(self.blocks, parts, strict=True):
            loss[block.fits] += part_loss
            gradient[:, block.fits] += part_gradient
        loss /= self.n_visible
        gradient /= np.float32(self.n_visible)
        loss += 0.5 * float(self.l2) * np.einsum("dwc,dwc->w", weights[:-1], weights[:-1], dtype=np.float64)
        gradient[:-1] += self.l2 * weights[:-1]
        return loss, gradient

    def _block(self, block: _Block, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        rows, fits = block
        weights = np.ascontiguousarray(weights[:, fits])
        d1 = len(weights)
        z, visible = self.features[rows], self.visible[rows][:, fits]
        logits = z @ weights[:-1].reshape(d1 - 1, -1)
        logits += weights[-1].reshape(-1)
        logits = logits.reshape(len(z), *weights.shape[1:])
        logits -= logits.max(axis=2, keepdims=True)
        targets = self.targets[rows]
        if targets.ndim == 1:  # one label per sample, the same in every fit
            at_target = logits[np.arange(len(z)), :, targets]
            weight = visible
        else:
            at_target = np.einsum("nwc,nwc->nw", targets, logits)
            weight = visible * targets.sum(axis=2)
        np.exp(logits, out=logits)
        total = logits.sum(axis=2)
        loss = (weight * np.log(total) - visible * at_target).sum(axis=0, dtype=np.float64)
        residual = logits
        residual *= (weight / total)[:, :, None]
        if targets.ndim == 1:
            residual[np.arange(len(z)), :, targets] -= visible
        else:
            residual -= targets * visible[:, :, None]
        flat = residual.reshape(len(z), -1)
        gradient = np.empty_like(weights)
        gradient[:-1] = (z.T @ flat).reshape(weights[:-1].shape)
        gradient[-1] = residual.sum(axis=0)
        return loss, gradient


def fit_regression(
    features: FloatArray,
    targets: FloatArray | IntArray,
    visible: FloatArray,
    n_classes: int,
    *,
    l2: float,
    tol: float = PROBE.tolerance,
    max_iter: int = PROBE.most_steps,
    start: FloatArray | None = None,
    n_jobs: int | None = None,
) -> LinearProbe:
    """Fit multinomial logistic regressions.

    Parameters
    ----------
    features : ndarray of shape (n, d)
        Principal coordinates with a mean square of about 1.
    targets, visible : ndarray
        As in ``fit_probes``.
    n_classes : int
        Number of classes.
    l2 : float
        Ridge penalty.
    tol : float, default=0.01
        A fit stops when its gradient, in the initial metric, is at most ``tol`` times the first one.
    max_iter : int, default=12
        Largest number of L-BFGS steps.
    start : ndarray of shape (d + 1, fits, C) or None, default=None
        Weights to start from; ``None`` starts from zero.
    n_jobs : int or None, default=None
        Number of threads.

    Returns
    -------
    LinearProbe
    """
    n_fits = visible.shape[1]
    features = np.ascontiguousarray(features, dtype=np.float32)
    labels_only = targets.ndim == 1
    targets = np.maximum(targets, 0) if labels_only else targets  # a missing label is never visible
    squares = np.einsum("nd,nd->d", features, features)
    curvature = even_curvature(n_classes) * squares / len(features) + l2
    metric = np.append(1 / curvature, n_classes).astype(np.float32)[:, None, None]
    threads = thread_count(n_jobs)
    with limited_threads(1), ThreadPoolExecutor(threads) as pool:
        loss = _Loss(features, targets, visible.astype(np.float32), (n_fits, n_classes), l2, pool)
        zero = np.zeros((features.shape[1] + 1, n_fits, n_classes), dtype=np.float32)
        return LinearProbe(_minimize(loss, zero, start, metric, tol, max_iter))


def _minimize(
    loss: _Loss, zero: FloatArray, start: FloatArray | None, metric: FloatArray, tol: float, max_iter: int
) -> FloatArray:
    """L-BFGS with its own memory and step in every fit; the tolerance refers to the gradient at zero."""
    weights = zero
    value, gradient = loss(weights)
    first = np.sqrt(_dots(gradient, metric * gradient))
    if start is not None:
        weights = start
        value, gradient = loss(weights)
    memory: deque[tuple[FloatArray, FloatArray, FloatArray]] = deque(maxlen=PROBE.memory)
    for _ in range(max_iter):
        active = np.sqrt(_dots(gradient, metric * gradient)) > tol * first
        if not active.any():
            break
        direction = _direction(gradient, memory, metric)
        slope = _dots(gradient, direction)
        uphill = slope >= 0
        if uphill.any():
            steepest = -metric * gradient
            direction[:, uphill] = steepest[:, uphill]
            slope = _dots(gradient, direction)
        step = np.where(active, 1.0, 0.0)
        for _ in range(PROBE.most_halvings):
            trial = weights + step.astype(np.float32)[:, None] * direction
            trial_value, trial_gradient = loss(trial)
            allowed = value + PROBE.sufficient_decrease * step * slope + PROBE.rounding * np.abs(value)
            short = trial_value > allowed
            if not short.any():
                break
            step = np.where(short, step / 2, step)
        else:
            step = np.where(short, 0.0, step)
            trial = weights + step.astype(np.float32)[:, None] * direction
            trial_value, trial_gradient = loss(trial)
            if not step.any():
                break
        moved, turned = trial - weights, trial_gradient - gradient
        memory.append((moved, turned, _dots(moved, turned)))
        weights, value, gradient = trial, trial_value, trial_gradient
    return weights


def _direction(
    gradient: FloatArray, memory: deque[tuple[FloatArray, FloatArray, FloatArray]], metric: FloatArray
) -> FloatArray:
    """The two-loop recursion, with every inner product taken fit by fit."""
    direction = -gradient
    kept = []
    for moved, turned, curvature in reversed(memory):
        share = _ratio(_dots(moved, direction), curvature)
        direction = direction - share.astype(np.float32)[:, None] * turned
        kept.append(share)
    direction = direction * metric
    if memory:  # scale the metric to the curvature of the last step
        _, turned, curvature = memory[-1]
        scale = _ratio(curvature, _dots(turned, metric * turned))
        direction *= np.where(scale > 0, scale, 1).astype(np.float32)[:, None]
    for (moved, turned, curvature), share in zip(memory, reversed(kept), strict=True):
        back = _ratio(_dots(turned, direction), curvature)
        direction = direction + (share - back).astype(np.float32)[:, None] * moved
    return direction


def _ratio(product: FloatArray, curvature: FloatArray) -> FloatArray:
    """The quotient, 0 where there is hardly any curvature."""
    usable = curvature > PROBE.least_curvature
    return np.asarray(np.divide(product, curvature, out=np.zeros_like(curvature), where=usable))


def _dots(left: FloatArray, right: FloatArray) -> FloatArray:
    """Inner products (fits,) of two arrays (d, fits, C)."""
    return np.asarray(np.einsum("dwc,dwc->w", left, right, dtype=np.float64, casting="unsafe"))
