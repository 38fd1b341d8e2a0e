import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.decomposition import PCA

from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.features.scale import principal_axes, project, unit_length

finite = st.floats(-1e30, 1e30, allow_nan=False, width=64)


@settings(max_examples=100, deadline=None)
@given(arrays(np.float64, st.tuples(st.integers(1, 8), st.integers(1, 5)), elements=finite))
def test_rows_have_unit_length_and_keep_their_direction(features: np.ndarray) -> None:
    unit = unit_length(features)
    lengths = np.linalg.norm(unit, axis=1)
    zero = (features == 0).all(axis=1)
    np.testing.assert_allclose(lengths[~zero], 1, rtol=1e-12)
    assert (unit[zero] == 0).all()
    assert (np.sign(unit) * np.sign(features) >= 0).all()


def test_huge_and_tiny_rows_do_not_overflow() -> None:
    unit = unit_length(np.array([[3e30, 4e30], [3e-30, 4e-30]], dtype=np.float32))
    np.testing.assert_allclose(unit, [[0.6, 0.8], [0.6, 0.8]], rtol=1e-6)


def test_principal_components_agree_with_scikit_learn() -> None:
    features = np.random.default_rng(0).normal(size=(300, 12)) @ np.random.default_rng(1).normal(
        size=(12, 12)
    )
    mean, axes, variances = principal_axes(features, 4)
    theirs = PCA(4).fit(features)
    ours = project(features, mean, axes)
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs.transform(features)), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(variances, theirs.explained_variance_ * 299 / 300, rtol=1e-6)


def test_too_many_components_are_refused_with_the_limit() -> None:
    with pytest.raises(InvalidInputError, match=r"'n_components' parameter must be .* at most 3\. Got 4"):
        principal_axes(np.random.default_rng(0).normal(size=(10, 3)), 4)
