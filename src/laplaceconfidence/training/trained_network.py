"""A network that is trained: logits, penultimate features and the heads of a method."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import NamedTuple

import torch
from torch import Tensor, nn

from laplaceconfidence.training.distributed import Team
from laplaceconfidence.training.networks.penultimate import PenultimateFeatures
from laplaceconfidence.training.networks.registry import NetworkSpec, Shape, build_network
from laplaceconfidence.training.weight_average import WeightAverage
from laplaceconfidence.validation import must_be

CLASSIFIER = "classifier"
"""Name of the layer that takes the penultimate features, among the parts of a network."""


class Outputs(NamedTuple):
    """The outputs of one forward pass."""

    logits: Tensor  # (b, C)
    features: Tensor  # (b, d) what goes into the last linear layer
    heads: dict[str, Tensor]  # by the names of Method.heads


class HeadedNetwork(nn.Module):
    """A network with the heads of a method on its penultimate features."""

    def __init__(self, backbone: nn.Module, feature_layer: str | None) -> None:
        super().__init__()
        self.backbone = backbone
        self.heads = nn.ModuleDict()
        # Entered and never left: the features are recorded as long as the network exists.
        self._penultimate = PenultimateFeatures(backbone, feature_layer).__enter__()

    def load_from(self, other: HeadedNetwork, parts: Sequence[str] = ()) -> None:
        """Take over the weights of a network of the same kind: of some parts, or all of them.

        A part is the name of a head, or "classifier", the layer that takes the penultimate features.
        """
        if not parts:
            self.load_state_dict(other.state_dict())
        for name in parts:
            self._part(name).load_state_dict(other._part(name).state_dict())

    def _part(self, name: str) -> nn.Module:
        if name == CLASSIFIER:
            return self._penultimate.layer
        if name not in self.heads:
            there = ", ".join(map(repr, (CLASSIFIER, *self.heads)))
            raise must_be("fresh_parts", f"names of parts of the network: {there}", name)
        return self.heads[name]

    def plain_backbone(self) -> nn.Module:
        """A copy of the network alone, which records no features."""
        copied = copy.deepcopy(self)
        copied._penultimate.__exit__(None, None, None)
        return copied.backbone

    def forward(self, inputs: Tensor) -> Outputs:
        logits = self.backbone(inputs).float()
        features = self._penultimate.features.float()
        return Outputs(logits, features, {name: head(features) for name, head in self.heads.items()})


class TrainedNetwork:
    """One of the networks that are trained. Calling it gives logits; ``outputs`` gives everything.

    ``module`` is the plain module: averaged teachers and meta-gradients work on its parameters. Forward
    passes with gradients go through the wrapper that averages gradients over processes.
    """

    def __init__(self, module: HeadedNetwork, device: torch.device, team: Team, *, compiled: bool) -> None:
        self.module = module
        self.average: WeightAverage | None = None  # during training, if it was asked for
        self.is_trained = False  # in the current phase
        # A head may be unused in some phases, and then has no gradients to wait for.
        self.averages_itself = not module.heads
        self._parallel = team.parallel(module, device) if self.averages_itself else module
        self._plain: nn.Module = module
        self._not_compiled = self._parallel
        if compiled:
            self._parallel = torch.compile(self._parallel)  # type: ignore[assignment]
            self._plain = torch.compile(module)  # type: ignore[assignment]

    def __call__(self, inputs: Tensor) -> Tensor:
        return self.outputs(inputs).logits

    def outputs(self, inputs: Tensor, *, compiled: bool = True) -> Outputs:
        """Logits, penultimate features and the outputs of the heads.

        A compiled network has first derivatives only; ``compiled=False`` runs it as it was before.
        """
        if torch.is_grad_enabled() and self.is_trained:
            running = self._parallel if compiled else self._not_compiled
        else:
            running = self._plain if compiled else self.module
        outputs: Outputs = running(inputs)
        return outputs

    def outputs_with(self, parameters: Mapping[str, Tensor], inputs: Tensor) -> Outputs:
        """The outputs with other parameters, by their names in ``module``; gradients flow to them.

        Running statistics of batch normalization are not updated.
        """
        with self.frozen_statistics():
            outputs: Outputs = torch.func.functional_call(self.module, dict(parameters), (inputs,))
        return outputs

    def begin_phase(self, is_trained: bool) -> None:
        """Trained networks are in train mode, the others in eval mode, unless a method changes it."""
        self.is_trained = is_trained
        self.module.train(is_trained)

    def train(self, mode: bool = True) -> None:
        self.module.train(mode)

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Inside the block, the network is in eval mode."""
        was_training = self.module.training
        self.module.eval()
        try:
            yield
        finally:
            self.module.train(was_training)

    def averaged(self) -> AbstractContextManager[None]:
        """Inside the block, the network has its averaged weights, if they are kept."""
        return nullcontext() if self.average is None else self.average.in_use()

    @property
    def normalizes_batches(self) -> bool:
        """Whether a batch of one sample would fail: batch normalization needs two."""
        return bool(self._norms())

    @contextmanager
    def frozen_statistics(self) -> Iterator[None]:
        """Do not update the running statistics of batch normalization; batches are normalized as usual."""
        norms = self._norms()
        before = [norm.momentum for norm in norms]
        for norm in norms:
            norm.momentum = 0.0
        try:
            yield
        finally:
            for norm, momentum in zip(norms, before, strict=True):
                norm.momentum = momentum

    def _norms(self) -> list[nn.modules.batchnorm._BatchNorm]:
        return [part for part in self.module.modules() if isinstance(part, nn.modules.batchnorm._BatchNorm)]


def build_module(
    spec: NetworkSpec, n_classes: int, input_shape: Shape, *, reinitialize: bool, feature_layer: str | None
) -> HeadedNetwork:
    """The network of ``spec`` with weights from torch's global generator, without heads."""
    backbone = build_network(spec, n_classes, input_shape, reinitialize=reinitialize)
    return HeadedNetwork(backbone, feature_layer)


def feature_count(module: HeadedNetwork, input_shape: Shape) -> int:
    """How many penultimate features the network has."""
    module.eval()
    device = next(module.parameters()).device
    with torch.no_grad():
        outputs: Outputs = module(torch.zeros(2, *input_shape, device=device))
    module.train()
    return outputs.features.shape[1]


def combine_predictions(logits: Sequence[Tensor], *, sums_logits: bool) -> Tensor:
    """One prediction (n, C) from the logits of several networks.

    The mean of their probabilities, or the softmax of the summed logits.
    """
    if sums_logits:
        return torch.stack(tuple(logits)).sum(dim=0).softmax(dim=1)
    return torch.stack([one.softmax(dim=1) for one in logits]).mean(dim=0)
