"""Estimators and the arguments of their fit."""

from typing import Any, Self

import numpy as np
import pytest

from laplaceconfidence import NoisyDataset
from laplaceconfidence.auditing.fit_request import build_fit_request
from laplaceconfidence.exceptions import InvalidInputError


class Incomplete:
    """An estimator that does not say which neighbors it used."""

    evidence = "features"

    def fit(self, X: Any, y: Any) -> Self:
        self.classes_ = np.unique(y)
        self.confidence_ = np.ones(len(y))
        self.label_distributions_ = np.eye(2)[np.arange(len(y)) % 2]
        return self


class Complete(Incomplete):
    neighborhood_ = None


def test_a_fitted_estimator_must_have_what_the_protocol_promises(heaps: NoisyDataset) -> None:
    request = build_fit_request(heaps, estimator=Incomplete(), settings={})
    with pytest.raises(InvalidInputError, match=r"'estimator'.*Incomplete without neighborhood_"):
        request.fit()
    fitted = build_fit_request(heaps, estimator=Complete(), settings={}).fit()
    assert fitted.confidence_.tolist() == [1.0] * 40


def test_a_graph_of_the_caller_is_an_argument_of_the_fit(heaps: NoisyDataset) -> None:
    graph = np.ones((40, 40))
    request = build_fit_request(heaps, estimator="laplace", knn_graph=graph, settings={})
    assert request.brings_graph
    assert request.fit_arguments["knn_graph"] is graph
    assert not build_fit_request(heaps, settings={}).brings_graph


def test_missing_labels_are_none(heaps: NoisyDataset) -> None:
    labels = heaps.labels.copy()
    labels[0] = -1
    request = build_fit_request(heaps.with_labels(labels), settings={})
    assert request.y[0] is None
    assert set(request.y[1:]) == {"left", "right"}
