"""The paper's estimator: closed forms, properties and what bad input gets."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import kneighbors_graph
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from laplaceconfidence import LaplaceConfidence
from laplaceconfidence.exceptions import AdjustedSettingWarning, InvalidInputError, LaplaceConfidenceWarning

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, labels of which 40% were drawn anew, and the true labels."""
    X, truth = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    drawn = rng.random(len(truth)) < 0.4
    labels = np.where(drawn, rng.integers(0, 10, len(truth)), truth)
    for array in (X, labels, truth):
        array.flags.writeable = False  # all tests share it
    return X, labels, truth


@parametrize_with_checks([LaplaceConfidence()])
def test_scikit_learn_agrees_that_this_is_an_estimator(estimator: Any, check: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def naive_confidence(X: np.ndarray, y: np.ndarray, k: int, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    """The method as REFERENCE tells it, with dense matrices and an inverse."""
    n, unit = len(X), X / np.linalg.norm(X, axis=1, keepdims=True)
    similarity = unit @ unit.T
    weights = np.zeros((n, n))
    for i in range(n):
        order = [j for j in np.argsort(-similarity[i], kind="stable") if j != i][:k]
        weights[i, order] = np.maximum(similarity[i, order], 0)
    weights = np.maximum(weights, weights.T)
    degree = weights.sum(axis=1)
    degree[degree == 0] = 1
    system = np.eye(n) - alpha * weights / np.sqrt(np.outer(degree, degree))
    solution = np.maximum(np.linalg.inv(system) @ (y[:, None] == np.unique(y)), 0)
    distribution = np.exp(solution) / np.exp(solution).sum(axis=1, keepdims=True)
    return distribution[np.arange(n), np.searchsorted(np.unique(y), y)], distribution


@settings(max_examples=25, deadline=None)
@given(st.integers(8, 60), st.integers(2, 6), st.integers(1, 12), st.floats(0.1, 0.97), st.integers(0, 9999))
def test_confidence_is_that_of_the_naive_method(n: int, d: int, k: int, alpha: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, d)), rng.integers(0, 3, size=n)
    y[:6] = [0, 0, 1, 1, 2, 2]
    fitted = LaplaceConfidence(min(k, n - 1), alpha, tol=1e-12, max_iter=500).fit(X, y)
    confidence, distribution = naive_confidence(X, y, min(k, n - 1), alpha)
    np.testing.assert_allclose(fitted.confidence_, confidence, atol=1e-6)
    np.testing.assert_allclose(fitted.label_distributions_, distribution, atol=1e-6)
    np.testing.assert_allclose(fitted.label_distributions_.sum(axis=1), 1)
    assert fitted.energy_.solution <= fitted.energy_.given


def test_wrong_labels_get_low_confidence(digits: Any) -> None:
    X, noisy, truth = digits
    fitted = LaplaceConfidence(10, 0.9).fit(X, noisy)
    assert roc_auc_score(noisy == truth, fitted.confidence_) > 0.98
    assert (fitted.transduction_ == truth).mean() > 0.95
    assert fitted.energy_.solution < fitted.energy_.given


def test_single_precision_gives_the_same_confidence(digits: Any) -> None:
    X, noisy, _ = digits
    double, single = (
        LaplaceConfidence(dtype=dtype, max_iter=100).fit(X, noisy) for dtype in ("float64", "float32")
    )
    assert single.confidence_.dtype == np.float32
    assert double.confidence_.dtype == np.float64
    np.testing.assert_allclose(single.confidence_, double.confidence_, atol=0.02)


def test_labels_may_be_words_or_any_integers(digits: Any) -> None:
    X, noisy, _ = digits
    reference = LaplaceConfidence().fit(X, noisy)
    words = np.array([f"digit {code}" for code in range(10)])
    as_words = LaplaceConfidence().fit(X, words[noisy])
    as_integers = LaplaceConfidence().fit(X, noisy * 100 - 500)
    np.testing.assert_array_equal(as_words.confidence_, reference.confidence_)
    np.testing.assert_array_equal(as_integers.confidence_, reference.confidence_)
    np.testing.assert_array_equal(as_words.transduction_, words[reference.transduction_])
    np.testing.assert_array_equal(as_integers.classes_, np.arange(10) * 100 - 500)


@pytest.mark.parametrize("gap", [None, "", float("nan")])
def test_missing_labels_get_a_distribution_and_no_confidence(digits: Any, gap: object) -> None:
    X, _, truth = digits
    labels = np.array([f"d{code}" for code in truth], dtype=object)
    labels[::3] = gap
    fitted = LaplaceConfidence(10, 0.9).fit(X, labels)
    missing = np.arange(len(X)) % 3 == 0
    assert np.isnan(fitted.confidence_[missing]).all()
    assert not np.isnan(fitted.confidence_[~missing]).any()
    truth_words = np.array([f"d{code}" for code in truth])
    assert (fitted.transduction_[missing] == truth_words[missing]).mean() > 0.95


def test_minus_one_is_a_class_unless_it_is_said_to_be_missing(digits: Any) -> None:
    X, _, truth = digits
    labels = truth.copy()
    labels[:50] = -1
    with pytest.warns(LaplaceConfidenceWarning, match="missing_label=-1"):
        assert -1 in LaplaceConfidence().fit(X, labels).classes_
    fitted = LaplaceConfidence(missing_label=-1).fit(X, labels)
    assert -1 not in fitted.classes_
    assert np.isnan(fitted.confidence_[:50]).all()


def test_new_points_are_predicted_through_their_neighbors(digits: Any) -> None:
    X, noisy, truth = digits
    fitted = LaplaceConfidence(10, 0.9).fit(X[:1400], noisy[:1400])
    probabilities = fitted.predict_proba(X[1400:])
    assert (fitted.predict(X[1400:]) == truth[1400:]).mean() > 0.93
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)


def test_a_new_point_gets_what_an_unlabeled_node_hears(digits: Any) -> None:
    """One fixed-point step: F(x) = alpha sum_j a_xj F_j / sqrt(d_x d_j)."""
    X, noisy, _ = digits
    fitted = LaplaceConfidence(5, 0.8, tol=1e-10, max_iter=500).fit(X[:200], noisy[:200])
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    affinity = fitted.affinity_.toarray()
    degree = affinity.sum(axis=1)
    system = np.eye(200) - 0.8 * affinity / np.sqrt(np.outer(degree, degree))
    solution = np.linalg.solve(system, (noisy[:200, None] == fitted.classes_).astype(float))
    nearest = np.argsort(-(unit[:200] @ unit[700]))[:5]
    weights = unit[nearest] @ unit[700]
    gathered = 0.8 * (weights / np.sqrt(weights.sum() * degree[nearest])) @ solution[nearest]
    expected = np.exp(np.maximum(gathered, 0)) / np.exp(np.maximum(gathered, 0)).sum()
    np.testing.assert_allclose(fitted.predict_proba(X[700:701])[0], expected, rtol=1e-5)


def test_principal_components_are_kept_for_prediction(digits: Any) -> None:
    X, noisy, truth = digits
    fitted = LaplaceConfidence(10, 0.9, n_components=20).fit(X, noisy)
    assert roc_auc_score(noisy == truth, fitted.confidence_) > 0.97
    assert (fitted.predict(X) == truth).mean() > 0.95


def test_a_graph_the_user_brings_replaces_the_search(digits: Any) -> None:
    X, noisy, _ = digits
    ours = LaplaceConfidence(15, tol=1e-8, max_iter=500).fit(X, noisy)
    graph = kneighbors_graph(X, 15, mode="distance", metric="cosine")
    brought = LaplaceConfidence(knn_graph_kind="cosine_distance", tol=1e-8, max_iter=500)
    brought.fit(None, noisy, knn_graph=graph)
    assert np.corrcoef(brought.confidence_, ours.confidence_)[0, 1] > 0.999
    assert brought.recall_ is None
    with pytest.raises(InvalidInputError, match="fitted on a 'knn_graph' without features"):
        brought.predict(X)


def test_weights_of_zero_silence_a_sample(digits: Any) -> None:
    X, noisy, truth = digits
    wrong = noisy != truth
    weighted = LaplaceConfidence().fit(X, noisy, sample_weight=np.where(wrong, 0.0, 1.0))
    plain = LaplaceConfidence().fit(X, noisy)
    assert (weighted.transduction_ == truth).mean() >= (plain.transduction_ == truth).mean()


def test_results_are_repeatable_and_inputs_untouched(digits: Any) -> None:
    X, noisy, _ = digits
    before = X.copy(), noisy.copy()
    first = LaplaceConfidence(search="ivf", random_state=4).fit(X, noisy)
    second = clone(first).fit(X, noisy)
    np.testing.assert_array_equal(first.confidence_, second.confidence_)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(noisy, before[1])
    assert first.search_ == "ivf"
    assert 0.95 <= first.recall_ <= 1


def test_it_works_in_a_pipeline_and_on_frames(digits: Any) -> None:
    X, noisy, truth = digits
    frame = pd.DataFrame(X, columns=[f"pixel{i}" for i in range(64)])
    pipeline = make_pipeline(StandardScaler(), LaplaceConfidence(10, 0.9)).fit(frame, pd.Series(noisy))
    assert pipeline.score(frame, truth) > 0.9


def test_torch_tensors_are_taken_as_they_are(digits: Any) -> None:
    torch = pytest.importorskip("torch")
    X, noisy, _ = digits
    from_torch = LaplaceConfidence().fit(torch.tensor(X, requires_grad=True), torch.tensor(noisy))
    np.testing.assert_allclose(from_torch.confidence_, LaplaceConfidence().fit(X, noisy).confidence_)


def test_stopping_early_warns_with_the_residual(digits: Any) -> None:
    X, noisy, _ = digits
    with pytest.warns(ConvergenceWarning, match="max_iter=2 iterations at a relative residual of"):
        fitted = LaplaceConfidence(max_iter=2).fit(X, noisy)
    assert not fitted.converged_
    assert fitted.n_iter_ == 2
    assert fitted.residual_ == fitted.class_residuals_.max() > 1e-3


def test_more_classes_than_fit_into_one_block() -> None:
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(300, 16))
    y = np.repeat(np.arange(300), 4)
    X = centers[y] + 0.05 * rng.normal(size=(1200, 16))
    noisy = y.copy()
    noisy[::10] = rng.integers(0, 300, size=120)
    fitted = LaplaceConfidence(5, 0.9).fit(X, noisy)
    assert roc_auc_score(noisy == y, fitted.confidence_) > 0.95


GOOD_X = np.random.default_rng(0).normal(size=(30, 4))
GOOD_Y = np.arange(30) % 3
GOOD_X.flags.writeable = GOOD_Y.flags.writeable = False


def with_value(value: float, row: int = 7) -> np.ndarray:
    X = GOOD_X.copy()
    X[row, 1] = value
    return X


@pytest.mark.parametrize(
    ("settings_", "X", "y", "message"),
    [
        ({}, with_value(np.nan), GOOD_Y, r"1 NaN and 0 infinite .* 1 of 30 rows; the first is row 7"),
        ({}, with_value(-np.inf), GOOD_Y, "0 NaN and 1 infinite"),
        ({}, GOOD_X, GOOD_Y[:20], "'X' has 30, 'y' has 20"),
        ({}, GOOD_X, np.zeros(30, int), r"at least two classes. Got '1 class: \[0\]'"),
        ({}, GOOD_X, GOOD_Y + 0.5, "strings or integers"),
        ({}, GOOD_X, [None] * 30, "at least two classes. Got '0 classes"),
        ({}, np.ones((30, 4)), GOOD_Y, "different between samples. Got '30 equal rows'"),
        ({}, None, GOOD_Y, "'X' parameter must be given unless a 'knn_graph' is"),
        ({"alpha": 1.0}, GOOD_X, GOOD_Y, r"'alpha' parameter must be .* above 0 and below 1. Got 1\.0"),
        ({"alpha": 0}, GOOD_X, GOOD_Y, "'alpha' parameter must be"),
        ({"alpha": "big"}, GOOD_X, GOOD_Y, "Got 'big'"),
        (
            {"n_neighbors": 0},
            GOOD_X,
            GOOD_Y,
            "'n_neighbors' parameter must be an integer of at least 1. Got 0",
        ),
        ({"n_neighbors": 2.5}, GOOD_X, GOOD_Y, "Got 2.5"),
        ({"n_components": 5}, GOOD_X, GOOD_Y, "'n_components' .* at most 4. Got 5"),
        ({"search": "magic"}, GOOD_X, GOOD_Y, "one of 'auto', 'exact', 'ivf'"),
        ({"dtype": "float16"}, GOOD_X, GOOD_Y, "'dtype' parameter must be one of"),
        ({"tol": 0.0}, GOOD_X, GOOD_Y, "'tol' parameter must be"),
        ({"max_iter": 0}, GOOD_X, GOOD_Y, "'max_iter' parameter must be"),
        ({"n_jobs": 0}, GOOD_X, GOOD_Y, "'n_jobs' parameter must not be 0"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_bad_input_names_parameter_rule_and_value(
    settings_: dict[str, Any], X: Any, y: Any, message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        LaplaceConfidence(**settings_).fit(X, y)


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (sparse.csr_array((29, 30)), r"must be of shape \(30, 30\)"),
        (sparse.csr_array(np.full((30, 30), -1.0)), "non-negative"),
        (sparse.csr_array(np.full((30, 30), np.nan)), "900 NaN or infinite"),
    ],
)
def test_bad_graphs_are_refused(graph: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        LaplaceConfidence().fit(GOOD_X, GOOD_Y, knn_graph=graph)


@pytest.mark.parametrize("weight", [[-1.0] + [1.0] * 29, [0.0] * 30, [np.nan] + [1.0] * 29, [1.0] * 29])
@pytest.mark.filterwarnings("ignore")
def test_bad_weights_are_refused(weight: list[float]) -> None:
    with pytest.raises(InvalidInputError, match="sample_weight"):
        LaplaceConfidence().fit(GOOD_X, GOOD_Y, sample_weight=weight)


def test_few_samples_lower_k_and_a_lonely_class_is_mentioned() -> None:
    with pytest.warns(AdjustedSettingWarning, match="lowered from 50 to 29"):
        LaplaceConfidence().fit(GOOD_X, GOOD_Y)
    lonely = GOOD_Y.copy()
    lonely[4] = 9
    with pytest.warns(LaplaceConfidenceWarning, match=r"1 of 4 classes have a single member \(9\)"):
        fitted = LaplaceConfidence(5).fit(GOOD_X, lonely)
    assert np.isfinite(fitted.confidence_).all()


def test_unfitted_estimators_say_so() -> None:
    with pytest.raises(NotFittedError):
        LaplaceConfidence().predict(GOOD_X)


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_whatever_is_thrown_at_it_is_refused_clearly_or_answered_sanely(data: st.DataObject) -> None:
    n, d = data.draw(st.integers(1, 25)), data.draw(st.integers(1, 4))
    pool = [0.0, 1.0, -1.0, 0.5] * 10 + [1e-30, 1e30] * 3 + [float("nan"), float("inf")]
    X = np.array(data.draw(st.lists(st.sampled_from(pool), min_size=n * d, max_size=n * d))).reshape(n, d)
    y = data.draw(st.lists(st.sampled_from(["a", "b", "c", None, ""]), min_size=n, max_size=n))
    estimator = LaplaceConfidence(data.draw(st.integers(1, 30)), data.draw(st.sampled_from([0.3, 0.99])))
    try:
        fitted = estimator.fit(X, np.array(y, dtype=object))
    except InvalidInputError:
        return
    labeled = np.array([label in ("a", "b", "c") for label in y])
    assert np.isfinite(fitted.confidence_[labeled]).all()
    assert np.isnan(fitted.confidence_[~labeled]).all()
    assert ((fitted.label_distributions_ >= 0) & (fitted.label_distributions_ <= 1)).all()
