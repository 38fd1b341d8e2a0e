"""MixUp over the whole batch: partners may be in any stream and in any process."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from laplaceconfidence.training.augment.mixing import MixUp
from laplaceconfidence.training.step import Step


def draw_partners(step: Step, parts: Sequence[Tensor], mixing: MixUp) -> tuple[float, Tensor]:
    """Draw a weight and the partner of each row of this process.

    Parameters
    ----------
    step : Step
        The step; its generator draws the same in every process.
    parts : sequence of Tensor
        What is mixed, this process's rows of each part, such as views of labeled and unlabeled samples.
    mixing : MixUp
        How the weight is drawn.

    Returns
    -------
    weight : float
        Weight of each row itself; its partner gets the rest.
    partners : Tensor
        For each own row of all parts, the row of its partner among the rows of all processes.
    """
    lengths = [len(step.gather_rows(torch.zeros(len(part), device=part.device))) for part in parts]
    weight, partners = mixing.draw(sum(lengths), step.generator)
    own = [step.own_rows(part) for part in torch.split(partners.to(parts[0].device), lengths)]
    return weight, torch.cat(own)


def mix_rows(step: Step, parts: Sequence[Tensor], partners: Tensor, weight: float | Tensor) -> Tensor:
    """Own rows averaged with their partners; no gradient flows to partners.

    Parameters
    ----------
    step : Step
        The step.
    parts : sequence of Tensor
        This process's rows of each part.
    partners : Tensor
        What ``draw_partners`` returned for parts of these lengths.
    weight : float or Tensor of shape (n_own_rows,)
        Weight of each row itself.

    Returns
    -------
    Tensor
        As many rows as this process has.
    """
    own, others = torch.cat(list(parts)), partner_rows(step, parts, partners)
    if isinstance(weight, Tensor):
        weight = weight.reshape(-1, *[1] * (own.ndim - 1))
    return weight * own + (1 - weight) * others


def partner_rows(step: Step, parts: Sequence[Tensor], partners: Tensor) -> Tensor:
    """The rows of the partners, without gradient; see ``mix_rows``."""
    return torch.cat([step.gather_rows(part) for part in parts])[partners]
