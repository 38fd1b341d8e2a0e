"""Every image of a batch gets an operation of its own: images with the same one are worked on together."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.training.augment.move import MOVES, warp
from laplaceconfidence.training.augment.recolor import RECOLORS

OPERATIONS = (*RECOLORS, *MOVES)  # moves last: they share one warp
CODES = {name: code for code, name in enumerate(OPERATIONS)}


def apply_operations(images: Tensor, codes: IntArray, magnitudes: FloatArray, fill: int = 0) -> Tensor:
    """Bytes ``images`` after operation ``codes[i]`` (see CODES) with ``magnitudes[i]`` on image i.

    ``fill`` is the gray level of what a move brings in from outside.
    """
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(OPERATIONS) + 1)).tolist()
    groups = [slice(*pair) for pair in pairwise(bounds)]
    magnitudes = magnitudes[order]
    grouped = images.index_select(0, torch.from_numpy(order).to(images.device))
    for recolor, group in zip(RECOLORS.values(), groups, strict=False):
        if group.start < group.stop and recolor is not RECOLORS["identity"]:
            grouped[group] = recolor(grouped[group], magnitudes[group])
    moved = slice(bounds[len(RECOLORS)], None)
    if moved.start < len(grouped):
        height, width = images.shape[2:]
        move_groups = zip(MOVES.values(), groups[len(RECOLORS) :], strict=True)
        maps = [move(magnitudes[group], height, width) for move, group in move_groups]
        grouped[moved] = warp(grouped[moved], np.concatenate(maps), fill)
    return grouped.index_select(0, torch.from_numpy(np.argsort(order)).to(images.device))
