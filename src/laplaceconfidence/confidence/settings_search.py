"""Choice of the number of neighbors and of alpha from the given labels alone.

A part of the given labels is held out, the others are propagated, and the pair of settings under which the
held-out labels are most likely is chosen. No clean labels are needed. Candidates are compared fold by fold;
those that are clearly worse than the best after a fold are not evaluated on the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray, row_blocks
from laplaceconfidence.confidence.held_out_folds import clearly_worse, stratified_folds
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.graph.affinity import Graph, OrderedGraph
from laplaceconfidence.solve.conjugate_gradient import conjugate_gradient
from laplaceconfidence.solve.propagation import one_hot
from laplaceconfidence.stages import stage
from laplaceconfidence.validation import check_random_state

NEIGHBOR_COUNTS = (10, 20, 50, 100)
ALPHAS = (0.5, 0.8, 0.9, 0.99)
PAPER_NEIGHBORS, PAPER_ALPHA = 50, 0.99
FEWEST_LABELS = 10  # with fewer labels, none are held out and the paper's settings are used
_N_FOLDS = 5  # a fifth of the labels is held out
_FOLDS_RUN = 3  # of the five folds, to limit the cost
_SHARPNESS = (1.0, 2.0, 4.0, 8.0)  # exponents of the shares that are tried
_UNIFORM_PARTS = (0.0, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9)  # weights of a uniform distribution that are tried
_SOLVER_BYTES = 256 * 2**20  # memory of the solver per chunk of classes
_TOLERANCE, _MOST_ITERATIONS = 1e-2, 30  # of the conjugate gradients; two digits suffice for a comparison


@dataclass(slots=True)
class SettingsCandidate:
    """One pair of settings, and the likelihood of held-out labels under it.

    Attributes
    ----------
    n_neighbors : int or None
        Number of neighbors; ``None`` for a graph that was passed in.
    alpha : float
        How far labels are propagated.
    fold_scores : list of ndarray
        Log-likelihood of every held-out label, one array per fold.
    chosen : bool
        Whether the pair was chosen.
    """

    n_neighbors: int | None
    alpha: float
    fold_scores: list[FloatArray] = field(default_factory=list, repr=False)
    chosen: bool = False

    @property
    def score(self) -> float:
        """Mean log-likelihood per label."""
        return float(np.concatenate(self.fold_scores).mean())

    def summary(self) -> dict[str, float | int | bool | None]:
        """Values of the candidate for ``settings_``.

        Returns
        -------
        dict of str to object
        """
        return {
            "n_neighbors": self.n_neighbors,
            "alpha": self.alpha,
            "held_out_log_likelihood": self.score,
            "folds": len(self.fold_scores),
            "chosen": self.chosen,
        }


def fitting_counts(n_samples: int) -> list[int]:
    """The numbers of neighbors to try.

    Parameters
    ----------
    n_samples : int
        Number of samples.

    Returns
    -------
    list of int
        Ascending, each at most ``n_samples - 1``.
    """
    return sorted({min(k, n_samples - 1) for k in NEIGHBOR_COUNTS})


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings to use.

    Attributes
    ----------
    n_neighbors : int or None
        Number of neighbors; ``None`` for a graph that was passed in.
    alpha : float
        How far labels are propagated.
    candidates : list of SettingsCandidate
        The pairs of settings that were compared, best first; empty if nothing was compared.
    """

    n_neighbors: int | None
    alpha: float
    candidates: list[SettingsCandidate]


def settle_settings(
    graphs: Callable[[], dict[int | None, Graph]],
    counts: Sequence[int | None],
    alpha: float | str,
    codes: IntArray,
    n_classes: int,
    *,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Settings:
    """Choose the number of neighbors and alpha, if there is more than one possibility.

    Parameters
    ----------
    graphs : callable
        Makes the normalized graphs by number of neighbors; called only if settings are compared.
    counts : sequence of int or None
        Numbers of neighbors to choose from; ``[None]`` for a graph that was passed in.
    alpha : float or "auto"
        How far labels are propagated.
    codes : ndarray of shape (n,)
        Given labels, ``MISSING`` where there is none.
    n_classes : int
        Number of classes.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the folds.
    n_jobs : int or None, default=None
        Number of threads.

    Returns
    -------
    Settings
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
    graphs: dict[int | None, Graph],
    alphas: Sequence[float],
    codes: IntArray,
    n_classes: int,
    *,
    rng: np.random.Generator,
    n_jobs: int | None = None,
) -> list[SettingsCandidate]:
    """Compare all pairs of a graph and an alpha.

    Parameters
    ----------
    graphs : dict of int or None to scipy.sparse.csr_array or OrderedGraph
        Normalized graphs by number of neighbors.
    alphas : sequence of float
        Values of alpha.
    codes : ndarray of shape (n,)
        Given labels, ``MISSING`` where there is none.
    n_classes : int
        Number of classes.
    rng : numpy.random.Generator
        Draws the folds.
    n_jobs : int or None, default=None
        Number of threads.

    Returns
    -------
    list of SettingsCandidate
        Best first; the first one is chosen.
    """
    remaining = [SettingsCandidate(k, alpha) for k in graphs for alpha in alphas]
    candidates = list(remaining)
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
    # A candidate that was evaluated on fewer folds was clearly worse; the others are ordered by their mean.
    ranked = sorted(candidates, key=lambda one: (len(one.fold_scores), one.score), reverse=True)
    ranked[0].chosen = True
    return ranked


def held_out_log_likelihood(solution: FloatArray, codes: IntArray) -> FloatArray:
    """Log-likelihood of labels under a solution.

    Settings differ in the scale of their solutions. To compare them, the shares of the classes are raised to
    a power and mixed with a uniform distribution; both parameters are those under which the labels are most
    likely.

    Parameters
    ----------
    solution : ndarray of shape (n, C)
        Propagated labels.
    codes : ndarray of shape (n,)
        Held-out labels.

    Returns
    -------
    ndarray of shape (n,)
    """
    n, n_classes = solution.shape
    shares = np.maximum(solution, 1e-9).astype(np.float64)
    shares /= shares.sum(axis=1, keepdims=True)
    every_row = np.arange(n)
    best: FloatArray | None = None
    for sharpness in _SHARPNESS:
        powered = shares**sharpness
        own = powered[every_row, codes] / np.maximum(powered.sum(axis=1), 1e-300)
        for part in _UNIFORM_PARTS:
            log_likelihood = np.log((1 - part) * own + part / n_classes + 1e-12)
            if best is None or log_likelihood.mean() > best.mean():
                best = log_likelihood
    assert best is not None
    return best


def _propagated(
    graph: Graph,
    alpha: float,
    codes: IntArray,
    n_classes: int,
    wanted: IntArray,
    n_jobs: int | None,
) -> FloatArray:
    """Propagate labels; return the solution at the ``wanted`` samples."""
    n = len(codes)
    if isinstance(graph, OrderedGraph):
        nodes = np.argsort(graph.order)[wanted]
        return _propagated(graph.matrix, alpha, codes[graph.order], n_classes, nodes, n_jobs)
    chunk = max(1, _SOLVER_BYTES // (6 * n * graph.dtype.itemsize))
    solution = np.empty((len(wanted), n_classes), dtype=graph.dtype)
    for classes in row_blocks(n_classes, chunk):
        columns = one_hot(codes, classes, np.ones(n, dtype=graph.dtype))
        result = conjugate_gradient(
            graph, alpha, columns, tol=_TOLERANCE, max_iter=_MOST_ITERATIONS, n_jobs=n_jobs
        )
        solution[:, classes] = result.values[wanted]
    return solution


def _not_clearly_worse(remaining: list[SettingsCandidate]) -> list[SettingsCandidate]:
    """The candidates that are not clearly worse than the best one."""
    leading = max(remaining, key=lambda one: one.score)
    best = np.concatenate(leading.fold_scores)
    return [one for one in remaining if not clearly_worse(np.concatenate(one.fold_scores), best)]
