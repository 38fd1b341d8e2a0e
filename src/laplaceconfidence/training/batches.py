"""Which samples make up each batch: a function of the seed, the same in every process."""

from __future__ import annotations

from itertools import count

import torch
from torch import Tensor

from laplaceconfidence.training.seeds import derived_generator


def split_into_batches(rows: Tensor, batch_size: int) -> list[Tensor]:
    """Consecutive batches of ``rows``; a last one below an eighth of ``batch_size`` joins the one before it.

    Batch normalization cannot take a batch of one, and every process needs a share of each batch.
    """
    batches = list(torch.split(rows, batch_size))
    if len(batches) > 1 and len(batches[-1]) < max(2, batch_size // 8):
        tail = batches.pop()
        batches[-1] = torch.cat([batches[-1], tail])
    return batches


def shuffled_batches(rows: Tensor, batch_size: int, seed: int, *, passes: int) -> list[Tensor]:
    """``passes`` times all rows, every time in another order."""
    return [batch for turn in range(passes) for batch in _one_pass(rows, batch_size, seed, turn)]


def endless_batches(rows: Tensor, batch_size: int, seed: int, *, n_batches: int) -> list[Tensor]:
    """As many batches as are needed, going over the rows again and again."""
    batches: list[Tensor] = []
    for turn in count():
        batches += _one_pass(rows, batch_size, seed, turn)
        if len(batches) >= n_batches:
            break
    return batches[:n_batches]


def _one_pass(rows: Tensor, batch_size: int, seed: int, turn: int) -> list[Tensor]:
    order = torch.randperm(len(rows), generator=derived_generator(seed, "pass", turn))
    return split_into_batches(rows[order], batch_size)
