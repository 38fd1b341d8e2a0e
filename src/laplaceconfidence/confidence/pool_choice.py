"""Which noise the data support: the likelihood of held-out given labels decides between the candidates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.confidence.cross_fitting import stratified_folds
from laplaceconfidence.confidence.evidence_pool import (
    Pool,
    PooledRows,
    fit_alternating_pool,
    fit_full_pool,
    fit_symmetric_pool,
)
from laplaceconfidence.confidence.transition import (
    TINY,
    fit_transition,
    is_diagonal_dominant,
    posterior,
    uniform_noise,
)

FULL_UP_TO = 50  # classes; above, T is fitted by EM, apart from the weights
ENTRIES_FOR_FITTING = 1_200_000  # rows x classes; more do not change so few parameters
ROWS_FOR_FITTING = 12_000
LARGE_CLASSES = 500  # labels a class on average, from which the prior on T hardly matters
LESS_NOISE = 0.04  # a symmetric T that claims so much less noise than the others must win clearly
STANDARD_ERRORS = 2.0
_LIGHT_PRIOR = 2.0
_WEAK_PRIOR = 10.0
_STRONG_PRIOR = 500.0
_UNEVEN = 0.1  # total variation between the labels' shares and even ones above which both bases are tried


@dataclass(frozen=True, slots=True)
class PoolCandidate:
    """One reading of the noise and how likely it makes given labels that T was not fitted on."""

    kind: str
    pool: Pool
    held_out: FloatArray  # (n,) log-likelihood of every label
    noise_rate: float
    admissible: bool

    @property
    def score(self) -> float:
        return float(self.held_out.mean())

    def summary(self) -> dict[str, float | str | bool]:
        return {
            "noise_model": self.kind,
            "held_out_log_likelihood": self.score,
            "noise_rate": self.noise_rate,
            "admissible": self.admissible,
        }


def choose_pool(
    evidence: Sequence[FloatArray],
    codes: IntArray,
    n_classes: int,
    candidates: IntArray | None,
    rng: np.random.Generator,
) -> tuple[PoolCandidate, list[PoolCandidate]]:
    """The best-supported pool of evidence arrays (n, R), labels all given, and everything that was tried."""
    everyone = PooledRows(np.stack(evidence).astype(np.float64), codes, n_classes, candidates)
    rows = _some_rows(everyone, rng)
    halves = stratified_folds(codes, 2, rng)
    shares = (np.bincount(codes, minlength=n_classes) + 0.5) / (len(codes) + 0.5 * n_classes)
    even = np.full(n_classes, 1 / n_classes)
    tried: list[PoolCandidate] = []

    bases = {"symmetric": even}
    if np.abs(shares - even).sum() / 2 > _UNEVEN:
        bases["proportional"] = shares
    for kind, base in bases.items():
        pool, _ = fit_symmetric_pool(rows, base)
        tried.append(_candidate(kind, pool, everyone, None, halves))
    simplest = max(tried, key=lambda one: one.score)
    base = bases[simplest.kind]

    fit = fit_full_pool if n_classes <= FULL_UP_TO else fit_alternating_pool
    prior = _WEAK_PRIOR * uniform_noise(0.3, base) + min(0.5 * n_classes, 5.0) * base
    full = _best_start(fit, rows, simplest.pool, prior, base)
    tried.append(_candidate("full", full, everyone, prior, halves))
    found = tried[-1]
    many = n_classes > FULL_UP_TO
    # With many classes every fit is dear: smoothing less, or more, is tried only where it may help.
    if len(codes) < LARGE_CLASSES * n_classes and not (many and _clearly_behind(found, simplest)):
        # Smoothing costs small classes more likelihood than the noise they have: try nearly none as well.
        light = _LIGHT_PRIOR * uniform_noise(0.1, base) + 0.05 * base * n_classes
        sparse = fit(rows, full, light)
        tried.append(_candidate("sparse", sparse, everyone, light, halves))
    if not (many and _clearly_behind(simplest, found)):
        rate = min(max(_marginal_rate(found), 0.02), 0.97)
        center = uniform_noise(rate, base)
        halfway = Pool(full.weights, full.bias, 0.5 * full.transition + 0.5 * center)
        strong = _STRONG_PRIOR * min(1.0, 10 / n_classes)
        shrunk = fit(rows, halfway, strong * center)
        tried.append(_candidate("shrunk", shrunk, everyone, strong * center, halves))
    return _winner(tried), tried


def _best_start(
    fit: Callable[[PooledRows, Pool, FloatArray], Pool],
    rows: PooledRows,
    simplest: Pool,
    prior: FloatArray,
    base: FloatArray,
) -> Pool:
    """The likelihood under a full T has several tops: climb from little and from much noise."""
    found = 1 - float(simplest.transition.diagonal().mean())
    best, best_value = simplest, -np.inf
    for rate in (0.2, max(0.5, min(found, 0.97))):
        start = Pool(simplest.weights, simplest.bias, uniform_noise(rate, base))
        pool = fit(rows, start, prior)
        p = pool.probabilities(list(rows.evidence), rows.candidates)
        _, chance = posterior(p, pool.transition, rows.codes, rows.candidates)
        value = np.log(chance + TINY).sum() + (prior * np.log(pool.transition + TINY)).sum()
        if value > best_value:
            best, best_value = pool, value
    return best


def _candidate(
    kind: str, pool: Pool, rows: PooledRows, prior_counts: FloatArray | None, halves: IntArray
) -> PoolCandidate:
    p = pool.probabilities(list(rows.evidence), rows.candidates)
    posteriors, chance = posterior(p, pool.transition, rows.codes, rows.candidates)
    rate = 1 - float(posteriors[np.arange(len(rows.codes)), rows.own_column].mean())
    row_counts = rows.class_sums(posteriors)
    if prior_counts is None:  # a handful of parameters: what they gain by having seen the labels is nothing
        held_out = np.log(chance + TINY)
    else:
        held_out = np.empty(len(rows.codes))
        for half in (0, 1):
            inside = halves == half
            others = None if rows.candidates is None else rows.candidates[~inside]
            here = None if rows.candidates is None else rows.candidates[inside]
            transition = fit_transition(p[~inside], rows.codes[~inside], prior_counts, others)
            _, chance = posterior(p[inside], transition, rows.codes[inside], here)
            held_out[inside] = np.log(chance + TINY)
    return PoolCandidate(kind, pool, held_out, rate, is_diagonal_dominant(pool.transition, row_counts))


def _clearly_behind(one: PoolCandidate, leader: PoolCandidate) -> bool:
    gap = leader.held_out - one.held_out
    return bool(gap.mean() > STANDARD_ERRORS * gap.std() / np.sqrt(len(gap)))


def _winner(tried: list[PoolCandidate]) -> PoolCandidate:
    """The most likely one; little noise, where others find much, must be clearly more likely."""
    admissible = [one for one in tried if one.admissible] or tried[:1]
    best = max(admissible, key=lambda one: one.score)
    rivals = [one for one in admissible if one.kind in ("full", "sparse", "shrunk")]
    if best.kind in ("symmetric", "proportional") and rivals:
        rival = max(rivals, key=lambda one: one.score)
        gain = best.held_out - rival.held_out
        unclear = gain.mean() < STANDARD_ERRORS * gain.std() / np.sqrt(len(gain))
        if rival.noise_rate - best.noise_rate > LESS_NOISE and unclear:
            return rival
    return best


def _marginal_rate(candidate: PoolCandidate) -> float:
    n_classes = len(candidate.pool.bias)
    return candidate.noise_rate * n_classes / max(1, n_classes - 1)


def _some_rows(rows: PooledRows, rng: np.random.Generator) -> PooledRows:
    n = len(rows.codes)
    most = min(ROWS_FOR_FITTING, ENTRIES_FOR_FITTING // rows.evidence.shape[2])
    if n <= most:
        return rows
    kept = np.sort(rng.choice(n, most, replace=False))
    some = None if rows.candidates is None else rows.candidates[kept]
    return PooledRows(np.ascontiguousarray(rows.evidence[:, kept]), rows.codes[kept], rows.n_classes, some)
