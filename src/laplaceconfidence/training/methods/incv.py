"""INCV, also called Iterative-CV (Chen et al., 2019): labels that cross-validation confirms are selected."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from laplaceconfidence.arrays import IntArray
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.training.methods.co_teaching import exchanged_loss
from laplaceconfidence.training.methods.interface import (
    Evidence,
    Method,
    Phase,
    Plan,
    Problem,
    Stage,
    State,
)
from laplaceconfidence.training.methods.noise_rate import NOISE_RATE
from laplaceconfidence.training.methods.published import MethodFacts, PublishedSettings
from laplaceconfidence.training.seeds import derived_seed
from laplaceconfidence.training.step import Step
from laplaceconfidence.validation import check_choice, check_integer, must_be

STATUS, NEXT_STATUS = "status", "next_status"
CANDIDATE, SELECTED, DROPPED = 0, 1, 2
_SELECTION, _MAIN = "selection", "co-teaching"
_KEPT = "kept_share"
_LARGEST_RATIO = 2.0  # dropped samples for each selected one
_MANY_WRONG = 0.6  # a noise rate above which candidates join later
# Of a training that selects: from this share of its rounds on, this share of the learning rate.
_LEARNING_RATES = ((0.8, 0.1), (0.6, 0.25), (0.4, 0.5), (0.0, 1.0))


def _settings(noise: str, rates: tuple[float, ...], own: dict[str, Any]) -> PublishedSettings:
    training = {
        "rounds": 600,
        "batch_size": 128,
        "optimizer": "adam",
        "learning_rate": 0.001,
        "momentum": 0.9,
        "weight_decay": 0.0,
        "learning_rate_drops": (80, 120, 160),
    }
    note = "ResNet-32; the learning rate of the main training is halved in its round 180, too"
    own = {"selection_rounds": 50} | own
    return PublishedSettings("CIFAR-10", noise, rates, "official code", own, training, note)


@dataclass(frozen=True, slots=True)
class INCV(Method):
    """INCV: cross-validation selects the labels that predictions confirm; Co-teaching trains on them.

    Several times, the candidates, at first all samples, are halved. A network is trained on the selected
    samples and one half, and selects those of the other half whose label it predicts; then the halves change
    places. The share that the first one confirms gives the noise rate, and with it how many of the largest
    losses are dropped. At last two new networks are trained by Co-teaching on the selected samples. Later,
    remaining candidates join them, at most as many; the number of samples that a batch keeps stays that of
    the selected labels which should be right. In every iteration, the network that selects is the best one by
    held-out labels.

    Parameters
    ----------
    iterations : int, default=4
        How often the candidates are halved.
    selection_rounds : int or None, default=None
        Rounds of each of the two trainings per iteration; ``None`` is a twelfth of all rounds, as published
        (8 times 50 of 600).
    noise : {"symmetric", "asymmetric"}, default="symmetric"
        Whether wrong labels are of all other classes or of one of them. It decides how the noise rate is
        computed, and with "asymmetric" nothing is dropped and candidates join later.
    candidates_from : int or None, default=None
        Rounds of Co-teaching after which the remaining candidates join; ``None`` is a fifth of them, or two
        fifths with asymmetric noise or a noise rate above 0.6, as published.
    ramp : int, default=10
        Rounds of Co-teaching over which the share that is left out rises.

    References
    ----------
    Chen, Liao, Chen and Zhang, "Understanding and Utilizing Deep Neural Networks Trained with Noisy Labels",
    ICML 2019.
    """

    iterations: int = 4
    selection_rounds: int | None = None
    noise: str = "symmetric"
    candidates_from: int | None = None
    ramp: int = 10
    n_networks: ClassVar[int] = 2
    facts: ClassVar[MethodFacts] = MethodFacts(
        'Chen et al., "Understanding and Utilizing Deep Neural Networks Trained with Noisy Labels", ICML',
        year=2019,
        cost=2.0,
        needs=("kind of noise",),
        title="INCV",
    )
    published: ClassVar[tuple[PublishedSettings, ...]] = (
        _settings("symmetric-excluding", (0.2, 0.5, 0.8), {}),
        _settings("asymmetric", (0.4,), {"noise": "asymmetric"}),
    )

    def __post_init__(self) -> None:
        check_integer(self.iterations, "iterations", minimum=1)
        if self.selection_rounds is not None:
            check_integer(self.selection_rounds, "selection_rounds", minimum=1)
        check_choice(self.noise, "noise", ("symmetric", "asymmetric"))
        if self.candidates_from is not None:
            check_integer(self.candidates_from, "candidates_from", minimum=0)
        check_integer(self.ramp, "ramp", minimum=1)

    def for_rounds(self, rounds: int) -> Self:
        each = max(1, rounds // 12) if self.selection_rounds is None else self.selection_rounds
        needed = 2 * self.iterations * each
        if needed >= rounds:
            rule = f"above {needed}: {2 * self.iterations} x {each} rounds select samples"
            advice = "Use more rounds, or smaller 'iterations' or 'selection_rounds'."
            raise must_be("rounds", rule, rounds, advice)
        return replace(self, selection_rounds=each)

    def stage(self, round: int) -> Stage:
        if round >= self._first_main:
            return Stage(self._first_main)
        each = self._rounds_of_selection
        return Stage(round - round % each, each, predictors=(0,), counts=False)

    def phases(self, round: int) -> tuple[Phase, ...]:
        each, main = self._rounds_of_selection, self._first_main
        if round == main:
            return (Phase(_MAIN, trains=(0, 1), evidence=(0,), best_evidence=True, fresh=(0, 1)),)
        if round > main:
            return (Phase(_MAIN, trains=(0, 1)),)
        done = round % each / each
        rate = next(rate for start, rate in _LEARNING_RATES if done >= start)
        if round == 0 or round % each:
            return (Phase(_SELECTION, trains=(0,), relative_learning_rate=rate),)
        anew = Phase(
            _SELECTION,
            trains=(0,),
            evidence=(0,),
            best_evidence=True,
            fresh=(0,),
            relative_learning_rate=rate,
        )
        return (anew,)

    def initial_state(self, problem: Problem) -> State:
        status = torch.where(problem.labels == MISSING, DROPPED, CANDIDATE)
        return {STATUS: status, NEXT_STATUS: status.clone()}

    def plan(self, phase: Phase, evidence: Evidence, state: State) -> Plan:
        if phase.evidence:
            self._select(evidence, state)
        measures = {NOISE_RATE: float(state[NOISE_RATE])} if NOISE_RATE in state else {}
        status = state[STATUS].cpu().numpy()
        selected = np.flatnonzero(status == SELECTED)
        measures["selected_share"] = len(selected) / int((evidence.labels != MISSING).sum())
        if phase.name == _SELECTION:
            half = self._halves(evidence, status)[evidence.round // self._rounds_of_selection % 2]
            return replace(Plan.over(np.union1d(selected, half)), measures=measures)
        return self._main_plan(evidence, status, measures)

    def loss(self, step: Step) -> Tensor:
        view, labels = step.batch.weak(), step.batch.labels
        if step.phase.name == _SELECTION:
            return functional.cross_entropy(step.trained(view), labels)
        losses = [functional.cross_entropy(net(view), labels, reduction="none") for net in step.networks]
        return exchanged_loss(step, losses, step.plan.measures[_KEPT])

    def _select(self, evidence: Evidence, state: State) -> None:
        """Judge the half that the last training did not see."""
        training = (evidence.round - 1) // self._rounds_of_selection
        status = state[STATUS].cpu().numpy()
        judged = self._halves(evidence, status, training)[1 - training % 2]
        seen = evidence.networks[0]
        confirmed = seen.probabilities[judged].argmax(axis=1) == evidence.labels[judged]
        if NOISE_RATE not in state:
            agreement = float(confirmed.mean()) if len(judged) else 0.0
            rate = noise_rate_by_agreement(agreement, self._other_classes(evidence.problem))
            state[NOISE_RATE] = torch.tensor(rate, dtype=torch.float64)
        state[NEXT_STATUS][judged[confirmed]] = SELECTED
        if self.noise == "symmetric":
            rate = float(state[NOISE_RATE])
            ratio = min(_LARGEST_RATIO, rate / (1 - rate))
            others = judged[~confirmed]
            order = others[np.argsort(-seen.losses(evidence.labels)[others], kind="stable")]
            state[NEXT_STATUS][order[: int(ratio * confirmed.sum())]] = DROPPED
        if training % 2:
            state[STATUS] = state[NEXT_STATUS].clone()

    def _main_plan(self, evidence: Evidence, status: IntArray, measures: dict[str, float]) -> Plan:
        """Selected samples, and later as many of the remaining candidates at most."""
        rate, done = measures[NOISE_RATE], evidence.round - self._first_main
        labeled = np.flatnonzero(evidence.labels != MISSING)
        selected = np.flatnonzero(status == SELECTED)
        if len(selected) == 0:  # nothing was confirmed: all that is left is to train on everything
            selected, status = labeled, np.full_like(status, SELECTED)
        joining = self._joining(evidence, np.flatnonzero(status == CANDIDATE), rate, done)[: len(selected)]
        rows = np.concatenate([selected, joining])
        wrong = selected_noise_rate(rate, self._other_classes(evidence.problem))
        kept = 1 - wrong * min(done / self.ramp, 1)
        measures |= {_KEPT: kept * len(selected) / len(rows), "used_share": len(rows) / len(labeled)}
        return replace(Plan.over(np.sort(rows)), measures=measures)

    def _joining(self, evidence: Evidence, candidates: IntArray, rate: float, done: int) -> IntArray:
        """The candidates in random order, if they have joined."""
        start: float | None = self.candidates_from
        if start is None:
            is_late = self.noise == "asymmetric" or rate > _MANY_WRONG
            start = (evidence.problem.rounds - self._first_main) * (0.4 if is_late else 0.2)
        order = np.random.default_rng(evidence.seed).permutation(candidates)
        return order if done >= start else order[:0]

    def _halves(
        self, evidence: Evidence, status: IntArray, training: int | None = None
    ) -> tuple[IntArray, IntArray]:
        """The two halves of the candidates in the iteration of a training, by default the current one."""
        if training is None:
            training = evidence.round // self._rounds_of_selection
        seed = derived_seed(evidence.problem.seed, "halves of candidates", training // 2)
        order = np.random.default_rng(seed).permutation(np.flatnonzero(status == CANDIDATE))
        middle = (len(order) + 1) // 2
        return order[:middle], order[middle:]

    def _other_classes(self, problem: Problem) -> int:
        """How many classes wrong labels of a class are spread over."""
        return problem.n_classes - 1 if self.noise == "symmetric" else 1

    @property
    def _rounds_of_selection(self) -> int:
        if self.selection_rounds is None:
            raise ValueError("The method does not know the rounds of the run yet: call 'for_rounds' first.")
        return self.selection_rounds

    @property
    def _first_main(self) -> int:
        return 2 * self.iterations * self._rounds_of_selection


def noise_rate_by_agreement(agreement: float, other_classes: int) -> float:
    """The noise rate e at which (1 - e)^2 + e^2 / other_classes is the share of confirmed labels.

    A network that has learned the noise predicts a label as noisy as the given one, and independently of it:
    both are right, or both are wrong in the same way.

    Parameters
    ----------
    agreement : float
        Share of labels that predictions of samples which were not trained on confirm.
    other_classes : int
        Classes that wrong labels are spread over evenly.

    Returns
    -------
    float
        The smaller solution; where there is none, the rate of labels that say nothing.
    """
    a = 1 + 1 / other_classes
    return (1 - math.sqrt(max(0.0, 1 - a * (1 - agreement)))) / a


def selected_noise_rate(noise_rate: float, other_classes: int) -> float:
    """The share of wrong labels among confirmed ones: e^2 / (e^2 + other_classes * (1 - e)^2)."""
    wrong = noise_rate**2
    return wrong / (wrong + other_classes * (1 - noise_rate) ** 2)
