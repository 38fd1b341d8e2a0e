"""Every image of a batch gets an operation of its own: images with the same one are worked on together."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.training.augment.move import MOVES, warp
from laplaceconfidence.training.augment.recolour import RECOLOURS

OPERATIONS = (*RECOLOURS, *MOVES)  # moves last: they share one warp
CODES = {name: code for code, name in enumerate(OPERATIONS)}


def apply_operations(images: Tensor, codes: IntArray, magnitudes: FloatArray, fill: int = 0) -> Tensor:
    """Bytes ``images`` after operation ``codes[i]`` (see CODES) with ``magnitudes[i]`` on image i.

    ``fill`` is the grey level of what a move brings in from outside.
    """
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(OPERATIONS) + 1)).tolist()
    groups = [slice(*pair) for pair in pairwise(bounds)]
    magnitudes = magnitudes[order]
    grouped = images.index_select(0, torch.from_numpy(order).to(images.device))
    for recolour, group in zip(RECOLOURS.values(), groups, strict=False):
        if group.start < group.stop and recolour is not RECOLOURS["identity"]:
            grouped[group] = recolour(grouped[group], magnitudes[group])
    moved = slice(bounds[len(RECOLOURS)], None)
    if moved.start < len(grouped):
        height, width = images.shape[2:]
        move_groups = zip(MOVES.values(), groups[len(RECOLOURS) :], strict=True)
        maps = [move(magnitudes[group], height, width) for move, group in move_groups]
        grouped[moved] = warp(grouped[moved], np.concatenate(maps), fill)
    return grouped.index_select(0, torch.from_numpy(np.argsort(order)).to(images.device))
