"""Rounds of self-training in which no label ever comes back to its own sample.

Round 1 collects evidence from models that have not seen the sample's fold, nor the world's. From then on, the
posteriors of the samples outside fold f are the soft targets of world f, whose new models judge fold f only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.confidence.candidate_classes import ALL_UP_TO, N_NAMED, likely_classes, narrow
from laplaceconfidence.confidence.class_means_probe import fit_class_means_probe
from laplaceconfidence.confidence.cross_fitting import FoldWorlds
from laplaceconfidence.confidence.graph_evidence import (
    Spreader,
    seen_from_worlds,
    spread_folds,
    spread_targets,
)
from laplaceconfidence.confidence.linear_probe import LinearProbe, fit_probe
from laplaceconfidence.confidence.pool_choice import PoolCandidate, choose_pool
from laplaceconfidence.confidence.transition import chance_of_given
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.stages import stage

FIRST_L2 = 1.1  # labels as given: much noise, much shrinkage (in units of an even guess's curvature)
LATER_L2 = 0.22  # posteriors: the noise is mostly out
_ENTRIES_AT_ONCE = 1 << 22


@dataclass(frozen=True, slots=True)
class Views:
    """What evidence is made from: principal coordinates for the probe, normalized graphs to spread on."""

    coordinates: FloatArray | None  # (n, d)
    graphs: Sequence[sparse.csr_array]
    spread: Spreader
    closest: Callable[[], sparse.csr_array] | None = None  # few neighbors, a further opinion


@dataclass(slots=True)
class Round:
    """Evidence that has not seen the sample's own label, and the pool that was chosen for it."""

    evidence: list[FloatArray]  # of (n, R), own label unseen
    chosen: PoolCandidate
    tried: list[PoolCandidate]
    in_worlds: list[FloatArray] = field(repr=False)  # of (n, folds, R)


def run_rounds(
    views: Views,
    targets: IntArray,
    given: IntArray,
    n_classes: int,
    worlds: FoldWorlds,
    *,
    n_rounds: int,
    rng: np.random.Generator,
) -> tuple[list[Round], IntArray | None]:
    """Up to ``n_rounds`` rounds and the candidate classes; stops when held-out labels become less likely.

    ``targets`` are what the models learn (given labels, or verified ones), ``given`` what the noise explains.
    """
    with stage("round 1"):
        in_worlds, candidates = first_evidence(views, targets, given, n_classes, worlds)
        evidence = [worlds.average(part) for part in in_worlds]
        rounds = [_pooled(evidence, in_worlds, given, n_classes, candidates, rng)]
    for number in range(2, n_rounds + 1):
        with stage(f"round {number}"):
            soft = _soft_targets(rounds[-1], targets, given, n_classes, candidates, worlds)
            in_worlds = _later_evidence(views, soft, worlds, n_classes, candidates)
            evidence = [worlds.own(part) for part in in_worlds]
            rounds.append(_pooled(evidence, in_worlds, given, n_classes, candidates, rng))
        rounds[-2].in_worlds = []
    return rounds, candidates


def _pooled(
    evidence: list[FloatArray],
    in_worlds: list[FloatArray],
    given: IntArray,
    n_classes: int,
    candidates: IntArray | None,
    rng: np.random.Generator,
) -> Round:
    rows = np.flatnonzero(given != MISSING)
    some = None if candidates is None else candidates[rows]
    chosen, tried = choose_pool([part[rows] for part in evidence], given[rows], n_classes, some, rng)
    return Round(evidence, chosen, tried, in_worlds)


def first_evidence(
    views: Views, targets: IntArray, given: IntArray, n_classes: int, worlds: FoldWorlds
) -> tuple[list[FloatArray], IntArray | None]:
    """Evidence arrays (n, folds, R) seen from every foreign world, and the classes of their columns."""
    n, n_folds = len(targets), worlds.n_folds
    probe = None
    if views.coordinates is not None:
        probe = _fit_probe(views, views.coordinates, targets, worlds.heard_in_pairs(), n_classes, FIRST_L2)
    spreads = [spread_folds(graph, targets, n_classes, worlds, views.spread) for graph in views.graphs]
    width = n_classes if n_classes <= ALL_UP_TO else N_NAMED + 1
    kept = [np.empty((n, n_folds, width), np.float32) for _ in range(len(spreads) + (probe is not None))]
    candidates = None if width == n_classes else np.empty((n, width), dtype=np.int64)
    seen_from = worlds.pair_seen_from()
    rows_at_once = max(64, _ENTRIES_AT_ONCE // (len(worlds.pairs) * n_classes))
    for start in range(0, n, rows_at_once):
        rows = slice(start, min(start + rows_at_once, n))
        everyone = np.arange(rows.stop - rows.start)[:, None]
        parts = [seen_from_worlds(by_fold[rows], worlds.folds[rows]) for by_fold in spreads]
        if probe is not None and views.coordinates is not None:
            parts.insert(0, probe.logits(views.coordinates[rows])[everyone, seen_from[rows]])
        if candidates is not None:
            inside = FoldWorlds(worlds.folds[rows], n_folds, worlds.labeled[rows])
            candidates[rows] = likely_classes([inside.average(part) for part in parts], given[rows])
            parts = [narrow(part, candidates[rows]) for part in parts]
        for store, part in zip(kept, parts, strict=True):
            store[rows] = part
    return kept, candidates


def _fit_probe(
    views: Views,
    coordinates: FloatArray,
    targets: FloatArray | IntArray,
    heard: FloatArray,
    n_classes: int,
    l2: float,
) -> LinearProbe:
    """A regression; for many classes, discriminants from class means."""
    n_jobs = views.spread.n_jobs
    if n_classes > ALL_UP_TO:
        return fit_class_means_probe(coordinates, targets, heard, n_classes, n_jobs=n_jobs)
    return fit_probe(coordinates, targets, heard, n_classes, l2=l2 * _curvature(n_classes), n_jobs=n_jobs)


def _curvature(n_classes: int) -> float:
    """p (1 - p) at an even guess: what a logistic loss bends by, and a penalty must be measured against."""
    return (1 - 1 / n_classes) / n_classes


def _soft_targets(
    last: Round,
    targets: IntArray,
    given: IntArray,
    n_classes: int,
    candidates: IntArray | None,
    worlds: FoldWorlds,
) -> FloatArray:
    """(n, folds, C) posteriors of the true class in every foreign world; zero at home and without label."""
    pool = last.chosen.pool
    soft = pool.probabilities(last.in_worlds, candidates)
    soft *= chance_of_given(pool.transition, np.maximum(given, 0), candidates)[:, None, :]
    soft /= np.maximum(soft.sum(axis=2, keepdims=True), 1e-12)
    soft *= worlds.heard_in_worlds()[:, :, None]
    soft = soft.astype(np.float32, copy=False)
    if candidates is not None:
        everywhere = np.zeros((*soft.shape[:2], n_classes), dtype=np.float32)
        np.put_along_axis(everywhere, candidates[:, None, :-1], soft[:, :, :-1], axis=2)
        soft = everywhere
    verified = np.flatnonzero(targets != given)
    soft[verified] = 0
    soft[verified, :, targets[verified]] = worlds.foreign()[verified]
    return soft


def _later_evidence(
    views: Views, soft: FloatArray, worlds: FoldWorlds, n_classes: int, candidates: IntArray | None
) -> list[FloatArray]:
    def of(rows: slice) -> IntArray | None:
        return None if candidates is None else candidates[rows]

    evidence = []
    if views.coordinates is not None:
        heard = (soft.sum(axis=2) > 0).astype(np.float32)
        probe = _fit_probe(views, views.coordinates, soft, heard, n_classes, LATER_L2)
        rows_at_once = max(64, _ENTRIES_AT_ONCE // (worlds.n_folds * n_classes))
        blocks = [slice(start, start + rows_at_once) for start in range(0, len(soft), rows_at_once)]
        evidence.append(
            np.concatenate([narrow(probe.logits(views.coordinates[rows]), of(rows)) for rows in blocks])
        )
    evidence.extend(narrow(spread_targets(graph, soft, views.spread), candidates) for graph in views.graphs)
    return evidence
