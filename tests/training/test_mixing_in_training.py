"""MixUp and CutMix of strong views inside Algorithm 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from laplaceconfidence.training.augment.registry import MIXING
from small_runs import noisy_digits, quick, weights

# So few samples make the guards speak.
pytestmark = pytest.mark.filterwarnings("ignore::laplaceconfidence.training.guards.TrainingWarning")


def with_mixing(name: str | None) -> Any:
    images, given, _ = noisy_digits(100)
    return quick(rounds=3, own={"mixing": name}).fit(images, given)


def test_views_and_their_targets_are_mixed_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    unmixed = with_mixing(None)
    before = weights(unmixed)
    monkeypatch.setitem(MIXING, "mixup", lambda: lambda images, targets, generator: (images, targets))
    assert all(torch.equal(a, b) for a, b in zip(before, weights(with_mixing("mixup")), strict=True))
    # The mean over a batch does not depend on its order, as long as targets move with their images.
    monkeypatch.setitem(
        MIXING, "mixup", lambda: lambda images, targets, generator: (images.flip(0), targets.flip(0))
    )
    losses = [record["phases"][0]["loss"] for record in with_mixing("mixup").history_]
    assert losses == pytest.approx([record["phases"][0]["loss"] for record in unmixed.history_], rel=0.02)


@pytest.mark.parametrize("name", ["mixup", "cutmix"])
def test_mixed_training_is_another_one_and_repeats_itself(name: str) -> None:
    plain, mixed, again = (weights(with_mixing(mixing)) for mixing in (None, name, name))
    assert all(torch.equal(a, b) for a, b in zip(mixed, again, strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(plain, mixed, strict=True))
    assert all(torch.isfinite(values).all() for values in mixed)


def test_what_cannot_be_mixed_is_refused() -> None:
    images, given, _ = noisy_digits(60)
    with pytest.raises(ValueError, match="'mixing' parameter must be one of"):
        quick(own={"mixing": "blend"}).fit(images, given)
    vectors = np.float32(images.reshape(60, -1))
    with pytest.raises(ValueError, match="Feature vectors take no image augmentation"):
        quick(network="mlp", strong="mask", weak="none", own={"mixing": "cutmix"}).fit(vectors, given)
