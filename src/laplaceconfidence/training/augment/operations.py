"""Apply one operation per image of a batch; images with the same operation are processed together."""

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
    """Apply one operation to each image.

    Parameters
    ----------
    images : Tensor of uint8, shape (b, channels, height, width)
        The images.
    codes : ndarray of int, shape (b,)
        The operation per image, see ``CODES``.
    magnitudes : ndarray of shape (b,)
        The magnitude per image.
    fill : int, default=0
        Gray level of pixels that a move brings in from outside.

    Returns
    -------
    Tensor of uint8, shape (b, channels, height, width)
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
