"""Every check names the parameter, its rule and the value."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.validation import (
    check_choice,
    check_features,
    check_finite,
    check_integer,
    check_random_state,
    check_real,
    check_same_length,
    must_be,
)


def test_the_message() -> None:
    error = must_be("alpha", "below 1", 2, "Try 0.99.")
    assert isinstance(error, ValueError)
    assert str(error) == "The 'alpha' parameter must be below 1. Got 2 instead. Try 0.99."


@given(value=st.integers(), low=st.integers(-50, 50), width=st.integers(0, 50))
@settings(max_examples=80, deadline=None)
def test_integers_within_bounds(value: int, low: int, width: int) -> None:
    high = low + width
    for given_value in (value, np.int64(value) if abs(value) < 2**63 else value):
        if low <= value <= high:
            assert check_integer(given_value, "k", minimum=low, maximum=high) == value
        else:
            rule = (
                rf"'k' parameter must be an integer of at least {low} and at most {high}. Got {value} instead"
            )
            with pytest.raises(InvalidInputError, match=rule):
                check_integer(given_value, "k", minimum=low, maximum=high)


@pytest.mark.parametrize("value", [1.0, "1", None, True, np.float64(1), [1], np.nan])
def test_what_is_no_integer(value: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"'k' parameter must be an integer of at least 0. Got"):
        check_integer(value, "k", minimum=0)


@given(value=st.floats(-10, 10))
@settings(max_examples=80, deadline=None)
def test_numbers_within_open_bounds(value: float) -> None:
    if 0 < value < 1:
        assert check_real(value, "alpha", above=0, below=1) == value
    else:
        with pytest.raises(
            InvalidInputError, match="'alpha' parameter must be a finite number above 0 and below 1"
        ):
            check_real(value, "alpha", above=0, below=1)


def test_numbers_within_closed_bounds() -> None:
    assert check_real(0, "rate", at_least=0, at_most=1) == 0.0
    assert check_real(np.float32(1), "rate", at_least=0, at_most=1) == 1.0
    with pytest.raises(InvalidInputError, match=r"'rate' .* at least 0 and at most 1. Got 1.5 instead"):
        check_real(1.5, "rate", at_least=0, at_most=1)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, "0.5", None, True, 1j, [0.5]])
def test_what_is_no_number(value: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"'rate' parameter must be a finite number. Got"):
        check_real(value, "rate")


def test_choices() -> None:
    assert check_choice("ivf", "search", ("exact", "ivf")) == "ivf"
    for value in ("IVF", None, 3, ["ivf"]):
        with pytest.raises(InvalidInputError, match=r"'search' parameter must be one of 'exact', 'ivf'. Got"):
            check_choice(value, "search", ("exact", "ivf"))


def test_lengths_are_both_shown() -> None:
    check_same_length("X", 3, "y", 3)
    with pytest.raises(InvalidInputError, match="'X' has 3, 'y' has 4"):
        check_same_length("X", 3, "y", 4)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_what_is_not_finite_is_counted(data: st.DataObject) -> None:
    n, d = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 6))
    values = np.zeros((n, d), dtype=data.draw(st.sampled_from([np.float32, np.float64])))
    cells = st.tuples(st.integers(0, n - 1), st.integers(0, d - 1))
    holes = data.draw(st.dictionaries(cells, st.sampled_from([np.nan, np.inf, -np.inf]), max_size=5))
    for cell, value in holes.items():
        values[cell] = value
    if not holes:
        check_finite(values, "X")
        return
    n_nan = sum(np.isnan(value) for value in holes.values())
    first = min(row for row, _ in holes)
    counts = f"Got {n_nan} NaN and {len(holes) - n_nan} infinite values"
    with pytest.raises(
        InvalidInputError, match=f"'X' parameter must be finite. {counts} .*first is row {first}"
    ):
        check_finite(values, "X")


@pytest.mark.parametrize("largest", [np.float64(1e308), np.float32(3e38)])
def test_large_sums_are_not_taken_for_infinity(largest: Any) -> None:
    values = np.full((4, 4), largest)
    with np.errstate(over="ignore"):
        assert np.isinf(values.sum())
    check_finite(values, "X")


@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.int64, np.uint8, bool])
def test_features_become_floats(dtype: Any) -> None:
    features = check_features(np.ones((2, 3), dtype=dtype))
    assert features.dtype == np.float32
    assert (features == 1).all()


def test_features_of_float_stay_as_they_are() -> None:
    for dtype in (np.float32, np.float64):
        given_features = np.ones((2, 3), dtype=dtype)
        assert check_features(given_features) is given_features
    assert check_features(np.ones((3, 2), order="F")).flags.c_contiguous


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ([["a"]], "'features' parameter must be numeric. Got '<U1' instead"),
        (np.array([[1j]]), "'features' parameter must be numeric. Got 'complex128'"),
        ([1.0, 2.0], r"must be a matrix with one row per sample. Got 'shape \(2,\)'"),
        (np.zeros((2, 2, 2)), r"must be a matrix with one row per sample. Got 'shape \(2, 2, 2\)'"),
        (np.zeros((0, 3)), r"at least one row and one column. Got 'shape \(0, 3\)'"),
        (np.zeros((3, 0)), r"at least one row and one column. Got 'shape \(3, 0\)'"),
        ([[np.nan]], "must be finite. Got 1 NaN and 0 infinite"),
        (np.array([[1e6]], dtype=object), "must be numeric"),
    ],
)
def test_features_that_are_none(features: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        check_features(features)


def test_seeds_and_generators() -> None:
    assert check_random_state(3).random() == check_random_state(np.int64(3)).random()
    generator = np.random.default_rng(0)
    assert check_random_state(generator) is generator
    legacy = [check_random_state(np.random.RandomState(5)).random() for _ in range(2)]
    assert legacy[0] == legacy[1]
    assert check_random_state(None).random() != check_random_state(None).random()
    for value in (-1, 0.5, "seed", True):
        with pytest.raises(
            InvalidInputError, match="'random_state' parameter must be an integer of at least 0"
        ):
            check_random_state(value)
