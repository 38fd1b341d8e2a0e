"""Every random number of a run as a function of its seed and of what it is for.

No generator is used for longer than one step, so there is no state to save: a resumed run draws the same
numbers as one without interruption, and so do all processes of a distributed run.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import torch

from laplaceconfidence.validation import check_integer, check_random_state


def root_seed(random_state: Any) -> int:
    """The seed of a whole run: ``random_state`` itself if it is a number, else one drawn from it."""
    if isinstance(random_state, (int, np.integer)):
        return check_integer(random_state, "random_state", minimum=0)
    return int(check_random_state(random_state).integers(2**32))


def derived_seed(root: int, *purpose: int | str) -> int:
    """A seed for one purpose, such as ``("order", round, phase)``, independent of those for all others."""
    key = tuple(zlib.crc32(part.encode()) if isinstance(part, str) else part for part in purpose)
    return int(np.random.SeedSequence(root, spawn_key=key).generate_state(1, np.uint64)[0] >> np.uint64(1))


def derived_generator(root: int, *purpose: int | str) -> torch.Generator:
    """A generator on the CPU for one purpose."""
    return torch.Generator().manual_seed(derived_seed(root, *purpose))
