"""Training on labels of which some are wrong. Only this package imports torch."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from laplaceconfidence.exceptions import MissingDependencyError

if TYPE_CHECKING:
    from laplaceconfidence.training.classifier import RobustClassifier

__all__ = ["RobustClassifier"]

for _package in ("torch", "safetensors"):
    if find_spec(_package) is None:
        raise MissingDependencyError(
            f"Training needs {_package}, which is not installed: pip install 'laplaceconfidence[train]'."
        )


def __getattr__(name: str) -> Any:
    if name != "RobustClassifier":
        raise AttributeError(f"module 'laplaceconfidence.training' has no attribute {name!r}")
    return import_module("laplaceconfidence.training.classifier").RobustClassifier
