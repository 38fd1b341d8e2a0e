"""Noise of a known kind: as much as asked for, where it belongs, the same for the same seed."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laplaceconfidence import NoisyDataset
from laplaceconfidence.data.cifar_classes import CIFAR10_CLASSES, CIFAR100_CLASSES
from laplaceconfidence.data.digits import load_digits
from laplaceconfidence.data.noise import NOISE_KINDS, add_noise
from laplaceconfidence.data.transitions import (
    CIFAR10_ASYMMETRIC,
    DIGITS_ASYMMETRIC,
    empirical_transition,
    pair_transition,
    symmetric_transition,
)
from laplaceconfidence.exceptions import InvalidInputError


def clean(n: int = 6000, n_classes: int = 5, *, gaps: bool = False, n_features: int = 8) -> NoisyDataset:
    random = np.random.default_rng(0)
    labels = random.integers(0, n_classes, n)
    features = random.normal(size=(n, n_features)).astype(np.float32)
    if gaps:
        labels[::7] = -1
    return NoisyDataset.from_arrays(labels, features, missing_label=-1)


def arguments(kind: str, n_classes: int = 5) -> dict[str, Any]:
    if kind == "matrix":
        return {"matrix": pair_transition(n_classes, 0.3)}
    return {"rate": 0.3, "mapping": {"0": "1", "2": "3"}} if kind == "asymmetric" else {"rate": 0.3}


@pytest.mark.parametrize("kind", NOISE_KINDS)
def test_the_same_seed_gives_the_same_labels(kind: str) -> None:
    first, second, other = (add_noise(clean(), kind, **arguments(kind), random_state=s) for s in (1, 1, 2))
    assert first.labels.tolist() == second.labels.tolist()
    assert first.labels.tolist() != other.labels.tolist()


@pytest.mark.parametrize("kind", NOISE_KINDS)
def test_clean_labels_are_kept_and_gaps_stay(kind: str) -> None:
    data = clean(gaps=True)
    noisy = add_noise(data, kind, **arguments(kind), random_state=0)
    np.testing.assert_array_equal(noisy.true_labels, data.labels)
    np.testing.assert_array_equal(noisy.labels == -1, data.labels == -1)
    assert (noisy.labels != data.labels).any()
    assert noisy.features is data.features
    written = data.labels_as_written(noisy.labels)  # still in the user's own writing
    assert set(written.tolist()) <= {-1, 0, 1, 2, 3, 4}


@pytest.mark.parametrize("kind", NOISE_KINDS)
def test_noise_is_drawn_from_the_true_labels(kind: str) -> None:
    data = clean()
    once = add_noise(data, kind, **arguments(kind), random_state=5)
    again = add_noise(once, kind, **arguments(kind), random_state=5)
    assert again.labels.tolist() == once.labels.tolist()
    np.testing.assert_array_equal(again.true_labels, data.labels)


@given(
    rate=st.floats(0, 1),
    kind=st.sampled_from(["symmetric", "symmetric-excluding", "pair"]),
    seed=st.integers(0, 99),
)
@settings(max_examples=40, deadline=None)
def test_the_shares_are_those_of_the_model(rate: float, kind: str, seed: int) -> None:
    noisy = add_noise(clean(), kind, rate, random_state=seed)
    assert noisy.true_labels is not None
    drawn = empirical_transition(noisy.true_labels, noisy.labels, 5)
    nominal = {
        "symmetric": symmetric_transition(5, rate),
        "symmetric-excluding": symmetric_transition(5, rate, include_true=False),
        "pair": pair_transition(5, rate),
    }[kind]
    np.testing.assert_allclose(drawn, nominal, atol=5 * 0.5 / np.sqrt(1100))  # five standard errors
    assert (drawn[nominal == 0] == 0).all()


@given(seed=st.integers(0, 999), n_classes=st.integers(2, 6))
@settings(max_examples=30, deadline=None)
def test_any_matrix(seed: int, n_classes: int) -> None:
    random = np.random.default_rng(seed)
    matrix = random.dirichlet(np.full(n_classes, 0.5), n_classes) * (
        random.random((n_classes, n_classes)) < 0.7
    )
    matrix += np.eye(n_classes) * 0.01
    matrix /= matrix.sum(axis=1, keepdims=True)
    noisy = add_noise(clean(n_classes=n_classes), "matrix", matrix=matrix, random_state=seed)
    assert noisy.true_labels is not None
    drawn = empirical_transition(noisy.true_labels, noisy.labels, n_classes)
    np.testing.assert_allclose(drawn, matrix, atol=0.09)
    assert (drawn[matrix == 0] == 0).all()


@pytest.mark.parametrize("kind", [kind for kind in NOISE_KINDS if kind != "matrix"])
def test_rates_at_the_ends(kind: str) -> None:
    data = clean()
    options = {"mapping": {str(c): str((c + 2) % 5) for c in range(5)}} if kind == "asymmetric" else {}
    nothing = add_noise(data, kind, 0, **options, random_state=0)
    assert nothing.labels.tolist() == data.labels.tolist()
    if kind in ("symmetric-excluding", "pair", "asymmetric"):
        assert (add_noise(data, kind, 1, **options, random_state=0).labels != data.labels).all()


def test_the_classes_of_cifar_need_no_mapping() -> None:
    codes = np.arange(1000) % 10
    data = NoisyDataset.from_arrays(codes, class_names=CIFAR10_CLASSES, features=np.eye(1000, 3))
    known = add_noise(data, "asymmetric", 0.4, random_state=0)
    given_mapping = add_noise(data, "asymmetric", 0.4, mapping=CIFAR10_ASYMMETRIC, random_state=0)
    assert known.labels.tolist() == given_mapping.labels.tolist()
    assert set(zip(codes[known.labels != codes], known.labels[known.labels != codes], strict=True)) == {
        *((9, 1), (2, 0), (4, 7), (3, 5), (5, 3))
    }
    hundred = NoisyDataset.from_arrays(np.arange(1000) % 100, class_names=CIFAR100_CLASSES)
    assert 0.3 < (add_noise(hundred, "asymmetric", 0.4, random_state=0).labels != hundred.labels).mean() < 0.5


def test_digits() -> None:
    noisy = add_noise(load_digits(), "asymmetric", 0.4, mapping=DIGITS_ASYMMETRIC, random_state=0)
    assert noisy.true_labels is not None
    drawn = empirical_transition(noisy.true_labels, noisy.labels, 10)
    assert drawn[2, 7] == pytest.approx(0.4, abs=0.15)
    assert drawn[0, 0] == 1


@pytest.mark.parametrize("rate", [0.2, 0.4, 0.6])
def test_instance_noise_reaches_its_rate(rate: float) -> None:
    noisy = add_noise(clean(20_000), "instance", rate, random_state=0)
    assert (noisy.labels != noisy.true_labels).mean() == pytest.approx(rate, abs=0.02)


def test_the_features_decide_what_a_sample_is_taken_for() -> None:
    """Copies of one sample agree far more often on a wrong label than other samples of its class do."""
    random = np.random.default_rng(0)
    prototypes = random.normal(size=(40, 16))
    which = np.repeat(np.arange(40), 200)
    labels = (np.arange(40) % 8)[which]
    noisy = add_noise(NoisyDataset.from_arrays(labels, prototypes[which]), "instance", 0.5, random_state=1)
    targets = np.stack(
        [np.bincount(noisy.labels[(which == p) & (noisy.labels != labels)], minlength=8) for p in range(40)]
    )
    assert (targets.max(axis=1) / targets.sum(axis=1)).mean() > 0.6  # by chance it would be about 0.2
    favorites = targets.argmax(axis=1).reshape(5, 8)  # one column a class, five prototypes each
    assert any(len(set(column)) > 1 for column in favorites.T)  # not decided by the class alone


def test_flip_rates_of_single_samples_differ() -> None:
    from laplaceconfidence.data.instance_noise import _flip_rates

    rates = _flip_rates(0.3, 50_000, np.random.default_rng(0))
    assert rates.min() >= 0
    assert rates.max() <= 1
    assert rates.mean() == pytest.approx(0.3, abs=0.01)
    assert rates.std() == pytest.approx(0.1, abs=0.01)


def test_instance_noise_from_images_and_from_flat_features() -> None:
    images = np.random.default_rng(0).integers(0, 256, (500, 4, 4, 3), dtype=np.uint8)
    data = NoisyDataset.from_arrays(np.arange(500) % 3, images=images)
    assert (add_noise(data, "instance", 0.4, random_state=0).labels != data.labels).any()
    flat = NoisyDataset.from_arrays(np.arange(500) % 3, np.zeros((500, 2)))
    assert 0.2 < (add_noise(flat, "instance", 0.4, random_state=0).labels != flat.labels).mean() < 0.6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "loud", "rate": 0.1}, "'kind' parameter must be one of 'symmetric'.* Got 'loud'"),
        (
            {"kind": "symmetric"},
            "'rate' parameter must be a finite number at least 0 and at most 1. Got None",
        ),
        ({"kind": "instance"}, "'rate' parameter must be a finite number at least 0 and at most 1. Got None"),
        ({"kind": "symmetric", "rate": 1.5}, "'rate' parameter must be .* at most 1. Got 1.5"),
        ({"kind": "symmetric", "rate": True}, "'rate' parameter must be .* Got True"),
        ({"kind": "asymmetric", "rate": 0.1}, "'mapping' parameter must be given for asymmetric noise"),
        (
            {"kind": "asymmetric", "rate": 0.1, "mapping": {"9": "0"}},
            "'mapping' .* names of the 5 classes.*'9'",
        ),
        ({"kind": "pair", "rate": 0.1, "mapping": {"1": "0"}}, "'mapping' parameter must be left out unless"),
        ({"kind": "matrix"}, "'matrix' parameter must be given where 'kind' is 'matrix'"),
        (
            {"kind": "pair", "rate": 0.1, "matrix": np.eye(5)},
            "'matrix' parameter must be given where .* only there",
        ),
        (
            {"kind": "matrix", "rate": 0.1, "matrix": np.eye(5)},
            "'rate' parameter must be left out where 'matrix'",
        ),
        ({"kind": "matrix", "matrix": np.eye(4)}, r"'matrix' parameter must be numbers of shape \(5, 5\)"),
        ({"kind": "pair", "rate": 0.1, "random_state": -1}, "'random_state' parameter must be an integer"),
    ],
)
def test_bad_settings(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        add_noise(clean(50), **options)


def test_bad_data() -> None:
    with pytest.raises(InvalidInputError, match=r"'dataset' parameter must be of at least two classes.*'a'"):
        add_noise(NoisyDataset.from_arrays(["a", "a"]), "symmetric", 0.1)
    with pytest.raises(
        InvalidInputError, match="'dataset' parameter must be a data set with features or images"
    ):
        add_noise(NoisyDataset.from_arrays(["a", "b"]), "instance", 0.1)
