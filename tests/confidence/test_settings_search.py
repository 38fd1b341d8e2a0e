"""Settings chosen from the given labels alone."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from laplaceconfidence.confidence.laplace import LaplaceConfidence
from laplaceconfidence.confidence.settings_search import ALPHAS, held_out_log_likelihood
from laplaceconfidence.exceptions import InvalidInputError


@pytest.fixture(scope="module")
def noisy_digits() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    given = y.copy()
    wrong = rng.random(len(y)) < 0.4
    given[wrong] = rng.integers(0, 10, wrong.sum())
    for array in (X, y, given):
        array.flags.writeable = False  # all tests share it
    return X, y, given


def test_the_choice_is_at_least_as_good_as_the_papers_setting(noisy_digits: tuple) -> None:
    X, y, given = noisy_digits
    fixed = LaplaceConfidence().fit(X, given)
    chosen = LaplaceConfidence("auto", "auto", random_state=0).fit(X, given)
    right = given == y
    assert roc_auc_score(right, chosen.confidence_) >= roc_auc_score(right, fixed.confidence_)


def test_the_table_holds_every_candidate_and_the_chosen_one_first(noisy_digits: tuple) -> None:
    X, _, given = noisy_digits
    model = LaplaceConfidence("auto", "auto", random_state=0).fit(X, given)
    assert len(model.settings_) == 16
    first = model.settings_[0]
    assert first["chosen"]
    assert not any(row["chosen"] for row in model.settings_[1:])
    assert (first["n_neighbors"], first["alpha"]) == (model.n_neighbors_, model.alpha_)
    finalists = [row for row in model.settings_ if row["folds"] == first["folds"]]
    assert first["held_out_log_likelihood"] == max(row["held_out_log_likelihood"] for row in finalists)
    assert model.affinity_.shape == (len(X), len(X))


def test_the_result_is_that_of_the_chosen_settings(noisy_digits: tuple) -> None:
    X, _, given = noisy_digits
    chosen = LaplaceConfidence("auto", "auto", random_state=0).fit(X, given)
    same = LaplaceConfidence(chosen.n_neighbors_, chosen.alpha_).fit(X, given)
    np.testing.assert_allclose(chosen.confidence_, same.confidence_)
    np.testing.assert_allclose(chosen.predict_proba(X[:20]), same.predict_proba(X[:20]))


def test_one_setting_can_stay_fixed(noisy_digits: tuple) -> None:
    X, _, given = noisy_digits
    by_alpha = LaplaceConfidence(15, "auto", random_state=0).fit(X, given)
    assert by_alpha.n_neighbors_ == 15
    assert {row["alpha"] for row in by_alpha.settings_} == set(ALPHAS)
    by_count = LaplaceConfidence("auto", 0.7, random_state=0).fit(X, given)
    assert by_count.alpha_ == 0.7
    assert {row["n_neighbors"] for row in by_count.settings_} == {10, 20, 50, 100}


def test_a_graph_that_is_passed_in_leaves_alpha_to_choose(noisy_digits: tuple) -> None:
    X, _, given = noisy_digits
    graph = LaplaceConfidence(10).fit(X, given).affinity_
    model = LaplaceConfidence("auto", "auto", random_state=0).fit(None, given, knn_graph=graph)
    assert model.n_neighbors_ is None
    assert model.alpha_ in ALPHAS


def test_nothing_is_searched_where_nothing_is_auto(noisy_digits: tuple) -> None:
    X, _, given = noisy_digits
    model = LaplaceConfidence(5, 0.9).fit(X, given)
    assert model.settings_ == []
    assert (model.n_neighbors_, model.alpha_) == (5, 0.9)


def test_too_few_labels_to_hold_any_out_take_the_papers_setting() -> None:
    X = np.random.default_rng(0).normal(size=(8, 3))
    model = LaplaceConfidence("auto", "auto").fit(X, [0, 1] * 4)
    assert (model.n_neighbors_, model.alpha_) == (7, 0.99)


def test_the_seed_decides(noisy_digits: tuple) -> None:
    X, _, given = noisy_digits
    first, again = (LaplaceConfidence("auto", "auto", random_state=3).fit(X, given) for _ in range(2))
    assert first.settings_ == again.settings_


@pytest.mark.parametrize(("setting", "value"), [("n_neighbors", "best"), ("alpha", "best"), ("alpha", 1.0)])
def test_other_words_are_refused(setting: str, value: object) -> None:
    with pytest.raises(InvalidInputError, match=setting):
        LaplaceConfidence(**{setting: value}).fit(np.eye(4), [0, 1, 0, 1])


def test_the_scale_of_a_solution_does_not_matter() -> None:
    rng = np.random.default_rng(0)
    solution, codes = rng.random((50, 4)), rng.integers(0, 4, 50)
    np.testing.assert_allclose(
        held_out_log_likelihood(solution, codes), held_out_log_likelihood(7 * solution, codes), rtol=1e-6
    )


def test_a_better_solution_makes_held_out_labels_more_likely() -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, 200)
    noise = rng.random((200, 4))
    good = noise + 2 * np.eye(4)[codes]
    assert held_out_log_likelihood(good, codes).mean() > held_out_log_likelihood(noise, codes).mean()
