"""The number of neighbors and alpha, chosen from the given labels alone.

Part of the given labels is held out, the rest is propagated, and the pair of settings under which the
held-out ones are most likely is chosen. No clean label is needed. Candidates are compared fold by fold; one
that is clearly worse than the best after a fold is not computed for the next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.confidence.held_out_folds import clearly_worse, stratified_folds
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.solve.conjugate_gradient import conjugate_gradient
from laplaceconfidence.stages import stage
from laplaceconfidence.validation import check_random_state

NEIGHBOR_COUNTS = (10, 20, 50, 100)
ALPHAS = (0.5, 0.8, 0.9, 0.99)
PAPER_NEIGHBORS, PAPER_ALPHA = 50, 0.99
FEWEST_LABELS = 10  # below, nothing can be held out and the paper's setting is taken
_N_FOLDS = 5  # a fifth is held out
_FOLDS_RUN = 3
_SHARPNESS = (1.0, 2.0, 4.0, 8.0)
_CHANCE = (0.0, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9)
_SOLVER_BYTES = 256 * 2**20


@dataclass(slots=True)
class SettingsCandidate:
    """One pair of settings and how likely it made the labels that were held out."""

    n_neighbors: int | None  # None for a graph that was passed in
    alpha: float
    fold_scores: list[FloatArray] = field(default_factory=list, repr=False)  # log-likelihood per label
    chosen: bool = False

    @property
    def score(self) -> float:
        return float(np.concatenate(self.fold_scores).mean())

    def summary(self) -> dict[str, float | int | bool | None]:
        return {
            "n_neighbors": self.n_neighbors,
            "alpha": self.alpha,
            "held_out_log_likelihood": self.score,
            "folds": len(self.fold_scores),
            "chosen": self.chosen,
        }


def fitting_counts(n_samples: int) -> list[int]:
    """The numbers of neighbors to try on ``n_samples`` samples."""
    return sorted({min(k, n_samples - 1) for k in NEIGHBOR_COUNTS})


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings to use, and the candidates they were chosen from, best first (empty without a choice)."""

    n_neighbors: int | None
    alpha: float
    candidates: list[SettingsCandidate]


def settle_settings(
    graphs: Callable[[], dict[int | None, sparse.csr_array]],
    counts: Sequence[int | None],
    alpha: float | str,
    codes: IntArray,
    n_classes: int,
    *,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Settings:
    """The number of neighbors out of ``counts`` and the alpha, searched for only where there is a choice.

    ``graphs`` makes the normalized graphs of all ``counts`` if they are needed.
    """
    alphas = ALPHAS if isinstance(alpha, str) else (float(alpha),)
    if len(counts) * len(alphas) == 1:
        return Settings(counts[0], alphas[0], [])
    if (codes != MISSING).sum() < FEWEST_LABELS:
        nearest = min(counts, key=lambda k: abs((k or 0) - PAPER_NEIGHBORS))
        return Settings(nearest, PAPER_ALPHA if isinstance(alpha, str) else alphas[0], [])
    rng = check_random_state(random_state)
    ranked = choose_settings(graphs(), alphas, codes, n_classes, rng=rng, n_jobs=n_jobs)
    return Settings(ranked[0].n_neighbors, ranked[0].alpha, ranked)


def choose_settings(
    graphs: dict[int | None, sparse.csr_array],
    alphas: Sequence[float],
    codes: IntArray,
    n_classes: int,
    *,
    rng: np.random.Generator,
    n_jobs: int | None = None,
) -> list[SettingsCandidate]:
    """Every pair of a normalized graph and an alpha, best first; the first one is the choice.

    ``graphs`` maps the number of neighbors to the graph; ``codes`` are MISSING where there is no label.
    """
    remaining = [SettingsCandidate(k, alpha) for k in graphs for alpha in alphas]
    everyone = list(remaining)
    folds = stratified_folds(codes, _N_FOLDS, rng)
    with stage("settings", total=_FOLDS_RUN * len(remaining)) as advance:
        for fold in range(_FOLDS_RUN):
            held_out = np.flatnonzero((folds == fold) & (codes != MISSING))
            if len(held_out) == 0:
                continue
            visible = np.where(folds == fold, MISSING, codes)
            for one in remaining:
                solution = _propagated(
                    graphs[one.n_neighbors], one.alpha, visible, n_classes, held_out, n_jobs
                )
                one.fold_scores.append(held_out_log_likelihood(solution, codes[held_out]))
                advance(1)
            remaining = _not_clearly_worse(remaining)
            if len(remaining) == 1:
                break
    # A candidate that was computed for fewer folds was clearly worse; among the rest the mean decides.
    ranked = sorted(everyone, key=lambda one: (len(one.fold_scores), one.score), reverse=True)
    ranked[0].chosen = True
    return ranked


def held_out_log_likelihood(solution: FloatArray, codes: IntArray) -> FloatArray:
    """Log-likelihood (n,) of labels under a solution (n, C) whose sharpness and share of chance fit best.

    Settings differ in the scale of their solutions; two fitted numbers take that out of the comparison.
    """
    n, n_classes = solution.shape
    shares = np.maximum(solution, 1e-9).astype(np.float64)
    shares /= shares.sum(axis=1, keepdims=True)
    everyone = np.arange(n)
    best: FloatArray | None = None
    for sharpness in _SHARPNESS:
        powered = shares**sharpness
        own = powered[everyone, codes] / np.maximum(powered.sum(axis=1), 1e-300)
        for chance in _CHANCE:
            log_likelihood = np.log((1 - chance) * own + chance / n_classes + 1e-12)
            if best is None or log_likelihood.mean() > best.mean():
                best = log_likelihood
    assert best is not None
    return best


def _propagated(
    graph: sparse.csr_array,
    alpha: float,
    codes: IntArray,
    n_classes: int,
    wanted: IntArray,
    n_jobs: int | None,
) -> FloatArray:
    """The solution at the ``wanted`` samples; two digits are enough to compare settings."""
    n = len(codes)
    chunk = max(1, _SOLVER_BYTES // (6 * n * graph.dtype.itemsize))
    solution = np.empty((len(wanted), n_classes), dtype=graph.dtype)
    for first in range(0, n_classes, chunk):
        last = min(first + chunk, n_classes)
        columns = np.zeros((n, last - first), dtype=graph.dtype)
        rows = np.flatnonzero((codes >= first) & (codes < last))
        columns[rows, codes[rows] - first] = 1
        result = conjugate_gradient(graph, alpha, columns, tol=1e-2, max_iter=30, n_jobs=n_jobs)
        solution[:, first:last] = result.values[wanted]
    return solution


def _not_clearly_worse(remaining: list[SettingsCandidate]) -> list[SettingsCandidate]:
    """The candidates that are not clearly worse than the best one."""
    leading = max(remaining, key=lambda one: one.score)
    best = np.concatenate(leading.fold_scores)
    return [one for one in remaining if not clearly_worse(np.concatenate(one.fold_scores), best)]
