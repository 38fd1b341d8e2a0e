"""Features are what goes into the last linear layer, or into the layer that was named."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.training.networks.penultimate import PenultimateFeatures, find_feature_layer
from laplaceconfidence.training.networks.registry import build_network


class AllConvolutional(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Conv2d(1, 6, 3)
        self.head = nn.Conv2d(6, 4, 1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        maps: torch.Tensor = self.head(self.body(images).mean((2, 3), keepdim=True))
        return maps.flatten(1)


@pytest.mark.parametrize(
    ("name", "n_features"),
    [("preact_resnet18", 512), ("small_resnet", 128), ("small_cnn", 128), ("mlp", 256)],
)
def test_logits_are_linear_in_the_features(name: str, n_features: int) -> None:
    network = build_network(name, 5, (1, 8, 8)).eval()
    with torch.no_grad(), PenultimateFeatures(network) as penultimate:
        for batch in (3, 2):
            logits = network(torch.rand(batch, 1, 8, 8))
            features = penultimate.features
            assert features.shape == (batch, n_features)
            layer = find_feature_layer(network)
            assert isinstance(layer, nn.Linear)
            torch.testing.assert_close(functional.linear(features, layer.weight, layer.bias), logits)


def test_another_layer_can_be_named() -> None:
    network = build_network("mlp", 5, (12,))
    with PenultimateFeatures(network, layer="features.5") as penultimate:
        network(torch.rand(4, 12))
        assert penultimate.features.shape == (4, 512)
    convolutional = AllConvolutional()
    with PenultimateFeatures(convolutional, layer="head") as penultimate:
        convolutional(torch.rand(4, 1, 8, 8))
        assert penultimate.features.shape == (4, 6)


def test_gradients_flow_through_the_features() -> None:
    network = build_network("mlp", 5, (12,))
    with PenultimateFeatures(network) as penultimate:
        network(torch.rand(4, 12))
        penultimate.features.sum().backward()
    first = next(network.parameters())
    assert first.grad is not None


def test_nothing_stays_behind() -> None:
    network = build_network("mlp", 5, (12,))
    with PenultimateFeatures(network) as penultimate:
        network(torch.rand(4, 12))
    assert not any(module._forward_pre_hooks for module in network.modules())
    with pytest.raises(InvalidInputError, match="Run the network first"):
        _ = penultimate.features


def test_a_network_without_a_linear_layer_gets_advice() -> None:
    with pytest.raises(InvalidInputError, match=r"AllConvolutional has none.*'feature_layer'"):
        PenultimateFeatures(AllConvolutional())


def test_unknown_layers_are_refused_with_the_closest_names() -> None:
    network = build_network("mlp", 5, (12,))
    with pytest.raises(InvalidInputError, match="The closest are classifier"):
        find_feature_layer(network, "clasifier")
    with pytest.raises(InvalidInputError, match=r"features\.8"):
        find_feature_layer(network, "zzz")
    with pytest.raises(InvalidInputError, match="no modules inside"):
        find_feature_layer(nn.Linear(2, 2), "fc")


def test_a_layer_that_takes_no_part_is_noticed() -> None:
    class Unused(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used = nn.Linear(3, 2)
            self.unused = nn.Linear(3, 2)

        def forward(self, samples: torch.Tensor) -> torch.Tensor:
            logits: torch.Tensor = self.used(samples)
            return logits

    network = Unused()
    with PenultimateFeatures(network) as penultimate:
        network(torch.rand(2, 3))
        with pytest.raises(InvalidInputError, match="name another layer"):
            _ = penultimate.features
