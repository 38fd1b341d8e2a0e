"""The noise-aware estimator on the digits: what it finds and what it refuses."""

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from laplaceconfidence.confidence.knn_vote import KNNVote
from laplaceconfidence.confidence.laplace import LaplaceConfidence
from laplaceconfidence.confidence.noise_aware import NoiseAwareConfidence
from laplaceconfidence.evaluation.metrics import score_confidence
from laplaceconfidence.exceptions import InvalidInputError, LaplaceConfidenceWarning

X, Y = load_digits(return_X_y=True)
X.flags.writeable = Y.flags.writeable = False
N = len(Y)


def with_noise(kind: str, rate: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    given, flipped = Y.copy(), rng.random(N) < rate
    given[flipped] = rng.integers(0, 10, flipped.sum()) if kind == "symmetric" else (Y[flipped] + 1) % 10
    return given


@pytest.fixture(scope="module")
def symmetric() -> tuple[np.ndarray, NoiseAwareConfidence]:
    given = with_noise("symmetric", 0.4)
    return given, NoiseAwareConfidence(n_jobs=1).fit(X, given)


def test_it_ranks_better_than_the_papers_setting_and_no_worse_than_a_vote(symmetric: tuple) -> None:
    given, model = symmetric
    right = given == Y
    ours = roc_auc_score(right, model.confidence_)
    assert ours > roc_auc_score(right, LaplaceConfidence().fit(X, given).confidence_)
    assert ours > roc_auc_score(right, KNNVote(20).fit(X, given).confidence_) - 0.001
    assert ours > 0.98


def test_the_confidence_is_a_probability(symmetric: tuple) -> None:
    given, model = symmetric
    right = given == Y
    assert abs(model.noise_rate_ - (1 - right.mean())) < 0.03
    assert score_confidence(model.confidence_, right).calibration_error < 0.02


def test_the_most_probable_class_repairs_labels(symmetric: tuple) -> None:
    given, model = symmetric
    assert (model.transduction_ == Y).mean() > max(0.93, (given == Y).mean())


def test_outputs_fit_together(symmetric: tuple) -> None:
    given, model = symmetric
    rows = np.arange(N)
    np.testing.assert_allclose(model.label_distributions_.sum(axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(model.label_distributions_[rows, given], model.confidence_, atol=1e-9)
    np.testing.assert_allclose(model.transition_matrix_.sum(axis=1), 1)
    np.testing.assert_allclose(model.class_prior_.sum(), 1)
    assert model.expected_errors_.diagonal().sum() == 0
    np.testing.assert_allclose(model.expected_errors_.sum() / N, model.noise_rate_, atol=1e-6)
    low, high = model.noise_rate_bracket_
    assert low <= model.noise_rate_ <= high
    assert [row["won"] for row in model.rounds_].count(True) == 1
    assert model.rounds_[model.round_ - 1]["noise_model"] == model.noise_model_
    assert model.identifiable_
    assert model.fallback_ is None


def test_confused_pairs_are_found() -> None:
    given = with_noise("pair", 0.3)
    model = NoiseAwareConfidence(n_jobs=1).fit(X, given)
    errors = model.expected_errors_
    assert (errors.argmax(axis=1) == (np.arange(10) + 1) % 10).mean() >= 0.8
    assert abs(model.noise_rate_ - 0.3) < 0.05
    assert roc_auc_score(given == Y, model.confidence_) > 0.95


def test_right_labels_are_left_alone() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LaplaceConfidenceWarning)
        model = NoiseAwareConfidence(n_jobs=1).fit(X, Y)
    assert model.noise_rate_ <= 0.01
    assert (model.transduction_ != Y).mean() <= 0.005


def test_the_seed_decides_and_labels_may_be_words(symmetric: tuple) -> None:
    given, model = symmetric
    again = clone(model).fit(X, np.array(list("abcdefghij"))[given])
    np.testing.assert_allclose(again.confidence_, model.confidence_, atol=1e-6)
    assert again.classes_.tolist() == list("abcdefghij")


def test_missing_labels_get_a_class_but_no_confidence() -> None:
    given = with_noise("symmetric", 0.2).astype(float)
    gone = np.random.default_rng(1).random(N) < 0.3
    given[gone] = np.nan
    model = NoiseAwareConfidence(n_jobs=1).fit(X, given)
    assert np.isnan(model.confidence_[gone]).all()
    assert not np.isnan(model.confidence_[~gone]).any()
    assert (model.transduction_[gone] == Y[gone]).mean() > 0.9
    np.testing.assert_allclose(model.label_distributions_.sum(axis=1), 1, atol=1e-6)


def test_audited_labels_are_certain(symmetric: tuple) -> None:
    given, _ = symmetric
    audited = {row: int(Y[row]) for row in range(20)}
    model = NoiseAwareConfidence(n_jobs=1).fit(X, given, audited=audited)
    np.testing.assert_array_equal(model.confidence_[:20], (given[:20] == Y[:20]).astype(float))
    np.testing.assert_array_equal(model.transduction_[:20], Y[:20])
    assert model.calibration_ is None
    column = np.full(N, np.nan)
    column[:20] = Y[:20]
    same = NoiseAwareConfidence(n_jobs=1).fit(X, given, audited=column)
    np.testing.assert_array_equal(same.confidence_, model.confidence_)


def test_suspects_that_were_verified_first_calibrate_nothing(symmetric: tuple) -> None:
    given, plain = symmetric
    worst = plain.confidence_.argsort()[:60]
    audited = {int(row): int(Y[row]) for row in worst}

    def calibration(at_random: Any) -> Any:
        model = NoiseAwareConfidence(n_jobs=1)
        return model.fit(X, given, audited=audited, audited_at_random=at_random).calibration_

    assert calibration(None) is not None
    assert calibration(list(audited)) is not None
    assert calibration([]) is calibration(list(audited)[:49]) is None


def test_random_audited_labels_calibrate_noise_that_cannot_be_told_from_truth() -> None:
    # Labels drawn from a blurred view that the features can predict.
    blurred = X @ np.random.default_rng(0).normal(size=(64, 3))
    distance = ((blurred[:, None] - np.stack([blurred[c == Y].mean(axis=0) for c in range(10)])) ** 2).sum(
        axis=2
    )
    scores = -distance / distance.std() * 2 + 2.5 * np.eye(10)[Y]
    chance = np.exp(scores - scores.max(axis=1, keepdims=True))
    chance /= chance.sum(axis=1, keepdims=True)
    given = (chance.cumsum(axis=1) < np.random.default_rng(1).random((N, 1))).sum(axis=1).clip(0, 9)
    right = given == Y
    assert 0.1 < 1 - right.mean() < 0.6
    rows = np.random.default_rng(2).choice(N, 150, replace=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LaplaceConfidenceWarning)
        model = NoiseAwareConfidence(n_jobs=1).fit(
            X, given, audited=dict(zip(rows.tolist(), Y[rows], strict=True))
        )
    rest = np.setdiff1d(np.arange(N), rows)
    assert abs(model.confidence_[rest].mean() - right[rest].mean()) < 0.1
    assert model.identifiable_
    assert model.calibration_ is not None


def test_a_verified_class_that_nobody_gave_joins_the_classes() -> None:
    given = np.where(Y == 9, 8, Y)
    rows = np.flatnonzero(Y == 9)[:30]
    audited = dict.fromkeys(rows.tolist(), 9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LaplaceConfidenceWarning)
        model = NoiseAwareConfidence(n_jobs=1).fit(X, given, audited=audited)
    assert 9 in model.classes_
    assert (model.transduction_[rows] == 9).all()


def test_predicted_probabilities_join_as_evidence() -> None:
    rng = np.random.default_rng(0)
    given = with_noise("symmetric", 0.4)
    useful = 0.7 * np.eye(10)[Y] + 0.3 * rng.dirichlet(np.ones(10), N)
    noise = rng.normal(size=X.shape)
    with_them = NoiseAwareConfidence(n_jobs=1).fit(noise, given, pred_probs=useful)
    assert roc_auc_score(given == Y, with_them.confidence_) > 0.98
    alone = NoiseAwareConfidence(n_jobs=1).fit(None, given, pred_probs=useful)
    assert roc_auc_score(given == Y, alone.confidence_) > 0.98


def test_the_neighborhood_is_the_widest_graph_that_labels_were_propagated_over(symmetric: tuple) -> None:
    _, model = symmetric
    neighborhood = model.neighborhood_
    assert len(neighborhood) == N
    assert model.n_neighbors_ == 100
    assert np.diff(neighborhood.weights.indptr).min() >= 100
    found = neighborhood.of(0)
    assert found.shares.sum() == pytest.approx(1)
    assert (Y[found.rows[:5]] == Y[0]).all()
    assert model.neighborhood_ is neighborhood
    # S = D^-1/2 A D^-1/2 has the eigenvector sqrt(d) to the eigenvalue 1.
    root_degrees = np.sqrt(np.asarray(neighborhood.similarities.sum(axis=1)).ravel())
    np.testing.assert_allclose(neighborhood.weights @ root_degrees, root_degrees, rtol=1e-4)


def test_without_a_graph_there_is_no_neighborhood_and_a_graph_that_was_passed_in_is_it() -> None:
    given = with_noise("symmetric", 0.2)[:300]
    useful = 0.7 * np.eye(10)[Y[:300]] + 0.03
    alone = NoiseAwareConfidence(n_jobs=1).fit(None, given, pred_probs=useful)
    assert alone.neighborhood_ is None
    graph = LaplaceConfidence(8).fit(X[:300], given).affinity_
    model = NoiseAwareConfidence(n_jobs=1).fit(None, given, knn_graph=graph)
    np.testing.assert_allclose(model.neighborhood_.similarities.toarray(), graph.toarray(), rtol=1e-6)


def test_a_graph_can_stand_in_for_features(symmetric: tuple) -> None:
    given, _ = symmetric
    graph = LaplaceConfidence(15, 0.9).fit(X, given).affinity_
    model = NoiseAwareConfidence(n_jobs=1).fit(None, given, knn_graph=graph)
    assert roc_auc_score(given == Y, model.confidence_) > 0.97


def test_threshold_for_a_precision_and_the_curve(symmetric: tuple) -> None:
    given, model = symmetric
    threshold = model.threshold_for(precision=0.9)
    flagged = model.confidence_ < threshold
    assert flagged.sum() > 100
    assert (given != Y)[flagged].mean() >= 0.85
    assert (1 - model.cautious_confidence_[flagged]).mean() >= 0.9 - 1e-9
    curve = model.expected_curve()
    assert curve.n_flagged[-1] == N
    assert curve.precision[-1] == pytest.approx(1 - model.cautious_confidence_.mean())
    assert np.all(np.diff(curve.recall) >= 0)
    assert curve.recall[-1] == pytest.approx(1)


def test_a_small_class_is_not_flagged_wholesale() -> None:
    rng = np.random.default_rng(0)
    kept = np.concatenate([np.flatnonzero(Y != 3), np.flatnonzero(Y == 3)[:5]])
    given = Y[kept].copy()
    flipped = (rng.random(len(kept)) < 0.2) & (given != 3)
    given[flipped] = (given[flipped] + rng.integers(1, 10, flipped.sum())) % 10
    given[given == 3] = np.where(Y[kept][given == 3] == 3, 3, 4)
    model = NoiseAwareConfidence(n_jobs=1).fit(X[kept], given)
    assert (model.confidence_[given == 3] > 0.5).mean() >= 0.5


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"audited": {N: 1}}, "audited"),
        ({"audited": {0: 1}, "audited_at_random": [N]}, "audited_at_random"),
        ({"audited": np.zeros((N, 2))}, "audited"),
        ({"audited": [1, 2]}, "audited"),
        ({"pred_probs": np.full((N, 10), 0.2)}, "pred_probs"),
        ({"pred_probs": np.full((N, 4), 0.25)}, "pred_probs"),
        ({"pred_probs": np.full((N - 1, 10), 0.1)}, "pred_probs"),
        ({"pred_probs": np.full((N, 10), np.nan)}, "pred_probs"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict, named: str) -> None:
    with pytest.raises(InvalidInputError, match=named):
        NoiseAwareConfidence().fit(X, Y, **arguments)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("n_neighbors", "many"),
        ("n_neighbors", 0),
        ("n_neighbors", (5, -1)),
        ("n_components", 0),
        ("n_rounds", 0),
        ("n_folds", 2),
        ("search", "best"),
        ("target_recall", 0.0),
        ("knn_graph_kind", "angle"),
    ],
)
def test_wrong_settings_are_named(setting: str, value: object) -> None:
    with pytest.raises(InvalidInputError, match=setting):
        NoiseAwareConfidence(**{setting: value}).fit(X, Y)


@pytest.mark.parametrize("y", [None, np.zeros(N), np.full(N, np.nan), Y[:-1]])
def test_labels_that_are_none_are_refused(y: object) -> None:
    with pytest.raises(ValueError):
        NoiseAwareConfidence().fit(X, y)


def test_much_noise_is_found_with_more_classes_than_columns() -> None:
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(60), 40)
    X = (rng.normal(size=(60, 24))[truth] * 1.5 + rng.normal(size=(2400, 24))).astype(np.float32)
    given = np.where(rng.random(2400) < 0.8, rng.integers(0, 60, 2400), truth)
    model = NoiseAwareConfidence(n_jobs=1).fit(X, given)
    assert model.identifiable_
    assert model.noise_rate_ == pytest.approx((given != truth).mean(), abs=0.05)
    assert roc_auc_score(given == truth, model.confidence_) > 0.98
    assert model.disagreement_ is not None
    np.testing.assert_allclose(model.label_distributions_.sum(axis=1), 1, atol=1e-5)
    of_given = model.label_distributions_[np.arange(2400), given]
    np.testing.assert_allclose(of_given, model.confidence_, atol=1e-5)
    assert model.expected_errors_.sum() == pytest.approx((1 - model.confidence_).sum(), rel=1e-3)


def test_a_class_of_minus_one_is_asked_about() -> None:
    given = np.where(np.arange(300) < 30, -1, Y[:300])
    with pytest.warns(LaplaceConfidenceWarning, match="Pass missing_label=-1"):
        NoiseAwareConfidence(n_jobs=1).fit(X[:300], given)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LaplaceConfidenceWarning)
        NoiseAwareConfidence(n_jobs=1).fit(X[:300], np.where(Y[:300] > 4, 1, -1))
