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
from laplaceconfidence.confidence.noise_aware.probes import fit_probe
from laplaceconfidence.confidence.noise_aware.propagation import (
    log_shares_without_pairs,
    propagate_folds,
    propagate_targets,
)
from laplaceconfidence.confidence.noise_aware.settings import SETTINGS
from laplaceconfidence.confidence.noise_aware.transition import (
    candidate_width,
    likely_classes,
    narrow,
    probability_of_given,
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
        One array per kind of evidence: the probe, then every graph.
    per_fold : list of ndarray of float32, shape (n, folds, R)
        The same with each fold held out; emptied when the next round has been computed from it.
    """

    parts: list[FloatArray]
    per_fold: list[FloatArray] = field(repr=False)


def first_round(
    views: FeatureViews, targets: IntArray, given: IntArray, n_classes: int, folds: HeldOutFolds
) -> tuple[RoundEvidence, IntArray | None]:
    """Compute the evidence of models that learn labels.

    Parameters
    ----------
    views : FeatureViews
        Coordinates and graphs.
    targets : ndarray of shape (n,)
        Labels to learn: verified ones where there are, else given ones.
    given : ndarray of shape (n,)
        Given labels; each is among its sample's candidate classes.
    n_classes : int
        Number of classes.
    folds : HeldOutFolds
        Folds of ``targets``.

    Returns
    -------
    evidence : RoundEvidence
        The evidence about every sample.
    candidates : ndarray of shape (n, R) or None
        The classes of its columns if there are many classes; ``None`` for all in order.
    """
    n, n_folds = len(targets), folds.n_folds
    probe = None
    if views.coordinates is not None:
        probe = fit_probe(
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
    width = candidate_width(n_classes)
    per_fold = [
        np.empty((n, n_folds, width), np.float32) for _ in range(len(solutions) + (probe is not None))
    ]
    candidates = None if width == n_classes else np.empty((n, width), dtype=np.int64)
    pair_numbers = folds.pair_numbers()
    for rows in _row_blocks(n, len(folds.pairs) * n_classes):
        every_row = np.arange(rows.stop - rows.start)[:, None]
        parts = [log_shares_without_pairs(by_fold[rows], folds.folds[rows]) for by_fold in solutions]
        if probe is not None and views.coordinates is not None:
            parts.insert(0, probe.logits(views.coordinates[rows])[every_row, pair_numbers[rows]])
        if candidates is not None:
            here = HeldOutFolds(folds.folds[rows], n_folds, folds.labeled[rows])
            candidates[rows] = likely_classes([here.mean_over_others(part) for part in parts], given[rows])
            parts = [narrow(part, candidates[rows]) for part in parts]
        for stored, part in zip(per_fold, parts, strict=True):
            stored[rows] = part
    return RoundEvidence([folds.mean_over_others(part) for part in per_fold], per_fold), candidates


def later_round(
    views: FeatureViews,
    last: RoundEvidence,
    pool: Pool,
    targets: IntArray,
    given: IntArray,
    n_classes: int,
    candidates: IntArray | None,
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
    candidates : ndarray of shape (n, R) or None
        The classes of the columns; ``None`` for all in order.
    folds : HeldOutFolds
        Folds of ``targets``.

    Returns
    -------
    RoundEvidence
    """
    soft = _soft_targets(last, pool, targets, given, n_classes, candidates, folds)

    def candidates_of(rows: slice) -> IntArray | None:
        return None if candidates is None else candidates[rows]

    per_fold = []
    if views.coordinates is not None:
        visible = (soft.sum(axis=2) > 0).astype(np.float32)
        probe = fit_probe(
            views.coordinates, soft, visible, n_classes, l2=PROBE.later_l2, n_jobs=views.propagate.n_jobs
        )
        blocks = _row_blocks(len(soft), folds.n_folds * n_classes)
        logits = [narrow(probe.logits(views.coordinates[rows]), candidates_of(rows)) for rows in blocks]
        per_fold.append(np.concatenate(logits))
    per_fold.extend(
        narrow(propagate_targets(graph, soft, views.propagate), candidates) for graph in views.normalized
    )
    last.per_fold = []
    return RoundEvidence([folds.at_own_fold(part) for part in per_fold], per_fold)


def _row_blocks(n_rows: int, entries_per_row: int) -> Iterator[slice]:
    return sized_row_blocks(n_rows, entries_per_row, fewest_rows=_FEWEST_ROWS_PER_BLOCK)


def _soft_targets(
    last: RoundEvidence,
    pool: Pool,
    targets: IntArray,
    given: IntArray,
    n_classes: int,
    candidates: IntArray | None,
    folds: HeldOutFolds,
) -> FloatArray:
    """(n, folds, C) posteriors of the true class with each fold held out.

    They are zero at a sample's own fold and for samples without a label.
    """
    soft = pool.probabilities(last.per_fold, candidates)
    soft *= probability_of_given(pool.transition, np.maximum(given, 0), candidates)[:, None, :]
    soft /= np.maximum(soft.sum(axis=2, keepdims=True), SETTINGS.noise_model.tiny)
    soft *= folds.visible_without_folds()[:, :, None]
    soft = soft.astype(np.float32, copy=False)
    if candidates is not None:
        wide = np.zeros((*soft.shape[:2], n_classes), dtype=np.float32)
        np.put_along_axis(wide, candidates[:, None, :-1], soft[:, :, :-1], axis=2)
        soft = wide
    verified = np.flatnonzero(targets != given)
    soft[verified] = 0
    soft[verified, :, targets[verified]] = folds.outside()[verified]
    return soft
