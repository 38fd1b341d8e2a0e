"""What a network makes of many samples: eval mode, no augmentation, every process its share."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.stages import stage
from laplaceconfidence.training.distributed import Team
from laplaceconfidence.training.methods.interface import NetworkEvidence
from laplaceconfidence.training.network import Network
from laplaceconfidence.training.samples import Samples
from laplaceconfidence.training.settings import TrainingSettings
from laplaceconfidence.training.views import Views


def autocast(settings: TrainingSettings, device: torch.device) -> AbstractContextManager[object]:
    """The precision that forward passes run in."""
    if settings.autocast_type is None:
        return nullcontext()
    return torch.autocast(device.type, dtype=settings.autocast_type)


def observe(
    network: Network,
    samples: Samples,
    rows: Tensor,
    views: Views,
    settings: TrainingSettings,
    device: torch.device,
    team: Team,
) -> NetworkEvidence:
    """Penultimate features and class probabilities of the samples ``rows``, in their order."""
    team.average_buffers(network.module)
    was_training = network.module.training
    network.train(False)
    batches = torch.split(team.own_rows(rows), settings.eval_batch_size)
    features: list[Tensor] = []
    probabilities: list[Tensor] = []
    with stage("features", total=len(rows)) as advance, torch.no_grad(), autocast(settings, device):
        for inputs in samples.batches(batches, seed=settings.seed):
            outputs = network.outputs(views.normalized(inputs))
            features.append(outputs.features)
            probabilities.append(outputs.logits.softmax(dim=1))
            advance(len(inputs))
    network.train(was_training)
    return NetworkEvidence(_gathered(features, team), _gathered(probabilities, team))


def _gathered(parts: list[Tensor], team: Team) -> FloatArray:
    gathered: FloatArray = team.gather_rows(torch.cat(parts)).cpu().numpy()
    return gathered
