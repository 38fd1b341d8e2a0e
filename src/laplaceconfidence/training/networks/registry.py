"""Networks from a name, an import path, a factory or a module."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable
from importlib import import_module

import torch
from torch import Tensor, nn

from laplaceconfidence.exceptions import AdjustedSettingWarning, InvalidInputError
from laplaceconfidence.own_code import import_callable
from laplaceconfidence.training.networks import inception_resnet_v2, small_cnn, small_resnet
from laplaceconfidence.training.networks.inception_resnet_v2 import InceptionResNetV2
from laplaceconfidence.training.networks.mlp import MLP
from laplaceconfidence.training.networks.preact_resnet18 import PreActResNet18
from laplaceconfidence.training.networks.small_cnn import SmallCNN
from laplaceconfidence.training.networks.small_resnet import SmallResNet
from laplaceconfidence.validation import check_integer, did_you_mean, must_be

Shape = tuple[int, ...]  # of one sample: (channels, height, width) or (features,)
NetworkFactory = Callable[..., nn.Module]  # called with (n_classes, input_shape)
NetworkSpec = str | NetworkFactory | nn.Module


def build_network(
    spec: NetworkSpec, n_classes: int, input_shape: Shape, *, reinitialize: bool = False
) -> nn.Module:
    """Build a network and check that it maps samples of ``input_shape`` to ``n_classes`` logits.

    Factories draw their weights from torch's global generator, so ``torch.manual_seed`` fixes them.

    Parameters
    ----------
    spec : str, callable or torch.nn.Module
        A name of ``NETWORKS``; "package.module:factory"; a factory that is called with ``(n_classes,
        input_shape)``; or a module, which is copied with its weights.
    n_classes : int
        Number of classes.
    input_shape : tuple of int
        Shape of one sample: (channels, height, width) or (features,).
    reinitialize : bool, default=False
        Whether the copy of a module gets new random weights, as a second network needs them.

    Returns
    -------
    torch.nn.Module
    """
    check_integer(n_classes, "n_classes", minimum=1)
    if isinstance(spec, nn.Module):
        network = copy.deepcopy(spec)
        if reinitialize:
            reset_parameters(network)
    else:
        network = _factory(spec)(n_classes, tuple(input_shape))
        if not isinstance(network, nn.Module):
            raise must_be("network", "a factory that returns a torch.nn.Module", network)
    _check_network(network, n_classes, tuple(input_shape))
    return network


def network_reference(spec: NetworkSpec) -> str | None:
    """The text that builds such a network again: its name, or "package.module:factory".

    Parameters
    ----------
    spec : str, callable or torch.nn.Module
        As for ``build_network``.

    Returns
    -------
    str or None
        ``None`` for a module, and for a factory that cannot be imported, such as a lambda.
    """
    if isinstance(spec, str):
        return spec
    module_name, name = getattr(spec, "__module__", None), getattr(spec, "__qualname__", None)
    if isinstance(spec, nn.Module) or not module_name or not name or module_name == "__main__":
        return None
    return f"{module_name}:{name}" if getattr(import_module(module_name), name, None) is spec else None


def reset_parameters(network: nn.Module) -> None:
    """Draw new random weights in place, by ``reset_parameters`` of every module that has it, innermost first.

    Weights that no module can reset keep their values, with a warning that names them; an error if that is
    true of all weights.

    Parameters
    ----------
    network : torch.nn.Module
        The network.
    """
    kept = []
    for path, module in reversed(list(network.named_modules())):
        reset = getattr(module, "reset_parameters", None) or getattr(module, "_reset_parameters", None)
        if callable(reset):
            reset()
        else:
            kept += [f"{path}.{name}".lstrip(".") for name, _ in module.named_parameters(recurse=False)]
    if not kept:
        return
    advice = "Pass a factory instead of a module so that each network gets its own weights."
    names = ", ".join(kept[:5]) + (", ..." if len(kept) > 5 else "")
    if len(kept) == sum(1 for _ in network.parameters()):
        raise InvalidInputError(
            "The network must have modules with reset_parameters(), so that a second one gets other weights: "
            f"nothing in {type(network).__name__} resets {names}. {advice}"
        )
    warnings.warn(
        f"The second {type(network).__name__} starts with the first one's {names}: "
        f"the modules that own them have no reset_parameters(). {advice}",
        AdjustedSettingWarning,
        stacklevel=3,
    )


def _factory(spec: object) -> NetworkFactory:
    if callable(spec):
        return spec
    if isinstance(spec, str) and ":" in spec:
        return import_callable(spec, "network", "factory")
    if isinstance(spec, str) and spec in NETWORKS:
        return NETWORKS[spec]
    raise must_be(
        "network",
        f"one of {', '.join(map(repr, NETWORKS))}, 'package.module:factory', a factory or a torch.nn.Module",
        spec,
        did_you_mean(spec, NETWORKS),
    )


def _check_network(network: nn.Module, n_classes: int, input_shape: Shape) -> None:
    """Raise unless the network takes such samples and gives one logit per class."""
    training = network.training
    samples = torch.zeros(2, *input_shape)
    if (parameter := next(network.parameters(), None)) is not None:
        samples = samples.to(parameter.device, parameter.dtype)
    rule = f"able to take samples of shape {input_shape}"
    network.eval()  # does not update running statistics of batch normalization
    try:
        with torch.no_grad():
            logits = network(samples)
    except (RuntimeError, ValueError, TypeError) as error:
        advice = "Choose a network for such samples, or resize them."
        raise must_be("network", rule, type(network).__name__, f"It failed: {error}. {advice}") from error
    finally:
        network.train(training)
    if not isinstance(logits, Tensor) or logits.shape != (2, n_classes):
        given = f"shape {tuple(logits.shape[1:])}" if isinstance(logits, Tensor) else type(logits).__name__
        raise must_be(
            "network",
            f"one that returns {n_classes} logits per sample, one per class",
            f"{given} per sample",
        )


def _preact_resnet18(n_classes: int, input_shape: Shape) -> nn.Module:
    """The paper's network for CIFAR: 11.2 million parameters, for a GPU."""
    return PreActResNet18(n_classes, _channels(input_shape, "preact_resnet18", smallest=8))


def _preact_resnet18_normalized_stem(n_classes: int, input_shape: Shape) -> nn.Module:
    channels = _channels(input_shape, "preact_resnet18_normalized_stem", smallest=8)
    return PreActResNet18(n_classes, channels, normalized_stem=True)


def _inception_resnet_v2(n_classes: int, input_shape: Shape) -> nn.Module:
    """The paper's network for WebVision: 56 million parameters, images from 75 x 75 on, for a GPU."""
    smallest = inception_resnet_v2.SMALLEST_SIDE
    return InceptionResNetV2(n_classes, _channels(input_shape, "inception_resnet_v2", smallest=smallest))


def _small_cnn(n_classes: int, input_shape: Shape, widths: tuple[int, int, int] = (32, 64, 128)) -> nn.Module:
    """Three convolutions: 0.1 million parameters, seconds on a CPU."""
    channels = _channels(input_shape, "small_cnn", smallest=small_cnn.SMALLEST_SIDE)
    return SmallCNN(n_classes, channels, widths)


def _small_resnet(
    n_classes: int,
    input_shape: Shape,
    widths: tuple[int, ...] = (32, 64, 128),
    blocks: tuple[int, ...] = (1, 3, 2),
) -> nn.Module:
    """Six residual blocks: 0.75 million parameters, for photographs of up to 96 pixels on a CPU."""
    channels = _channels(input_shape, "small_resnet", smallest=small_resnet.SMALLEST_SIDE)
    return SmallResNet(n_classes, channels, widths, blocks)


def _mlp(
    n_classes: int, input_shape: Shape, hidden: tuple[int, ...] = (512, 256), dropout: float = 0.0
) -> nn.Module:
    """A perceptron with two hidden layers, for feature vectors."""
    return MLP(n_classes, math.prod(input_shape), hidden, dropout)


def _channels(input_shape: Shape, network: str, smallest: int) -> int:
    """The channels of images that are large enough for a convolutional network."""
    if len(input_shape) != 3:
        advice = "Use network='mlp' for feature vectors."
        raise must_be("input_shape", f"(channels, height, width) for {network!r}", input_shape, advice)
    if min(input_shape[1:]) < smallest:
        rule = f"at least {smallest} x {smallest} pixels for {network!r}"
        advice = "Enlarge the images or use network='small_cnn'."
        raise must_be("input_shape", rule, f"{input_shape[1]} x {input_shape[2]}", advice)
    return input_shape[0]


NETWORKS: dict[str, NetworkFactory] = {
    "preact_resnet18": _preact_resnet18,
    "preact_resnet18_normalized_stem": _preact_resnet18_normalized_stem,
    "inception_resnet_v2": _inception_resnet_v2,
    "small_resnet": _small_resnet,
    "small_cnn": _small_cnn,
    "mlp": _mlp,
}
"""Factories ``(n_classes, input_shape)`` of the networks that come with the package; some take keywords."""
