"""What is trained on what: the samples, their labels and parts, and the networks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from laplaceconfidence.arrays import FloatArray, IntArray, StrArray
from laplaceconfidence.training.distributed import Team
from laplaceconfidence.training.embed import observe
from laplaceconfidence.training.methods.interface import NetworkEvidence
from laplaceconfidence.training.network import HeadedNetwork, Network
from laplaceconfidence.training.samples import Samples
from laplaceconfidence.training.settings import TrainingSettings
from laplaceconfidence.training.views import Views


@dataclass(frozen=True, slots=True, eq=False)
class TestSet:
    """Samples whose accuracy is reported and never used."""

    __test__ = False  # pytest takes the name for a test

    samples: Samples
    labels: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """Everything a run needs besides the method and the settings."""

    samples: Samples
    labels: IntArray  # (n,) given, -1 where missing
    ids: StrArray
    class_names: tuple[str, ...]
    train_rows: Tensor  # which samples are trained on; a method numbers them 0, 1, ...
    validation_rows: Tensor  # which are held out to choose the checkpoint
    views: Views
    networks: tuple[Network, ...]
    rebuild: Callable[[int, int], HeadedNetwork]  # (number of the network, seed) -> new weights
    device: torch.device
    team: Team
    test: TestSet | None = None
    further_tests: Mapping[str, TestSet] = field(default_factory=dict)  # by name

    def observe(
        self, network: int, settings: TrainingSettings, rows: Tensor, samples: Samples | None = None
    ) -> NetworkEvidence:
        """What one network makes of samples: the training samples unless others are given."""
        return observe(
            self.networks[network],
            self.samples if samples is None else samples,
            rows,
            self.views,
            settings,
            self.device,
            self.team,
        )

    def inputs(self, rows: Tensor, settings: TrainingSettings) -> FloatArray:
        """Training samples as they were given, read by this process alone."""
        batches = torch.split(rows, settings.eval_batch_size)
        read = torch.cat([batch.cpu() for batch in self.samples.batches(batches, seed=settings.seed)])
        inputs: FloatArray = read.numpy()
        return inputs

    def mean_probabilities(
        self,
        predictors: tuple[int, ...],
        settings: TrainingSettings,
        rows: Tensor,
        samples: Samples | None = None,
    ) -> FloatArray:
        """(n, C) the mean softmax of the networks that predict."""
        each = [self.observe(network, settings, rows, samples).probabilities for network in predictors]
        mean: FloatArray = sum(each[1:], start=each[0]) / len(each)
        return mean
