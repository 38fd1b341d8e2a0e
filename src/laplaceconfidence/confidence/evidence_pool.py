"""Several kinds of evidence pooled into class probabilities, together with the noise, by one likelihood.

    p_i = softmax(sum_m beta_m E_im + b),  beta_m > 0,        P(given_i | x_i) = sum_z p_iz T[z, given_i]

The weights beta, the biases b and the noise T maximize the likelihood of the given labels. Because no E_i has
seen the given label of i, this calibrates p as it is fitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_softmax

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.confidence.candidate_classes import bias_of, sum_by_class
from laplaceconfidence.confidence.transition import (
    TINY,
    chance_of_given,
    fit_transition,
    pair_counts,
    posterior,
    uniform_noise,
)

BIAS_PENALTY = 1e-3
_COARSE = 1e-6  # relative gain at which weights stop that alternate with T: T moves again anyway
WEIGHT_SPREAD = 10.0  # weights beyond this only pay where few labels are separated perfectly
_LARGEST_LOG_WEIGHT = 10.0  # steps that a line search tries may go anywhere: beyond this nothing changes


@dataclass(frozen=True, slots=True)
class Pool:
    """Weights of the kinds of evidence, class biases and the noise, fitted together."""

    weights: FloatArray  # (m,)
    bias: FloatArray  # (C,)
    transition: FloatArray  # (C, C)

    def probabilities(self, evidence: Sequence[FloatArray], candidates: IntArray | None) -> FloatArray:
        """Class probabilities of evidence arrays (n, R) or (n, worlds, R), in the same shape."""
        scores = sum(
            np.float32(weight) * part for weight, part in zip(self.weights, evidence, strict=True)
        ) + np.float32(0)
        bias = bias_of(self.bias, candidates)
        if candidates is not None and scores.ndim == 3:
            bias = bias[:, None, :]
        return _softmax(scores + bias)


@dataclass(frozen=True, slots=True)
class PooledRows:
    """The rows a pool is fitted on: evidence, given labels, and the classes that the columns stand for."""

    evidence: FloatArray  # (m, n, R)
    codes: IntArray  # (n,)
    n_classes: int
    candidates: IntArray | None

    @property
    def own_column(self) -> IntArray:
        """The column of every row's given label."""
        if self.candidates is None:
            return self.codes
        return np.asarray((self.candidates == self.codes[:, None]).argmax(axis=1), dtype=np.int64)

    def scores(self, weights: FloatArray, bias: FloatArray) -> FloatArray:
        total = np.tensordot(weights, self.evidence, axes=1)
        total += bias_of(bias, self.candidates)
        return np.asarray(total)

    def class_sums(self, values: FloatArray) -> FloatArray:
        """Values (n, R) summed by class, (C,)."""
        return sum_by_class(values, self.candidates, self.n_classes)

    def evidence_sums(self, values: FloatArray) -> FloatArray:
        """(m,) inner products of every kind of evidence with values (n, R)."""
        return np.asarray(self.evidence.reshape(len(self.evidence), -1) @ values.reshape(-1))


def fit_symmetric_pool(rows: PooledRows, base: FloatArray, start_rate: float = 0.3) -> tuple[Pool, float]:
    """The pool under noise that hits every class alike and draws from ``base``; returns it and the rate."""
    m, n = rows.evidence.shape[:2]
    own, at_base = rows.own_column, base[rows.codes]
    everyone = np.arange(n)

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        weights, rate, bias = _weights(theta[:m]), expit(theta[m]), theta[m + 1 :]
        p = _softmax(rows.scores(weights, bias))
        p_own = p[everyone, own]
        chance = (1 - rate) * p_own + rate * at_base + TINY
        value = -np.log(chance).mean() + 0.5 * BIAS_PENALTY * bias @ bias
        value += 0.5 * weights @ weights / (n * WEIGHT_SPREAD**2)
        value -= 2 * (np.log(rate + 1e-6) + np.log(1 - rate + 1e-6)) / n
        share = (1 - rate) * p_own / chance / n
        push = -p * share[:, None]
        push[everyone, own] += share
        slope_rate = ((at_base - p_own) / chance).mean() + 2 * (1 / (rate + 1e-6) - 1 / (1 - rate + 1e-6)) / n
        gradient = np.concatenate(
            [
                (-rows.evidence_sums(push) + weights / (n * WEIGHT_SPREAD**2)) * weights,
                [-slope_rate * rate * (1 - rate)],
                -rows.class_sums(push) + BIAS_PENALTY * bias,
            ]
        )
        return float(value), gradient

    start = np.concatenate(
        [np.full(m, np.log(1.5 / m)), [np.log(start_rate / (1 - start_rate))], np.zeros(rows.n_classes)]
    )
    theta = _minimized(loss, start, n_steps=50)
    rate = float(expit(theta[m]))
    return Pool(_weights(theta[:m]), theta[m + 1 :], uniform_noise(rate, base)), rate


def fit_full_pool(rows: PooledRows, start: Pool, prior_counts: FloatArray, n_steps: int = 60) -> Pool:
    """The pool under any noise, with Dirichlet ``prior_counts`` (C, C) on the rows of T, from ``start``."""
    m, n = rows.evidence.shape[:2]
    n_classes = rows.n_classes
    prior_rows = prior_counts.sum(axis=1, keepdims=True)

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        weights, bias = _weights(theta[:m]), theta[m : m + n_classes]
        log_transition = log_softmax(theta[m + n_classes :].reshape(n_classes, n_classes), axis=1)
        transition = np.exp(log_transition)
        p = _softmax(rows.scores(weights, bias))
        posteriors, chance = posterior(p, transition, rows.codes, rows.candidates)
        value = -np.log(chance + TINY).sum() - (prior_counts * log_transition).sum()
        value = value / n + 0.5 * BIAS_PENALTY * bias @ bias
        value += 0.5 * weights @ weights / (n * WEIGHT_SPREAD**2)
        counts = pair_counts(posteriors, rows.codes, n_classes, rows.candidates)
        push = posteriors - p
        slope = counts + prior_counts - transition * (counts.sum(axis=1, keepdims=True) + prior_rows)
        gradient = np.concatenate(
            [
                (-rows.evidence_sums(push) + weights / WEIGHT_SPREAD**2) * weights / n,
                -rows.class_sums(push) / n + BIAS_PENALTY * bias,
                -slope.ravel() / n,
            ]
        )
        return float(value), gradient

    theta = np.concatenate([np.log(start.weights), start.bias, np.log(start.transition + 1e-6).ravel()])
    theta = _minimized(loss, theta, n_steps)
    logits = theta[m + n_classes :].reshape(n_classes, n_classes)
    return Pool(_weights(theta[:m]), theta[m : m + n_classes], np.exp(log_softmax(logits, axis=1)))


def fit_fixed_noise_pool(rows: PooledRows, start: Pool, n_steps: int = 30) -> Pool:
    """Weights and biases under a noise that is given; for so many classes that T is fitted apart, by EM."""
    m, n = rows.evidence.shape[:2]
    chances = chance_of_given(start.transition, rows.codes, rows.candidates)

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        weights, bias = _weights(theta[:m]), theta[m:]
        p = _softmax(rows.scores(weights, bias))
        posteriors = p * chances
        chance = posteriors.sum(axis=1)
        posteriors /= np.maximum(chance, TINY)[:, None]
        value = -np.log(chance + TINY).mean() + 0.5 * BIAS_PENALTY * bias @ bias
        value += 0.5 * weights @ weights / (n * WEIGHT_SPREAD**2)
        push = (posteriors - p) / n
        gradient = np.concatenate(
            [
                (-rows.evidence_sums(push) + weights / (n * WEIGHT_SPREAD**2)) * weights,
                -rows.class_sums(push) + BIAS_PENALTY * bias,
            ]
        )
        return float(value), gradient

    theta = _minimized(loss, np.concatenate([np.log(start.weights), start.bias]), n_steps, _COARSE)
    return Pool(_weights(theta[:m]), theta[m:], start.transition)


def fit_alternating_pool(rows: PooledRows, start: Pool, prior_counts: FloatArray, n_turns: int = 2) -> Pool:
    """As ``fit_full_pool``, T by EM and the rest by gradients in turn."""
    pool = start
    for _ in range(n_turns):
        p = _softmax(rows.scores(pool.weights, pool.bias))
        transition = fit_transition(p, rows.codes, prior_counts, rows.candidates, pool.transition)
        pool = fit_fixed_noise_pool(rows, Pool(pool.weights, pool.bias, transition))
    return pool


def _minimized(loss: object, start: FloatArray, n_steps: int, tolerance: float = 1e-8) -> FloatArray:
    options = {"maxiter": n_steps, "maxcor": 20, "ftol": tolerance, "gtol": 1e-6}
    result: FloatArray = minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x
    return result


def _weights(logarithms: FloatArray) -> FloatArray:
    return np.exp(np.minimum(logarithms, _LARGEST_LOG_WEIGHT))


def _softmax(scores: FloatArray) -> FloatArray:
    result = scores - scores.max(axis=-1, keepdims=True)
    np.exp(result, out=result)
    result /= result.sum(axis=-1, keepdims=True)
    return np.asarray(result)
