"""Stages of a run, several steps per batch or none, and gradients of a method's own variables."""

import signal
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from laplaceconfidence.exceptions import Interrupted, InvalidInputError
from laplaceconfidence.training.callbacks import Callback, TrainingContext
from laplaceconfidence.training.methods.interface import (
    Evidence,
    Method,
    Phase,
    Plan,
    Problem,
    Stage,
    State,
    WeightCopy,
)
from laplaceconfidence.training.run_folder import read_checkpoint, write_checkpoint
from laplaceconfidence.training.step import Step
from small_runs import noisy_digits, plain_mlp, quick, weights


@dataclass(frozen=True)
class OneNetwork(Method):
    n_networks: ClassVar[int] = 1

    def phases(self, round: int) -> tuple[Phase, ...]:
        return (Phase("training", trains=(0,)),)

    def loss(self, step: Step) -> Tensor:
        return functional.cross_entropy(step.trained(step.batch.weak()), step.batch.labels)


class KeepWeights(Callback):
    """The weights of all networks after every round."""

    def __init__(self) -> None:
        self.rounds: list[list[dict[str, Tensor]]] = []

    def on_round_end(self, context: TrainingContext) -> None:
        self.rounds.append(
            [{k: v.clone() for k, v in network.state_dict().items()} for network in context.networks]
        )


@dataclass(frozen=True)
class TwoStages(OneNetwork):
    """The second network starts when half of the rounds are done, and is the only one that can be kept."""

    first: int | None = None
    n_networks: ClassVar[int] = 2

    def for_rounds(self, rounds: int) -> Self:
        return self if self.first is not None else replace(self, first=rounds // 2)

    def stage(self, round: int) -> Stage:
        assert self.first is not None
        if round < self.first:
            return Stage(0, self.first, predictors=(0,), counts=False)
        return Stage(self.first, predictors=(1,))

    def phases(self, round: int) -> tuple[Phase, ...]:
        assert self.first is not None
        return (Phase("training", trains=(int(round >= self.first),)),)


def test_rounds_of_a_stage_that_does_not_count_are_neither_chosen_nor_best() -> None:
    X, y, true = noisy_digits(120, rate=0.2)
    run = quick(method=TwoStages(), rounds=8, learning_rate=0.1).fit(X, y, test=(X, true))
    assert run.settings_["method"]["first"] == 4
    assert [record.get("counts", True) for record in run.history_] == [False] * 4 + [True] * 4
    assert run.summary_["chosen_round"] > 4
    accuracies = [record["test_accuracy"] for record in run.history_]
    assert run.summary_["test_accuracy_best_round_for_comparison_only"] == max(accuracies[4:])
    assert run.summary_["test_accuracy_mean_of_last_rounds"] == pytest.approx(np.mean(accuracies[4:]))


def test_the_networks_of_the_chosen_stage_predict() -> None:
    X, y, _ = noisy_digits(60)
    run = quick(method=TwoStages(), rounds=4, validation_fraction=0).fit(X, y)
    second = run.networks_[1].eval()
    with torch.no_grad():
        inputs = run._model.normalized(torch.from_numpy(X).unsqueeze(1))
        expected = second(inputs).softmax(dim=1).numpy()
    np.testing.assert_allclose(run.predict_proba(X), expected, atol=1e-6)


@pytest.mark.parametrize("schedule", ["step", "cosine"])
def test_the_schedule_is_spread_over_each_stage(schedule: str) -> None:
    X, y, _ = noisy_digits(60)
    drops = {"learning_rate_drops": (0.5,) if schedule == "step" else ()}
    run = quick(method=TwoStages(), rounds=8, schedule=schedule, **drops).fit(X, y)
    rates = [record["phases"][0]["learning_rate"] for record in run.history_]
    alone = quick(method=OneNetwork(), rounds=4, schedule=schedule, **drops).fit(X, y)
    expected = [record["phases"][0]["learning_rate"] for record in alone.history_]
    assert rates == pytest.approx(expected * 2)
    assert run.history_[4]["learning_rate"] == alone.history_[0]["learning_rate"]


@dataclass(frozen=True)
class OwnRates(OneNetwork):
    def phases(self, round: int) -> tuple[Phase, ...]:
        if round == 0:
            return (Phase("still", trains=(0,), learning_rate=0),)
        return (Phase("half", trains=(0,), relative_learning_rate=0.5),)


def test_a_learning_rate_of_zero_is_obeyed_and_a_relative_one_is_of_the_run() -> None:
    X, y, _ = noisy_digits(60)
    network, seen = plain_mlp(10, (1, 8, 8)), KeepWeights()
    run = quick(method=OwnRates(), network=network, rounds=2, learning_rate=0.04, validation_fraction=0)
    start = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    run.set_params(callbacks=[seen]).fit(X, y)
    first, second = (networks[0] for networks in seen.rounds)
    assert all(torch.equal(first[name], start[name]) for name in start)
    assert not all(torch.equal(second[name], start[name]) for name in start)
    assert [record["phases"][0]["learning_rate"] for record in run.history_] == [0, 0.02]


@dataclass(frozen=True)
class Anew(OneNetwork):
    """Starts anew in the second round with a learning rate of 0, so that the new weights stay."""

    def phases(self, round: int) -> tuple[Phase, ...]:
        fresh = (0,) if round == 1 else ()
        return (Phase("training", trains=(0,), fresh=fresh, learning_rate=0.0),)


def test_a_module_of_the_user_keeps_its_weights_until_it_starts_anew() -> None:
    X, y, _ = noisy_digits(60)
    network = plain_mlp(10, (1, 8, 8))
    ran = [
        quick(method=Anew(), network=network, rounds=n, validation_fraction=0).fit(X, y) for n in (1, 2, 2)
    ]
    before, after, again = (weights(one) for one in ran)
    assert all(torch.equal(a, b) for a, b in zip(before, network.state_dict().values(), strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(after, again, strict=True))


class Unresettable(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(64, 10))

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs.flatten(1) @ self.weight


def test_a_module_that_cannot_be_reset_fails_before_the_first_step() -> None:
    X, y, _ = noisy_digits(60)
    run = quick(method=Anew(), network=Unresettable(), rounds=2)
    with pytest.raises(InvalidInputError, match="Pass a factory instead of a module"):
        run.fit(X, y, listeners=[lambda record: pytest.fail("a round was trained")])


@dataclass(frozen=True)
class Mentored(OneNetwork):
    """The second network takes the best weights of the first one before the last round."""

    n_networks: ClassVar[int] = 2
    best: bool = True

    @property
    def predictors(self) -> tuple[int, ...]:
        return (0,)

    def phases(self, round: int) -> tuple[Phase, ...]:
        copies = (WeightCopy(target=1, source=0, best=self.best),) if round == 2 else ()
        rate = 0.05 if round < 2 else 0.0
        return (Phase("training", trains=(0,), passes=10, copies=copies, learning_rate=rate),)

    def loss(self, step: Step) -> Tensor:
        loss = functional.cross_entropy(step.trained(step.batch.weak()), step.batch.labels)
        return loss if step.round == 0 else -loss.clamp_max(9)  # the second round unlearns


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("interrupted", [False, True])
def test_a_network_can_take_the_best_weights_so_far(tmp_path: Path, interrupted: bool) -> None:
    X, y, _ = noisy_digits(200, rate=0.1)
    seen = KeepWeights()
    run = quick(method=Mentored(), out=tmp_path / "run", network=plain_mlp, callbacks=[seen])
    if interrupted:
        with pytest.raises(Interrupted):
            run.fit(
                X,
                y,
                listeners=[lambda record: record["round"] == 2 and signal.raise_signal(signal.SIGTERM)],
            )
        # As if the run had been killed after it wrote a newer best round, before the checkpoint with it.
        best_file = tmp_path / "run" / "checkpoints" / "best.pt"
        content = read_checkpoint(best_file)
        content["networks"] = [{k: v + 1 for k, v in state.items()} for state in content["networks"]]
        write_checkpoint(best_file, content)
    run.fit(X, y)
    assert run.summary_["chosen_round"] == 1
    best, mentor, present = seen.rounds[0][0], seen.rounds[-1][1], seen.rounds[-1][0]
    assert all(torch.equal(best[name], mentor[name]) for name in best)
    assert not any(torch.equal(best[name], present[name]) for name in best)


class EvidenceOfTheBest(Mentored):
    seen: ClassVar[dict[int, Any]] = {}

    def phases(self, round: int) -> tuple[Phase, ...]:
        (phase,) = super().phases(round)
        return (replace(phase, copies=(), evidence=(0,), best_evidence=round == 2),)

    def plan(self, phase: Phase, evidence: Evidence, state: State) -> Plan:
        self.seen[evidence.round] = evidence.networks[0].probabilities
        return super().plan(phase, evidence, state)


@pytest.mark.filterwarnings("ignore")
def test_evidence_can_be_that_of_the_best_round() -> None:
    X, y, _ = noisy_digits(200, rate=0.1)
    method = EvidenceOfTheBest()
    run = quick(method=method, network=plain_mlp).fit(X, y)
    assert run.summary_["chosen_round"] == 1
    np.testing.assert_array_equal(method.seen[2], method.seen[1])  # after the first round
    quick(method=method, network=plain_mlp, validation_fraction=0).fit(X, y)
    assert not np.allclose(method.seen[2], method.seen[1])


@dataclass(frozen=True)
class LaterStages(TwoStages):
    """The networks of the first stage are much better than those of the second one."""

    def phases(self, round: int) -> tuple[Phase, ...]:
        (phase,) = super().phases(round)
        return (replace(phase, learning_rate=0.01 if round < 2 else 1e-6),)


@pytest.mark.filterwarnings("ignore")
def test_the_best_round_of_a_stage_that_does_not_count_is_forgotten() -> None:
    X, y, _ = noisy_digits(200, rate=0.1)
    run = quick(method=LaterStages(), rounds=4, batch_size=4).fit(X, y)
    accuracies = [record["validation_accuracy"] for record in run.history_]
    assert max(accuracies[:2]) > max(accuracies[2:]) + 0.3
    assert run.summary_["chosen_round"] in (3, 4)


def test_without_held_out_labels_the_best_weights_are_the_present_ones() -> None:
    X, y, _ = noisy_digits(100)
    for best in (True, False):
        run = quick(method=Mentored(best=best), validation_fraction=0, network=plain_mlp).fit(X, y)
        present, mentor = (network.state_dict().values() for network in run.networks_)
        assert all(torch.equal(a, b) for a, b in zip(present, mentor, strict=True))


@dataclass(frozen=True)
class SeveralSteps(OneNetwork):
    n_steps: int = 1

    def losses(self, step: Step) -> Iterator[Tensor]:
        for _ in range(self.n_steps):
            yield self.loss(step)

    def after_step(self, step: Step) -> None:
        assert step.is_made == (self.n_steps > 0)


def losses_by_hand(run: Any, X: Any, y: Any, n_steps: int) -> list[Tensor]:
    """Full-batch gradient descent, ``n_steps`` times with the same batch."""
    torch.manual_seed(0)
    network = run.network
    inputs = run._model.normalized(torch.from_numpy(X).unsqueeze(1))
    parameters = [p.detach().clone().requires_grad_() for p in network.parameters()]
    for _ in range(n_steps):
        named = dict(zip(dict(network.named_parameters()), parameters, strict=True))
        loss = functional.cross_entropy(
            torch.func.functional_call(network, named, inputs), torch.from_numpy(y)
        )
        slopes = torch.autograd.grad(loss, parameters)
        parameters = [
            (p - 0.1 * slope).detach().requires_grad_() for p, slope in zip(parameters, slopes, strict=True)
        ]
    return [p.detach() for p in parameters]


@pytest.mark.parametrize("n_steps", [0, 1, 3])
def test_a_method_makes_as_many_steps_per_batch_as_it_yields_losses(n_steps: int) -> None:
    X, y, _ = noisy_digits(80)
    run = quick(
        method=SeveralSteps(n_steps=n_steps),
        network=plain_mlp(10, (1, 8, 8)),
        rounds=1,
        batch_size=80,
        learning_rate=0.1,
        learning_rate_drops=(),
        momentum=0,
        weight_decay=0,
        weak="none",
        strong="none",
        validation_fraction=0,
    ).fit(X, y)
    torch.testing.assert_close(weights(run), losses_by_hand(run, X, y, n_steps), rtol=1e-4, atol=1e-6)


@dataclass(frozen=True)
class EveryOtherBatch(OneNetwork):
    def losses(self, step: Step) -> Iterator[Tensor]:
        loss = self.loss(step)
        step.measure("of_all", loss)
        if bool(step.batch.index.sum() % 2):
            step.measure("of_some", loss)
            yield loss
        else:
            step.measure("of_some", torch.zeros(()))


@pytest.mark.parametrize("nothing", [False, True])
def test_skipped_steps_are_not_in_the_mean_loss(nothing: bool) -> None:
    X, y, _ = noisy_digits(100)
    method = SeveralSteps(n_steps=0) if nothing else EveryOtherBatch()
    run = quick(method=method, rounds=1, batch_size=10, validation_fraction=0).fit(X, y)
    phase = run.history_[0]["phases"][0]
    if nothing:
        assert (phase["loss"], phase["skipped_share"]) == (0, 1)
    else:
        assert 0 < phase["skipped_share"] < 1
        assert phase["loss"] == pytest.approx(phase["of_some"] / (1 - phase["skipped_share"]))


@dataclass(frozen=True)
class LearnedLabels(OneNetwork):
    """Label logits of every sample, moved by their own gradients."""

    def initial_state(self, problem: Problem) -> State:
        return {
            "label_logits": 5.0 * functional.one_hot(problem.labels, problem.n_classes),
            "n_made": torch.zeros(()),
        }

    def loss(self, step: Step) -> Tensor:
        rows = step.variable("labels", step.state["label_logits"][step.batch.index])
        return -(rows.softmax(dim=1) * step.trained(step.batch.weak()).log_softmax(dim=1)).sum(dim=1).mean()

    def after_step(self, step: Step) -> None:
        step.state["n_made"] += step.is_made
        if step.is_made:
            slope = step.gradients["labels"]
            n = len(step.gather_rows(step.batch.index))
            step.measure("slope", n * slope.abs().mean())
            rows = step.state["label_logits"][step.batch.index]
            step.write_rows("label_logits", step.batch.index, rows - 10 * slope)


def test_gradients_of_variables_are_those_of_the_loss_whatever_the_precision() -> None:
    X, y, _ = noisy_digits(100)
    slopes = {}
    for precision in ("float32", "float16"):
        run = quick(method=LearnedLabels(), precision=precision, rounds=6, validation_fraction=0).fit(X, y)
        slopes[precision] = [record["phases"][0].get("slope", 0.0) for record in run.history_]
        assert all(torch.isfinite(tensor).all() for tensor in weights(run))
    # In the first steps of float16 the gradients overflow, and neither weights nor labels are changed.
    assert slopes["float16"][-1] == pytest.approx(slopes["float32"][-1], rel=0.5)


def test_the_gradient_of_a_variable_is_that_of_autograd() -> None:
    X, y, _ = noisy_digits(32)
    seen: dict[str, Tensor] = {}

    class Checked(LearnedLabels):
        def loss(self, step: Step) -> Tensor:
            loss = super().loss(step)
            (seen["expected"],) = torch.autograd.grad(loss, step.variables["labels"], retain_graph=True)
            return loss

        def after_step(self, step: Step) -> None:
            seen["given"] = step.gradients["labels"]

    quick(method=Checked(), rounds=1, validation_fraction=0).fit(X, y)
    torch.testing.assert_close(seen["given"], seen["expected"])


def test_every_ability_survives_being_stopped(tmp_path: Path) -> None:
    X, y, _ = noisy_digits(100)
    for number, method in enumerate((TwoStages(), LearnedLabels(), EveryOtherBatch(), Anew())):
        whole = quick(method=method).fit(X, y)
        stopped = quick(method=method, out=tmp_path / str(number))
        with pytest.raises(Interrupted):
            stopped.fit(X, y, listeners=[lambda record: signal.raise_signal(signal.SIGTERM)])
        stopped.fit(X, y)
        assert whole.history_ == stopped.history_
        assert all(torch.equal(a, b) for a, b in zip(weights(whole), weights(stopped), strict=True))
