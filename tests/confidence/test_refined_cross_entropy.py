"""The paper's alternative is what its two parts make of each other."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from laplaceconfidence.confidence.laplace import LaplaceConfidence
from laplaceconfidence.confidence.loss_mixture import GaussianLossMixture
from laplaceconfidence.confidence.refined_cross_entropy import RefinedCrossEntropy


def noisy_clouds(n: int = 150, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 5)) + 2.5 * np.eye(5)[truth]
    return X, np.where(rng.random(n) < 0.3, rng.integers(0, 3, n), truth)


def test_mixture_of_the_cross_entropies_against_the_refined_labels() -> None:
    X, y = noisy_clouds()
    labels = np.where(np.arange(len(y)) % 9 == 0, -1, y)
    refined = RefinedCrossEntropy(n_neighbors=10, alpha=0.9, missing_label=-1, random_state=0).fit(X, labels)
    laplace = LaplaceConfidence(n_neighbors=10, alpha=0.9, missing_label=-1).fit(X, labels)
    one_hot = np.eye(3)[np.maximum(labels, 0)]
    losses = -(one_hot * np.log(laplace.label_distributions_)).sum(axis=1)
    mixture = GaussianLossMixture(random_state=0, missing_label=-1).fit(losses, labels)
    np.testing.assert_allclose(refined.confidence_, mixture.confidence_, atol=1e-6)
    np.testing.assert_allclose(refined.label_distributions_, laplace.label_distributions_)
    assert refined.classes_.tolist() == [0, 1, 2]


def test_it_takes_every_setting_of_laplace_confidence() -> None:
    own = RefinedCrossEntropy().get_params(deep=False)
    assert own.pop("mixture") is None
    assert own == LaplaceConfidence().get_params()


def test_settings_reach_both_parts() -> None:
    X, y = noisy_clouds()
    given = GaussianLossMixture(max_iter=50)
    estimator = clone(RefinedCrossEntropy(n_neighbors=7, alpha=0.5, mixture=given, random_state=3)).fit(X, y)
    assert estimator.laplace_.n_neighbors == 7
    assert estimator.laplace_.alpha == 0.5
    assert estimator.mixture_.max_iter == 50
    assert estimator.mixture_.random_state == 3
    assert given.random_state is None
    assert estimator.set_params(mixture__max_iter=9).fit(X, y).mixture_.max_iter == 9


def test_a_graph_and_weights_may_be_brought() -> None:
    X, y = noisy_clouds()
    estimator = RefinedCrossEntropy(n_neighbors=10, random_state=0).fit(X, y)
    from_graph = RefinedCrossEntropy(random_state=0).fit(None, y, knn_graph=estimator.laplace_.affinity_)
    np.testing.assert_allclose(from_graph.confidence_, estimator.confidence_, atol=1e-2)
    silent = np.ones(len(y))
    silent[:50] = 0
    weighted = RefinedCrossEntropy(n_neighbors=10, random_state=0).fit(X, y, sample_weight=silent)
    assert not np.allclose(weighted.confidence_, estimator.confidence_, atol=1e-2)
    with pytest.raises(ValueError, match="knn_graph"):
        RefinedCrossEntropy().fit(None, y, knn_graph=sparse.eye_array(3))
