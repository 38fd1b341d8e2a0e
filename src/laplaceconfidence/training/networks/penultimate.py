"""Penultimate features of a network: the input of its last linear layer."""

from __future__ import annotations

import difflib
from types import TracebackType
from typing import Any, Self

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.validation import must_be


def find_feature_layer(network: nn.Module, layer: str | None = None) -> nn.Module:
    """The module whose input is the feature vector.

    Parameters
    ----------
    network : torch.nn.Module
        The network.
    layer : str, optional
        Name of the module; by default the last ``nn.Linear``.

    Returns
    -------
    torch.nn.Module
    """
    if layer is None:
        linear = [module for module in network.modules() if isinstance(module, nn.Linear)]
        if linear:
            return linear[-1]
        raise InvalidInputError(
            "The network must have an nn.Linear layer, whose input is used as features: "
            f"{type(network).__name__} has none. Name the module that takes the features as 'feature_layer'."
        )
    modules: dict[str, nn.Module] = dict(network.named_modules())
    if layer and layer in modules:
        return modules[layer]
    close = difflib.get_close_matches(layer, modules, n=3) or [name for name in modules if name][-3:]
    raise must_be(
        "feature_layer",
        f"the name of a module of {type(network).__name__}",
        layer,
        f"The closest are {', '.join(close)}." if close else "It has no modules inside it.",
    )


class PenultimateFeatures:
    """Records the penultimate features of a network in each of its forward passes.

    Parameters
    ----------
    network : torch.nn.Module
        The plain network: hooks that are added to what ``torch.compile`` returns may not be called.
    layer : str, optional
        Name of the module whose input is recorded; by default the last ``nn.Linear``.

    Examples
    --------
    >>> with PenultimateFeatures(network) as penultimate:        # doctest: +SKIP
    ...     logits = network(images)
    ...     features = penultimate.features
    """

    def __init__(self, network: nn.Module, layer: str | None = None) -> None:
        self._network_name = type(network).__name__
        self.layer = find_feature_layer(network, layer)
        self._handle: RemovableHandle | None = None
        self._captured: Tensor | None = None

    def __enter__(self) -> Self:
        self._handle = self.layer.register_forward_pre_hook(self._capture)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._handle is not None:
            self._handle.remove()
        self._handle = self._captured = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_captured": None}  # copies and pickles begin without a forward pass

    @property
    def features(self) -> Tensor:
        """Features (batch, d) of the last forward pass; gradients flow through them."""
        if self._captured is None:
            raise InvalidInputError(
                f"The feature layer ({type(self.layer).__name__}) of {self._network_name} was not used in a "
                "forward pass. Run the network first; if it was run, name another layer as 'feature_layer'."
            )
        return self._captured.flatten(1)

    def _capture(self, module: nn.Module, inputs: tuple[Any, ...]) -> None:
        self._captured = inputs[0]
