"""The settings of the loop: learning rates, precision, and what is refused."""

from typing import Any

import pytest
import torch

from laplaceconfidence.training.presets import load_preset
from laplaceconfidence.training.settings import TrainingSettings, fast_precision
from small_runs import noisy_digits, quick


def settings(**given: Any) -> TrainingSettings:
    others = {
        "rounds": 10,
        "batch_size": 32,
        "optimizer": "sgd",
        "learning_rate": 1.0,
        "momentum": 0.9,
        "weight_decay": 5e-4,
        "learning_rate_drops": (0.75,),
        "drop_factor": 0.1,
        "precision": "float32",
        "channels_last": False,
        "compile": False,
        "eval_batch_size": 512,
        "seed": 0,
    }
    return TrainingSettings(**(others | given))


def test_the_learning_rate_drops_as_in_the_paper() -> None:
    preset = load_preset("cifar10-sym50").training.parameters()
    shared = ("rounds", "learning_rate", "learning_rate_drops", "drop_factor")
    paper = settings(**{name: preset[name] for name in shared})
    assert [paper.learning_rate_at(r) for r in (0, 299)] == [0.01, 0.01]
    assert paper.learning_rate_at(300) == pytest.approx(0.001)
    assert paper.learning_rate_at(399) == pytest.approx(0.001)
    twice = settings(rounds=10, learning_rate=1, learning_rate_drops=(4, 0.8))
    assert [twice.learning_rate_at(r) for r in (3, 4, 8)] == pytest.approx([1, 0.1, 0.01])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rounds", 0),
        ("optimizer", "lion"),
        ("momentum", 1.0),
        ("compile", "yes"),
        ("learning_rate_drops", (0,)),
        ("schedule", "linear"),
        ("learning_rate_warmup", 1.0),
        ("clip_gradients", 0),
        ("weight_average", 1),
        ("nesterov", "yes"),
    ],
)
def test_wrong_values_are_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"'{name}' parameter"):
        settings(**{name: value})


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("learning_rate_drops", {"schedule": "cosine"}),
        ("nesterov", {"nesterov": True, "optimizer": "adam"}),
        ("nesterov", {"nesterov": True, "momentum": 0}),
        ("average_evidence", {"average_evidence": True}),
    ],
)
def test_settings_that_would_have_no_effect_are_refused(name: str, others: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"'{name}' parameter"):
        settings(**others)


def test_fast_precision_is_what_the_device_has_instructions_for(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = torch.device("cpu")
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    for supported, precision in ((True, "bfloat16"), (False, "float32")):
        monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda supported=supported: supported)
        assert fast_precision(cpu) == precision
        X, y, _ = noisy_digits(60)
        run = quick("cross_entropy", rounds=1, precision="fast").fit(X, y)
        assert run.settings_["training"]["precision"] == precision
    assert fast_precision(torch.device("mps")) == "float32"
