"""The consensus of several annotators and the evidence of features, fitted in turn.

Without features the class probabilities are the shares of the classes, and the result is a regularized
Dawid-Skene model. With features, a probe and graphs learn the posteriors in rounds, with the sample's own
fold held out; their weights and the noise matrices maximize one likelihood of all labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray
from laplaceconfidence.confidence.annotators.copies import find_copies
from laplaceconfidence.confidence.annotators.labels import CodedLabels
from laplaceconfidence.confidence.annotators.model import AnnotatorModel, class_shares, fit_annotators
from laplaceconfidence.confidence.held_out_folds import HeldOutFolds, make_held_out_folds
from laplaceconfidence.confidence.noise_aware.noise_model import Pool, PooledRows, fit_weights
from laplaceconfidence.confidence.noise_aware.round_selection import log_probabilities
from laplaceconfidence.confidence.noise_aware.rounds import evidence_of_targets
from laplaceconfidence.confidence.noise_aware.views import FeatureViews
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.stages import stage

_TURNS = 3  # of fitting the weights and the noise matrices
_PRIOR_STEPS = 3  # of fitting the shares of the classes
_TINY = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Consensus:
    """What the labels and the features say about every sample.

    Attributes
    ----------
    labels : CodedLabels
        The labels that were counted, without those of annotators who copied.
    model : AnnotatorModel
        The noise matrices and the posteriors.
    log_prior : ndarray of shape (n, C)
        Logarithms of the class probabilities without the labels of the sample.
    pool : Pool or None
        Weights of the kinds of evidence; ``None`` without any.
    copied_from : dict of int to int
        Annotators whose labels are identical to those of another one, and that one.
    history : list of dict
        Log-likelihood, weights and noise rate of every round.
    """

    labels: CodedLabels
    model: AnnotatorModel
    log_prior: FloatArray
    pool: Pool | None
    copied_from: dict[int, int]
    history: list[dict[str, Any]]


def find_consensus(
    views: FeatureViews,
    pred_probs: FloatArray | None,
    labels: CodedLabels,
    verified: IntArray | None,
    *,
    n_rounds: int,
    n_folds: int,
    rng: np.random.Generator,
) -> Consensus:
    """Find the posteriors of the true classes under all labels and the features.

    Parameters
    ----------
    views : FeatureViews
        Coordinates and graphs; may be empty.
    pred_probs : ndarray of shape (n, C) or None
        Further evidence: predicted probabilities.
    labels : CodedLabels
        The labels.
    verified : ndarray of shape (n,) or None
        Verified labels, ``MISSING`` where there is none.
    n_rounds, n_folds : int
        Rounds of self-training and held-out folds.
    rng : numpy.random.Generator
        Draws the folds.

    Returns
    -------
    Consensus
    """
    model, log_prior = _without_features(labels, verified)
    copied_from = find_copies(labels, log_prior, model)
    if copied_from:
        labels = labels.without(np.array(list(copied_from), dtype=np.int64))
        model, log_prior = _without_features(labels, verified)
    history = [_summary("labels alone", model, labels, None)]
    outside = [] if pred_probs is None else [log_probabilities(pred_probs)]
    if views.is_empty and not outside:
        return Consensus(labels, model, log_prior, None, copied_from, history)

    labeled = np.zeros(labels.n_samples, dtype=bool)
    labeled[labels.samples] = True
    if verified is not None:
        labeled |= verified != MISSING
    folds = make_held_out_folds(np.where(labeled, model.posteriors.argmax(axis=1), MISSING), n_folds, rng)
    # EM finds a local maximum: someone who is nearly always right is believed in every error, too, unless the
    # features contradict before the matrices have settled. So it starts twice.
    by_votes = fit_annotators(labels, log_prior, _vote_shares(labels), verified, n_steps=1)
    starts = [(model, model.posteriors), (by_votes, _vote_shares(labels))]
    for number in range(1 if views.is_empty else n_rounds):
        with stage(f"round {number + 1}"):
            if number == 0:
                tried = []
                for start, posteriors in starts:
                    soft = np.repeat(posteriors[:, None].astype(np.float32), n_folds, axis=1)
                    tried.append(_one_round(views, soft, outside, labels, start, verified, folds))
                chosen = max(tried, key=lambda one: one.model.score)
            else:
                soft = _posteriors_per_fold(chosen, outside, verified, folds)
                chosen = _one_round(views, soft, outside, labels, chosen.model, verified, folds)
            history.append(_summary(f"round {number + 1}", chosen.model, labels, chosen.pool))
    return Consensus(labels, chosen.model, chosen.log_prior, chosen.pool, copied_from, history)


@dataclass(frozen=True, slots=True, eq=False)
class _Round:
    """Evidence with each fold held out (n, folds, C) per kind, and what was fitted to it."""

    per_fold: list[FloatArray]
    pool: Pool
    model: AnnotatorModel
    log_prior: FloatArray


def _one_round(
    views: FeatureViews,
    soft: FloatArray,
    outside: list[FloatArray],
    labels: CodedLabels,
    start: AnnotatorModel,
    verified: IntArray | None,
    folds: HeldOutFolds,
) -> _Round:
    """Learn the posteriors (n, folds, C), and fit weights and noise matrices to what was learned."""
    soft = soft * folds.visible_without_folds()[:, :, None]
    per_fold, _ = evidence_of_targets(views, soft)
    parts = [folds.at_own_fold(part) for part in per_fold] + outside
    pool, model, log_prior = _fit_together(parts, labels, start, verified, folds.labeled)
    return _Round(per_fold, pool, model, log_prior)


def _vote_shares(labels: CodedLabels) -> FloatArray:
    """(n, C) shares of the votes, with one vote more that is spread over all classes."""
    shares = labels.votes() + 1 / labels.n_classes
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _without_features(labels: CodedLabels, verified: IntArray | None) -> tuple[AnnotatorModel, FloatArray]:
    """Dawid-Skene with the priors of ``fit_annotators`` and fitted shares of the classes."""
    posteriors = _vote_shares(labels)
    for _ in range(_PRIOR_STEPS):
        log_prior = np.tile(np.log(class_shares(posteriors)), (labels.n_samples, 1))
        model = fit_annotators(labels, log_prior, posteriors, verified)
        posteriors = model.posteriors
    return model, log_prior


def _fit_together(
    parts: list[FloatArray],
    labels: CodedLabels,
    model: AnnotatorModel,
    verified: IntArray | None,
    labeled: BoolArray,
) -> tuple[Pool, AnnotatorModel, FloatArray]:
    """Fit the weights of the evidence and the noise matrices in turn."""
    kinds = len(parts)
    pool = Pool(np.full(kinds, 1 / kinds), np.zeros(labels.n_classes), model.shared)
    rows = np.flatnonzero(labeled)
    evidence = np.stack([part[rows] for part in parts]).astype(np.float64)
    pooled = PooledRows(evidence, np.zeros(len(rows), dtype=np.int64), labels.n_classes, None)
    log_prior = np.empty(0)
    for _ in range(_TURNS):
        likelihoods = model.log_likelihoods[rows]
        chances = np.exp(likelihoods - likelihoods.max(axis=1, keepdims=True))
        if verified is not None:
            known = np.flatnonzero(verified[rows] != MISSING)
            chances[known] = 0
            chances[known, verified[rows][known]] = 1
        pool = fit_weights(pooled, chances, pool)
        log_prior = np.log(pool.probabilities(parts, None).astype(np.float64) + _TINY)
        start = softmax(log_prior + model.log_likelihoods, axis=1)
        model = fit_annotators(labels, log_prior, start, verified, prior=model.prior)
    return Pool(pool.weights, pool.bias, model.shared), model, log_prior


def _posteriors_per_fold(
    last: _Round, outside: list[FloatArray], verified: IntArray | None, folds: HeldOutFolds
) -> FloatArray:
    """(n, folds, C) posteriors whose evidence does not depend on the labels of each fold."""
    repeated = [np.repeat(part[:, None], folds.n_folds, axis=1) for part in outside]
    soft = last.pool.probabilities([*last.per_fold, *repeated], None)
    likelihoods = last.model.log_likelihoods
    soft *= np.exp(likelihoods - likelihoods.max(axis=1, keepdims=True))[:, None]
    soft /= np.maximum(soft.sum(axis=2, keepdims=True), _TINY)
    if verified is not None:
        known = np.flatnonzero(verified != MISSING)
        soft[known] = 0
        soft[known, :, verified[known]] = 1
    return np.asarray(soft, dtype=np.float32)


def _summary(step: str, model: AnnotatorModel, labels: CodedLabels, pool: Pool | None) -> dict[str, Any]:
    confidence = model.posteriors[labels.samples, labels.codes]
    return {
        "step": step,
        "log_likelihood": model.score,
        "noise_rate": 1 - float(confidence.mean()),
        "evidence_weights": [] if pool is None else pool.weights.tolist(),
        "labels_that_the_prior_is_worth": model.prior.typical_concentration,
    }
