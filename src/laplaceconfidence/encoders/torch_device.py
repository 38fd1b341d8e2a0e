"""The device that networks run on."""

from __future__ import annotations

from typing import Any

import torch

from laplaceconfidence.validation import must_be


def choose_device(device: Any) -> torch.device:
    """The device to train on.

    Parameters
    ----------
    device : str or torch.device
        "auto" takes a GPU if there is one.

    Returns
    -------
    torch.device
    """
    if isinstance(device, str) and device == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda", torch.cuda.current_device())
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise must_be("device", "'auto', 'cpu', 'cuda', 'cuda:0', ... or 'mps'", device) from error
    usable = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not usable.get(chosen.type, False):
        there = ", ".join(repr(name) for name, works in usable.items() if works)
        raise must_be("device", f"one that this machine has: 'auto', {there}", str(device))
    return chosen
