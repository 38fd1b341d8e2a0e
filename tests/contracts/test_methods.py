"""One contract for every training method."""

import dataclasses
import signal
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone

from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.exceptions import Interrupted, InvalidInputError
from laplaceconfidence.training.classifier import RobustClassifier
from laplaceconfidence.training.methods.registry import METHODS, build_method, settings_of
from small_runs import noisy_digits, normalized_mlp, quick, weights

EVERY = pytest.mark.parametrize("name", sorted(METHODS))


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few samples make the guards speak
        yield


def run(name: str, own: dict[str, Any] | None = None, **settings: Any) -> RobustClassifier:
    return quick(method=name, own=own, **settings)


def same(first: RobustClassifier, second: RobustClassifier) -> bool:
    return all(torch.equal(a, b) for a, b in zip(weights(first), weights(second), strict=True))


@EVERY
def test_a_method_is_a_frozen_dataclass_with_defaults(name: str) -> None:
    method = METHODS[name]()
    assert dataclasses.is_dataclass(method)
    for field in dataclasses.fields(method):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(method, field.name, None)
    assert METHODS[name].__doc__


@EVERY
def test_phases_name_networks_that_exist_and_train_each_of_them(name: str) -> None:
    method = METHODS[name]().for_rounds(40)
    networks = set(range(method.n_networks))
    trained: set[int] = set()
    for number in range(40):
        phases = method.phases(number)
        assert phases
        for phase in phases:
            assert phase.trains
            assert set(phase.trains) | set(phase.evidence) | set(phase.fresh) <= networks
            assert phase.passes >= 1
            trained |= set(phase.trains) | {copied.target for copied in phase.copies}
        assert set(method.predictors_in(number)) <= networks
    assert trained == networks
    assert method.stage(39).counts


# Methods that can only select or correct once something has been learned.
TO_LEARN: dict[str, dict[str, Any]] = {
    "pencil": {"warmup": 7, "correction": 2},
    "curriculum": {"warmup": 5, "noise_rate": 0.2},
    "forward_correction": {"estimation_rounds": 3},
    "itlm": {"kept_share": 0.8, "training_rounds": 4},
    "selfie": {"noise_rate": 0.2, "training_rounds": 2},
    "incv": {"selection_rounds": 3, "ramp": 10},
    "mlnt": {"training_rounds": 2, "ramp": 2, "early_decay": 0.9, "teacher_decay": 0.9},
}


@EVERY
def test_it_learns(name: str) -> None:
    images, given, true = noisy_digits(400, rate=0.2)
    own = TO_LEARN.get(name)
    fitted = run(name, own, network="mlp", rounds=10, learning_rate=0.02).fit(images, given)
    assert (fitted.predict(images) == true).mean() > 0.8


@EVERY
def test_what_it_leaves_is_well_formed_even_with_missing_labels(name: str) -> None:
    images, given, _ = noisy_digits(120)
    given[::5] = -1
    fitted = run(name, missing_label=-1).fit(images, given)
    probabilities = fitted.predict_proba(images)
    assert probabilities.shape == (120, 10)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
    assert np.isnan(fitted.confidence_[::5]).all()
    known = fitted.confidence_[given != -1]
    assert ((known >= 0) & (known <= 1)).all()
    assert set(fitted.refined_labels_) <= set(range(10))
    assert [record["round"] for record in fitted.history_] == [1, 2, 3]
    assert all(np.isfinite(phase["loss"]) for record in fitted.history_ for phase in record["phases"])


@EVERY
def test_the_seed_decides_everything(name: str) -> None:
    images, given, _ = noisy_digits(100)
    first, again = (run(name, random_state=7).fit(images, given) for _ in range(2))
    other = run(name, random_state=8).fit(images, given)
    assert same(first, again)
    assert first.history_ == again.history_
    assert not same(first, other)


@EVERY
def test_true_labels_have_no_say(name: str) -> None:
    images, given, true = noisy_digits(100)
    names = [str(digit) for digit in range(10)]
    sets = [
        NoisyDataset.from_arrays(given, images=images[..., None], class_names=names, true_labels=labels)
        for labels in (true, true[::-1])
    ]
    assert same(run(name).fit(sets[0]), run(name).fit(sets[1]))


@EVERY
def test_stopped_in_every_round_it_ends_bit_identical(name: str, tmp_path: Path) -> None:
    images, given, _ = noisy_digits(100)
    whole = run(name).fit(images, given)
    stopped = run(name, out=tmp_path / "run", checkpoint_seconds=1e9)
    for _ in range(2):
        with pytest.raises(Interrupted):
            stopped.fit(images, given, listeners=[lambda record: signal.raise_signal(signal.SIGTERM)])
    stopped.fit(images, given)
    assert same(whole, stopped)
    assert whole.history_ == stopped.history_


def as_vectors(images: Any) -> Any:
    return images.reshape(len(images), -1).astype(np.float32)


# What is trained on (images, labels) and other settings of the run.
SITUATIONS: dict[str, Any] = {
    "feature vectors": lambda X, y: (as_vectors(X), y, {"weak": "none", "strong": "mask"}),
    "one sample left over": lambda X, y: (X[:65], y[:65], {"network": normalized_mlp}),
    "two classes": lambda X, y: (X, y % 2, {}),
    "classes missing from batches": lambda X, y: (X[:60], y[:60], {"batch_size": 4}),
    "float16": lambda X, y: (X, y, {"precision": "float16"}),
    "bfloat16": lambda X, y: (X, y, {"precision": "bfloat16"}),
}


@pytest.mark.parametrize("situation", SITUATIONS)
@EVERY
def test_it_trains_in_every_situation(name: str, situation: str) -> None:
    images, labels, _ = noisy_digits(100)
    X, y, settings = SITUATIONS[situation](images, labels)
    fitted = run(name, validation_fraction=0, **settings).fit(X, y)
    assert len(fitted.history_) == 3
    assert all(np.isfinite(phase["loss"]) for record in fitted.history_ for phase in record["phases"])
    assert all(torch.isfinite(tensor).all() for tensor in weights(fitted))
    assert set(fitted.predict(X)) <= set(y)


@EVERY
def test_settings_it_does_not_have_are_refused(name: str) -> None:
    has = ", ".join(settings_of(name)) or "no settings"
    with pytest.raises(
        InvalidInputError, match=rf"{name!r} has no setting 'no_such_setting'.*It has {has}\."
    ):
        build_method(name, {"no_such_setting": 1})


@EVERY
def test_it_can_be_copied_and_changed_as_scikit_learn_does(name: str) -> None:
    method = METHODS[name]()
    copy = clone(RobustClassifier(method=method))
    assert copy.method == method
    for setting in settings_of(name):
        copy.set_params(**{f"method__{setting}": getattr(method, setting)})
    assert copy.method == method
    with pytest.raises(InvalidInputError, match="has no setting 'no_such_setting'"):
        copy.set_params(method__no_such_setting=1)
