"""Weak views in training: alone in the statistics of batch normalization, and in the last rounds."""

from typing import Any

import pytest
import torch
from torch import Tensor

from small_runs import noisy_digits, quick

# So few samples make the guards speak.
pytestmark = pytest.mark.filterwarnings("ignore::laplaceconfidence.training.guards.TrainingWarning")


def plain(images: Tensor, generator: torch.Generator) -> Tensor:
    return images


def glaring(images: Tensor, generator: torch.Generator) -> Tensor:
    return (images.float() * 0 + 255).to(images.dtype)


@pytest.mark.parametrize("weak_only", [False, True])
def test_strong_views_count_in_the_statistics_by_default(weak_only: bool) -> None:
    X, y, _ = noisy_digits(120)
    run = quick(
        network="mlp",
        weak=plain,
        strong=glaring,
        own={"warmup": 0, "weak_statistics": weak_only},
        rounds=2,
        learning_rate=1e-9,
    ).fit(X, y)
    network: Any = run.networks_[0]
    inputs = run._model.normalized(torch.from_numpy(X).unsqueeze(1)).flatten(1)
    close = (network.features[1].running_mean - inputs.mean(dim=0)).abs().max() < 0.5
    assert bool(close) == weak_only


@pytest.mark.parametrize(("weak_share", "rounds_with_strong_views"), [(0.0, 4), (0.5, 2), (1.0, 0)])
def test_the_last_share_of_the_rounds_has_weak_views(
    weak_share: float, rounds_with_strong_views: int
) -> None:
    seen: list[int] = []

    def counted(images: Tensor, generator: torch.Generator) -> Tensor:
        seen.append(len(images))
        return images

    X, y, _ = noisy_digits(120)
    run = quick(
        network="mlp", strong=counted, own={"warmup": 0, "passes": 1, "weak_share": weak_share}, rounds=4
    ).fit(X, y)
    n_trained = len(X) - round(len(X) * run.validation_fraction)
    assert sum(seen) == 2 * rounds_with_strong_views * n_trained  # two networks
