"""The parts of the noise-aware estimator against closed forms and naive re-implementations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.special import expit, logit
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression

from laplaceconfidence.confidence import evidence_pool
from laplaceconfidence.confidence.calibration import (
    fit_calibration,
    fit_calibration_of_both,
    shifted_to_mean,
    shrunk_by_class,
)
from laplaceconfidence.confidence.candidate_classes import likely_classes, narrow, widen
from laplaceconfidence.confidence.class_means_probe import fit_class_means_probe
from laplaceconfidence.confidence.cross_fitting import make_worlds, stratified_folds
from laplaceconfidence.confidence.decisions import expected_curve, threshold_for_precision
from laplaceconfidence.confidence.evidence_pool import Pool, PooledRows, fit_full_pool, fit_symmetric_pool
from laplaceconfidence.confidence.graph_evidence import Spreader, far_votes, seen_from_worlds, spread_folds
from laplaceconfidence.confidence.laplace import LaplaceConfidence
from laplaceconfidence.confidence.linear_probe import fit_probe
from laplaceconfidence.confidence.noise_reading import Reading
from laplaceconfidence.confidence.transition import (
    fit_transition,
    is_diagonal_dominant,
    pair_counts,
    posterior,
    uniform_noise,
)
from laplaceconfidence.confidence.verdict import calibrate_reading
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.graph.affinity import degrees, normalized, symmetric_affinity
from laplaceconfidence.graph.neighbors import find_neighbors

RNG = np.random.default_rng(0)


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def test_folds_are_even_in_every_class() -> None:
    codes = RNG.integers(-1, 4, 203)
    folds = stratified_folds(codes, 5, np.random.default_rng(0))
    for code in range(-1, 4):
        sizes = np.bincount(folds[codes == code], minlength=5)
        assert sizes.max() - sizes.min() <= 1


def test_a_pair_hides_both_folds_and_no_other() -> None:
    worlds = make_worlds(RNG.integers(0, 3, 60), 5, np.random.default_rng(0))
    heard, seen_from = worlds.heard_in_pairs(), worlds.pair_seen_from()
    for sample in range(60):
        for world in range(5):
            if world == worlds.folds[sample]:
                continue
            hidden = set(worlds.folds[heard[:, seen_from[sample, world]] == 0].tolist())
            assert hidden == {world, worlds.folds[sample]}


def test_the_probe_agrees_with_scikit_learn() -> None:
    Z = RNG.normal(size=(200, 5)).astype(np.float32)
    y = (Z @ RNG.normal(size=(5, 3)) + RNG.normal(size=(200, 3))).argmax(axis=1)
    probe = fit_probe(Z, y, np.ones((200, 1)), 3, l2=0.1, tol=1e-5, max_iter=200, n_jobs=1)
    # scikit-learn minimizes C * summed loss + |W|^2 / 2; ours is the mean loss + l2 |W|^2 / 2.
    peer = LogisticRegression(C=1 / (0.1 * 200), tol=1e-8, max_iter=1000).fit(Z, y)
    np.testing.assert_allclose(softmax(probe.logits(Z)[:, 0]), peer.predict_proba(Z), atol=2e-3)


def test_worlds_of_the_probe_do_not_mix_and_hard_targets_are_soft_ones() -> None:
    Z = RNG.normal(size=(120, 4)).astype(np.float32)
    y = RNG.integers(0, 3, 120)
    heard = (RNG.random((120, 3)) < 0.7).astype(np.float32)
    heard[:, 0] = 1  # losses are means over the samples that any world hears
    together = fit_probe(Z, y, heard, 3, l2=0.1, tol=1e-5, max_iter=200, n_jobs=1).weights
    soft = np.repeat(np.eye(3, dtype=np.float32)[y][:, None], 3, axis=1)
    softly = fit_probe(Z, soft, heard, 3, l2=0.1, tol=1e-5, max_iter=200, n_jobs=2).weights
    np.testing.assert_allclose(together, softly, atol=1e-3)
    other = heard.copy()
    other[:, 1] = 1 - other[:, 1]
    changed = fit_probe(Z, y, other, 3, l2=0.1, tol=1e-5, max_iter=200, n_jobs=1).weights
    np.testing.assert_allclose(together[:, [0, 2]], changed[:, [0, 2]], atol=1e-3)


def test_class_means_are_linear_discriminants_where_classes_are_large() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 3000)
    Z = (rng.normal(size=(3, 4))[y] * 1.5 + rng.normal(size=(3000, 4))).astype(np.float32)
    probe = fit_class_means_probe(Z, y, np.ones((3000, 1), np.float32), 3, n_jobs=1)
    peer = LinearDiscriminantAnalysis().fit(Z, y)
    np.testing.assert_allclose(softmax(probe.logits(Z)[:, 0]), peer.predict_proba(Z), atol=0.02)


def test_class_means_hear_only_their_world_and_hard_targets_are_soft_ones() -> None:
    rng = np.random.default_rng(0)
    Z, y = rng.normal(size=(120, 4)).astype(np.float32), rng.integers(0, 3, 120)
    heard = (rng.random((120, 2)) < 0.7).astype(np.float32)
    soft = np.repeat(np.eye(3, dtype=np.float32)[y][:, None], 2, axis=1)
    weights = fit_class_means_probe(Z, y, heard, 3, n_jobs=1).weights
    np.testing.assert_allclose(weights, fit_class_means_probe(Z, soft, heard, 3).weights, atol=1e-4)
    renamed = np.where(heard[:, 0] > 0, y, (y + 1) % 3)
    changed = fit_class_means_probe(Z, renamed, heard, 3, n_jobs=1).weights
    np.testing.assert_allclose(weights[:, 0], changed[:, 0], atol=1e-5)


def test_class_means_of_nothing_are_finite() -> None:
    Z = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    alone = fit_class_means_probe(Z, np.arange(6), np.ones((6, 1), np.float32), 8, n_jobs=1)
    unheard = fit_class_means_probe(Z, np.arange(6), np.zeros((6, 1), np.float32), 8, n_jobs=1)
    assert np.isfinite(alone.weights).all()
    assert np.isfinite(unheard.weights).all()


def test_a_label_leaves_no_trace_in_its_own_fold_s_evidence() -> None:
    X = RNG.normal(size=(80, 4)).astype(np.float32)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    affinity = symmetric_affinity(find_neighbors(unit, 8, n_jobs=1))
    graph = normalized(affinity, degrees(affinity))
    codes = RNG.integers(0, 3, 80)
    worlds = make_worlds(codes, 5, np.random.default_rng(0))
    changed = codes.copy()
    fold = worlds.folds == 2
    changed[fold] = (codes[fold] + 1) % 3
    before, after = (
        seen_from_worlds(spread_folds(graph, labels, 3, worlds, Spreader(1)), worlds.folds)
        for labels in (codes, changed)
    )
    foreign = worlds.foreign()
    np.testing.assert_allclose(before[fold][foreign[fold]], after[fold][foreign[fold]], atol=1e-2)
    np.testing.assert_allclose(before[~fold, 2], after[~fold, 2], atol=1e-2)


def test_spreading_solves_the_system() -> None:
    X = RNG.normal(size=(40, 3)).astype(np.float32)
    affinity = symmetric_affinity(find_neighbors(X / np.linalg.norm(X, axis=1, keepdims=True), 5, n_jobs=1))
    graph = normalized(affinity, degrees(affinity))
    columns = RNG.random((40, 4)).astype(np.float32)
    exact = np.linalg.solve(np.eye(40) - 0.5 * graph.toarray(), columns)
    assert np.linalg.norm(Spreader(1)(graph, columns) - exact) <= 0.02 * np.linalg.norm(exact)


def test_far_votes_are_the_papers_estimate_at_a_shorter_range() -> None:
    X = RNG.normal(size=(60, 4)).astype(np.float32)
    codes = RNG.integers(-1, 3, 60)
    affinity = symmetric_affinity(find_neighbors(X / np.linalg.norm(X, axis=1, keepdims=True), 5, n_jobs=1))
    graph = normalized(affinity, degrees(affinity))
    plain = LaplaceConfidence(5, 0.9, missing_label=-1, tol=1e-6, max_iter=200).fit(X, codes)
    votes = far_votes(graph, codes, 3, Spreader(1))
    np.testing.assert_allclose(votes, plain.label_distributions_, atol=0.02)


def test_a_rare_class_does_not_come_first_where_no_noise_is_found() -> None:
    codes = np.repeat([0, 1, 2], [200, 200, 5])
    confidence = np.where(codes == 2, 0.9, np.linspace(0.95, 0.9999, 405))
    distributions = np.column_stack([confidence, 1 - confidence, np.zeros(405)])
    reading = Reading(
        np.arange(405), distributions, np.zeros(405, np.int64), confidence, confidence, identifiable=False
    )
    calibrate_reading(reading, confidence, codes, None, 3, fallback=False)
    assert reading.confidence[codes == 2].min() > np.quantile(reading.confidence[codes < 2], 0.1)
    np.testing.assert_allclose(reading.confidence[codes < 2], confidence[codes < 2])


def test_a_reading_is_put_in_another_order_and_keeps_its_mean() -> None:
    confidence = np.array([0.99, 0.95, 0.9, 0.99])
    distributions = np.column_stack([confidence, 1 - confidence])
    reading = Reading(
        np.arange(4), distributions, np.zeros(4, np.int64), confidence, confidence, identifiable=False
    )
    reading.rank_by(np.array([0.2, 0.4, 0.6, 0.8]))
    assert (np.diff(reading.confidence) > 0).all()
    assert reading.confidence.mean() == pytest.approx(confidence.mean())
    np.testing.assert_allclose(reading.distributions.sum(axis=1), 1)


def test_a_line_search_that_goes_too_far_finds_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = RNG.integers(0, 3, 30)
    rows = PooledRows(RNG.normal(size=(2, 30, 3)), codes, 3, None)
    values = []

    def far_away(loss: object, start: np.ndarray, n_steps: int, tolerance: float = 0) -> np.ndarray:
        far = start.copy()
        far[:2] = 1000.0  # logarithms of the weights
        value, gradient = loss(far)  # type: ignore[operator]
        values.extend([value, *gradient])
        return start

    monkeypatch.setattr(evidence_pool, "_minimized", far_away)
    with np.errstate(over="raise", invalid="raise"):
        pool, _ = fit_symmetric_pool(rows, np.full(3, 1 / 3))
        fit_full_pool(rows, pool, np.ones((3, 3)))
        evidence_pool.fit_fixed_noise_pool(rows, pool)
    assert np.isfinite(values).all()


@pytest.mark.parametrize("with_candidates", [False, True])
def test_gradients_of_the_pools_are_right(with_candidates: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    n, n_classes, m = 30, 40 if with_candidates else 4, 2
    codes = RNG.integers(0, n_classes, n)
    candidates = None
    evidence = RNG.normal(size=(m, n, n_classes))
    if with_candidates:
        candidates = likely_classes([part.astype(np.float32) for part in evidence], codes)
        evidence = np.stack([narrow(part, candidates) for part in evidence])
    rows = PooledRows(evidence, codes, n_classes, candidates)
    checked = []

    def compare(loss: object, start: np.ndarray, n_steps: int, tolerance: float = 0) -> np.ndarray:
        point = start + 0.1 * np.random.default_rng(1).normal(size=len(start))
        value, gradient = loss(point)  # type: ignore[operator]
        numeric = approx_fprime(point, lambda theta: loss(theta)[0], 1e-6)  # type: ignore[operator]
        np.testing.assert_allclose(gradient, numeric, atol=1e-5)
        checked.append(value)
        return start

    monkeypatch.setattr(evidence_pool, "_minimized", compare)
    base = np.full(n_classes, 1 / n_classes)
    pool, _ = fit_symmetric_pool(rows, base)
    evidence_pool.fit_fixed_noise_pool(rows, pool)
    if not with_candidates:
        fit_full_pool(rows, pool, uniform_noise(0.3, base) + 0.5)
    assert len(checked) == (2 if with_candidates else 3)


def test_the_noise_is_found_by_the_likelihood() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 4, 4000)
    p = softmax(4 * np.eye(4)[truth] + rng.normal(size=(4000, 4)))
    truth = (p.cumsum(axis=1) < rng.random((4000, 1))).sum(axis=1)
    noise = np.array([[0.7, 0.3, 0, 0], [0, 0.9, 0.1, 0], [0, 0, 1, 0], [0.2, 0, 0, 0.8]])
    given_labels = (noise[truth].cumsum(axis=1) < rng.random((4000, 1))).sum(axis=1)
    rows = PooledRows(np.log(p)[None], given_labels, 4, None)
    start = Pool(np.ones(1), np.zeros(4), uniform_noise(0.2, np.full(4, 0.25)))
    found = fit_full_pool(rows, start, np.full((4, 4), 0.5))
    np.testing.assert_allclose(found.transition, noise, atol=0.05)
    np.testing.assert_allclose(found.weights, 1, atol=0.15)
    by_em = fit_transition(p, given_labels, np.full((4, 4), 0.5) + np.eye(4), None, n_steps=50)
    np.testing.assert_allclose(by_em, noise, atol=0.05)


def test_posteriors_and_counts_add_up() -> None:
    p, codes = RNG.dirichlet(np.ones(3), 50), RNG.integers(0, 3, 50)
    transition = RNG.dirichlet(np.ones(3), 3)
    posteriors, chance = posterior(p, transition, codes, None)
    naive = np.array([p[i] * transition[:, codes[i]] for i in range(50)])
    np.testing.assert_allclose(chance, naive.sum(axis=1))
    np.testing.assert_allclose(posteriors, naive / naive.sum(axis=1, keepdims=True))
    counts = pair_counts(posteriors, codes, 3, None)
    np.testing.assert_allclose(counts.sum(axis=0), np.bincount(codes, minlength=3))


def test_renamed_classes_are_recognized() -> None:
    counts = np.full(3, 100.0)
    assert is_diagonal_dominant(uniform_noise(0.8, np.full(3, 1 / 3)), counts)
    assert not is_diagonal_dominant(np.eye(3)[[1, 2, 0]], counts)
    assert is_diagonal_dominant(np.eye(3)[[1, 2, 0]], np.ones(3))


def test_many_classes_are_narrowed_without_losing_the_given_one() -> None:
    scores = RNG.normal(size=(20, 100)).astype(np.float32)
    codes = RNG.integers(0, 100, 20)
    candidates = likely_classes([scores], codes)
    assert (candidates == codes[:, None]).any(axis=1).all()
    assert (candidates == scores.argmax(axis=1)[:, None]).any(axis=1).all()
    p = Pool(np.ones(1), np.zeros(100), np.eye(100)).probabilities([narrow(scores, candidates)], candidates)
    wide = widen(p, candidates, 100)
    np.testing.assert_allclose(wide.sum(axis=1), 1, atol=1e-5)
    rows = np.arange(20)
    np.testing.assert_allclose(wide[rows, codes], softmax(scores)[rows, codes], rtol=0.3)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=40), st.floats(0.05, 1))
def test_a_threshold_keeps_its_promise(confidences: list[float], precision: float) -> None:
    confidence = np.array(confidences)
    threshold = threshold_for_precision(confidence, precision)
    flagged = confidence < threshold
    if flagged.any():
        assert (1 - confidence[flagged]).mean() >= precision - 1e-9
    more = np.sort(confidence[~flagged])
    if len(more):  # one more value and the promise is broken
        assert (1 - confidence[confidence <= more[0]]).mean() < precision + 1e-9


def test_the_expected_curve_counts() -> None:
    curve = expected_curve([0.1, 0.9, 0.5, np.nan, 0.5])
    np.testing.assert_array_equal(curve.n_flagged, [1, 3, 4])
    np.testing.assert_allclose(curve.precision, [0.9, 1.9 / 3, 2.0 / 4])
    np.testing.assert_allclose(curve.recall, [0.45, 0.95, 1])
    with pytest.raises(InvalidInputError, match="between 0 and 1"):
        expected_curve([1.5])
    with pytest.raises(InvalidInputError, match="precision"):
        threshold_for_precision([0.5], 0)


def test_shifts_reach_the_mean_and_keep_the_order() -> None:
    confidence, groups = RNG.random(100), RNG.integers(0, 3, 100)
    shifted = shifted_to_mean(confidence, groups, np.array([0.2, 0.5, 0.9]))
    for group, mean in enumerate([0.2, 0.5, 0.9]):
        inside = groups == group
        assert shifted[inside].mean() == pytest.approx(mean, abs=1e-6)
        np.testing.assert_array_equal(np.argsort(shifted[inside]), np.argsort(confidence[inside]))


def test_small_classes_lean_on_the_others_and_large_ones_do_not() -> None:
    codes = np.repeat([0, 1, 2], [5000, 5000, 5])
    confidence = np.where(codes == 2, 0.05, 0.9)
    shrunk = shrunk_by_class(confidence, codes, 3)
    assert shrunk[codes == 2].mean() > 0.6
    assert shrunk[codes < 2].mean() == pytest.approx(0.9, abs=0.01)


def test_calibration_finds_the_shift_and_leaves_what_is_right_alone() -> None:
    rng = np.random.default_rng(0)
    truth = rng.uniform(0.02, 0.98, 400)
    right = rng.random(400) < truth
    assert fit_calibration(truth, right, trusted=True) == fit_calibration(truth, right, trusted=True)
    kept = fit_calibration(truth, right, trusted=True)
    assert (kept.slope, kept.offset) == (1.0, 0.0)
    optimistic = expit(logit(truth) + 5)
    np.testing.assert_allclose(
        fit_calibration(optimistic, right, trusted=False)(optimistic), truth, atol=0.12
    )


@pytest.mark.parametrize("right_reading", ["confidence", "support"])
def test_calibration_leans_on_the_reading_that_verified_labels_support(right_reading: str) -> None:
    rng = np.random.default_rng(1)
    truth, noise = rng.uniform(0.02, 0.98, 3000), rng.uniform(0.02, 0.98, 3000)
    right = rng.random(3000) < truth
    confidence, support = (truth, noise) if right_reading == "confidence" else (noise, truth)
    found = fit_calibration_of_both(confidence[:100], support[:100], right[:100], trusted=True)
    assert (found.slope > found.support_slope) == (right_reading == "confidence")
    np.testing.assert_allclose(found(confidence, support), truth, atol=0.15)


@pytest.mark.parametrize("outcome", [True, False])
def test_calibration_survives_verified_labels_that_are_all_alike(outcome: bool) -> None:
    confidence = np.linspace(0.2, 0.9, 60)
    calibrated = fit_calibration(confidence, np.full(60, outcome), trusted=False)(confidence)
    assert np.isfinite(calibrated).all()
    assert (calibrated.mean() > 0.9) == outcome
