"""Selection of the kind of noise: the candidate under which held-out given labels are most likely.

There is one exception: a symmetric T that finds little noise is selected only if it is clearly more likely
than candidates that find much.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.confidence.held_out_folds import clearly_worse, stratified_folds
from laplaceconfidence.confidence.noise_aware.disagreement import (
    label_chances,
    matrix_at_anchors,
    measure_disagreement,
)
from laplaceconfidence.confidence.noise_aware.noise_model import (
    Pool,
    PooledRows,
    fit_alternating_pool,
    fit_fixed_noise_pool,
    fit_full_pool,
    fit_symmetric_pool,
)
from laplaceconfidence.confidence.noise_aware.settings import SETTINGS
from laplaceconfidence.confidence.noise_aware.transition import (
    Candidates,
    fit_transition,
    is_diagonal_dominant,
    own_posterior,
    posterior,
    uniform_noise,
)
from laplaceconfidence.threads import limited_threads

SELECTION = SETTINGS.selection
TINY = SETTINGS.noise_model.tiny
SIMPLE_KINDS = ("symmetric", "proportional")
"""Kinds of noise with a rate as their only parameter."""


@dataclass(frozen=True, slots=True)
class PoolCandidate:
    """A pool under one kind of noise, and the likelihood of given labels that its T was not fitted on.

    Attributes
    ----------
    kind : str
        "symmetric", "proportional", "sparse" or "shrunk".
    pool : Pool
        Weights, biases and noise matrix.
    held_out : ndarray of shape (labels,)
        Log-likelihood of every given label.
    noise_rate : float
        Expected share of wrong labels.
    admissible : bool
        Whether the diagonal of T is dominant, see ``is_diagonal_dominant``.
    """

    kind: str
    pool: Pool
    held_out: FloatArray
    noise_rate: float
    admissible: bool

    @property
    def score(self) -> float:
        """Mean log-likelihood per label."""
        return float(self.held_out.mean())

    def summary(self) -> dict[str, float | str | bool]:
        """Values of the candidate for ``rounds_``.

        Returns
        -------
        dict of str to float, str or bool
        """
        return {
            "noise_model": self.kind,
            "held_out_log_likelihood": self.score,
            "noise_rate": self.noise_rate,
            "admissible": self.admissible,
        }


@dataclass(frozen=True, slots=True)
class _LabeledRows:
    """All labeled samples: evidence in single precision, not copied."""

    evidence: Sequence[FloatArray]  # (n, R) per kind
    codes: IntArray
    n_classes: int
    candidates: Candidates | None

    def some(self, rng: np.random.Generator) -> PooledRows:
        """Draw the rows that a pool is fitted on, in double precision: some thousands of them are enough."""
        n, n_columns = self.evidence[0].shape
        most = min(SELECTION.rows_for_fitting, SELECTION.entries_for_fitting // n_columns)
        kept = np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))
        evidence = np.stack([part[kept] for part in self.evidence]).astype(np.float64)
        candidates = None if self.candidates is None else self.candidates.at(kept)
        return PooledRows(evidence, self.codes[kept], self.n_classes, candidates)


@limited_threads(1)  # L-BFGS works on matrices so small that a second thread mostly waits
def choose_pool(
    evidence: Sequence[FloatArray],
    codes: IntArray,
    n_classes: int,
    candidates: Candidates | None,
    rng: np.random.Generator,
) -> tuple[PoolCandidate, list[PoolCandidate]]:
    """Fit a pool under every kind of noise and select one.

    Parameters
    ----------
    evidence : sequence of ndarray of shape (n, R)
        One array per kind of evidence about the labeled samples.
    codes : ndarray of shape (n,)
        Given labels.
    n_classes : int
        Number of classes.
    candidates : Candidates or None
        The classes of the columns; ``None`` for all in order.
    rng : numpy.random.Generator
        Draws the rows that pools are fitted on, and the folds that T is evaluated on.

    Returns
    -------
    selected : PoolCandidate
        The selected pool.
    tried : list of PoolCandidate
        All pools.
    """
    all_rows = _LabeledRows(evidence, codes, n_classes, candidates)
    rows = all_rows.some(rng)
    folds = stratified_folds(codes, SELECTION.matrix_folds, rng)
    counted = np.bincount(codes, minlength=n_classes) + SELECTION.share_count
    shares = counted / (len(codes) + SELECTION.share_count * n_classes)
    tried: list[PoolCandidate] = []

    bases = {"symmetric": np.full(n_classes, 1 / n_classes), "proportional": shares}
    for kind, base in bases.items():
        pool, _ = fit_symmetric_pool(rows, base)
        tried.append(_candidate(kind, pool, all_rows, folds, [])[0])
    simplest = max(tried, key=lambda one: one.score)
    base = bases[simplest.kind]

    fit = fit_full_pool if candidates is None else fit_alternating_pool
    prior = SELECTION.preliminary_count * uniform_noise(SELECTION.preliminary_rate, base)
    preliminary = _best_start(fit, rows, simplest.pool, prior, base)
    # Few counts, for few labels of sparse noise, and many, around the noise that the preliminary fit found.
    rate = _posteriors(preliminary, all_rows).noise_rate * n_classes / max(1, n_classes - 1)
    center = uniform_noise(min(max(rate, SELECTION.least_noise), SELECTION.most_noise), base)
    strong = SELECTION.shrunk_share * len(codes) / n_classes
    matrices: Sequence[FloatArray | None] = [None] * SELECTION.matrix_folds
    for kind, count in (("sparse", SELECTION.sparse_count), ("shrunk", strong)):
        pool = fit(rows, preliminary, count * center)
        candidate, matrices = _candidate(kind, pool, all_rows, folds, matrices)
        tried.append(candidate)
    return _selected(tried), tried


@limited_threads(1)
def pool_of_targets(
    chosen: PoolCandidate,
    evidence: Sequence[FloatArray],
    codes: IntArray,
    candidates: Candidates | None,
    rng: np.random.Generator,
) -> Pool:
    """The pool whose posteriors the next round learns.

    Models that learned wrong labels predict them, and noise that is the same in all of a class looks like
    classes that overlap. Where disagreement is even, it cannot be overlap: if that is clearly more noise than
    a matrix has found, the matrix is read from the anchors instead, and the weights are fitted to it. A kind
    of noise with only a rate is kept: if it was the most likely one, classes hardly differ in their noise.

    Parameters
    ----------
    chosen : PoolCandidate
        The selected pool of the last round.
    evidence : sequence of ndarray of shape (n, R)
        The evidence of the last round about the labeled samples.
    codes : ndarray of shape (n,)
        Given labels.
    candidates : Candidates or None
        The classes of the columns; ``None`` for all in order.
    rng : numpy.random.Generator
        Draws the rows that a pool is fitted on.

    Returns
    -------
    Pool
    """
    pool = chosen.pool
    if chosen.kind in SIMPLE_KINDS:
        return pool
    chances = label_chances(pool, list(evidence), candidates)
    if not measure_disagreement(chances, codes).overrules(chosen.noise_rate):
        return pool
    transition = matrix_at_anchors(chances, codes, SELECTION.preliminary_count * pool.transition)
    rows = _LabeledRows(evidence, codes, len(transition), candidates).some(rng)
    return fit_fixed_noise_pool(rows, Pool(pool.weights, pool.bias, transition))


def _best_start(
    fit: Callable[[PooledRows, Pool, FloatArray], Pool],
    rows: PooledRows,
    simplest: Pool,
    prior: FloatArray,
    base: FloatArray,
) -> Pool:
    """Fit any T from little noise and, if the simplest T found more, from that as well."""
    found = 1 - float(simplest.transition.diagonal().mean())
    best, best_value = simplest, -np.inf
    little = SELECTION.little_noise
    for rate in sorted({little, max(little, min(found, SELECTION.most_noise))}):
        start = Pool(simplest.weights, simplest.bias, uniform_noise(rate, base))
        pool = fit(rows, start, prior)
        p = pool.probabilities(list(rows.evidence), rows.candidates)
        _, chance = posterior(p, pool.transition, rows.codes, rows.candidates)
        value = np.log(chance + TINY).sum() + (prior * np.log(pool.transition + TINY)).sum()
        if value > best_value:
            best, best_value = pool, value
    return best


@dataclass(frozen=True, slots=True)
class _PoolPosteriors:
    """What a pool says about all labeled samples."""

    probabilities: FloatArray  # (n, R)
    chances: FloatArray  # (n,) of the given labels
    noise_rate: float


def _posteriors(pool: Pool, rows: _LabeledRows) -> _PoolPosteriors:
    p = pool.probabilities(rows.evidence, rows.candidates).astype(np.float64)
    posteriors, chances = posterior(p, pool.transition, rows.codes, rows.candidates)
    rate = 1 - float(own_posterior(posteriors, pool.transition, rows.codes, rows.candidates).mean())
    return _PoolPosteriors(p, chances, rate)


def _candidate(
    kind: str, pool: Pool, rows: _LabeledRows, folds: IntArray, starts: Sequence[FloatArray | None]
) -> tuple[PoolCandidate, list[FloatArray]]:
    """The log-likelihood of every label under T as fitted on the other folds, and these matrices."""
    found = _posteriors(pool, rows)
    held_out = np.log(found.chances + TINY)
    matrices: list[FloatArray] = []
    if pool.prior_counts is not None:  # otherwise there are too few parameters to overfit
        for fold, start in enumerate(starts):
            inside = folds == fold
            others = None if rows.candidates is None else rows.candidates.at(~inside)
            here = None if rows.candidates is None else rows.candidates.at(inside)
            p = found.probabilities
            matrices.append(fit_transition(p[~inside], rows.codes[~inside], pool.prior_counts, others, start))
            _, chances = posterior(p[inside], matrices[-1], rows.codes[inside], here)
            held_out[inside] = np.log(chances + TINY)
    dominant = is_diagonal_dominant(pool.transition)
    return PoolCandidate(kind, pool, held_out, found.noise_rate, dominant), matrices


def _selected(tried: list[PoolCandidate]) -> PoolCandidate:
    """Select the most likely candidate, with the exception that the module describes."""
    admissible = [one for one in tried if one.admissible] or tried[:1]
    best = max(admissible, key=lambda one: one.score)
    rivals = [one for one in admissible if one.kind not in SIMPLE_KINDS]
    if best.kind in SIMPLE_KINDS and rivals:
        rival = max(rivals, key=lambda one: one.score)
        finds_more = rival.noise_rate - best.noise_rate > SELECTION.less_noise
        if finds_more and not clearly_worse(rival.held_out, best.held_out):
            return rival
    return best
