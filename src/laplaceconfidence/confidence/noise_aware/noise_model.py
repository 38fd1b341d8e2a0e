"""Pools: weights of the kinds of evidence and a noise matrix, fitted together by one likelihood.

    p_i = softmax(sum_m beta_m E_im + b),  beta_m > 0,        P(given_i | x_i) = sum_z p_iz T[z, given_i]

The weights beta, the biases b and the noise matrix T maximize the likelihood of the given labels, with priors
on all three. No E_i depends on the given label of sample i, so that fitting the weights also calibrates p.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_softmax

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.confidence.noise_aware.settings import SETTINGS
from laplaceconfidence.confidence.noise_aware.transition import (
    Candidates,
    chances_without_own,
    fit_transition,
    own_columns,
    pair_counts,
    posterior,
    probability_of_given,
    uniform_noise,
)

NOISE_MODEL = SETTINGS.noise_model
TINY = NOISE_MODEL.tiny


@dataclass(frozen=True, slots=True)
class Pool:
    """Weights of the kinds of evidence, class biases and the noise matrix, fitted together.

    Attributes
    ----------
    weights : ndarray of shape (m,)
        Positive weight of every kind of evidence.
    bias : ndarray of shape (C,) or (C + 1,)
        Class biases, and that of the rest, which is used with candidates.
    transition : ndarray of shape (C, C)
        The noise matrix T; rows sum to 1.
    prior_counts : ndarray of shape (C, C) or None
        Dirichlet counts of the prior on T; ``None`` if T has only a rate or was not fitted.
    """

    weights: FloatArray
    bias: FloatArray
    transition: FloatArray
    prior_counts: FloatArray | None = None

    def probabilities(self, evidence: Sequence[FloatArray], candidates: Candidates | None) -> FloatArray:
        """Class probabilities, without the given labels.

        Parameters
        ----------
        evidence : sequence of ndarray of shape (n, R) or (n, folds, R)
            One array per kind of evidence.
        candidates : Candidates or None
            The classes of the columns; ``None`` for all in order.

        Returns
        -------
        ndarray of shape (n, R) or (n, folds, R)
        """
        scores = sum(
            np.float32(weight) * part for weight, part in zip(self.weights, evidence, strict=True)
        ) + np.float32(0)
        bias = _bias_of(self.bias, len(self.transition), candidates)
        if candidates is not None and scores.ndim == 3:
            bias = bias[:, None, :]
        return _softmax(scores + bias)

    def influence(self, evidence: Sequence[FloatArray]) -> FloatArray:
        """Shares of the kinds of evidence in the scores: weight times standard deviation over the classes.

        Parameters
        ----------
        evidence : sequence of ndarray of shape (n, R)
            One array per kind of evidence.

        Returns
        -------
        ndarray of shape (m,)
            They sum to 1.
        """
        spreads = np.array([float(part.std(axis=1).mean(dtype=np.float64)) for part in evidence])
        total = self.weights * spreads
        return np.asarray(total / max(float(total.sum()), TINY))


@dataclass(frozen=True, slots=True)
class PooledRows:
    """The labeled samples that a pool is fitted on.

    Attributes
    ----------
    evidence : ndarray of shape (m, n, R)
        Kinds of evidence about every sample.
    codes : ndarray of shape (n,)
        Given labels.
    n_classes : int
        Number of classes C.
    candidates : Candidates or None
        The classes of the columns; ``None`` for all in order.
    """

    evidence: FloatArray
    codes: IntArray
    n_classes: int
    candidates: Candidates | None

    @property
    def n_biases(self) -> int:
        """Number of biases: one per class and, with candidates, one for the rest."""
        return self.n_classes + (self.candidates is not None)

    def scores(self, weights: FloatArray, bias: FloatArray) -> FloatArray:
        """Weighted evidence plus biases.

        Parameters
        ----------
        weights : ndarray of shape (m,)
            Weight of every kind of evidence.
        bias : ndarray of shape (n_biases,)
            Class biases.

        Returns
        -------
        ndarray of shape (n, R)
        """
        total = np.tensordot(weights, self.evidence, axes=1)
        total += _bias_of(bias, self.n_classes, self.candidates)
        return np.asarray(total)

    def class_sums(self, values: FloatArray) -> FloatArray:
        """Sum values per class.

        Parameters
        ----------
        values : ndarray of shape (n, R)
            Values.

        Returns
        -------
        ndarray of shape (n_biases,)
            With candidates, the last sum is that of the rest.
        """
        if self.candidates is None:
            total: FloatArray = values.sum(axis=0)
            return total
        classes = self.candidates.classes.ravel()
        sums = np.bincount(classes, weights=values.ravel(), minlength=self.n_classes + 1)
        return np.asarray(sums, dtype=np.float64)

    def evidence_sums(self, values: FloatArray) -> FloatArray:
        """Inner products of every kind of evidence with values.

        Parameters
        ----------
        values : ndarray of shape (n, R)
            Values.

        Returns
        -------
        ndarray of shape (m,)
        """
        return np.asarray(self.evidence.reshape(len(self.evidence), -1) @ values.reshape(-1))


def fit_symmetric_pool(
    rows: PooledRows, base: FloatArray, start_rate: float = NOISE_MODEL.first_rate
) -> tuple[Pool, float]:
    """Fit a pool under noise of the same rate for all classes, T = (1 - rate) I + rate 1 base'.

    Parameters
    ----------
    rows : PooledRows
        The labeled samples.
    base : ndarray of shape (C,)
        Probabilities of the labels that noise draws.
    start_rate : float, default=0.3
        The rate that the fit starts from.

    Returns
    -------
    pool : Pool
        The fitted pool.
    rate : float
        The fitted rate.
    """
    m, n = rows.evidence.shape[:2]
    (own, part), at_base = own_columns(rows.codes, rows.candidates), base[rows.codes]
    every_row = np.arange(n)

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        weights, rate, bias = _weights(theta[:m]), expit(theta[m]), theta[m + 1 :]
        p = _softmax(rows.scores(weights, bias))
        p_own = p[every_row, own] * part
        chance = (1 - rate) * p_own + rate * at_base + TINY
        value = -np.log(chance).mean() + 0.5 * NOISE_MODEL.bias_penalty * bias @ bias
        value += 0.5 * weights @ weights / (n * NOISE_MODEL.weight_spread**2)
        right, wrong = 1 - rate + NOISE_MODEL.least_rate, rate + NOISE_MODEL.least_rate
        value -= NOISE_MODEL.rate_prior * (np.log(wrong) + np.log(right)) / n
        share = (1 - rate) * p_own / chance / n
        score_slopes = p
        score_slopes *= -share[:, None]
        score_slopes[every_row, own] += share
        rate_slope = ((at_base - p_own) / chance).mean()
        rate_slope += NOISE_MODEL.rate_prior * (1 / wrong - 1 / right) / n
        gradient = np.concatenate(
            [
                (-rows.evidence_sums(score_slopes) + weights / (n * NOISE_MODEL.weight_spread**2)) * weights,
                [-rate_slope * rate * (1 - rate)],
                -rows.class_sums(score_slopes) + NOISE_MODEL.bias_penalty * bias,
            ]
        )
        return float(value), gradient

    start = np.concatenate(
        [
            np.full(m, np.log(NOISE_MODEL.first_weight_sum / m)),
            [np.log(start_rate / (1 - start_rate))],
            np.zeros(rows.n_biases),
        ]
    )
    theta = _minimized(loss, start, NOISE_MODEL.symmetric_steps)
    rate = float(expit(theta[m]))
    return Pool(_weights(theta[:m]), theta[m + 1 :], uniform_noise(rate, base)), rate


def fit_full_pool(
    rows: PooledRows, start: Pool, prior_counts: FloatArray, n_steps: int = NOISE_MODEL.full_steps
) -> Pool:
    """Fit a pool under any noise matrix.

    Parameters
    ----------
    rows : PooledRows
        The labeled samples.
    start : Pool
        The pool that the fit starts from.
    prior_counts : ndarray of shape (C, C)
        Dirichlet counts of the prior on the rows of T.
    n_steps : int, default=60
        Largest number of L-BFGS steps.

    Returns
    -------
    Pool
    """
    m, n = rows.evidence.shape[:2]
    n_classes, first = rows.n_classes, len(rows.evidence) + rows.n_biases
    prior_rows = prior_counts.sum(axis=1, keepdims=True)

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        weights, bias = _weights(theta[:m]), theta[m:first]
        log_transition = log_softmax(theta[first:].reshape(n_classes, n_classes), axis=1)
        transition = np.exp(log_transition)
        p = _softmax(rows.scores(weights, bias))
        posteriors, chance = posterior(p, transition, rows.codes, rows.candidates)
        value = -np.log(chance + TINY).sum() - (prior_counts * log_transition).sum()
        value = value / n + 0.5 * NOISE_MODEL.bias_penalty * bias @ bias
        value += 0.5 * weights @ weights / (n * NOISE_MODEL.weight_spread**2)
        counts = pair_counts(posteriors, transition, rows.codes, rows.candidates)
        score_slopes = posteriors
        score_slopes -= p
        slope = counts + prior_counts - transition * (counts.sum(axis=1, keepdims=True) + prior_rows)
        gradient = np.concatenate(
            [
                (-rows.evidence_sums(score_slopes) + weights / NOISE_MODEL.weight_spread**2) * weights / n,
                -rows.class_sums(score_slopes) / n + NOISE_MODEL.bias_penalty * bias,
                -slope.ravel() / n,
            ]
        )
        return float(value), gradient

    log_transition = np.log(start.transition + NOISE_MODEL.least_transition)
    theta = np.concatenate([np.log(start.weights + TINY), start.bias, log_transition.ravel()])
    theta = _minimized(loss, theta, n_steps)
    logits = theta[first:].reshape(n_classes, n_classes)
    return Pool(_weights(theta[:m]), theta[m:first], np.exp(log_softmax(logits, axis=1)), prior_counts)


def fit_fixed_noise_pool(rows: PooledRows, start: Pool, n_steps: int = NOISE_MODEL.alternating_steps) -> Pool:
    """Fit weights and biases, with the noise matrix of ``start`` held fixed.

    Parameters
    ----------
    rows : PooledRows
        The labeled samples.
    start : Pool
        The pool that the fit starts from.
    n_steps : int, default=30
        Largest number of L-BFGS steps.

    Returns
    -------
    Pool
    """
    chances = probability_of_given(start.transition, rows.codes, rows.candidates)
    return fit_weights(rows, chances, start, n_steps)


def fit_weights(
    rows: PooledRows, chances: FloatArray, start: Pool, n_steps: int = NOISE_MODEL.alternating_steps
) -> Pool:
    """Fit weights and biases under a given likelihood of the labels.

    Parameters
    ----------
    rows : PooledRows
        The samples; their codes are not used.
    chances : ndarray of shape (n, R)
        Probability of what was given about every sample if its true class is each of the candidates.
    start : Pool
        The pool that the fit starts from.
    n_steps : int, default=30
        Largest number of L-BFGS steps.

    Returns
    -------
    Pool
        With the noise matrix of ``start``.
    """
    m, n = rows.evidence.shape[:2]

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        weights, bias = _weights(theta[:m]), theta[m:]
        p = _softmax(rows.scores(weights, bias))
        posteriors = p * chances
        chance = posteriors.sum(axis=1)
        posteriors /= np.maximum(chance, TINY)[:, None]
        value = -np.log(chance + TINY).mean() + 0.5 * NOISE_MODEL.bias_penalty * bias @ bias
        value += 0.5 * weights @ weights / (n * NOISE_MODEL.weight_spread**2)
        score_slopes = posteriors
        score_slopes -= p
        gradient = np.concatenate(
            [
                (-rows.evidence_sums(score_slopes) + weights / NOISE_MODEL.weight_spread**2) * weights / n,
                -rows.class_sums(score_slopes) / n + NOISE_MODEL.bias_penalty * bias,
            ]
        )
        return float(value), gradient

    theta = _minimized(
        loss,
        np.concatenate([np.log(start.weights + TINY), start.bias]),
        n_steps,
        NOISE_MODEL.least_alternating_gain,
    )
    return replace(start, weights=_weights(theta[:m]), bias=theta[m:])


def fit_alternating_pool(
    rows: PooledRows, start: Pool, prior_counts: FloatArray, n_turns: int = NOISE_MODEL.alternating_turns
) -> Pool:
    """Like ``fit_full_pool``, for many classes: fit T by EM and the rest by L-BFGS, alternately.

    The rest is fitted under T without the own label of each sample: with few labels per class, a T that was
    fitted to them explains them all, and the evidence would look more certain than it is (decision 44).

    Parameters
    ----------
    rows : PooledRows
        The labeled samples.
    start : Pool
        The pool that the fit starts from.
    prior_counts : ndarray of shape (C, C)
        Dirichlet counts of the prior on the rows of T.
    n_turns : int, default=2
        How often T and the rest are fitted.

    Returns
    -------
    Pool
    """
    pool = start
    for _ in range(n_turns):
        p = _softmax(rows.scores(pool.weights, pool.bias))
        transition = fit_transition(p, rows.codes, prior_counts, rows.candidates, pool.transition)
        chances, transition = chances_without_own(p, transition, prior_counts, rows.codes, rows.candidates)
        pool = fit_weights(rows, chances, Pool(pool.weights, pool.bias, transition, prior_counts))
    return pool


def _bias_of(bias: FloatArray, n_classes: int, candidates: Candidates | None) -> FloatArray:
    """Biases at the columns; to that of the rest the logarithm of the number of its classes is added."""
    if candidates is None:
        return bias[:n_classes]
    with_rest = bias.copy()
    with_rest[-1] += np.log(n_classes - candidates.classes.shape[1] + 1)
    taken: FloatArray = with_rest[candidates.classes]
    return taken


def _minimized(
    loss: object, start: FloatArray, n_steps: int, tolerance: float = NOISE_MODEL.least_gain
) -> FloatArray:
    options = {
        "maxiter": n_steps,
        "maxcor": NOISE_MODEL.lbfgs_memory,
        "ftol": tolerance,
        "gtol": NOISE_MODEL.least_gradient,
    }
    result: FloatArray = minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x
    return result


def _weights(logarithms: FloatArray) -> FloatArray:
    # A line search may try any logarithm; without the limit the exponential could overflow.
    return np.exp(np.minimum(logarithms, NOISE_MODEL.largest_log_weight))


def _softmax(scores: FloatArray) -> FloatArray:
    result = scores - scores.max(axis=-1, keepdims=True)
    np.exp(result, out=result)
    result /= result.sum(axis=-1, keepdims=True)
    return np.asarray(result)
