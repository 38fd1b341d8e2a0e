"""The interface carries what the methods to come need: toy methods that use one ability each."""

import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from laplaceconfidence.exceptions import Interrupted
from laplaceconfidence.training.methods.interface import Evidence, Method, Phase, Plan, Problem, State
from laplaceconfidence.training.step import Step
from small_runs import noisy_digits, quick, weights


@dataclass(frozen=True)
class OneNetwork(Method):
    n_networks: ClassVar[int] = 1

    def phases(self, round: int) -> tuple[Phase, ...]:
        return (Phase("training", trains=(0,)),)

    def loss(self, step: Step) -> Tensor:
        return functional.cross_entropy(step.trained(step.batch.weak()), step.batch.labels)


@dataclass(frozen=True)
class LearnedLabels(OneNetwork):
    """Label logits of every sample, moved by their own gradients (PENCIL, SOP, ELR)."""

    def initial_state(self, problem: Problem) -> State:
        return {"label_logits": 5.0 * functional.one_hot(problem.labels, problem.n_classes)}

    def loss(self, step: Step) -> Tensor:
        rows = step.variable("rows", step.state["label_logits"][step.batch.index])
        return -(rows.softmax(dim=1) * step.trained(step.batch.weak()).log_softmax(dim=1)).sum(dim=1).mean()

    def after_step(self, step: Step) -> None:
        moved = step.state["label_logits"][step.batch.index] - 10 * step.gradients["rows"]
        step.write_rows("label_logits", step.batch.index, moved)


@dataclass(frozen=True)
class Restarted(OneNetwork):
    """A network that starts anew on what the one before it found easy (ITLM, INCV, forward correction)."""

    def phases(self, round: int) -> tuple[Phase, ...]:
        if round == 1:
            return (Phase("second", trains=(0,), evidence=(0,), fresh=(0,), learning_rate=0.5),)
        return (Phase("first", trains=(0,)),)

    def plan(self, phase: Phase, evidence: Evidence, state: State) -> Plan:
        if phase.name == "first":
            return Plan.over(np.arange(evidence.problem.n_samples))
        losses = evidence.networks[0].losses(evidence.labels)
        return Plan.over(np.argsort(losses)[: len(losses) // 2])


@dataclass(frozen=True)
class Contrastive(OneNetwork):
    """A projection head beside the classifier, trained on two views (MOIT, NGC, UNICON)."""

    def heads(self, n_features: int, n_classes: int) -> dict[str, nn.Module]:
        return {"projection": nn.Linear(n_features, 8)}

    def loss(self, step: Step) -> Tensor:
        first, second = (step.trained.outputs(step.batch.weak()) for _ in range(2))
        views = [functional.normalize(one.heads["projection"], dim=1) for one in (first, second)]
        alike = views[0] @ views[1].T / 0.1
        return functional.cross_entropy(alike, torch.arange(len(alike))) + functional.cross_entropy(
            first.logits, step.batch.labels
        )


@dataclass(frozen=True)
class Teacher(OneNetwork):
    """A second network that is the moving average of the first, and predicts (MLNT)."""

    n_networks: ClassVar[int] = 2

    @property
    def predictors(self) -> tuple[int, ...]:
        return (1,)

    def after_step(self, step: Step) -> None:
        student, teacher = (network.module.parameters() for network in step.networks)
        with torch.no_grad():
            for mean, newest in zip(teacher, student, strict=True):
                mean.lerp_(newest, 0.1)


@dataclass(frozen=True)
class MetaGradient(OneNetwork):
    """The loss after a virtual step, differentiated through it (MLNT)."""

    def loss(self, step: Step) -> Tensor:
        module, labels = step.trained.module, step.batch.labels
        parameters = dict(module.named_parameters())
        inner = functional.cross_entropy(step.trained(step.batch.weak()), labels)
        slopes = torch.autograd.grad(inner, list(parameters.values()), create_graph=True)
        moved = {name: p - 0.1 * slope for (name, p), slope in zip(parameters.items(), slopes, strict=True)}
        outputs: Any = torch.func.functional_call(module, moved, (step.batch.weak(),))
        return functional.cross_entropy(outputs.logits, labels)


@dataclass(frozen=True)
class TwoStreams(OneNetwork):
    """A short second stream goes round and round beside the first (DivideMix, LaplaceNet)."""

    def plan(self, phase: Phase, evidence: Evidence, state: State) -> Plan:
        every = torch.arange(evidence.problem.n_samples)
        return Plan({"first": every, "second": every[:10]}, batch_sizes={"second": 4}, measures={"ten": 10.0})

    def loss(self, step: Step) -> Tensor:
        first, second = step.batches["first"], step.batches["second"]
        assert len(second) in (2, 4)
        assert int(second.index.max()) < 10
        logits = step.trained(torch.cat([first.weak(), second.strong()]))
        return functional.cross_entropy(logits, torch.cat([first.labels, second.labels]))


METHODS = (LearnedLabels, Restarted, Contrastive, Teacher, MetaGradient, TwoStreams)


@pytest.mark.parametrize("kind", METHODS)
def test_it_trains_and_survives_being_stopped(kind: type[Method], tmp_path: Path) -> None:
    X, y, _ = noisy_digits(100)
    whole = quick(method=kind()).fit(X, y)
    stopped = quick(method=kind(), out=tmp_path / "run")
    for _ in range(2):
        with pytest.raises(Interrupted):
            stopped.fit(X, y, listeners=[lambda record: signal.raise_signal(signal.SIGTERM)])
    stopped.fit(X, y)
    assert whole.history_ == stopped.history_
    assert all(torch.equal(a, b) for a, b in zip(weights(whole), weights(stopped), strict=True))


def test_learned_labels_move_and_the_loss_with_them() -> None:
    X, y, _ = noisy_digits(100)
    history = quick(method=LearnedLabels(), rounds=8, validation_fraction=0).fit(X, y).history_
    assert history[-1]["phases"][0]["loss"] < history[0]["phases"][0]["loss"]


def test_a_fresh_network_forgets_and_trains_on_what_was_planned() -> None:
    X, y, _ = noisy_digits(100)
    run = quick(method=Restarted(), rounds=2, validation_fraction=0, batch_size=10)
    steps: list[int] = []
    history = run.fit(X, y, listeners=[lambda record: steps.append(record["round"])]).history_
    assert steps == [1, 2]
    assert history[1]["phases"][0]["loss"] > 0.8 * history[0]["phases"][0]["loss"]


def test_measures_of_a_plan_reach_the_history() -> None:
    X, y, _ = noisy_digits(60)
    assert quick(method=TwoStreams()).fit(X, y).history_[0]["phases"][0]["ten"] == 10


def test_only_the_teacher_predicts() -> None:
    X, y, _ = noisy_digits(60)
    run = quick(method=Teacher(), validation_fraction=0).fit(X, y)
    teacher = run.networks_[1].eval()
    with torch.no_grad():
        inputs = run._model.normalized(torch.from_numpy(X).unsqueeze(1))
        expected = teacher(inputs).softmax(dim=1).numpy()
    np.testing.assert_allclose(run.predict_proba(X), expected, atol=1e-6)
