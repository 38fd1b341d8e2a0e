"""What fitted estimators report about themselves, collected in one place."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from laplaceconfidence import LaplaceConfidence, NoiseAwareConfidence
from laplaceconfidence.auditing.diagnostics import (
    EstimatesPrecision,
    FitDiagnostics,
    estimator_settings,
    fit_diagnostics,
    installed_versions,
)
from laplaceconfidence.confidence.refined_cross_entropy import RefinedCrossEntropy
from laplaceconfidence.confidence.self_confidence import SelfConfidence


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray]:
    features, labels = load_digits(return_X_y=True)
    features.flags.writeable = labels.flags.writeable = False  # all tests share them
    return features[:300], labels[:300]


@pytest.mark.parametrize("kind", [LaplaceConfidence, RefinedCrossEntropy])
def test_solvers_report_their_search_and_their_solution(
    kind: type, digits: tuple[np.ndarray, np.ndarray]
) -> None:
    found = fit_diagnostics(kind(n_neighbors=12, max_iter=100).fit(*digits))
    assert (found.search, found.n_neighbors, found.recall) == ("exact", 12, 1.0)
    assert found.converged is True
    assert found.residual is not None
    assert found.residual < 1e-3
    assert found.energy is not None
    assert found.energy[1] < found.energy[0]
    assert (found.noise_rate, found.noise_rate_bracket) == (None, None)


def test_the_default_estimator_reports_its_noise_rate(digits: tuple[np.ndarray, np.ndarray]) -> None:
    estimator = NoiseAwareConfidence().fit(*digits)
    found = fit_diagnostics(estimator)
    assert found.noise_rate == estimator.noise_rate_
    assert found.noise_rate_bracket == estimator.noise_rate_bracket_
    assert (found.n_iter, found.converged, found.energy) == (None, None, None)


def test_estimators_of_probabilities_report_nothing() -> None:
    fitted = SelfConfidence().fit(np.eye(2), [0, 1])
    assert fit_diagnostics(fitted) == FitDiagnostics()


def test_only_calibrated_estimators_take_a_target_precision() -> None:
    assert isinstance(NoiseAwareConfidence(), EstimatesPrecision)
    assert not isinstance(LaplaceConfidence(), EstimatesPrecision)


def test_settings_are_those_of_scikit_learn() -> None:
    assert estimator_settings(LaplaceConfidence(7))["n_neighbors"] == 7
    assert estimator_settings(object()) == {}


def test_versions_name_the_packages_that_numbers_depend_on() -> None:
    assert installed_versions()["numpy"] == np.__version__
