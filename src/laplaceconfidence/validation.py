"""Checks of parameters. Every message names the parameter, its rule and the value."""

from __future__ import annotations

import difflib
import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from laplaceconfidence.arrays import FloatArray, to_numpy
from laplaceconfidence.exceptions import InvalidInputError


def must_be(parameter: str, rule: str, value: object, advice: str = "") -> InvalidInputError:
    """Make the error for a parameter that breaks its rule.

    Parameters
    ----------
    parameter : str
        Name of the parameter.
    rule : str
        What it must be, as the end of a sentence.
    value : object
        What was passed.
    advice : str, default=""
        What to do, as a sentence.

    Returns
    -------
    InvalidInputError
    """
    message = f"The '{parameter}' parameter must be {rule}. Got {value!r} instead."
    return InvalidInputError(f"{message} {advice}".rstrip())


def did_you_mean(name: object, valid: Iterable[str], prefixes: Mapping[str, str] | None = None) -> str:
    """The question "Did you mean ...?" with the valid name that is closest; empty if none is close.

    Parameters
    ----------
    name : object
        What the user wrote.
    valid : iterable of str
        The names that exist.
    prefixes : mapping of str to str, optional
        What has to be written before some of them.

    Returns
    -------
    str
    """
    close = difflib.get_close_matches(str(name), list(valid), n=1, cutoff=0.4)
    if not close:
        return ""
    return f"Did you mean {(prefixes or {}).get(close[0], '') + close[0]!r}?"


def check_boolean(value: Any, parameter: str) -> bool:
    """Check that a value is a boolean; numbers and strings are not.

    Parameters
    ----------
    value : object
        What was passed.
    parameter : str
        Name of the parameter.

    Returns
    -------
    bool
    """
    if not isinstance(value, (bool, np.bool_)):
        raise must_be(parameter, "true or false", value)
    return bool(value)


def check_integer(value: Any, parameter: str, *, minimum: int, maximum: int | None = None) -> int:
    """Check that a value is an integer between ``minimum`` and ``maximum``.

    Parameters
    ----------
    value : object
        What was passed.
    parameter : str
        Name of the parameter.
    minimum : int
        Smallest value allowed.
    maximum : int or None, default=None
        Largest value allowed.

    Returns
    -------
    int
    """
    rule = f"an integer of at least {minimum}" + (f" and at most {maximum}" if maximum is not None else "")
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise must_be(parameter, rule, value)
    if value < minimum or (maximum is not None and value > maximum):
        raise must_be(parameter, rule, int(value))
    return int(value)


def check_real(
    value: Any,
    parameter: str,
    *,
    above: float | None = None,
    below: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
) -> float:
    """Check that a value is a finite number within bounds.

    Parameters
    ----------
    value : object
        What was passed.
    parameter : str
        Name of the parameter.
    above, below : float or None, default=None
        Bounds that are not allowed themselves.
    at_least, at_most : float or None, default=None
        Bounds that are allowed themselves.

    Returns
    -------
    float
    """
    bounds = [
        text
        for text in (
            f"above {above:g}" if above is not None else "",
            f"at least {at_least:g}" if at_least is not None else "",
            f"below {below:g}" if below is not None else "",
            f"at most {at_most:g}" if at_most is not None else "",
        )
        if text
    ]
    rule = "a finite number" + (" " + " and ".join(bounds) if bounds else "")
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not np.isfinite(float(value)):
        raise must_be(parameter, rule, value)
    number = float(value)
    inside = (
        (above is None or number > above)
        and (below is None or number < below)
        and (at_least is None or number >= at_least)
        and (at_most is None or number <= at_most)
    )
    if not inside:
        raise must_be(parameter, rule, number)
    return number


def check_choice(value: Any, parameter: str, choices: Sequence[str]) -> str:
    """Check that a value is one of several strings.

    Parameters
    ----------
    value : object
        What was passed.
    parameter : str
        Name of the parameter.
    choices : sequence of str
        The values allowed.

    Returns
    -------
    str
    """
    if not isinstance(value, str) or value not in choices:
        raise must_be(parameter, "one of " + ", ".join(repr(choice) for choice in choices), value)
    return value


def check_same_length(first: str, n_first: int, second: str, n_second: int) -> None:
    """Check that two parameters have the same number of samples.

    Parameters
    ----------
    first, second : str
        Names of the parameters.
    n_first, n_second : int
        Their numbers of samples.
    """
    if n_first != n_second:
        raise InvalidInputError(
            f"'{first}' and '{second}' must describe the same samples: "
            f"'{first}' has {n_first}, '{second}' has {n_second}."
        )


def check_finite(values: FloatArray, parameter: str) -> None:
    """Check that all values are finite; the error counts the others and names the first row with one.

    Parameters
    ----------
    values : ndarray of shape (n, ...)
        The values.
    parameter : str
        Name of the parameter.
    """
    # A sum is finite only if all its terms are: one pass without a boolean copy of the whole array.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)):
            return
    finite = np.isfinite(values)
    if finite.all():
        return
    n_nan = int(np.isnan(values).sum())
    n_infinite = int(finite.size - finite.sum()) - n_nan
    rows = np.flatnonzero(~finite.reshape(len(values), -1).all(axis=1))
    raise InvalidInputError(
        f"The '{parameter}' parameter must be finite. Got {n_nan} NaN and {n_infinite} infinite values "
        f"(infinity, inf) in {len(rows)} of {len(values)} rows; the first is row {rows[0]}. "
        "Drop those rows or fill them in."
    )


def check_features(features: Any, parameter: str = "features") -> FloatArray:
    """Check that features are a finite numeric matrix with at least one row and one column.

    Parameters
    ----------
    features : array-like of shape (n, d)
        Feature vectors.
    parameter : str, default="features"
        Name of the parameter.

    Returns
    -------
    ndarray of shape (n, d)
        C-contiguous, float32 or float64.
    """
    array = check_numeric_matrix(features, parameter)
    check_finite(array, parameter)
    return array


def check_numeric_matrix(values: Any, parameter: str) -> FloatArray:
    """Check that values are a numeric matrix with at least one row and one column; NaN are allowed.

    Parameters
    ----------
    values : array-like of shape (n, d)
        The values.
    parameter : str
        Name of the parameter.

    Returns
    -------
    ndarray of shape (n, d)
        C-contiguous, float32 or float64.
    """
    try:
        array = to_numpy(values)
    except ValueError:  # rows of different lengths
        raise must_be(parameter, "a matrix with rows of equal length", type(values).__name__) from None
    if array.dtype.kind not in "fiub":
        raise must_be(parameter, "numeric", str(array.dtype), "Embed or encode text and categories first.")
    if array.ndim != 2:
        raise must_be(parameter, "a matrix with one row per sample", f"shape {array.shape}")
    if 0 in array.shape:
        raise must_be(parameter, "a matrix with at least one row and one column", f"shape {array.shape}")
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float32)
    return np.ascontiguousarray(array)


def check_random_state(random_state: Any) -> np.random.Generator:
    """Convert ``random_state`` to a generator.

    Parameters
    ----------
    random_state : int, Generator, RandomState or None
        A seed, a generator, or ``None`` for a generator that differs in every run.

    Returns
    -------
    numpy.random.Generator
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**31 - 1))
    if random_state is None:
        return np.random.default_rng()
    return np.random.default_rng(check_integer(random_state, "random_state", minimum=0))
