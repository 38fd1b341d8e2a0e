"""How long a network takes to train on one sample, measured with a few steps."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import torch

from laplaceconfidence.encoders.torch_device import choose_device
from laplaceconfidence.training.losses import soft_cross_entropy
from laplaceconfidence.training.sample_views import crop_of, network_shape
from laplaceconfidence.training.settings import autocast, fast_precision, torch_threads
from laplaceconfidence.training.trained_network import build_module

_MOST_NUMBERS = 2_000_000  # in a batch, so that large images need little memory
_STEPS = 3


def seconds_per_sample(
    parameters: Mapping[str, Any], sample_shape: tuple[int, ...], n_classes: int
) -> float | None:
    """Measure the time of plain training per sample: forward pass, backward pass and step.

    Parameters
    ----------
    parameters : mapping of str to Any
        Parameters of ``RobustClassifier``.
    sample_shape : tuple of int
        Shape of one sample: (features,) or (channels, height, width).
    n_classes : int
        Number of classes.

    Returns
    -------
    float or None
        ``None`` where the network or the size of the batches is left to "auto".
    """
    network, batch_size = parameters.get("network", "auto"), parameters.get("batch_size", "auto")
    if network == "auto" or batch_size == "auto":
        return None
    device = choose_device(parameters.get("device", "auto"))
    sample_shape = network_shape(sample_shape, crop_of(parameters.get("weak", "none")))
    numbers = 1
    for side in sample_shape:
        numbers *= side
    n = max(2, min(int(batch_size), _MOST_NUMBERS // numbers))
    precision = parameters.get("precision", "float32")
    if precision in ("auto", "fast"):
        precision = fast_precision(device) if precision == "fast" else "float32"
    with torch_threads(parameters.get("n_jobs")), torch.random.fork_rng():
        torch.manual_seed(0)
        module = build_module(network, n_classes, sample_shape, reinitialize=False, feature_layer=None)
        module = module.to(device).train()
        inputs = torch.randn(n, *sample_shape, device=device)
        if parameters.get("channels_last") is True and len(sample_shape) == 3:
            module = module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
            inputs = inputs.to(memory_format=torch.channels_last)
        targets = torch.full((n, n_classes), 1 / n_classes, device=device)
        optimizer = torch.optim.SGD(module.parameters(), lr=1e-6, momentum=0.9)
        taken = []
        for _ in range(1 + _STEPS):
            start = time.perf_counter()
            optimizer.zero_grad()
            with autocast(precision, device):
                loss = soft_cross_entropy(module(inputs).logits, targets)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            _wait_for(device)
            taken.append(time.perf_counter() - start)
    return min(taken[1:]) / n  # the first step allocates; other programs only make a step slower


def _wait_for(device: torch.device) -> None:
    """Wait until a GPU has done what it was told."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()
