"""LaplaceConfidence: the probability that each given label is right, from a graph of the data.

The public names below load on first use, so that ``import laplaceconfidence`` stays instant and pulls in
neither torch nor pandas nor matplotlib.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from laplaceconfidence.auditing.issues import audit, find_label_issues
    from laplaceconfidence.confidence.laplace import LaplaceConfidence
    from laplaceconfidence.confidence.noise_aware import NoiseAwareConfidence
    from laplaceconfidence.data.dataset import NoisyDataset
    from laplaceconfidence.data.readers import read_dataset

__version__ = "0.1.0"

_HOMES = {
    "LaplaceConfidence": "laplaceconfidence.confidence.laplace",
    "NoiseAwareConfidence": "laplaceconfidence.confidence.noise_aware.estimator",
    "NoisyDataset": "laplaceconfidence.data.dataset",
    "audit": "laplaceconfidence.auditing.issues",
    "find_label_issues": "laplaceconfidence.auditing.issues",
    "read_dataset": "laplaceconfidence.data.readers",
}

__all__ = [
    "LaplaceConfidence",
    "NoiseAwareConfidence",
    "NoisyDataset",
    "__version__",
    "audit",
    "find_label_issues",
    "read_dataset",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'laplaceconfidence' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
