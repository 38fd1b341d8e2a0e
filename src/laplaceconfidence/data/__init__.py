"""Data sets with labels nobody has verified: reading them, and making noise of a known kind."""

from laplaceconfidence.data.dataset import NoisyDataset

__all__ = ["NoisyDataset"]
