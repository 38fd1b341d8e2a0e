"""Schedules of the learning rate: closed forms, and which step has which rate."""

import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from laplaceconfidence.exceptions import Interrupted
from laplaceconfidence.training.methods.cross_entropy import CrossEntropy
from laplaceconfidence.training.methods.interface import Phase
from laplaceconfidence.training.schedules import SCHEDULES, learning_rate_at, progress_of_network
from laplaceconfidence.training.step import Step
from small_runs import noisy_digits, plain_mlp, quick, weights


def rate(progress: float, **given: Any) -> float:
    return learning_rate_at(progress, rounds=10, learning_rate=2.0, **given)


def test_cosine_and_one_cycle_follow_their_closed_forms() -> None:
    assert [rate(p, schedule="cosine") for p in (0, 5, 10)] == pytest.approx([2, 1, 0], abs=1e-12)
    assert rate(10 / 3, schedule="cosine") == pytest.approx(1.5)
    assert [rate(p, schedule="one-cycle") for p in (0, 1.5, 3, 6.5, 10)] == pytest.approx([0, 1, 2, 1, 0])
    given: dict[str, Any] = {"schedule": "cosine", "warmup": 0.5}
    assert [rate(p, **given) for p in (0, 2.5, 5, 7.5, 10)] == pytest.approx([0, 1, 2, 1, 0], abs=1e-12)
    steps: dict[str, Any] = {"drops": (0.75, 9), "warmup": 0.2}
    assert [rate(p, **steps) for p in (1, 7.9, 8, 9.5)] == pytest.approx([1, 2, 0.2, 0.02])


@given(st.floats(0, 10), st.sampled_from(SCHEDULES), st.floats(0, 0.9))
def test_no_schedule_leaves_its_range(progress: float, schedule: str, warmup: float) -> None:
    assert 0 <= rate(progress, schedule=schedule, warmup=warmup) <= 2.0


def test_a_network_advances_by_its_own_phases_only() -> None:
    in_turn = (Phase("a", trains=(0,)), Phase("a", trains=(1,)))
    assert progress_of_network(0, 3, in_turn, 0, 0.5) == 3.5
    assert progress_of_network(1, 3, in_turn, 1, 0.5) == 3.5
    twice = (Phase("a", trains=(0,)), Phase("b", trains=(0, 1), passes=3))
    assert progress_of_network(0, 0, twice, 0, 1.0) == 0.25
    assert progress_of_network(0, 0, twice, 1, 0.5) == 0.625
    assert progress_of_network(1, 0, twice, 1, 0.5) == 0.5


@pytest.mark.filterwarnings("ignore::laplaceconfidence.training.guards.TrainingWarning")
def test_the_history_has_the_learning_rates() -> None:
    X, y, _ = noisy_digits(80)
    history = quick(rounds=4, schedule="one-cycle", learning_rate_drops="auto").fit(X, y).history_
    assert [record["learning_rate"] for record in history] == pytest.approx(
        [learning_rate_at(r, rounds=4, learning_rate=0.05, schedule="one-cycle") for r in range(4)]
    )
    for record in history:
        first, second = (phase["learning_rate"] for phase in record["phases"])
        assert first == second
    means = [record["phases"][0]["learning_rate"] for record in history]
    assert means[1] == max(means)
    assert means[3] == pytest.approx(0.05 * 0.5 / 2.8)  # linear: the rate in the middle of the last round


@dataclass(frozen=True)
class Resting(CrossEntropy):
    """Trains with a learning rate of 0."""

    def phases(self, round: int) -> tuple[Phase, ...]:
        return (Phase("rest", trains=(0,), learning_rate=0.0),)


def test_a_learning_rate_of_zero_is_obeyed() -> None:
    X, y, _ = noisy_digits(60)
    network = plain_mlp(10, (1, 8, 8))
    run = quick(method=Resting(), network=network, rounds=2).fit(X, y)
    for before, after in zip(network.state_dict().values(), weights(run), strict=True):
        assert torch.equal(before, after)
    assert run.history_[0]["phases"][0]["learning_rate"] == 0


def moved(**settings: Any) -> float:
    """How far the weights move in a single step."""
    X, y, _ = noisy_digits(60)
    torch.manual_seed(0)
    network = plain_mlp(10, (1, 8, 8))
    before = nn.utils.parameters_to_vector(network.parameters())
    usual: dict[str, Any] = {"rounds": 1, "batch_size": 60, "weight_decay": 0, "validation_fraction": 0}
    usual |= {"learning_rate_drops": (), "weak": "none"}
    run = quick(method="cross_entropy", network=network, **(usual | settings)).fit(X, y)
    after = nn.utils.parameters_to_vector(run.networks_[0].parameters())
    return float((after - before).detach().norm())


def test_gradients_are_clipped_and_nesterov_looks_ahead() -> None:
    assert moved(clip_gradients=0.01) == pytest.approx(0.05 * 0.01, rel=1e-3)
    assert moved(clip_gradients=1e6) == pytest.approx(moved(), rel=1e-5)
    assert moved(nesterov=True) == pytest.approx(1.9 * moved(), rel=1e-4)


@dataclass(frozen=True)
class Losses(CrossEntropy):
    """Compares its loss with cross-entropy of smoothed targets."""

    label_smoothing: float = 0.3

    def loss(self, step: Step) -> torch.Tensor:
        torch.manual_seed(1)
        log_p = step.trained(step.batch.plain()).log_softmax(dim=1)
        targets = 0.7 * nn.functional.one_hot(step.batch.labels, 10) + 0.3 / 10
        step.measure("expected", -(targets * log_p).sum(dim=1).mean())
        return super().loss(step)


def test_label_smoothing_spreads_the_targets() -> None:
    X, y, _ = noisy_digits(60)
    run = quick(method=Losses(), network=plain_mlp, weak="none", rounds=1).fit(X, y)
    phase = run.history_[0]["phases"][0]
    assert phase["loss"] == pytest.approx(phase["expected"], rel=1e-5)


@pytest.mark.filterwarnings("ignore::laplaceconfidence.training.guards.TrainingWarning")
def test_a_stopped_run_with_all_of_it_ends_bit_identical(tmp_path: Path) -> None:
    X, y, _ = noisy_digits(100)
    recipe: dict[str, Any] = {"schedule": "one-cycle", "learning_rate_drops": "auto", "nesterov": True}
    recipe |= {"clip_gradients": 1.0, "weight_average": 0.9, "average_evidence": True}
    recipe |= {"own": {"label_smoothing": 0.1}, "network": "small_cnn", "channels_last": False}
    whole = quick(**recipe).fit(X, y)
    stopped = quick(out=tmp_path / "run", **recipe)
    for _ in range(2):
        with pytest.raises(Interrupted):
            stopped.fit(X, y, listeners=[lambda record: signal.raise_signal(signal.SIGTERM)])
    stopped.fit(X, y)
    assert whole.history_ == stopped.history_
    assert all(torch.equal(a, b) for a, b in zip(weights(whole), weights(stopped), strict=True))
