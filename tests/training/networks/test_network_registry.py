"""Networks by name, import path, factory and module; and what is said when that fails."""

import sys
import types

import pytest
import torch
from torch import nn

from laplaceconfidence.exceptions import AdjustedSettingWarning, InvalidInputError
from laplaceconfidence.training.networks.mlp import MLP
from laplaceconfidence.training.networks.registry import NETWORKS, build_network, reset_parameters
from laplaceconfidence.training.networks.small_cnn import SmallCNN


def linear_factory(n_classes: int, input_shape: tuple[int, ...]) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.LazyLinear(n_classes))


class WithToken(nn.Module):
    """A parameter that no submodule owns, as a vision transformer's class token."""

    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.ones(4))
        self.classifier = nn.Linear(4, 3)

    def forward(self, samples: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.classifier(samples + self.token)
        return logits


@pytest.fixture
def own_module(monkeypatch: pytest.MonkeyPatch) -> str:
    module = types.ModuleType("own_networks")
    module.linear_factory = linear_factory  # type: ignore[attr-defined]
    module.answer = 42  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "own_networks", module)
    return "own_networks"


@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "inception_resnet_v2"])
def test_networks_by_name(name: str) -> None:
    network = build_network(name, 6, (1, 16, 12))
    assert network.training
    assert network(torch.rand(3, 1, 16, 12)).shape == (3, 6)


def test_networks_by_path_and_factory(own_module: str) -> None:
    for spec in (f"{own_module}:linear_factory", linear_factory):
        assert build_network(spec, 4, (2, 3, 3))(torch.rand(5, 2, 3, 3)).shape == (5, 4)


def test_factories_take_sizes_as_keywords() -> None:
    network = NETWORKS["mlp"](4, (7,), hidden=(9,))
    assert network.classifier.in_features == 9
    assert NETWORKS["small_cnn"](4, (1, 8, 8), widths=(4, 5, 6)).classifier.in_features == 6


def test_a_module_is_copied_with_its_weights() -> None:
    original = SmallCNN(10, 1)
    copy = build_network(original, 10, (1, 8, 8))
    assert copy is not original
    for mine, theirs in zip(copy.parameters(), original.parameters(), strict=True):
        assert torch.equal(mine, theirs)
        assert mine is not theirs


def test_a_second_network_of_a_module_starts_elsewhere_and_the_seed_says_where() -> None:
    original = SmallCNN(10, 1)
    original.train()
    original(torch.rand(8, 1, 8, 8))  # running statistics that a fresh network does not have
    before = nn.utils.parameters_to_vector(original.parameters()).clone()

    def second() -> SmallCNN:
        torch.manual_seed(5)
        network = build_network(original, 10, (1, 8, 8), reinitialize=True)
        assert isinstance(network, SmallCNN)
        return network

    assert not torch.equal(second().classifier.weight, original.classifier.weight)
    assert torch.equal(second().classifier.weight, second().classifier.weight)
    assert torch.equal(nn.utils.parameters_to_vector(original.parameters()), before)
    norms = [module for module in second().modules() if isinstance(module, nn.BatchNorm2d)]
    assert all(torch.equal(norm.running_mean, torch.zeros(norm.num_features)) for norm in norms)


def test_reset_weights_are_as_wide_as_fresh_ones() -> None:
    network = MLP(10, 200)
    fresh = float(network.classifier.weight.detach().std())
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.fill_(100)
    reset_parameters(network)
    assert float(network.classifier.weight.detach().std()) == pytest.approx(fresh, rel=0.2)


def test_attention_is_reset_too() -> None:
    attention = nn.MultiheadAttention(8, 2)
    before = attention.in_proj_weight.clone()
    reset_parameters(attention)
    assert not torch.equal(attention.in_proj_weight, before)


def test_weights_that_nothing_resets_are_named() -> None:
    with pytest.warns(AdjustedSettingWarning, match="token"):
        network = build_network(WithToken(), 3, (4,), reinitialize=True)
    assert torch.equal(network.token, torch.ones(4))
    only_token = WithToken()
    only_token.classifier = nn.Identity()
    with pytest.raises(InvalidInputError, match="reset_parameters"):
        build_network(only_token, 4, (4,), reinitialize=True)


def test_checking_leaves_no_trace() -> None:
    network = build_network("small_cnn", 3, (1, 8, 8))
    statistics = [buffer for name, buffer in network.named_buffers() if name.endswith("running_mean")]
    assert all((mean == 0).all() for mean in statistics)
    frozen = nn.Sequential(nn.Flatten(), nn.Linear(4, 3)).eval()
    assert not build_network(frozen, 3, (4,)).training


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("preact_resnet_18", "Did you mean 'preact_resnet18'"),
        ("smallcnn", "Did you mean 'small_cnn'"),
        ("zzz", ", ".join(map(repr, NETWORKS))),
        (17, "'package.module:factory'"),
        ("no_such_package:factory", "No module named 'no_such_package'"),
        (":factory", "Empty module name"),
        ("own_networks:linear_factor", "Did you mean 'linear_factory'"),
        ("own_networks:answer", "has no function 'answer'"),
    ],
)
def test_networks_that_cannot_be_found(own_module: str, spec: str, said: str) -> None:
    with pytest.raises(InvalidInputError, match="The 'network' parameter must be") as raised:
        build_network(spec, 10, (3, 32, 32))
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("spec", "n_classes", "shape", "said"),
    [
        ("small_cnn", 10, (1280,), "network='mlp'"),
        ("small_cnn", 10, (3, 2, 9), "at least 4 x 4 pixels for 'small_cnn'. Got '2 x 9'"),
        ("inception_resnet_v2", 10, (3, 32, 32), "at least 75 x 75"),
        (SmallCNN(9, 3), 10, (3, 32, 32), "10 logits per sample"),
        (SmallCNN(10, 3), 10, (1, 32, 32), "samples of shape (1, 32, 32)"),
        (lambda n_classes, shape: "network", 10, (3, 32, 32), "returns a torch.nn.Module"),
        ("mlp", 0, (3,), "'n_classes'"),
    ],
)
def test_networks_that_do_not_fit(spec: object, n_classes: int, shape: tuple[int, ...], said: str) -> None:
    with pytest.raises(InvalidInputError) as raised:
        build_network(spec, n_classes, shape)  # type: ignore[arg-type]
    assert said in str(raised.value)


def test_a_network_that_returns_no_tensor_is_refused() -> None:
    class Pair(nn.Module):
        def forward(self, samples: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return samples, samples

    with pytest.raises(InvalidInputError, match="tuple per sample"):
        build_network(Pair(), 3, (3,))
