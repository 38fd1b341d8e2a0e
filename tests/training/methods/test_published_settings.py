"""Published settings can be used as they are, and costs are those of the passes that are made."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from laplaceconfidence.training.augment.randaugment import RandAugment
from laplaceconfidence.training.methods.overview import (
    as_written,
    describe_method,
    describe_methods,
    settings_as_written,
)
from laplaceconfidence.training.methods.published import PublishedSettings
from laplaceconfidence.training.methods.registry import METHODS, build_method, settings_of
from laplaceconfidence.training.networks.registry import NETWORKS
from laplaceconfidence.training.preset_tables import TrainingPreset
from laplaceconfidence.training.presets import load_preset, preset_names
from laplaceconfidence.training.trained_network import TrainedNetwork
from small_runs import noisy_digits, quick

EVERY = pytest.mark.parametrize("name", sorted(METHODS))


@EVERY
def test_every_published_setting_is_one_that_exists(name: str) -> None:
    assert METHODS[name].facts is not None
    assert METHODS[name].published
    for entry in METHODS[name].published:
        build_method(name, entry.method)
        TrainingPreset(**entry.training)
        assert entry.training.get("network", "mlp") in NETWORKS
        assert entry.source in ("official code", "paper", "unverified")
        assert all(0 < rate < 1 for rate in entry.rates)


def published(name: str) -> Iterator[tuple[str, PublishedSettings]]:
    names = {"CIFAR-10": "cifar10", "CIFAR-100": "cifar100", "Mini-WebVision": "mini-webvision"}
    kinds = {"symmetric": "sym", "asymmetric": "asym"}
    for entry in METHODS[name].published:
        for rate in entry.rates or (None,):
            end = "" if rate is None else f"-{kinds[entry.noise]}{rate * 100:.0f}"
            yield names[entry.data] + end, entry


def test_the_published_settings_of_this_method_are_its_presets() -> None:
    seen = set()
    for preset_name, entry in published("laplace"):
        preset = load_preset(preset_name)
        assert preset.build_method() == build_method("laplace", entry.method)
        stated = preset.training.parameters()
        assert {key: stated[key] for key in entry.training} == dict(entry.training)
        seen.add(preset_name)
    of_the_paper = {name for name in preset_names() if name.startswith(("cifar", "mini"))}
    assert seen == {name for name in of_the_paper if not name.endswith("-pca")}


def passes(monkeypatch: pytest.MonkeyPatch, name: str) -> tuple[float, Any]:
    """Passes per sample of the last round: forward 1, with backward 3."""
    counted = [0.0]
    original, with_parameters = TrainedNetwork.outputs, TrainedNetwork.outputs_with

    def counting_virtual(self: TrainedNetwork, parameters: Any, inputs: Any) -> Any:
        counted[0] += 3 * len(inputs)
        return with_parameters(self, parameters, inputs)

    def counting(self: TrainedNetwork, inputs: Any, **options: Any) -> Any:
        counted[0] += len(inputs) * (3 if torch.is_grad_enabled() and self.is_trained else 1)
        return original(self, inputs, **options)

    X, y, _ = noisy_digits(128)
    starts: list[float] = []
    own = {"synthetic_sets": 10} if name == "mlnt" else {}  # the number that its cost is stated for
    with monkeypatch.context() as patched:
        patched.setattr(TrainedNetwork, "outputs", counting)
        patched.setattr(TrainedNetwork, "outputs_with", counting_virtual)
        history = quick(method=name, own=own, rounds=4, validation_fraction=0, out=None)
        history.fit(X, y, listeners=[lambda record: starts.append(counted[0])])
    return (starts[3] - starts[2]) / 128, history.history_[-1]["phases"]


@EVERY
def test_the_cost_is_that_of_the_passes_of_a_round(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = METHODS[name].facts
    assert facts is not None
    made, phases = passes(monkeypatch, name)
    stated = 3 * facts.cost
    if name in ("dividemix", "augdesc"):  # stated for half of the labels: the rest is proportional
        share = sum(phase["labeled_share"] for phase in phases) / 2
        stated = 2 + (stated - 2) * share / 0.5
        assert made == pytest.approx(stated, rel=0.1)  # a last batch of odd size counts in full
    elif name == "topofilter":  # stated for all labels and five rounds per selection; here it is one
        assert made == pytest.approx(3 * phases[0]["kept_share"] + 5 * (stated - 3))
    elif name == "moit_plus":  # stated for the rounds of MOIT; fine-tuning is one view and a prediction
        assert made == pytest.approx(4 * phases[0]["clean_share"])
    elif name == "ngc":  # stated for all samples; the two mixed views are of those that are selected
        assert made == pytest.approx(stated - 6 * (1 - phases[0]["kept_share"]))
    elif name == "laplacenet":  # stated for 16% of labeled samples in every batch; here there are no others
        assert made - 1 == pytest.approx((stated - 1) * (1 - 0.16))
    elif name == "incv":  # stated for a run that uses all samples
        assert made == pytest.approx(stated * phases[0]["used_share"])
    else:
        assert made == pytest.approx(stated)


@EVERY
def test_an_overview_has_every_setting(name: str) -> None:
    overview = describe_method(name)
    assert tuple(overview.defaults) == settings_of(name)
    assert overview.summary.endswith(".")
    assert "Parameters" not in overview.description
    assert overview in describe_methods()


def test_values_are_written_as_the_command_line_takes_them() -> None:
    assert as_written(None) == "(not set)"
    written = settings_as_written({"a": True, "b": (100, 250), "c": 25.0, "d": "adam"}, "method.")
    assert written == "method.a=true, method.b=[100, 250], method.c=25, method.d=adam"
    views = ("augmix", {"n_operations": 2, "cutout": False})
    assert as_written(views) == '["augmix", {n_operations = 2, cutout = false}]'
    preset = load_preset("digits", [f"strong={as_written(views)}"]).parameters()
    assert preset["strong"] == ("augmix", RandAugment(2, None))
