"""The kNN vote against a plain loop, and where there is nobody to ask."""

from typing import Any

import numpy as np
import pytest

from laplaceconfidence.confidence.knn_vote import KNNVote
from laplaceconfidence.exceptions import AdjustedSettingWarning, InvalidInputError


def two_clouds(n: int = 60, d: int = 5, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return rng.normal(size=(n, d)) + 2 * np.eye(d)[y], y


def naive_shares(X: Any, y: Any, k: int, weights: str, n_classes: int) -> Any:
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    shares = np.zeros((len(X), n_classes))
    for i in range(len(X)):
        similarities = unit @ unit[i]
        similarities[i] = -np.inf
        for j in np.argsort(-similarities)[:k]:
            if y[j] >= 0 and similarities[j] > 0:
                shares[i, y[j]] += similarities[j] if weights == "similarity" else 1
    return shares / shares.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("weights", ["similarity", "uniform"])
def test_votes_agree_with_a_plain_loop(weights: str) -> None:
    X, y = two_clouds()
    y[::7] = -1
    vote = KNNVote(n_neighbors=9, weights=weights, missing_label=-1).fit(X, y)
    expected = naive_shares(X, y, 9, weights, 3)
    np.testing.assert_allclose(vote.label_distributions_, expected, atol=1e-6)
    labeled = y >= 0
    np.testing.assert_allclose(vote.confidence_[labeled], expected[labeled, y[labeled]], atol=1e-6)
    assert np.isnan(vote.confidence_[~labeled]).all()
    assert vote.classes_.tolist() == [0, 1, 2]


def test_principal_components_are_searched_where_asked_for() -> None:
    X, y = two_clouds()
    centered = X - X.mean(axis=0)
    axes = np.linalg.svd(centered, full_matrices=False)[2][:2]
    vote = KNNVote(n_neighbors=9, n_components=2).fit(X, y)
    np.testing.assert_allclose(
        vote.label_distributions_, naive_shares(centered @ axes.T, y, 9, "similarity", 3), atol=1e-5
    )


def test_weights_of_samples_multiply_their_votes() -> None:
    X = np.ones((5, 3))
    labels = ["a", "b", "b", "a", "c"]
    vote = KNNVote(n_neighbors=4).fit(X, labels, sample_weight=[1, 2, 0, 3, 4])
    np.testing.assert_allclose(vote.label_distributions_[0], [3 / 9, 2 / 9, 4 / 9], atol=1e-6)
    np.testing.assert_allclose(vote.label_distributions_[2], [4 / 10, 2 / 10, 4 / 10], atol=1e-6)


def test_weights_count_where_nobody_votes() -> None:
    X = np.vstack([np.eye(4), np.zeros((4, 4))])
    vote = KNNVote(n_neighbors=3).fit(X, [0, 0, 0, 0, 0, 0, 1, 1], sample_weight=[1] * 6 + [3] * 2)
    np.testing.assert_allclose(vote.confidence_, 0.5)
    with pytest.raises(InvalidInputError, match="'sample_weight' parameter must be positive"):
        KNNVote(n_neighbors=3).fit(X, [None] * 2 + [0] * 6, sample_weight=[1] * 2 + [0] * 6)


def test_the_sample_itself_has_no_vote_even_among_duplicates() -> None:
    X = np.ones((5, 3))
    vote = KNNVote(n_neighbors=4).fit(X, ["a", "b", "b", "b", "b"])
    np.testing.assert_allclose(vote.confidence_, [0, 0.75, 0.75, 0.75, 0.75], atol=1e-6)


def test_where_nobody_votes_the_shares_of_all_labels_stand_in() -> None:
    X = np.vstack([np.eye(4), np.zeros((4, 4))])
    vote = KNNVote(n_neighbors=3).fit(X, [0, 0, 0, 0, 0, 0, 1, 1])
    np.testing.assert_allclose(vote.confidence_, [0.75] * 6 + [0.25] * 2)


def test_too_many_neighbors_are_lowered_with_a_warning() -> None:
    X, y = two_clouds(n=8)
    with pytest.warns(AdjustedSettingWarning, match="from 50 to 7"):
        lowered = KNNVote().fit(X, y)
    np.testing.assert_allclose(lowered.confidence_, KNNVote(n_neighbors=7).fit(X, y).confidence_)


@pytest.mark.parametrize(
    ("settings", "parameter"),
    [
        ({"n_neighbors": 0}, "n_neighbors"),
        ({"weights": "distance"}, "weights"),
        ({"n_components": 99}, "n_components"),
        ({"search": "fast"}, "search"),
    ],
)
def test_settings_that_break_a_rule_are_named(settings: dict[str, Any], parameter: str) -> None:
    X, y = two_clouds()
    with pytest.raises(InvalidInputError, match=f"'{parameter}'"):
        KNNVote(**settings).fit(X, y)
