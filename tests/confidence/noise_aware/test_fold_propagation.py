"""Labels propagated with folds held out."""

import numpy as np

from laplaceconfidence.confidence.held_out_folds import make_held_out_folds
from laplaceconfidence.confidence.laplace import LaplaceConfidence
from laplaceconfidence.confidence.noise_aware.propagation import (
    Propagator,
    close_votes,
    log_shares_without_pairs,
    propagate_folds,
)
from laplaceconfidence.graph.affinity import OrderedGraph, degrees, normalized, symmetric_affinity
from laplaceconfidence.graph.neighbors import find_neighbors


def test_a_label_leaves_no_trace_in_its_own_fold_s_evidence() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4)).astype(np.float32)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    affinity = symmetric_affinity(find_neighbors(unit, 8, n_jobs=1))
    graph = normalized(affinity, degrees(affinity))
    codes = rng.integers(0, 3, 80)
    folds = make_held_out_folds(codes, 5, np.random.default_rng(0))
    changed = codes.copy()
    fold = folds.folds == 2
    changed[fold] = (codes[fold] + 1) % 3
    before, after = (
        log_shares_without_pairs(propagate_folds(graph, labels, 3, folds, Propagator(1)), folds.folds)
        for labels in (codes, changed)
    )
    outside = folds.outside()
    np.testing.assert_allclose(before[fold][outside[fold]], after[fold][outside[fold]], atol=1e-2)
    np.testing.assert_allclose(before[~fold, 2], after[~fold, 2], atol=1e-2)


def test_spfound_solves_the_system() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)).astype(np.float32)
    affinity = symmetric_affinity(find_neighbors(X / np.linalg.norm(X, axis=1, keepdims=True), 5, n_jobs=1))
    graph = normalized(affinity, degrees(affinity))
    columns = rng.random((40, 4)).astype(np.float32)
    exact = np.linalg.solve(np.eye(40) - 0.5 * graph.toarray(), columns)
    order = rng.permutation(40)
    ordered = OrderedGraph(graph[order][:, order], order)
    for one in (graph, ordered):
        assert np.linalg.norm(Propagator(1)(one, columns) - exact) <= 0.02 * np.linalg.norm(exact)


def test_close_votes_are_the_papers_estimate_at_a_shorter_range() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)).astype(np.float32)
    codes = rng.integers(-1, 3, 60)
    affinity = symmetric_affinity(find_neighbors(X / np.linalg.norm(X, axis=1, keepdims=True), 5, n_jobs=1))
    graph = normalized(affinity, degrees(affinity))
    plain = LaplaceConfidence(5, 0.9, missing_label=-1, tol=1e-6, max_iter=200).fit(X, codes)
    votes = close_votes(graph, codes, 3, Propagator(1))
    np.testing.assert_allclose(votes, plain.label_distributions_, atol=0.02)
