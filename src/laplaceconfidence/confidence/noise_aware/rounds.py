"""Rounds of self-training in which no label influences the evidence about its own sample.

Round 1 collects evidence from models that have two folds held out, the sample's own and one more. From then
on, the posteriors of the samples outside fold f are the soft targets of models with fold f held out, and
these models supply the evidence about the samples of fold f only.

Every view has probes and graphs of its own. About a sample that is not in a view, the evidence of that view
is the logarithm of the shares of the classes in the view: what the evidence would be if the features of the
sample said nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

import numpy as np

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray, sized_row_blocks
from laplaceconfidence.confidence.held_out_folds import HeldOutFolds
from laplaceconfidence.confidence.noise_aware.noise_model import Pool
from laplaceconfidence.confidence.noise_aware.probes import LinearProbe, Probes, fit_probes
from laplaceconfidence.confidence.noise_aware.propagation import (
    Propagator,
    log_shares,
    log_shares_without_pairs,
    propagate_folds,
    propagate_targets,
)
from laplaceconfidence.confidence.noise_aware.settings import SETTINGS
from laplaceconfidence.confidence.noise_aware.transition import (
    Candidates,
    column_count,
    likely_classes,
    narrow,
    own_posterior,
    posterior,
)
from laplaceconfidence.confidence.noise_aware.views import FeatureView, FeatureViews

PROBE = SETTINGS.probe
_FEWEST_ROWS_PER_BLOCK = 64


@dataclass(slots=True)
class RoundEvidence:
    """The evidence of one round about every sample, independent of the sample's own label.

    Attributes
    ----------
    parts : list of ndarray of float32, shape (n, R)
        One array per kind of evidence: the probes, then every graph, view by view.
    per_fold : list of ndarray of float32, shape (n, folds, R)
        The same with each fold held out; emptied when the next round has been computed from it.
    regressions : list of LinearProbe or None
        The regressions of every view with each fold held out, from which those of the next round start.
    """

    parts: list[FloatArray]
    per_fold: list[FloatArray] = field(repr=False)
    regressions: list[LinearProbe | None] = field(default_factory=list, repr=False)


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
    learned = [_LearnedLabels.of(view, views.propagate, targets, n_classes, folds) for view in views.each]
    width = column_count(n_classes)
    per_fold = [stored for one in learned for stored in one.storage((n, n_folds, width))]
    means = [np.empty((n, width), np.float32) for _ in per_fold]
    chosen: list[Candidates] = []
    pair_numbers = folds.pair_numbers()
    for rows in _row_blocks(n, len(folds.pairs) * n_classes):
        here = HeldOutFolds(folds.folds[rows], n_folds, folds.labeled[rows])
        parts = [part for one in learned for part in one.evidence(rows, pair_numbers[rows], folds)]
        if width < n_classes:
            chosen.append(likely_classes([here.mean_over_others(part) for part in parts], given[rows]))
            parts = [narrow(part, chosen[-1]) for part in parts]
        for stored, mean, part in zip(per_fold, means, parts, strict=True):
            stored[rows], mean[rows] = part, here.mean_over_others(part)
    candidates = Candidates.joined(chosen) if chosen else None
    return RoundEvidence(
        means,
        per_fold,
        [one.probes[0].averaged(folds.pairs_of_fold()) if one.probes else None for one in learned],
    ), candidates


@dataclass(frozen=True, slots=True, eq=False)
class _LearnedLabels:
    """What the probes and graphs of one view have learned from labels, with pairs of folds held out."""

    view: FeatureView
    probes: Probes | tuple[()]
    by_fold: list[FloatArray]  # (n, folds, C) per graph
    neutral: FloatArray  # (pairs, C)

    @classmethod
    def of(
        cls,
        view: FeatureView,
        propagate: Propagator,
        targets: IntArray,
        n_classes: int,
        folds: HeldOutFolds,
    ) -> _LearnedLabels:
        visible = view.visible(folds.visible_without_pairs())
        probes: Probes | tuple[()] = ()
        if view.coordinates is not None:
            probes = fit_probes(
                view.coordinates,
                targets,
                visible,
                n_classes,
                l2=PROBE.first_l2,
                heavy_tails=view.heavy_tails,
                n_jobs=propagate.n_jobs,
            )
        by_fold = [
            propagate_folds(graph.normalized, targets, n_classes, folds, propagate) for graph in view.graphs
        ]
        shares = np.zeros((visible.shape[1], n_classes))
        if view.present is not None:
            for pair in range(visible.shape[1]):
                codes = targets[visible[:, pair] > 0]
                shares[pair] = np.bincount(codes, minlength=n_classes)
        return cls(view, probes, by_fold, log_shares(shares))

    def storage(self, shape: tuple[int, int, int]) -> list[FloatArray]:
        """Arrays for the evidence; that of a graph may replace what it is computed from, row by row."""
        made = [np.empty(shape, np.float32) for _ in self.probes]
        return made + [one if one.shape == shape else np.empty(shape, np.float32) for one in self.by_fold]

    def evidence(self, rows: slice, pair_numbers: IntArray, folds: HeldOutFolds) -> list[FloatArray]:
        """(rows, folds, C) per kind of evidence."""
        every_row = np.arange(len(pair_numbers))[:, None]
        coordinates = self.view.coordinates
        parts = []
        if coordinates is not None:
            logits = (probe.logits(coordinates[rows]) for probe in self.probes)
            parts = [one[every_row, pair_numbers] for one in logits]
        parts.extend(log_shares_without_pairs(by_fold[rows], folds.folds[rows]) for by_fold in self.by_fold)
        if self.view.present is not None:
            absent = ~self.view.present[rows]
            for part in parts:
                part[absent] = self.neutral[pair_numbers[absent]]
        return parts


def later_round(
    views: FeatureViews,
    last: RoundEvidence,
    pool: Pool,
    targets: IntArray,
    given: IntArray,
    n_classes: int,
    candidates: Candidates | None,
    folds: HeldOutFolds,
    *,
    is_last: bool = False,
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
    is_last : bool, default=False
        Whether no other round follows, which would need the evidence with every fold held out.

    Returns
    -------
    RoundEvidence
    """
    soft = _soft_targets(last, pool, targets, given, n_classes, candidates, folds)
    last.per_fold = []  # frees memory that the next evidence takes
    own_folds = folds.folds if is_last else None
    found, regressions = evidence_of_targets(views, soft, candidates, last.regressions, own_folds)
    if is_last:
        return RoundEvidence(found, [], regressions)
    return RoundEvidence([folds.at_own_fold(part) for part in found], found, regressions)


def evidence_of_targets(
    views: FeatureViews,
    soft: FloatArray,
    candidates: Candidates | None = None,
    starts: Sequence[LinearProbe | None] = (),
    own_folds: IntArray | None = None,
) -> tuple[list[FloatArray], list[LinearProbe | None]]:
    """Compute what models that learn soft targets say about all samples.

    Parameters
    ----------
    views : FeatureViews
        Coordinates and graphs.
    soft : ndarray of float32, shape (n, folds, C)
        Soft targets with each fold held out: zero where a sample must not be learned.
    candidates : Candidates or None, default=None
        The classes of the columns; ``None`` for all in order.
    starts : sequence of LinearProbe or None, default=()
        The regression of every view to start from.
    own_folds : ndarray of shape (n,) or None, default=None
        The fold of every sample, if only the evidence with that fold held out is needed.

    Returns
    -------
    evidence : list of ndarray of float32, shape (n, folds, R), or (n, R) with ``own_folds``
        One array per kind of evidence.
    regressions : list of LinearProbe or None
        The regression of every view.
    """
    evidence: list[FloatArray] = []
    regressions: list[LinearProbe | None] = []
    n, n_folds, n_classes = soft.shape
    width = n_classes if candidates is None else candidates.classes.shape[1]
    shape = (n, n_folds, width) if own_folds is None else (n, width)

    def needed(part: FloatArray, rows: slice) -> FloatArray:
        return part if own_folds is None else part[np.arange(len(part)), own_folds[rows]]

    for view, start in zip_longest(views.each, starts):
        # Graphs come first, because they need most memory while they are computed.
        of_graphs = [
            needed(
                narrow(propagate_targets(graph.normalized, soft, views.propagate), candidates), slice(None)
            )
            for graph in view.graphs
        ]
        of_probes: list[FloatArray] = []
        probes: Probes | tuple[()] = ()
        if (coordinates := view.coordinates) is not None:
            visible = view.visible((soft.sum(axis=2) > 0).astype(np.float32))
            probes = fit_probes(
                coordinates,
                soft,
                visible,
                n_classes,
                l2=PROBE.later_l2,
                heavy_tails=view.heavy_tails,
                start=start,
                n_jobs=views.propagate.n_jobs,
            )
            for probe in probes:
                of_probes.append(np.empty(shape, np.float32))
                for rows in _row_blocks(n, n_folds * n_classes):
                    some = None if candidates is None else candidates.at(rows)
                    of_probes[-1][rows] = needed(narrow(probe.logits(coordinates[rows]), some), rows)
        found = of_probes + of_graphs
        if view.present is not None:
            neutral, absent = _neutral_evidence(view.present, soft, candidates)
            for part in found:
                part[absent] = (
                    neutral if own_folds is None else neutral[np.arange(len(absent)), own_folds[absent]]
                )
        evidence.extend(found)
        regressions.append(probes[0] if probes else None)
    return evidence, regressions


def _neutral_evidence(
    present: BoolArray, soft: FloatArray, candidates: Candidates | None
) -> tuple[FloatArray, IntArray]:
    """The evidence (m, folds, R) about samples that are not in a view: the shares of the classes in it."""
    absent = np.flatnonzero(~present)
    shares = np.tensordot(present.astype(np.float32), soft, axes=1)
    of_absent = np.repeat(log_shares(shares)[None], len(absent), axis=0)
    return narrow(of_absent, None if candidates is None else candidates.at(absent)), absent


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
    n, n_folds, _ = last.per_fold[0].shape
    soft = np.zeros((n, n_folds, n_classes), dtype=np.float32)
    for rows in _row_blocks(n, n_folds * n_classes):
        codes, some = np.maximum(given[rows], 0), None if candidates is None else candidates.at(rows)
        here, every_row = soft[rows], np.arange(len(codes))
        probabilities = pool.probabilities([part[rows] for part in last.per_fold], some)
        for fold in range(n_folds):
            posteriors, _ = posterior(probabilities[:, fold], pool.transition, codes, some)
            if some is None:
                here[:, fold] = posteriors
                continue
            np.put_along_axis(here[:, fold], some.classes[:, :-1], posteriors[:, :-1], axis=1)
            # Of the rest only the given class is learned: nothing tells the others apart.
            here[every_row, fold, codes] = own_posterior(posteriors, pool.transition, codes, some)
    soft *= folds.visible_without_folds()[:, :, None]
    verified = np.flatnonzero(targets != given)
    soft[verified] = 0
    soft[verified, :, targets[verified]] = folds.outside()[verified]
    return soft
