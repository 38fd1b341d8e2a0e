"""Feature vectors as the evidence of an estimator: checked, and brought to unit length."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from laplaceconfidence.arrays import FloatArray, to_numpy
from laplaceconfidence.features.scale import principal_axes, project, unit_length
from laplaceconfidence.validation import check_finite


def check_feature_vectors(estimator: BaseEstimator, X: Any, *, reset: bool = True) -> FloatArray:
    """Finite features (n, d), checked the way scikit-learn does; ``reset`` sets ``n_features_in_``."""
    X = to_numpy(X) if hasattr(X, "detach") else X  # scikit-learn does not know torch's tensors
    features: FloatArray = validate_data(
        estimator, X, reset=reset, dtype=[np.float32, np.float64], ensure_all_finite=False, order="C"
    )
    check_finite(features, "X")
    return features


def unit_features(features: FloatArray, n_components: int | None) -> FloatArray:
    """Features on their first principal axes, where asked for, as vectors of unit length."""
    if n_components is not None:
        mean, axes, _ = principal_axes(features, n_components)
        features = project(features, mean, axes)
    return unit_length(features)
