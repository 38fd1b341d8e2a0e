"""Feature sets: one array, or several views of the same samples, checked and named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from laplaceconfidence.arrays import BoolArray, FloatArray
from laplaceconfidence.confidence.inputs import check_feature_vectors, has_equal_rows
from laplaceconfidence.validation import check_finite, check_numeric_matrix, check_same_length, must_be

ONLY_VIEW = "features"
"""Name of the view if ``X`` is one array."""
ALL_VIEWS = "all views"
"""Name of the view that the estimator makes of several."""


@dataclass(frozen=True, slots=True, eq=False)
class FeatureSet:
    """One view of the samples.

    Attributes
    ----------
    name : str
        Name of the view.
    values : ndarray of shape (n, d)
        Feature vectors; rows of samples that are not in the view are 0.
    present : ndarray of bool, shape (n,), or None
        Which samples are in the view; ``None`` if all are.
    """

    name: str
    values: FloatArray
    present: BoolArray | None


def check_feature_sets(estimator: BaseEstimator, X: Any) -> list[FeatureSet]:
    """Check the feature sets of a fit.

    Parameters
    ----------
    estimator : BaseEstimator
        The estimator that is fitted; its ``n_features_in_`` is set to the number of features of all views.
    X : array-like of shape (n, d), mapping of str to such arrays, or list of such arrays
        One feature set or several. In several, a row of NaN is a sample that is not in the view.

    Returns
    -------
    list of FeatureSet
        In the order of ``X``; all of the same length.
    """
    named = named_views(X)
    if named is None:
        sets = [FeatureSet(ONLY_VIEW, check_feature_vectors(estimator, X), None)]
    else:
        sets = _checked_views(named)
        estimator.n_features_in_ = sum(one.values.shape[1] for one in sets)
    for one in sets:
        values = one.values if one.present is None else one.values[one.present]
        if len(values) == 0:
            rule = "a view of at least one sample"
            raise must_be(_parameter(one.name), rule, "only rows of NaN", "Leave the view out.")
        if has_equal_rows(values):
            rows = f"{len(values)} equal rows (n_samples={len(values)})"
            raise must_be("X" if named is None else _parameter(one.name), "different between samples", rows)
    return sets


def check_new_feature_sets(
    estimator: BaseEstimator, X: Any, names: tuple[str, ...], widths: tuple[int, ...]
) -> list[FeatureSet]:
    """Check the feature sets of new samples: the views of the fit, with as many features.

    Parameters
    ----------
    estimator : BaseEstimator
        The fitted estimator.
    X : array-like of shape (m, d), mapping of str to such arrays, or list of such arrays
        One feature set or several, as in the fit.
    names : tuple of str
        The views of the fit.
    widths : tuple of int
        Their numbers of features.

    Returns
    -------
    list of FeatureSet
        In the order of the fit.
    """
    named = named_views(X)
    if named is None:
        if names != (ONLY_VIEW,):
            rule = f"a mapping or list of the views of the fit: {', '.join(map(repr, names))}"
            raise must_be("X", rule, f"one {type(X).__name__}")
        return [FeatureSet(ONLY_VIEW, check_feature_vectors(estimator, X, reset=False), None)]
    if set(named) != set(names):
        rule = f"the views of the fit: {', '.join(map(repr, names))}"
        found = ", ".join(map(repr, named))
        raise must_be("X", rule, found, "A sample that is not in a view has a row of NaN there.")
    sets = _checked_views({name: named[name] for name in names})
    for one, width in zip(sets, widths, strict=True):
        if one.values.shape[1] != width:
            found = f"{one.values.shape[1]} features"
            raise must_be(_parameter(one.name), f"of {width} features, as in the fit", found)
    return sets


def named_views(X: Any) -> dict[str, Any] | None:
    """The views of ``X`` by name; ``None`` if it is one array.

    Parameters
    ----------
    X : object
        A mapping, a list or tuple of two-dimensional arrays, or anything else, which is one array.

    Returns
    -------
    dict of str to object, or None
        A list is numbered: "view 1", "view 2", ...
    """
    if isinstance(X, Mapping):
        for name in X:
            if not isinstance(name, str) or not name.strip():
                raise must_be("X", "a mapping of non-empty names to arrays", f"the name {name!r}")
        if len({name.strip() for name in X}) != len(X):
            raise must_be("X", "a mapping of different names to arrays", f"the names {list(X)}")
        if ALL_VIEWS in X:
            rule = f"a mapping of names other than {ALL_VIEWS!r}, which means all of them together"
            raise must_be("X", rule, f"the names {list(X)}")
        views = dict(X)
    elif isinstance(X, list | tuple) and any(getattr(view, "ndim", 0) == 2 for view in X):
        views = {f"view {number}": view for number, view in enumerate(X, start=1)}
    else:
        return None
    if not views:
        raise must_be("X", "an array or at least one view", "no views")
    return views


def _checked_views(named: dict[str, Any]) -> list[FeatureSet]:
    sets: list[FeatureSet] = []
    for name, given in named.items():
        values = check_numeric_matrix(given, _parameter(name))
        absent: BoolArray = np.asarray(np.isnan(values).all(axis=1))
        if absent.any():
            values = np.where(absent[:, None], values.dtype.type(0), values)
        check_finite(values, _parameter(name))
        if sets:
            first = sets[0]
            check_same_length(_parameter(name), len(values), _parameter(first.name), len(first.values))
        sets.append(FeatureSet(name, values, ~absent if absent.any() else None))
    return sets


def _parameter(name: str) -> str:
    return f"X[{name!r}]"
