"""Transition matrices: probabilities in every row, and the shapes that the literature gives them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laplaceconfidence.data.cifar_classes import CIFAR10_CLASSES, CIFAR100_CLASSES, CIFAR100_SUPERCLASSES
from laplaceconfidence.data.transitions import (
    CIFAR10_ASYMMETRIC,
    CIFAR100_ASYMMETRIC,
    asymmetric_transition,
    check_transition,
    empirical_transition,
    pair_transition,
    symmetric_transition,
)
from laplaceconfidence.exceptions import InvalidInputError

RATES = st.floats(0, 1)


@given(n_classes=st.integers(2, 30), rate=RATES, include_true=st.booleans(), seed=st.integers(0, 99))
@settings(max_examples=80, deadline=None)
def test_rows_are_probabilities(n_classes: int, rate: float, include_true: bool, seed: int) -> None:
    names = [f"class {code}" for code in range(n_classes)]
    random = np.random.default_rng(seed)
    mapping = dict(zip(names, random.permutation(names).tolist(), strict=True))
    for transition in (
        symmetric_transition(n_classes, rate, include_true=include_true),
        pair_transition(n_classes, rate),
        asymmetric_transition(names, mapping, rate),
    ):
        np.testing.assert_allclose(check_transition(transition, n_classes).sum(axis=1), 1)


def test_closed_forms() -> None:
    np.testing.assert_allclose(
        symmetric_transition(4, 0.4), [[0.7 if i == j else 0.1 for j in range(4)] for i in range(4)]
    )
    np.testing.assert_allclose(
        symmetric_transition(3, 0.4, include_true=False),
        [[0.6 if i == j else 0.2 for j in range(3)] for i in range(3)],
    )
    np.testing.assert_allclose(pair_transition(3, 0.3), [[0.7, 0.3, 0], [0, 0.7, 0.3], [0.3, 0, 0.7]])
    np.testing.assert_allclose(
        asymmetric_transition(["a", "b", "c"], {"a": "c", 1: 0}, 0.25),
        [[0.75, 0, 0.25], [0.25, 0.75, 0], [0, 0, 1]],
    )


def test_cifar10() -> None:
    transition = asymmetric_transition(CIFAR10_CLASSES, CIFAR10_ASYMMETRIC, 0.4)
    moved = {(i, j) for i, j in zip(*np.nonzero(transition), strict=True) if i != j}
    assert moved == {(9, 1), (2, 0), (4, 7), (3, 5), (5, 3)}
    assert transition[9, 1] == pytest.approx(0.4)


def test_cifar100_moves_inside_the_superclass() -> None:
    superclass = {name: group for group, names in CIFAR100_SUPERCLASSES.items() for name in names}
    assert set(CIFAR100_ASYMMETRIC) == set(CIFAR100_ASYMMETRIC.values()) == set(CIFAR100_CLASSES)
    for name, taken_for in CIFAR100_ASYMMETRIC.items():
        assert name != taken_for
        assert superclass[name] == superclass[taken_for]
    assert CIFAR100_ASYMMETRIC["beaver"] == "dolphin"
    assert CIFAR100_ASYMMETRIC["whale"] == "beaver"


def test_empirical_shares() -> None:
    true_labels, labels = np.array([0, 0, 0, 0, 1, 1, -1]), np.array([0, 0, 0, 1, 1, -1, 2])
    expected = [[0.75, 0.25, 0], [0, 1, 0], [0, 0, 1]]
    np.testing.assert_allclose(empirical_transition(true_labels, labels, 3), expected)
    with pytest.raises(InvalidInputError, match="'true_labels' has 1, 'labels' has 2"):
        empirical_transition(np.array([0]), np.array([0, 1]), 2)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[1.0, 0.0]], r"'matrix' parameter must be numbers of shape \(2, 2\).*shape \(1, 2\)"),
        ([["a", "b"], ["c", "d"]], "'matrix' parameter must be numbers"),
        ([[1.0], [1.0, 2.0]], "'matrix' parameter must be made of rows of the same length"),
        (
            [[0.5, 0.6], [0.0, 1.0]],
            "'matrix' parameter must be made of rows that sum to one. Got '1.1 in row 0'",
        ),
        ([[1.5, -0.5], [0.0, 1.0]], "'matrix' parameter must be of probabilities, none negative.*row 0"),
        (
            [[1.0, 0.0], [np.nan, 1.0]],
            "'matrix' parameter must be of probabilities, none negative or NaN.*row 1",
        ),
    ],
)
def test_matrices_that_are_none(matrix: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        check_transition(matrix, 2)


@pytest.mark.parametrize("rate", [-0.1, 1.1, np.nan, "half", None])
def test_rates_that_are_none(rate: Any) -> None:
    message = "'rate' parameter must be a finite number at least 0 and at most 1. Got"
    for make in (
        lambda: symmetric_transition(3, rate),
        lambda: pair_transition(3, rate),
        lambda: asymmetric_transition(["a", "b"], {"a": "b"}, rate),
    ):
        with pytest.raises(InvalidInputError, match=message):
            make()


@pytest.mark.parametrize("mapping", [{"a": "x"}, {"x": "a"}, {"a": 2}, {-1: "a"}, {True: "a"}, {"a": None}])
def test_mappings_name_classes(mapping: dict[Any, Any]) -> None:
    with pytest.raises(
        InvalidInputError, match=r"'mapping' parameter must be made of names of the 2 classes"
    ):
        asymmetric_transition(["a", "b"], mapping, 0.1)
    with pytest.raises(InvalidInputError, match="'mapping' parameter must be a dict"):
        asymmetric_transition(["a", "b"], [("a", "b")], 0.1)  # type: ignore[arg-type]


def test_one_class_has_nothing_to_be_taken_for() -> None:
    with pytest.raises(
        InvalidInputError, match=r"'n_classes' parameter must be an integer of at least 2. Got 1"
    ):
        symmetric_transition(1, 0.1)
