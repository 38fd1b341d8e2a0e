"""What goes wrong in training is noticed, said, and survived or stopped with advice."""

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from laplaceconfidence.exceptions import TrainingStopped, TrainingWarning
from laplaceconfidence.training.guards import Guards
from laplaceconfidence.training.methods.interface import Plan
from laplaceconfidence.training.methods.laplace import Laplace
from small_runs import noisy_digits, quick

# So few samples make the guards speak.
pytestmark = pytest.mark.filterwarnings("ignore::laplaceconfidence.training.guards.TrainingWarning")


class Constant:
    """An estimator that trusts everything or nothing."""

    evidence = "losses"

    def __init__(self, value: float) -> None:
        self.value = value

    def fit(self, X: Any, y: Any) -> "Constant":
        self.confidence_ = np.full(len(y), self.value)
        return self


@pytest.mark.parametrize(("value", "word"), [(0.0, "near 0"), (1.0, "near 1")])
def test_confidences_that_all_go_to_an_end_are_told_once_and_survived(value: float, word: str) -> None:
    X, y, _ = noisy_digits(100)
    with pytest.warns(TrainingWarning, match=word) as told:
        quick(own={"confidence": Constant(value), "n_neighbors": None}, rounds=4).fit(X, y)
    assert sum(word in str(warning.message) for warning in told) == 1


def test_a_class_that_vanishes_from_the_targets_is_named() -> None:
    guards = Guards(("cat", "dog", "eel"))
    with pytest.warns(TrainingWarning, match=r"1 of 3 classes \(dog\) vanished .* round 5"):
        guards.check_targets(torch.tensor([4, 0, 0]), torch.tensor([3, 3, 0]), round=4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        guards.check_targets(torch.tensor([4, 1, 0]), torch.tensor([3, 3, 0]), round=5)


def test_a_vanished_class_is_noticed_in_a_run() -> None:
    X, y, _ = noisy_digits(100)
    own = {"confidence": Constant(0.2), "n_neighbors": None, "sharpen": 50}
    with pytest.warns(TrainingWarning, match="vanished"):
        quick(own=own, rounds=2, learning_rate=1e-4).fit(X, y)


def test_a_loss_that_is_not_finite_stops_with_advice() -> None:
    X, y, _ = noisy_digits(100)

    def exploded(images: Tensor, generator: torch.Generator) -> Tensor:
        return images.float() * torch.inf

    with pytest.raises(TrainingStopped, match="Lower 'learning_rate'"):
        quick(weak=exploded).fit(X, y)


def test_a_network_that_collapsed_stops_with_advice() -> None:
    X, y, _ = noisy_digits(100)

    def dead(n_classes: int, input_shape: tuple[int, ...]) -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.Threshold(1e9, 0.0), nn.Linear(8, n_classes))

    with pytest.raises(
        TrainingStopped, match=r"Network 2 gives every sample the same features.*'learning_rate'"
    ):
        quick(network=dead).fit(X, y)


def test_a_batch_of_one_is_avoided_or_refused_with_advice() -> None:
    X, y, _ = noisy_digits(65)
    quick(network="mlp", batch_size=64, validation_fraction=0, method="cross_entropy").fit(X, y)  # 64 + 1
    with pytest.raises(TrainingStopped, match="'batch_size' of at least 2"):
        quick(network="mlp", batch_size=1).fit(X, y)
    quick(batch_size=1, rounds=1, method="cross_entropy").fit(X, y)  # fine without batch normalization


def test_a_stream_without_samples_stops_with_advice() -> None:
    with pytest.raises(TrainingStopped, match="No sample is left in 'kept' in round 3"):
        Guards(("a", "b")).check_plan(Plan({"kept": torch.zeros(0, dtype=torch.long)}), round=2)


def test_dividemix_never_runs_out_of_either_kind() -> None:
    X, y, _ = noisy_digits(60, rate=0.0)
    all_clean = quick(method="dividemix", rounds=3).fit(X, y)
    hardly_any = quick(method="dividemix", own={"warmup": 0, "threshold": 0.999}, rounds=2).fit(X, y)
    assert (len(all_clean.history_), len(hardly_any.history_)) == (3, 2)


def test_settings_that_would_be_ignored_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"'alpha' .* left out: the estimator 'gaussian-mixture' does not have it"
    ):
        Laplace(confidence="gaussian-mixture", alpha=0.5)
    with pytest.raises(ValueError, match="'confidence' parameter must be one of 'noise-aware', 'laplace'"):
        Laplace(confidence="lapace")
