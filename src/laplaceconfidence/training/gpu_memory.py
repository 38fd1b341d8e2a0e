"""The most memory of a GPU that was in use."""

from __future__ import annotations

from typing import Any

import torch

from laplaceconfidence.encoders.torch_device import choose_device


def reset_peak_gpu_memory(device: Any) -> None:
    """Start to measure.

    Parameters
    ----------
    device : str or torch.device
        The device that networks are trained on; nothing happens unless it is a GPU of NVIDIA.
    """
    chosen = choose_device(device)
    if chosen.type == "cuda":
        torch.cuda.reset_peak_memory_stats(chosen)


def peak_gpu_memory(device: Any) -> int | None:
    """Return how many bytes tensors took at most since the start.

    Parameters
    ----------
    device : str or torch.device
        The device.

    Returns
    -------
    int or None
        ``None`` unless it is a GPU of NVIDIA.
    """
    chosen = choose_device(device)
    return int(torch.cuda.max_memory_allocated(chosen)) if chosen.type == "cuda" else None
