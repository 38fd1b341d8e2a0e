"""From what the user gave to a task: parts of the data, views, networks on their device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from laplaceconfidence.arrays import IntArray
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.training.distributed import Team
from laplaceconfidence.training.inputs import TrainingData
from laplaceconfidence.training.methods.interface import Method
from laplaceconfidence.training.network import HeadedNetwork, Network, build_module, feature_count
from laplaceconfidence.training.networks.registry import NetworkSpec
from laplaceconfidence.training.samples import ResidentSamples, Samples
from laplaceconfidence.training.seeds import derived_seed
from laplaceconfidence.training.resolve import RunSettings
from laplaceconfidence.training.task import Task, TestSet
from laplaceconfidence.training.views import Views, build_augmentations, input_statistics
from laplaceconfidence.validation import must_be

_STATISTICS_FROM = 10_000  # samples at most; 512 where they are not in memory


def split_validation(labels: IntArray, fraction: float, seed: int) -> tuple[Tensor, Tensor]:
    """Rows to train on and rows to hold out: ``fraction`` of those that have a label, chosen at random."""
    labeled = np.flatnonzero(labels != MISSING)
    n_held_out = round(fraction * len(labeled))
    if n_held_out >= len(labeled):
        raise must_be(
            "validation_fraction", f"small enough to train on something ({len(labeled)} labels)", fraction
        )
    chosen = np.random.default_rng(derived_seed(seed, "validation")).permutation(labeled)[:n_held_out]
    held_out = np.sort(chosen)
    kept = np.setdiff1d(np.arange(len(labels)), held_out)
    return torch.from_numpy(kept), torch.from_numpy(held_out)


def build_task(
    data: TrainingData,
    test: TestSet | None,
    further_tests: Mapping[str, TestSet],
    run: RunSettings,
    device: torch.device,
) -> Task:
    """Everything a run needs, with networks as the seed of the settings makes them."""
    settings = run.training
    team = Team.current()
    for watched in (*([test] if test else []), *further_tests.values()):
        if watched.samples.shape != data.samples.shape:
            rule = f"made of samples of shape {data.samples.shape}, as 'X'"
            raise must_be("test", rule, watched.samples.shape)
    train_rows, validation_rows = split_validation(data.labels, run.validation_fraction, settings.seed)
    augmentations = build_augmentations(run.weak, run.strong, data.samples.shape)
    mean, deviation = _statistics(data.samples, train_rows, settings.seed)
    views = Views(*augmentations, mean.to(device), deviation.to(device), settings.channels_last)
    build = _module_builder(data, run.method, run.network, run.feature_layer)
    networks = []
    for number in range(run.method.n_networks):
        module = build(number, derived_seed(settings.seed, "network", number)).to(device)
        if settings.channels_last:
            module = module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        if team.size > 1 and device.type == "cuda":
            module = nn.SyncBatchNorm.convert_sync_batchnorm(module)  # type: ignore[no-untyped-call]
        networks.append(Network(module, device, team, compiled=settings.compile))
    return Task(
        samples=data.samples,
        labels=data.labels,
        ids=data.ids,
        class_names=data.class_names,
        train_rows=train_rows,
        validation_rows=validation_rows,
        views=views,
        networks=tuple(networks),
        rebuild=build,
        device=device,
        team=team,
        test=test,
        further_tests=further_tests,
    )


def _module_builder(
    data: TrainingData, method: Method, network: NetworkSpec, feature_layer: str | None
) -> Callable[[int, int], HeadedNetwork]:
    """The function that makes the weights of a network from its number and a seed."""
    shape, n_classes = data.samples.shape, len(data.class_names)

    def build(number: int, seed: int) -> HeadedNetwork:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            # A module of the user's keeps its weights in the first network: they may be pretrained.
            module = build_module(
                network, n_classes, shape, reinitialize=number > 0, feature_layer=feature_layer
            )
            if heads := method.heads(feature_count(module, shape), n_classes):
                module.heads.update(heads)
        return module

    return build


def _statistics(samples: Samples, rows: Tensor, seed: int) -> tuple[Tensor, Tensor]:
    """Mean and deviation of the inputs, from a random part of the training samples."""
    n_seen = _STATISTICS_FROM if isinstance(samples, ResidentSamples) else 512
    order = torch.from_numpy(np.random.default_rng(derived_seed(seed, "statistics")).permutation(len(rows)))
    seen = rows[order[:n_seen]]
    inputs: list[Any] = [batch.cpu() for batch in samples.batches(torch.split(seen, 256), seed)]
    return input_statistics(torch.cat(inputs))
