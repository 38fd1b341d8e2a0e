"""The networks against the published sizes, and what they can learn."""

import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional

from laplaceconfidence.training.networks.inception_resnet_v2 import InceptionResNetV2
from laplaceconfidence.training.networks.mlp import MLP
from laplaceconfidence.training.networks.preact_resnet18 import PreActResNet18
from laplaceconfidence.training.networks.registry import build_network
from laplaceconfidence.training.networks.small_cnn import SmallCNN
from laplaceconfidence.training.networks.small_resnet import SmallResNet


def size(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


def test_preact_resnet18_has_the_published_size() -> None:
    assert size(PreActResNet18(10)) == 11_171_146
    assert size(PreActResNet18(100)) == 11_171_146 + 90 * 513
    assert size(PreActResNet18(10, normalized_stem=True)) == 11_171_146 + 2 * 64


def test_a_normalized_stem_normalizes_and_activates_before_the_first_block() -> None:
    torch.manual_seed(0)
    network = PreActResNet18(10, 1, normalized_stem=True).train()
    maps = network.stem(torch.randn(16, 1, 8, 8))
    assert maps.min() == 0
    assert 0.4 < float((maps > 0).float().mean()) < 0.6  # half of what is centered


def test_inception_resnet_v2_has_the_published_size() -> None:
    assert size(InceptionResNetV2(1000)) == 55_843_464
    network = InceptionResNetV2(50)
    assert size(network) == 55_843_464 - 950 * 1537
    convolutions = [module for module in network.modules() if isinstance(module, nn.Conv2d)]
    assert len(convolutions) == 244


@pytest.mark.parametrize("side", [75, 96, 299])
def test_inception_resnet_v2_takes_images_of_many_sizes(side: int) -> None:
    network = InceptionResNetV2(50).eval()
    with torch.no_grad():
        assert network(torch.rand(1, 3, side, side)).shape == (1, 50)


def test_inception_resnet_v2_narrows_as_published() -> None:
    """35 x 35, 17 x 17 and 8 x 8 at 299 x 299: the sizes that gave the blocks their names."""
    network = InceptionResNetV2(2).eval()
    seen = []
    for part in (network.blocks_35, network.blocks_17, network.blocks_8, network.head):
        part.register_forward_hook(lambda module, inputs, maps: seen.append(tuple(maps.shape[1:])))
    with torch.no_grad():
        network(torch.rand(1, 3, 299, 299))
    assert seen == [(320, 35, 35), (1088, 17, 17), (2080, 8, 8), (1536, 8, 8)]


@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 28, 28), (3, 64, 48)])
def test_preact_resnet18_takes_images_of_many_sizes(shape: tuple[int, int, int]) -> None:
    network = PreActResNet18(7, in_channels=shape[0])
    logits = network(torch.rand(2, *shape))
    assert logits.shape == (2, 7)
    logits.sum().backward()
    assert all(parameter.grad is not None for parameter in network.parameters())


@pytest.mark.parametrize("shape", [(1, 4, 4), (1, 8, 8), (1, 28, 28), (3, 32, 32), (4, 9, 13)])
def test_small_cnn_is_small_and_takes_small_images(shape: tuple[int, int, int]) -> None:
    network = SmallCNN(10, in_channels=shape[0])
    assert 80_000 < size(network) < 120_000
    assert network(torch.rand(2, *shape)).shape == (2, 10)


@pytest.mark.parametrize("hidden", [(), (16,), (32, 16, 8)])
def test_mlp_has_the_layers_asked_for(hidden: tuple[int, ...]) -> None:
    network = MLP(5, 12, hidden)
    linear = [module for module in network.modules() if isinstance(module, nn.Linear)]
    widths = [(module.in_features, module.out_features) for module in linear]
    assert widths == list(zip((12, *hidden), (*hidden, 5), strict=True))
    assert network(torch.rand(3, 12)).shape == (3, 5)
    assert network(torch.rand(3, 3, 2, 2)).shape == (3, 5)


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 32, 32), (4, 9, 13), (3, 96, 64)])
def test_small_resnet_takes_images_of_many_sizes(shape: tuple[int, int, int]) -> None:
    network = SmallResNet(7, in_channels=shape[0])
    images = torch.rand(2, *shape)
    logits = network(images)
    assert logits.shape == (2, 7)
    logits.sum().backward()
    assert all(parameter.grad is not None for parameter in network.parameters())
    network.eval()
    with torch.no_grad():
        last = network.to(memory_format=torch.channels_last)(
            images.contiguous(memory_format=torch.channels_last)
        )
        torch.testing.assert_close(last, network(images), rtol=1e-3, atol=1e-4)


def test_small_resnet_has_the_size_it_states_and_the_blocks_asked_for() -> None:
    assert size(SmallResNet(10)) == 751_658
    small = SmallResNet(10, 1, widths=(4, 8), blocks=(2, 1))
    assert len(small.blocks) == 3
    assert small.classifier.in_features == 8


@pytest.mark.parametrize("name", ["small_resnet", "small_cnn", "mlp"])
def test_the_small_networks_learn_the_digits_in_seconds(name: str) -> None:
    digits = load_digits()
    images = torch.from_numpy(digits.images / 16).float()[:, None]
    labels = torch.from_numpy(digits.target)
    torch.manual_seed(0)
    network = build_network(name, 10, (1, 8, 8))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    for _ in range(5):
        for rows in torch.randperm(1400).split(100):
            optimizer.zero_grad()
            functional.cross_entropy(network(images[rows]), labels[rows]).backward()
            optimizer.step()
    network.eval()
    accuracy = (network(images[1400:]).argmax(1) == labels[1400:]).float().mean()
    assert accuracy > 0.9


@pytest.mark.parametrize("name", ["preact_resnet18", "small_resnet", "small_cnn", "mlp"])
def test_the_seed_fixes_the_weights(name: str) -> None:
    def weights(seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        return nn.utils.parameters_to_vector(build_network(name, 10, (3, 16, 16)).parameters())

    assert torch.equal(weights(1), weights(1))
    assert not torch.equal(weights(1), weights(2))
