"""Rounds of self-training in which no label influences the evidence about its own sample.

Round 1 collects evidence from models that have two folds held out, the sample's own and one more. From then
on, the posteriors of the samples outside fold f are the soft targets of models with fold f held out, and
these models supply the evidence about the samples of fold f only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray, sized_row_blocks
from laplaceconfidence.confidence.held_out_folds import HeldOutFolds
from laplaceconfidence.confidence.noise_aware.noise_model import Pool
from laplaceconfidence.confidence.noise_aware.probes import LinearProbe, fit_probes
from laplaceconfidence.confidence.noise_aware.propagation import (
    log_shares_without_pairs,
    propagate_folds,
    propagate_targets,
)
from laplaceconfidence.confidence.noise_aware.settings import SETTINGS
from laplaceconfidence.confidence.noise_aware.transition import (
    Candidates,
    likely_classes,
    narrow,
    own_posterior,
    posterior,
)
from laplaceconfidence.confidence.noise_aware.views import FeatureViews

PROBE = SETTINGS.probe
_FEWEST_ROWS_PER_BLOCK = 64


@dataclass(slots=True)
class RoundEvidence:
    """The evidence of one round about every sample, independent of the sample's own label.

    Attributes
    ----------
    parts : list of ndarray of float32, shape (n, R)
        One array per kind of evidence: the probes, then every graph.
    per_fold : list of ndarray of float32, shape (n, folds, R)
        The same with each fold held out; emptied when the next round has been computed from it.
    regression : LinearProbe or None
        The regressions with each fold held out, from which those of the next round start.
    """

    parts: list[FloatArray]
    per_fold: list[FloatArray] = field(repr=False)
    regression: LinearProbe | None = field(default=None, repr=False)


def first_round(
    views: FeatureViews, targets: IntArray, given: IntArray, n_classes: int, folds: HeldOutFolds
) -> tuple[RoundEvidence, Candidates | None]:
    """Compute the evidence of models that learn labels.

    Parameters
    ----------
    views : FeatureViews
        Coordinates and graphs.
    targets : ndarray of shape (n,)
        Labels to learn: verified ones where there are, else given ones.
    given : ndarray of shape (n,)
        Given labels, ``MISSING`` where there is none.
    n_classes : int
        Number of classes.
    folds : HeldOutFolds
        Folds of ``targets``.

    Returns
    -------
    evidence : RoundEvidence
        The evidence about every sample.
    candidates : Candidates or None
        The classes of its columns if there are many classes; ``None`` for all in order.
    """
    n, n_folds = len(targets), folds.n_folds
    probes = []
    if views.coordinates is not None:
        probes = fit_probes(
            views.coordinates,
            targets,
            folds.visible_without_pairs(),
            n_classes,
            l2=PROBE.first_l2,
            n_jobs=views.propagate.n_jobs,
        )
    solutions = [
        propagate_folds(graph, targets, n_classes, folds, views.propagate) for graph in views.normalized
    ]
    width = min(n_classes, SETTINGS.classes.columns)
    per_fold = [np.empty((n, n_folds, width), np.float32) for _ in range(len(probes) + len(solutions))]
    chosen: list[Candidates] = []
    pair_numbers = folds.pair_numbers()
    for rows in _row_blocks(n, len(folds.pairs) * n_classes):
        every_row = np.arange(rows.stop - rows.start)[:, None]
        parts = [
            probe.logits(views.coordinates[rows])[every_row, pair_numbers[rows]]
            for probe in probes
            if views.coordinates is not None
        ]
        parts.extend(log_shares_without_pairs(by_fold[rows], folds.folds[rows]) for by_fold in solutions)
        if width < n_classes:
            here = HeldOutFolds(folds.folds[rows], n_folds, folds.labeled[rows])
            chosen.append(likely_classes([here.mean_over_others(part) for part in parts], given[rows]))
            parts = [narrow(part, chosen[-1]) for part in parts]
        for stored, part in zip(per_fold, parts, strict=True):
            stored[rows] = part
    candidates = Candidates.joined(chosen) if chosen else None
    return RoundEvidence(
        [folds.mean_over_others(part) for part in per_fold],
        per_fold,
        probes[0].averaged(folds.pairs_of_fold()) if probes else None,
    ), candidates


def later_round(
    views: FeatureViews,
    last: RoundEvidence,
    pool: Pool,
    targets: IntArray,
    given: IntArray,
    n_classes: int,
    candidates: Candidates | None,
    folds: HeldOutFolds,
) -> RoundEvidence:
    """Compute the evidence of models that learn posteriors.

    Parameters
    ----------
    views : FeatureViews
        Coordinates and graphs.
    last : RoundEvidence
        The evidence of the previous round.
    pool : Pool
        The pool of the previous round, under which the posteriors are computed.
    targets : ndarray of shape (n,)
        Labels to learn: verified ones where there are, else given ones.
    given : ndarray of shape (n,)
        Given labels, ``MISSING`` where there is none.
    n_classes : int
        Number of classes.
    candidates : Candidates or None
        The classes of the columns; ``None`` for all in order.
    folds : HeldOutFolds
        Folds of ``targets``.

    Returns
    -------
    RoundEvidence
    """
    soft = _soft_targets(last, pool, targets, given, n_classes, candidates, folds)
    per_fold, probes = [], []
    if views.coordinates is not None:
        visible = (soft.sum(axis=2) > 0).astype(np.float32)
        probes = fit_probes(
            views.coordinates,
            soft,
            visible,
            n_classes,
            l2=PROBE.later_l2,
            start=last.regression,
            n_jobs=views.propagate.n_jobs,
        )
        for probe in probes:
            blocks = _row_blocks(len(soft), folds.n_folds * n_classes)
            logits = [
                narrow(
                    probe.logits(views.coordinates[rows]), None if candidates is None else candidates.at(rows)
                )
                for rows in blocks
            ]
            per_fold.append(np.concatenate(logits))
    per_fold.extend(
        narrow(propagate_targets(graph, soft, views.propagate), candidates) for graph in views.normalized
    )
    last.per_fold = []
    own = [folds.at_own_fold(part) for part in per_fold]
    return RoundEvidence(own, per_fold, probes[0] if probes else None)


def _row_blocks(n_rows: int, entries_per_row: int) -> Iterator[slice]:
    return sized_row_blocks(n_rows, entries_per_row, fewest_rows=_FEWEST_ROWS_PER_BLOCK)


def _soft_targets(
    last: RoundEvidence,
    pool: Pool,
    targets: IntArray,
    given: IntArray,
    n_classes: int,
    candidates: Candidates | None,
    folds: HeldOutFolds,
) -> FloatArray:
    """(n, folds, C) posteriors of the true class with each fold held out.

    They are zero at a sample's own fold and for samples without a label.
    """
    codes = np.maximum(given, 0)
    probabilities = pool.probabilities(last.per_fold, candidates)
    soft = np.zeros((*probabilities.shape[:2], n_classes), dtype=np.float32)
    every_row = np.arange(len(codes))
    for fold in range(folds.n_folds):
        posteriors, _ = posterior(probabilities[:, fold], pool.transition, codes, candidates)
        if candidates is None:
            soft[:, fold] = posteriors
            continue
        np.put_along_axis(soft[:, fold], candidates.classes[:, :-1], posteriors[:, :-1], axis=1)
        # Of the rest only the given class is learned: nothing tells the others apart.
        soft[every_row, fold, codes] = own_posterior(posteriors, pool.transition, codes, candidates)
    soft *= folds.visible_without_folds()[:, :, None]
    verified = np.flatnonzero(targets != given)
    soft[verified] = 0
    soft[verified, :, targets[verified]] = folds.outside()[verified]
    return soft
