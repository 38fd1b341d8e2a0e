"""How a result was computed: what the estimator reports about its fit, and the installed packages.

``ConfidenceEstimator`` defines what every estimator must provide. The fitted attributes here are optional;
they are read in no other module of auditing, records, report, review and export.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol, runtime_checkable

import numpy as np

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.confidence.calibration import LogOddsCalibration
from laplaceconfidence.confidence.protocol import ConfidenceEstimator

PACKAGES = ("laplaceconfidence", "numpy", "scipy", "scikit-learn", "faiss-cpu", "pandas", "pyarrow")


@runtime_checkable
class EstimatesPrecision(Protocol):
    """An estimator whose confidences are calibrated, so that a precision can be requested."""

    def threshold_for(self, precision: float = 0.95) -> float:
        """Return the confidence below which this share of the labels is expected to be wrong.

        Parameters
        ----------
        precision : float, default=0.95
            Expected share of wrong labels among those below the threshold.

        Returns
        -------
        float
        """


@dataclass(frozen=True, slots=True)
class FitDiagnostics:
    """What a fitted estimator reports about its fit; None for what it does not report.

    Parameters
    ----------
    noise_rate : float, optional
        Expected share of wrong labels (``noise_rate_``).
    noise_rate_bracket : tuple of float, optional
        Optimistic and pessimistic noise rate (``noise_rate_bracket_``).
    identified : bool, optional
        Whether wrong labels can be told from overlapping classes (``identifiable_``).
    search : {"exact", "ivf"}, optional
        How the neighbors were searched (``search_``).
    n_neighbors : int, optional
        Neighbors per sample that were searched (``n_neighbors_``).
    recall : float, optional
        Share of the true neighbors that the search found, measured on a sample (``recall_``).
    n_iter : int, optional
        Iterations of the solver (``n_iter_``).
    residual : float, optional
        Largest relative residual of the solution (``residual_``).
    converged : bool, optional
        Whether the solver reached its tolerance (``converged_``).
    energy : tuple of float, optional
        Laplacian energy of the given labels and of the solution (``energy_``).
    calibration : LogOddsCalibration, optional
        How verified labels corrected the confidences of the others (``calibration_``).
    view_weights : dict of str to float, optional
        Share of every view in the estimate, where there are several (``view_weights_``).
    """

    noise_rate: float | None = None
    noise_rate_bracket: tuple[float, float] | None = None
    identified: bool | None = None
    search: str | None = None
    n_neighbors: int | None = None
    recall: float | None = None
    n_iter: int | None = None
    residual: float | None = None
    converged: bool | None = None
    energy: tuple[float, float] | None = None
    calibration: LogOddsCalibration | None = None
    view_weights: dict[str, float] | None = None


def fit_diagnostics(estimator: ConfidenceEstimator) -> FitDiagnostics:
    """Collect what a fitted estimator reports about its fit.

    Parameters
    ----------
    estimator : ConfidenceEstimator
        Fitted.

    Returns
    -------
    FitDiagnostics
    """
    # RefinedCrossEntropy solves on a graph by a LaplaceConfidence of its own.
    solver = getattr(estimator, "laplace_", estimator)

    def reported(source: Any, name: str, kind: type) -> Any:
        value = getattr(source, name, None)
        return None if value is None else kind(value)

    def pair(source: Any, name: str) -> tuple[float, float] | None:
        value = getattr(source, name, None)
        return None if value is None else (float(value[0]), float(value[1]))

    by_view: dict[str, dict[str, float]] = getattr(estimator, "view_weights_", None) or {}
    return FitDiagnostics(
        noise_rate=reported(estimator, "noise_rate_", float),
        noise_rate_bracket=pair(estimator, "noise_rate_bracket_"),
        identified=reported(estimator, "identifiable_", bool),
        search=reported(solver, "search_", str),
        n_neighbors=reported(solver, "n_neighbors_", int),
        recall=reported(solver, "recall_", float),
        n_iter=reported(solver, "n_iter_", int),
        residual=reported(solver, "residual_", float),
        converged=reported(solver, "converged_", bool),
        energy=pair(solver, "energy_"),
        calibration=getattr(estimator, "calibration_", None),
        view_weights=_shares(by_view) if len(by_view) > 1 else None,
    )


def _shares(weights: dict[str, dict[str, float]]) -> dict[str, float]:
    return {view: round(float(sum(kinds.values())), 4) for view, kinds in weights.items()}


def label_support(estimator: ConfidenceEstimator) -> FloatArray | None:
    """Return the probabilities of the given labels by evidence that does not include them.

    Parameters
    ----------
    estimator : ConfidenceEstimator
        Fitted.

    Returns
    -------
    ndarray of shape (n,) or None
        ``label_support_``; None where the estimator does not report it.
    """
    support = getattr(estimator, "label_support_", None)
    return None if support is None else np.asarray(support, dtype=np.float64)


def reachable_precision(estimator: ConfidenceEstimator) -> float | None:
    """Return the largest share of wrong labels that is expected among the labels below any threshold.

    Parameters
    ----------
    estimator : ConfidenceEstimator
        Fitted.

    Returns
    -------
    float or None
        None where the estimator has no ``expected_curve``.
    """
    curve = getattr(estimator, "expected_curve", None)
    return None if curve is None else float(curve().precision.max())


def estimator_settings(estimator: Any) -> dict[str, Any]:
    """Return the parameters of an estimator.

    Parameters
    ----------
    estimator : ConfidenceEstimator
        Fitted or not.

    Returns
    -------
    dict of str to object
        Empty for an estimator without scikit-learn's ``get_params``.
    """
    return dict(estimator.get_params()) if hasattr(estimator, "get_params") else {}


def installed_versions() -> dict[str, str]:
    """Return the versions of Python, of this package, and of the packages that its numbers depend on.

    Returns
    -------
    dict of str to str
        By name; "unknown" for a package without metadata.
    """
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:  # faiss from conda, for example, has no metadata under this name
            versions[package] = "unknown"
    return versions
