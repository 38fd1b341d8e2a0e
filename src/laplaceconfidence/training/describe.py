"""Settings as text and numbers, so that a resumed run can tell whether they are the same."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from torch import nn


def described(value: Any) -> Any:
    """A JSON-able description of a setting, the same in every process for the same setting."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [described(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): described(item) for key, item in value.items()}
    if isinstance(value, nn.Module):
        return {"kind": _name(type(value)), "weights": _digest(value)}
    if is_dataclass(value) and not isinstance(value, type):
        own = {field.name: described(getattr(value, field.name)) for field in fields(value)}
        return {"kind": _name(type(value)), **own}
    if hasattr(value, "get_params"):
        return {"kind": _name(type(value)), **described(value.get_params())}
    return _name(value if hasattr(value, "__qualname__") else type(value))


def _name(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"


def _digest(module: nn.Module) -> str:
    digest = hashlib.sha256()
    for name, tensor in module.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]
