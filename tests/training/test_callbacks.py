"""Callbacks: what they see, and runs that they end."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from sklearn.base import clone

from laplaceconfidence.exceptions import Interrupted, InvalidInputError
from laplaceconfidence.training.callbacks import Callback, EarlyStopping, TrainingContext
from laplaceconfidence.training.tensorboard import TensorBoardLogger
from small_runs import noisy_digits, quick, weights

pytestmark = pytest.mark.filterwarnings("ignore::laplaceconfidence.training.guards.TrainingWarning")


class Recorder(Callback):
    def __init__(self, stop_at: tuple[int, int] | None = None) -> None:
        self.stop_at = stop_at
        self.steps: list[tuple[int, str, int, int]] = []
        self.rounds: list[TrainingContext] = []
        self.ended = 0

    def on_step_end(self, context: TrainingContext) -> None:
        assert context.loss is not None
        self.steps.append((context.round, context.phase, context.step, context.n_steps))
        if self.stop_at == (context.round, context.step):
            context.stop("Seen enough.")

    def on_round_end(self, context: TrainingContext) -> None:
        self.rounds.append(context)

    def on_training_end(self) -> None:
        self.ended += 1


def test_a_callback_sees_every_step_and_round() -> None:
    X, y, _ = noisy_digits(100)
    seen = Recorder()
    run = quick(own={"n_networks": 1, "passes": 1}, rounds=2, callbacks=[seen]).fit(X, y)
    expected = [(1, "warm-up", step, 3) for step in (1, 2, 3)] + [
        (2, "robust", step, 3) for step in (1, 2, 3)
    ]
    assert seen.steps == expected
    assert [(one.round, one.rounds) for one in seen.rounds] == [(1, 2), (2, 2)]
    assert [one.record for one in seen.rounds] == run.history_
    assert [len(one.history) for one in seen.rounds] == [1, 2]
    times = [one.time_left for one in seen.rounds]
    assert times[0] is not None
    assert not times[0].is_measured
    assert times[0].seconds > 0
    assert times[1] is not None
    assert times[1].seconds == 0
    assert isinstance(seen.rounds[0].networks[0], torch.nn.Module)
    assert seen.ended == 1


def test_a_run_that_a_callback_ended_is_finished(tmp_path: Path) -> None:
    X, y, _ = noisy_digits(80)
    run = quick(method="cross_entropy", rounds=5, out=tmp_path / "run", callbacks=[Recorder((2, 1))]).fit(
        X, y
    )
    assert len(run.history_) == 2
    assert run.summary_["stop_reason"] == "Seen enough."
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["rounds"] == 2
    again = quick(method="cross_entropy", rounds=5, out=tmp_path / "run").fit(X, y)
    assert again.history_ == run.history_
    assert all(torch.equal(a, b) for a, b in zip(weights(run), weights(again), strict=True))


def test_a_run_that_is_killed_after_a_callback_asked_for_its_end_finishes_the_round(tmp_path: Path) -> None:
    class Killed(Recorder):
        def on_step_end(self, context: TrainingContext) -> None:
            super().on_step_end(context)
            if context.stop_reason is not None:
                signal.raise_signal(signal.SIGTERM)

    X, y, _ = noisy_digits(100)
    settings: dict[str, Any] = {"method": "cross_entropy", "rounds": 5}
    whole = quick(**settings, callbacks=[Recorder((2, 1))]).fit(X, y)
    with pytest.raises(Interrupted):
        quick(**settings, out=tmp_path / "run", callbacks=[Killed((2, 1))]).fit(X, y)
    resumed = quick(**settings, out=tmp_path / "run").fit(X, y)
    assert resumed.history_ == whole.history_
    assert all(torch.equal(a, b) for a, b in zip(weights(whole), weights(resumed), strict=True))


def stopped_after(stopping: EarlyStopping, accuracies: list[float]) -> int | None:
    """The round after which the training ends."""
    for number in range(1, len(accuracies) + 1):
        history = [{"validation_accuracy": value, "phases": [{"loss": -value}]} for value in accuracies]
        context = TrainingContext(number, 99, "training", 0, 0, None, history[:number], ())
        stopping.on_round_end(context)
        if context.stop_reason is not None:
            return number
    return None


def test_early_stopping_waits_for_a_rise() -> None:
    accuracies = [0.1, 0.5, 0.4, 0.5, 0.6, 0.6, 0.59, 0.6]
    assert stopped_after(EarlyStopping(2), accuracies) == 4
    assert stopped_after(EarlyStopping(3), accuracies) == 8
    assert stopped_after(EarlyStopping(4), accuracies) is None
    assert stopped_after(EarlyStopping(2, first_rounds=4), accuracies) == 7
    assert stopped_after(EarlyStopping(3, minimum_rise=0.2), accuracies) == 5
    assert stopped_after(EarlyStopping(3, monitor="loss"), accuracies) == 8


def test_early_stopping_does_not_look_at_rounds_that_cannot_be_kept() -> None:
    accuracies = [0.9, 0.8, 0.7, 0.6, 0.1, 0.2, 0.2, 0.2]
    history = [
        {"validation_accuracy": value, "phases": [], **({"counts": False} if number < 4 else {})}
        for number, value in enumerate(accuracies)
    ]
    ends = []
    for number in range(1, len(history) + 1):
        context = TrainingContext(number, 99, "training", 0, 0, None, history[:number], ())
        EarlyStopping(2).on_round_end(context)
        ends.append(context.stop_reason is not None)
    assert ends == [False] * 7 + [True]


def test_early_stopping_ends_a_run_and_needs_held_out_labels() -> None:
    X, y, _ = noisy_digits(60)
    constant: dict[str, Any] = {"method": "cross_entropy", "rounds": 9, "learning_rate": 1e-9}
    run = quick(**constant, callbacks=[EarlyStopping(2)]).fit(X, y)
    assert len(run.history_) == 3
    assert "did not rise for 2 rounds" in run.summary_["stop_reason"]
    with pytest.raises(InvalidInputError, match="'validation_fraction' above 0"):
        quick(**constant, validation_fraction=0, callbacks=[EarlyStopping(2)]).fit(X, y)
    with pytest.raises(InvalidInputError, match="'monitor' parameter"):
        EarlyStopping(monitor="test_accuracy")


def test_callbacks_are_checked_and_copied_as_scikit_learn_does() -> None:
    run = quick(callbacks=[EarlyStopping(4)])
    assert clone(run).callbacks[0].patience == 4
    X, y, _ = noisy_digits(60)
    with pytest.raises(InvalidInputError, match="'callbacks' parameter must be objects of subclasses"):
        quick(callbacks=[print]).fit(X, y)
    with pytest.raises(InvalidInputError, match="'callbacks' parameter must be a list"):
        quick(callbacks=EarlyStopping(4)).fit(X, y)


def test_tensorboard_from_python(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    X, y, _ = noisy_digits(60)
    logger = TensorBoardLogger(tmp_path / "logs")
    quick(method="cross_entropy", rounds=2, callbacks=[logger]).fit(X, y)
    assert list((tmp_path / "logs").glob("events.*"))
