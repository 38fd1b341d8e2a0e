"""How the weights of all networks change: gradients, optimizers, loss scaling, averaged weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from laplaceconfidence.training.distributed import Team
from laplaceconfidence.training.settings import TrainingSettings
from laplaceconfidence.training.trained_network import TrainedNetwork
from laplaceconfidence.training.weight_average import WeightAverage


class Optimization:
    """One optimizer per network, and what they share.

    Parameters
    ----------
    networks : sequence of TrainedNetwork
        All networks. Where the settings ask for averages of the weights, each network gets one.
    settings : TrainingSettings
        Optimizer, precision, clipping and averages.
    device : torch.device
        The device of the networks.
    team : Team
        The processes that train together.
    """

    def __init__(
        self, networks: Sequence[TrainedNetwork], settings: TrainingSettings, device: torch.device, team: Team
    ) -> None:
        self._networks, self._settings, self._team = networks, settings, team
        self._optimizers = [settings.build_optimizer(network.module) for network in networks]
        self._scaler = torch.amp.GradScaler(device.type, enabled=settings.precision == "float16")
        for network in networks if settings.weight_average else ():
            network.average = WeightAverage(network.module, settings.weight_average or 0.0)

    def set_learning_rates(self, rates: Mapping[int, float]) -> None:
        """Set learning rates by the numbers of the networks."""
        for network, rate in rates.items():
            for group in self._optimizers[network].param_groups:
                group["lr"] = rate

    def clear_gradients(self, trained: Sequence[int]) -> None:
        """Forget the gradients of the step before."""
        for network in trained:
            self._optimizers[network].zero_grad(set_to_none=True)

    def step(
        self, loss: Tensor, trained: Sequence[int], variables: Mapping[str, Tensor]
    ) -> dict[str, Tensor] | None:
        """Compute the gradients of ``loss``, and let the optimizers of the trained networks make a step.

        Returns the gradients of ``variables``: not scaled, and of the loss of the whole batch, which is the
        mean over the processes. ``None`` if no step was made because gradients overflowed in float16.
        """
        scale = self._scaler.get_scale()
        torch.autograd.backward(self._scaler.scale(loss))
        for number in trained:
            network = self._networks[number]
            if not network.averages_itself:
                self._team.average_gradients(network.module)
            if self._settings.clip_gradients is not None:
                self._scaler.unscale_(self._optimizers[number])
                torch.nn.utils.clip_grad_norm_(network.module.parameters(), self._settings.clip_gradients)
        for number in trained:
            self._scaler.step(self._optimizers[number])
        self._scaler.update()
        gradients = {
            name: variable.grad / (scale * self._team.size)
            for name, variable in variables.items()
            if variable.grad is not None
        }
        for variable in variables.values():
            variable.grad = None
        # A scale that falls is how the scaler reports an overflow.
        return None if self._scaler.get_scale() < scale else gradients

    def update_averages(self, trained: Sequence[int]) -> None:
        """Average in the weights of the trained networks after a step."""
        for number in trained:
            if (average := self._networks[number].average) is not None:
                average.update()

    def restart(self, network: int) -> None:
        """Forget what was gathered about a network that got new weights."""
        self._optimizers[network].state.clear()
        if (average := self._networks[network].average) is not None:
            average.restart()

    def weights_for_predictions(self) -> list[dict[str, Tensor]]:
        """The state of every network that predictions use: the averaged one if it is kept."""
        return [
            network.module.state_dict() if network.average is None else network.average.weights()
            for network in self._networks
        ]

    def end_averages(self) -> None:
        """Keep no averages anymore: the networks predict with the weights they have."""
        for network in self._networks:
            network.average = None

    def state_dict(self) -> dict[str, Any]:
        """Tensors and plain values, for checkpoints."""
        averages = [network.average for network in self._networks]
        return {
            "optimizers": [optimizer.state_dict() for optimizer in self._optimizers],
            "scaler": self._scaler.state_dict(),
            "averages": [None if average is None else average.state_dict() for average in averages],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what ``state_dict`` gave."""
        for optimizer, content in zip(self._optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(content)
        self._scaler.load_state_dict(state["scaler"])
        for network, content in zip(self._networks, state["averages"], strict=True):
            if network.average is not None:
                network.average.load_state_dict(content)
