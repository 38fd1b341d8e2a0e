"""Commands that train need torch, which is an extra."""

from __future__ import annotations

from importlib.util import find_spec

from laplaceconfidence.exceptions import MissingDependencyError


def check_torch(purpose: str) -> None:
    """Raise, before anything is read, where torch is not installed."""
    if find_spec("torch") is None:
        raise MissingDependencyError(
            f"{purpose} needs torch, which is not installed: pip install 'laplaceconfidence[train]'"
        )
