"""An exponential moving average of the weights of a network, for predictions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from laplaceconfidence.training.distributed import Team


class WeightAverage:
    """The average of the weights that a network had after each of its steps, later ones counting more.

    The n-th step is averaged in with the weight 1 - min(decay, (n - 1) / (n + 8)): while there are few steps,
    the average covers roughly the last tenth of them, and the random first weights are soon forgotten.
    Running statistics of batch normalization are averaged like weights, so that they fit them; counters are
    copied. Everything is kept in float32 or the precision of the network, whichever is higher.

    Parameters
    ----------
    module : torch.nn.Module
        The network.
    decay : float
        What remains of the average after a step, once there were many.
    """

    def __init__(self, module: nn.Module, decay: float) -> None:
        self._module, self._decay = module, decay
        self.restart()

    def restart(self) -> None:
        """Forget the steps so far."""
        self._n_steps = 0
        self._values: dict[str, Tensor] = {}

    @torch.no_grad()
    def update(self) -> None:
        """Average in the weights after one more step."""
        self._n_steps += 1
        state = self._module.state_dict()
        if not self._values:
            self._values = {name: _wide(tensor) for name, tensor in state.items()}
            return
        decay = min(self._decay, (self._n_steps - 1) / (self._n_steps + 8))
        for name, tensor in state.items():
            if tensor.is_floating_point():
                self._values[name].lerp_(tensor.to(self._values[name].dtype), 1 - decay)
            else:
                self._values[name].copy_(tensor)

    def synchronize(self, team: Team) -> None:
        """Give all processes the mean of the averaged statistics; their averaged weights are the same."""
        buffers = [name for name, _ in self._module.named_buffers() if name in self._values]
        team.average_tensors(self._values[name] for name in buffers)

    def weights(self) -> dict[str, Tensor]:
        """The averaged state of the network; its own where it was never trained, or only by its method."""
        state = self._module.state_dict()
        return {name: self._values[name].to(state[name].dtype) for name in self._values} or state

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Give the network its averaged weights inside the block."""
        own = {name: tensor.clone() for name, tensor in self._module.state_dict().items()}
        try:
            self._load(self.weights())
            yield
        finally:
            self._load(own)

    def _load(self, weights: Mapping[str, Tensor]) -> None:
        self._module.load_state_dict(weights)
        torch.clear_autocast_cache()  # mixed precision would go on with lower-precision copies of the others

    def state_dict(self) -> dict[str, Any]:
        """Tensors and plain values, for checkpoints."""
        return {"n_steps": self._n_steps, "values": self._values}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what ``state_dict`` gave."""
        device = next(self._module.parameters()).device
        self._n_steps = state["n_steps"]
        self._values = {name: tensor.to(device) for name, tensor in state["values"].items()}


def _wide(tensor: Tensor) -> Tensor:
    """A copy, in float32 at least if it has real numbers."""
    if tensor.is_floating_point():
        return tensor.detach().to(torch.promote_types(tensor.dtype, torch.float32), copy=True)
    return tensor.detach().clone()
