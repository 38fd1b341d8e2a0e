"""Multinomial logistic regressions, one for every world, fitted together.

All worlds share the features, so that their logits are one matrix product. L-BFGS runs in every world on its
own step; on principal axes the curvature is nearly diagonal and known in advance: its starting metric.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.threads import limited_threads, thread_count

_ENTRIES_A_BLOCK = 1 << 18  # logits worked on at once by a thread: about a megabyte
_HISTORY = 8
_SUFFICIENT_DECREASE = 1e-4
_MOST_HALVINGS = 12


@dataclass(frozen=True, slots=True)
class LinearProbe:
    """Weights of every world's regression; the last row is the intercept."""

    weights: FloatArray  # (d + 1, worlds, C)

    def logits(self, features: FloatArray) -> FloatArray:
        """(n, worlds, C) for features (n, d)."""
        d1, n_worlds, n_classes = self.weights.shape
        flat = features @ self.weights[:-1].reshape(d1 - 1, -1) + self.weights[-1].reshape(-1)
        return np.asarray(flat.reshape(len(features), n_worlds, n_classes))


class _Loss:
    """Mean cross-entropy of every world plus its ridge penalty, with the gradient, block by block."""

    def __init__(
        self,
        features: FloatArray,
        targets: FloatArray | IntArray,
        heard: FloatArray,
        shape: tuple[int, int],
        l2: float,
        pool: ThreadPoolExecutor,
    ) -> None:
        self.features, self.targets, self.heard = features, targets, heard
        self.n_worlds, self.n_classes = shape
        self.l2, self.pool = np.float32(l2), pool
        self.n_heard = max(1.0, float((heard > 0).any(axis=1).sum()))
        rows = max(64, _ENTRIES_A_BLOCK // (self.n_worlds * self.n_classes))
        self.blocks = [slice(start, start + rows) for start in range(0, len(features), rows)]

    def __call__(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Losses (worlds,) and the gradient, shaped as the weights."""
        parts = self.pool.map(lambda rows: self._block(rows, weights), self.blocks)
        loss = np.zeros(self.n_worlds)
        gradient = np.zeros_like(weights)
        for part_loss, part_gradient in parts:
            loss += part_loss
            gradient += part_gradient
        loss /= self.n_heard
        gradient /= np.float32(self.n_heard)
        loss += 0.5 * float(self.l2) * np.einsum("dwc,dwc->w", weights[:-1], weights[:-1], dtype=np.float64)
        gradient[:-1] += self.l2 * weights[:-1]
        return loss, gradient

    def _block(self, rows: slice, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        d1 = len(weights)
        z, heard = self.features[rows], self.heard[rows]
        logits = z @ weights[:-1].reshape(d1 - 1, -1)
        logits += weights[-1].reshape(-1)
        logits = logits.reshape(len(z), self.n_worlds, self.n_classes)
        logits -= logits.max(axis=2, keepdims=True)
        targets = self.targets[rows]
        if targets.ndim == 1:  # one label a sample, the same in every world
            at_target = logits[np.arange(len(z)), :, targets]
            weight = heard
        else:
            at_target = np.einsum("nwc,nwc->nw", targets, logits)
            weight = heard * targets.sum(axis=2)
        np.exp(logits, out=logits)
        total = logits.sum(axis=2)
        loss = (weight * np.log(total) - heard * at_target).sum(axis=0, dtype=np.float64)
        residual = logits
        residual *= (weight / total)[:, :, None]
        if targets.ndim == 1:
            residual[np.arange(len(z)), :, targets] -= heard
        else:
            residual -= targets * heard[:, :, None]
        flat = residual.reshape(len(z), -1)
        gradient = np.empty_like(weights)
        gradient[:-1] = (z.T @ flat).reshape(d1 - 1, self.n_worlds, self.n_classes)
        gradient[-1] = residual.sum(axis=0)
        return loss, gradient


def fit_probe(
    features: FloatArray,
    targets: FloatArray | IntArray,
    heard: FloatArray,
    n_classes: int,
    *,
    l2: float,
    tol: float = 1e-2,
    max_iter: int = 40,
    n_jobs: int | None = None,
) -> LinearProbe:
    """Regressions on ``targets``: labels (n,) or distributions (n, worlds, C), weighed by ``heard``.

    Features are principal coordinates (n, d) of mean square about 1. A world stops when its gradient, in the
    starting metric, has fallen to ``tol`` times where it began.
    """
    n_worlds = heard.shape[1]
    features = np.ascontiguousarray(features, dtype=np.float32)
    labels_only = targets.ndim == 1
    targets = np.maximum(targets, 0) if labels_only else targets  # a missing label is never heard
    curvature = (1 - 1 / n_classes) / n_classes * np.einsum("nd,nd->d", features, features) / len(
        features
    ) + l2
    metric = np.append(1 / curvature, n_classes).astype(np.float32)[:, None, None]
    threads = thread_count(n_jobs)
    with limited_threads(1), ThreadPoolExecutor(threads) as pool:
        loss = _Loss(features, targets, heard.astype(np.float32), (n_worlds, n_classes), l2, pool)
        weights = np.zeros((features.shape[1] + 1, n_worlds, n_classes), dtype=np.float32)
        return LinearProbe(_minimize(loss, weights, metric, tol, max_iter))


def _minimize(loss: _Loss, weights: FloatArray, metric: FloatArray, tol: float, max_iter: int) -> FloatArray:
    """L-BFGS with its own memory and step in every world."""
    value, gradient = loss(weights)
    first = np.sqrt(_dots(gradient, metric * gradient))
    memory: deque[tuple[FloatArray, FloatArray, FloatArray]] = deque(maxlen=_HISTORY)
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
        for _ in range(_MOST_HALVINGS):
            trial = weights + step.astype(np.float32)[:, None] * direction
            trial_value, trial_gradient = loss(trial)
            short = trial_value > value + _SUFFICIENT_DECREASE * step * slope + 1e-7 * np.abs(value)
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
    """The two-loop recursion, with every inner product taken world by world."""
    direction = -gradient
    kept = []
    for moved, turned, curvature in reversed(memory):
        share = np.divide(
            _dots(moved, direction), curvature, out=np.zeros_like(curvature), where=curvature > 1e-12
        )
        direction = direction - share.astype(np.float32)[:, None] * turned
        kept.append(share)
    direction = direction * metric
    for (moved, turned, curvature), share in zip(memory, reversed(kept), strict=True):
        back = np.divide(
            _dots(turned, direction), curvature, out=np.zeros_like(curvature), where=curvature > 1e-12
        )
        direction = direction + (share - back).astype(np.float32)[:, None] * moved
    return direction


def _dots(left: FloatArray, right: FloatArray) -> FloatArray:
    """Inner products (worlds,) of two arrays (d, worlds, C)."""
    return np.asarray(np.einsum("dwc,dwc->w", left, right, dtype=np.float64, casting="unsafe"))
