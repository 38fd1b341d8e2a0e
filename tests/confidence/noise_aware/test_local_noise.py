"""Noise that the features predict, against classes that overlap."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from laplaceconfidence.confidence.noise_aware import NoiseAwareConfidence
from laplaceconfidence.confidence.noise_aware.disagreement import (
    Disagreement,
    matrix_at_anchors,
    measure_disagreement,
)
from laplaceconfidence.confidence.noise_aware.local_noise import local_noise_posterior
from laplaceconfidence.confidence.noise_aware.noise_model import Pool
from laplaceconfidence.confidence.noise_aware.noise_selection import PoolCandidate, pool_of_targets
from laplaceconfidence.data.instance_noise import draw_instance_labels
from laplaceconfidence.evaluation.metrics import score_confidence
from laplaceconfidence.exceptions import LaplaceConfidenceWarning

X, Y = load_digits(return_X_y=True)
X.flags.writeable = Y.flags.writeable = False


def with_instance_noise(rate: float, seed: int) -> np.ndarray:
    return draw_instance_labels(Y, X.astype(np.float32), 10, rate, np.random.default_rng(seed))


def fitted(features: np.ndarray, labels: np.ndarray, **arguments: object) -> NoiseAwareConfidence:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LaplaceConfidenceWarning)
        return NoiseAwareConfidence(n_jobs=1).fit(features, labels, **arguments)


@pytest.fixture(scope="module")
def mistaken_alike() -> tuple:
    labels = with_instance_noise(0.4, seed=3)
    return labels, fitted(X, labels)


def test_noise_that_features_predict_is_found_and_repaired(mistaken_alike: tuple) -> None:
    labels, model = mistaken_alike
    right = labels == Y
    assert model.noise_model_ == "local"
    assert model.identifiable_
    assert abs(model.noise_rate_ - (1 - right.mean())) < 0.05
    scores = score_confidence(model.confidence_, right)
    assert scores.auroc > 0.98
    assert scores.calibration_error < 0.07
    assert (model.transduction_ == Y).mean() > 0.93


def test_outputs_fit_together_under_local_noise(mistaken_alike: tuple) -> None:
    labels, model = mistaken_alike
    rows = np.arange(len(Y))
    np.testing.assert_allclose(model.label_distributions_.sum(axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(model.label_distributions_[rows, labels], model.confidence_, atol=1e-9)
    np.testing.assert_allclose(model.transition_matrix_.sum(axis=1), 1)
    np.testing.assert_allclose(model.expected_errors_.sum() / len(Y), model.noise_rate_, atol=1e-6)
    assert [step["won"] for step in model.rounds_].count(True) == 1
    assert model.rounds_[-1]["noise_model"] == "local"
    assert model.rounds_[-1]["surest"] == model.disagreement_.surest


def test_missing_labels_get_the_local_majority(mistaken_alike: tuple) -> None:
    labels, _ = mistaken_alike
    gone = np.random.default_rng(1).random(len(Y)) < 0.2
    model = fitted(X, np.where(gone, np.nan, labels))
    assert model.noise_model_ == "local"
    assert np.isnan(model.confidence_[gone]).all()
    assert (model.transduction_[gone] == Y[gone]).mean() > 0.9


def test_predicted_probabilities_may_be_the_selected_evidence(mistaken_alike: tuple) -> None:
    labels, alone = mistaken_alike
    sure = 0.6 * np.eye(10)[Y] + 0.4 * alone.label_distributions_.mean(axis=0)
    model = fitted(X, labels, pred_probs=sure)
    assert 1 <= model.round_ <= len(model.rounds_)
    assert (model.transduction_ == Y).mean() > 0.85


@pytest.mark.parametrize("pull", [1.2, 2.0])
def test_classes_that_overlap_everywhere_are_not_taken_for_noise(pull: float) -> None:
    rng = np.random.default_rng(0)
    features = rng.standard_normal((3000, 12))
    scores = np.exp(pull * features[:, :5])
    shares = (scores / scores.sum(axis=1, keepdims=True)).cumsum(axis=1)
    labels = (shares < rng.random((3000, 1))).sum(axis=1)
    with pytest.warns(LaplaceConfidenceWarning, match="cannot be distinguished"):
        model = NoiseAwareConfidence(n_jobs=1).fit(features, labels)
    assert model.noise_model_ != "local"
    assert not model.disagreement_.is_even


@pytest.mark.parametrize("seed", [1, 2])
def test_the_bracket_contains_the_confusion_of_what_looks_alike(seed: int) -> None:
    distances = ((X[:, None, :20] - np.stack([X[c == Y, :20].mean(axis=0) for c in range(10)])) ** 2).sum(
        axis=2
    )
    scores = -4 * distances / distances.std() + 2 * np.eye(10)[Y]
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares = (shares / shares.sum(axis=1, keepdims=True)).cumsum(axis=1)
    labels = (shares < np.random.default_rng(seed).random((len(Y), 1))).sum(axis=1).clip(0, 9)
    model = fitted(X, labels)
    assert model.noise_model_ != "local"
    low, high = model.noise_rate_bracket_
    assert low < (labels != Y).mean() < high


def naive_disagreement(chances: np.ndarray, codes: np.ndarray) -> tuple[float, float, float]:
    shares = []
    for part in (0.1, 0.2, 0.3, 0.4, 0.5):
        differs = []
        for label in range(chances.shape[1]):
            members = [i for i in range(len(codes)) if chances[i].argmax() == label]
            members.sort(key=lambda i: -chances[i].max())
            kept = [i for place, i in enumerate(members) if (place + 0.5) / len(members) < part]
            differs += [codes[i] != label for i in kept]
        shares.append(np.mean(differs) if differs else 0.0)
    return min(shares), shares[-1], float(np.mean(chances.argmax(axis=1) != codes))


@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(2, 5))
@settings(max_examples=50, deadline=None)
def test_disagreement_is_that_of_a_naive_count(seed: int, n: int, n_classes: int) -> None:
    rng = np.random.default_rng(seed)
    chances, codes = rng.dirichlet(np.ones(n_classes), n), rng.integers(0, n_classes, n)
    found = measure_disagreement(chances, codes)
    expected = naive_disagreement(chances, codes)
    np.testing.assert_allclose((found.surest, found.surer_half, found.overall), expected)
    assert 0 < found.standard_error <= 0.5
    assert found.noise_rate <= found.overall


def test_few_labels_overrule_nothing() -> None:
    few = Disagreement(0.3, 0.33, 0.35, standard_error=0.1)
    many = Disagreement(0.3, 0.33, 0.35, standard_error=0.01)
    assert not few.overrules(0.0)
    assert many.overrules(0.1)
    assert not many.overrules(0.29)


@pytest.mark.parametrize(
    "no_noise",
    [
        Disagreement(0.55, 0.56, 0.6, 0.01),  # no majority
        Disagreement(0.02, 0.2, 0.3, 0.01),  # in places: overlap
    ],
)
def test_disagreement_that_is_no_noise_overrules_nothing(no_noise: Disagreement) -> None:
    assert not no_noise.overrules(0.0)


def test_noise_on_a_long_tail_overrules_a_matrix_that_finds_little() -> None:
    rng = np.random.default_rng(11)
    truth = np.repeat(np.arange(20), np.geomspace(800, 12, 20).astype(int))
    wrong = rng.random(len(truth)) < 0.3
    codes = np.where(wrong, (truth + rng.integers(1, 20, len(truth))) % 20, truth)
    chances = np.full((len(truth), 20), 0.01)
    chances[np.arange(len(truth)), truth] = 0.81
    found = measure_disagreement(chances, codes)
    given = np.bincount(codes)
    assert (np.bincount(truth) < given / 2).any()  # small classes receive more labels than they have
    assert found.overrules(0.1)


@given(st.integers(0, 2**32 - 1), st.floats(0.05, 0.45))
@settings(max_examples=25, deadline=None)
def test_a_local_posterior_has_the_rate_it_was_given(seed: int, rate: float) -> None:
    rng = np.random.default_rng(seed)
    evidence = [rng.normal(size=(80, 4)).astype(np.float32)]
    labels = rng.integers(-1, 4, 80)
    noise = 0.8 * np.eye(4) + 0.05
    pool = Pool(np.ones(1), np.zeros(4), noise)
    result, explained = local_noise_posterior(
        pool, evidence, None, rng.dirichlet(np.ones(4), 80), labels, rate
    )
    assert 0 <= explained <= 1
    np.testing.assert_allclose(1 - result.confidence.mean(), rate, atol=1e-6)
    np.testing.assert_allclose(result.distributions.sum(axis=1), 1, atol=1e-9)
    np.testing.assert_array_equal(result.rows, np.flatnonzero(labels >= 0))


def test_without_a_matrix_the_local_majority_decides() -> None:
    chances = np.array([[0.6, 0.4, 0.0]] * 10).clip(1e-6)
    labels = np.array([0] * 6 + [1] * 4)
    pool = Pool(np.ones(1), np.zeros(3), np.eye(3))
    result, explained = local_noise_posterior(
        pool, [np.log(chances).astype(np.float32)], None, chances, labels, noise_rate=0.4
    )
    assert explained == 0
    assert (result.distributions.argmax(axis=1) == 0).all()
    assert result.confidence[:6].min() > 0.5 > result.confidence[6:].max()


def test_the_matrix_at_anchors_counts_labels_of_the_surer_half_of_every_predicted_class() -> None:
    chances = np.array([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.55, 0.45], [0.1, 0.9], [0.3, 0.7]])
    codes = np.array([0, 1, 0, 0, 1, 0])  # the anchors are rows 0, 1 and 4
    found = matrix_at_anchors(chances, codes, np.array([[2.0, 0.0], [0.5, 0.5]]))
    np.testing.assert_allclose(found, [[3 / 4, 1 / 4], [0.5 / 2, 1.5 / 2]])


def test_even_disagreement_overrules_a_matrix_that_has_not_found_it() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=3000)
    codes = np.where(rng.random(3000) < 0.4, (truth + 1) % 3, truth)
    predicted_labels = 0.58 * np.eye(3) + 0.4 * np.roll(np.eye(3), 1, axis=1) + 0.02 / 3
    evidence = [np.log(predicted_labels[truth])]  # models have learned the wrong labels, too
    blind = Pool(np.array([1.0]), np.zeros(3), 0.998 * np.eye(3) + 0.002 / 3)

    def next_pool(noise_rate: float, labels: np.ndarray, kind: str = "sparse") -> Pool:
        chosen = PoolCandidate(kind, blind, np.zeros(3000), noise_rate, admissible=True)
        return pool_of_targets(chosen, evidence, labels, None, np.random.default_rng(0))

    overruled = next_pool(0.0, codes)
    assert overruled.transition == pytest.approx(predicted_labels, abs=0.06)
    right = {}
    for name, pool in {"blind": blind, "overruled": overruled}.items():
        posterior = pool.probabilities(evidence, None) * pool.transition[:, codes].T
        right[name] = (posterior.argmax(axis=1) == truth).mean()
    assert right["blind"] < 0.65
    assert right["overruled"] == 1
    assert next_pool(0.39, codes) is blind  # a matrix that has found as much is kept
    assert next_pool(0.0, truth) is blind  # and so is one without disagreement
    assert next_pool(0.0, codes, "symmetric") is blind
