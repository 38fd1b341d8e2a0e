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

from laplaceconfidence.exceptions import Interrupted, InvalidInputError, RunFolderError
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


@dataclass(frozen=True)
class JudgedByProjections(Contrastive):
    """Samples are chosen by the outputs of a head, not by the penultimate features (MOIT, NGC)."""

    def phases(self, round: int) -> tuple[Phase, ...]:
        return (Phase("training", trains=(0,), evidence=(0,)),)

    def plan(self, phase: Phase, evidence: Evidence, state: State) -> Plan:
        seen = evidence.networks[0]
        assert seen.heads["projection"].shape == (evidence.problem.n_samples, 8)
        lengths = np.linalg.norm(seen.heads["projection"], axis=1)
        return Plan.over(np.argsort(lengths)[10:])

    def final_confidence(self, evidence: Evidence, state: State) -> Any:
        lengths = np.linalg.norm(evidence.networks[0].heads["projection"], axis=1)
        return lengths / lengths.max()


@dataclass(frozen=True)
class NewClassifier(Contrastive):
    """Some parts of the network start anew in the last round, which does not train them (MOIT+)."""

    parts: tuple[str, ...] = ("classifier",)

    def phases(self, round: int) -> tuple[Phase, ...]:
        if round < 2:
            return (Phase("training", trains=(0,)),)
        return (Phase("new", trains=(0,), fresh=(0,), fresh_parts=self.parts, learning_rate=1e-30),)


@dataclass(frozen=True)
class Mentored(OneNetwork):
    """A module of the method's own, fitted to verified labels, weights the samples (MentorNet)."""

    takes_audited: ClassVar[bool] = True

    def modules(self, n_classes: int) -> dict[str, nn.Module]:
        return {"mentor": nn.Sequential(nn.Linear(1, 4), nn.Tanh(), nn.Linear(4, 1))}

    def phases(self, round: int) -> tuple[Phase, ...]:
        return (Phase("training", trains=(0,), evidence=(0,)),)

    def plan(self, phase: Phase, evidence: Evidence, state: State) -> Plan:
        audited = evidence.problem.audited
        if audited is not None:
            losses = torch.from_numpy(evidence.networks[0].losses(evidence.labels)).float()[:, None]
            known = audited != -1
            right = (audited == evidence.problem.labels).float()[known]
            mentor = evidence.modules["mentor"]
            optimizer = torch.optim.Adam(mentor.parameters(), lr=0.1)
            for _ in range(10):
                optimizer.zero_grad()
                functional.binary_cross_entropy_with_logits(mentor(losses[known])[:, 0], right).backward()
                optimizer.step()
        return Plan.over(np.arange(evidence.problem.n_samples))

    def loss(self, step: Step) -> Tensor:
        losses = functional.cross_entropy(
            step.trained(step.batch.weak()), step.batch.labels, reduction="none"
        )
        with torch.no_grad():
            weights = step.modules["mentor"](losses[:, None])[:, 0].sigmoid()
        step.measure("weight", weights.mean() * step.batch.weight)
        return (losses * weights).mean()


METHODS = (LearnedLabels, Restarted, Contrastive, Teacher, MetaGradient, TwoStreams)
METHODS += (JudgedByProjections, NewClassifier, Mentored)


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


def test_only_the_named_parts_start_anew() -> None:
    X, y, _ = noisy_digits(60)
    settings: dict[str, Any] = {"validation_fraction": 0, "weight_decay": 0, "learning_rate_drops": ()}
    before = weights(quick(method=NewClassifier(), rounds=2, **settings).fit(X, y))
    for parts, n_new in ((("classifier",), 2), (("projection",), 0), (("classifier", "projection"), 2)):
        run = quick(method=NewClassifier(parts), rounds=3, **settings).fit(X, y)
        changed = [not torch.allclose(a, b) for a, b in zip(before, weights(run), strict=True)]
        assert changed == [False] * (len(before) - n_new) + [True] * n_new


def test_parts_that_do_not_exist_are_named() -> None:
    X, y, _ = noisy_digits(60)
    with pytest.raises(InvalidInputError, match=r"'classifier', 'projection'\. Got 'head'"):
        quick(method=NewClassifier(("head",))).fit(X, y)


def test_the_confidence_can_come_from_a_head() -> None:
    X, y, _ = noisy_digits(60)
    confidence = quick(method=JudgedByProjections()).fit(X, y).confidence_
    assert confidence.max() == 1
    assert len(np.unique(confidence)) > 50


def weights_given(**more: Any) -> list[float]:
    X, y, _ = noisy_digits(100)
    history = quick(method=Mentored(), validation_fraction=0).fit(X, y, **more).history_
    return [record["phases"][0]["weight"] for record in history]


def test_a_module_learns_from_verified_labels() -> None:
    true = noisy_digits(100)[2]
    all_wrong = weights_given(audited=dict.fromkeys(range(50)))
    with_true = weights_given(audited=dict(enumerate(true[:50])))
    assert all(low < high for low, high in zip(all_wrong, with_true, strict=True))
    assert max(all_wrong) < 0.4
    assert len(set(weights_given())) == 3  # of an untrained mentor, on losses that fall


def test_verified_labels_are_checked() -> None:
    X, y, _ = noisy_digits(60)
    with pytest.raises(InvalidInputError, match=r"'audited' .* left out for the method OneNetwork"):
        quick(method=OneNetwork()).fit(X, y, audited={0: 1})
    for wrong, message in (({0: 99}, "10 classes"), ({60: 1}, "59"), ({}, "at least one"), ([1], "mapping")):
        with pytest.raises(InvalidInputError, match=f"'audited' .*{message}"):
            quick(method=Mentored()).fit(X, y, audited=wrong)


def test_a_run_with_other_verified_labels_is_another_run(tmp_path: Path) -> None:
    X, y, _ = noisy_digits(60)
    quick(method=Mentored(), rounds=1, out=tmp_path / "run").fit(X, y, audited={0: 1})
    with pytest.raises(RunFolderError, match="other settings"):
        quick(method=Mentored(), rounds=1, out=tmp_path / "run").fit(X, y, audited={0: 2})


@dataclass(frozen=True)
class TwoKindsOfStrongViews(OneNetwork):
    def loss(self, step: Step) -> Tensor:
        for number in range(3):
            step.measure(f"view {number}", step.batch.strong(number).mean())
        return OneNetwork.loss(self, step)


def constant(value: float) -> Any:
    return lambda inputs, generator: torch.full_like(inputs, value)


def test_a_run_can_have_several_strong_views() -> None:
    X, y, _ = noisy_digits(60)
    X = X.reshape(60, -1).astype(np.float32)

    def views(strong: Any) -> list[float]:
        run = quick(method=TwoKindsOfStrongViews(), rounds=1, weak="none", strong=strong).fit(X, y)
        return [run.history_[0]["phases"][0][f"view {number}"] for number in range(3)]

    first, second, third = views((constant(1.0), constant(2.0)))
    assert first < second == third  # the last one given stands for all others
    assert views([constant(1.0)]) == pytest.approx([first] * 3)
    assert views(constant(2.0)) == pytest.approx([second] * 3)
    with pytest.raises(InvalidInputError, match=r"'strong' .* at least one view"):
        views(())
