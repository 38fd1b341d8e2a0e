"""Random numbers for augmentation, all from one explicit generator on the CPU."""

from __future__ import annotations

import numpy as np
import torch

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.validation import must_be


def uniform(shape: tuple[int, ...], generator: torch.Generator) -> FloatArray:
    """Float64 numbers in [0, 1)."""
    _check_generator(generator)
    numbers: FloatArray = torch.rand(shape, generator=generator, dtype=torch.float64).numpy()
    return numbers


def integers(high: int, shape: tuple[int, ...], generator: torch.Generator) -> IntArray:
    """Int64 numbers from 0 to ``high`` - 1."""
    _check_generator(generator)
    numbers: IntArray = torch.randint(high, shape, generator=generator).numpy()
    return numbers


def signs(shape: tuple[int, ...], generator: torch.Generator) -> IntArray:
    """-1 or 1 with equal probability."""
    return integers(2, shape, generator) * 2 - 1


def permutation(n: int, generator: torch.Generator) -> torch.Tensor:
    """The numbers from 0 to ``n`` - 1 in random order."""
    _check_generator(generator)
    return torch.randperm(n, generator=generator)


def dirichlet(alpha: float, size: int, n: int, generator: torch.Generator) -> FloatArray:
    """(n, size) rows from the symmetric Dirichlet distribution; with size 2, a column is Beta(alpha, alpha).

    Torch's own samplers take no generator, so a number drawn from it seeds NumPy's.
    """
    seed = int(integers(2**62, (1,), generator)[0])
    return np.random.default_rng(seed).dirichlet([alpha] * size, n)


def _check_generator(generator: torch.Generator) -> None:
    if generator.device.type != "cpu":
        raise must_be("generator", "on the CPU", f"one on {generator.device}", "Use torch.Generator().")
