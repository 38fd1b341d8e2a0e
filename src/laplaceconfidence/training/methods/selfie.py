"""SELFIE (Song et al., 2019): labels that predictions contradict with one voice are replaced."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import torch
from torch import Tensor
from torch.nn import functional

from laplaceconfidence.training.methods.interface import (
    Evidence,
    Method,
    Phase,
    Plan,
    Problem,
    Stage,
    State,
)
from laplaceconfidence.training.methods.noise_rate import (
    NOISE_RATE,
    estimated_noise_rate,
    plan_before_estimate,
)
from laplaceconfidence.training.methods.published import MethodFacts, PublishedSettings
from laplaceconfidence.training.methods.repeated_training import (
    RepeatedTraining,
    check_rounds_of_each,
    rounds_of_each,
)
from laplaceconfidence.training.methods.warm_up import WARM_UP
from laplaceconfidence.training.step import Step
from laplaceconfidence.validation import check_integer, check_real, must_be

PREDICTED, N_PREDICTED, CORRECTED = "predicted_labels", "n_predicted", "corrected_labels"
_NONE = -1  # no prediction yet, or not corrected
_FORGOTTEN = "share_left_out"


def _settings(data: str, noise: str, rate: float) -> PublishedSettings:
    training = {
        "rounds": 400,
        "batch_size": 128,
        "optimizer": "sgd",
        "learning_rate": 0.1,
        "momentum": 0.9,
        "weight_decay": 5e-4,
        "learning_rate_drops": (0.5, 0.75),
        "drop_factor": 0.2,
        "weak": "none",
    }
    own: dict[str, Any] = {"noise_rate": rate, "warmup": 25, "training_rounds": 100}
    note = "DenseNet-25-12 or VGG-19, with a dropout of 0.2"
    return PublishedSettings(data, noise, (rate,), "official code", own, training, note)


@dataclass(frozen=True, slots=True)
class SELFIE(Method):
    """SELFIE: trains on small losses, and on samples whose predictions agree, with the label they agree on.

    The last predictions of every sample are remembered. Where their entropy, relative to that of uniform
    predictions, is at most ``uncertainty``, the label becomes the most frequent prediction, and stays so.
    After a warm-up, each batch trains on these samples and on the share 1 - noise rate of smallest loss; the
    rest is left out. Then the network starts anew, several times, with the corrected labels and a noise rate
    of at most the share of samples that were not corrected. Losses and predictions are those of the step
    itself; the published code makes another pass for them.

    Parameters
    ----------
    noise_rate : float or None, default=None
        Share of wrong labels. ``None`` estimates it: the first warm-up trains on half of the labels, and the
        noise-aware audit of the features judges the other half. The history records the estimate as
        ``noise_rate``.
    uncertainty : float, default=0.05
        Largest relative entropy of predictions that agree. With 15 of them and up to 100 classes, 0.05 means
        that all are the same.
    history : int, default=15
        Predictions that are remembered; a label is not corrected before there are so many.
    warmup : int or None, default=None
        Rounds of each training that use all samples; ``None`` is a quarter of them, as published.
    restarts : int, default=3
        How often the network starts anew. The documentation of the published code states 2.
    training_rounds : int or None, default=None
        Rounds of each training but the last one; ``None`` divides all rounds evenly. The schedule of the
        learning rate is that of each training.

    References
    ----------
    Song, Kim and Lee, "SELFIE: Refurbishing Unclean Samples for Robust Deep Learning", ICML 2019.
    """

    noise_rate: float | None = None
    uncertainty: float = 0.05
    history: int = 15
    warmup: int | None = None
    restarts: int = 3
    training_rounds: int | None = None
    n_networks: ClassVar[int] = 1
    facts: ClassVar[MethodFacts] = MethodFacts(
        'Song et al., "SELFIE: Refurbishing Unclean Samples for Robust Deep Learning", ICML',
        year=2019,
        cost=1.0,
        needs=("noise rate",),
    )
    published: ClassVar[tuple[PublishedSettings, ...]] = tuple(
        _settings(data, noise, rate)
        for data in ("CIFAR-10", "CIFAR-100")
        for noise in ("pair", "symmetric-excluding")
        for rate in (0.1, 0.2, 0.3, 0.4)
    )

    def __post_init__(self) -> None:
        if self.noise_rate is not None:
            check_real(self.noise_rate, "noise_rate", at_least=0, below=1)
        check_real(self.uncertainty, "uncertainty", at_least=0, at_most=1)
        check_integer(self.history, "history", minimum=1)
        if self.warmup is not None:
            check_integer(self.warmup, "warmup", minimum=1)
        check_integer(self.restarts, "restarts", minimum=0)
        check_rounds_of_each(self.training_rounds, "training_rounds")

    def for_rounds(self, rounds: int) -> Self:
        each = rounds_of_each(self.restarts + 1, self.training_rounds, "training_rounds", rounds)
        warmup = max(1, each // 4) if self.warmup is None else self.warmup
        last = rounds - self.restarts * each
        if warmup >= last:
            advice = "Use more rounds, or fewer 'restarts'."
            raise must_be("warmup", f"below {last}, the rounds of the last training", warmup, advice)
        return replace(self, training_rounds=each, warmup=warmup)

    def stage(self, round: int) -> Stage:
        return self._trainings.stage(round)

    def phases(self, round: int) -> tuple[Phase, ...]:
        fresh = (0,) if self._trainings.begins_again(round) else ()
        if self._is_warm_up(round):
            return (Phase(WARM_UP, trains=(0,), fresh=fresh),)
        evidence = (0,) if self.noise_rate is None and round == self._first_selection else ()
        return (Phase("selection and correction", trains=(0,), evidence=evidence, fresh=fresh),)

    def initial_state(self, problem: Problem) -> State:
        n = problem.n_samples
        return {
            PREDICTED: torch.full((n, self.history), _NONE),
            N_PREDICTED: torch.zeros(n, dtype=torch.long),
            CORRECTED: torch.full((n,), _NONE),
        }

    def plan(self, phase: Phase, evidence: Evidence, state: State) -> Plan:
        if self._trainings.begins_again(evidence.round):
            state[PREDICTED].fill_(_NONE)
            state[N_PREDICTED].zero_()
            # Corrected samples are used in any case, so that no more than the others can be left out.
            state[_FORGOTTEN] = 1 - _corrected_share(state)
        measures = {"corrected_share": float(_corrected_share(state))}
        plan = Method.plan(self, phase, evidence, state)
        rate = self.noise_rate
        if rate is None:
            if evidence.round < self._first_selection:
                return replace(plan_before_estimate(evidence), measures=measures)
            rate = measures[NOISE_RATE] = estimated_noise_rate("noise_rate", evidence, state)
        measures[_FORGOTTEN] = min(rate, float(state.get(_FORGOTTEN, 1.0)))
        return replace(plan, measures=measures)

    def losses(self, step: Step) -> Iterator[Tensor]:
        loss = self.loss(step)
        if step.notes["n_selected"] > 0:
            yield loss

    def loss(self, step: Step) -> Tensor:
        """The mean loss over the selected samples of the whole batch, 0 if there are none."""
        logits, labels, index = step.trained(step.batch.weak()), step.batch.labels, step.batch.index
        predicted = with_prediction(
            step.state[PREDICTED][index], step.state[N_PREDICTED][index], logits.detach().argmax(dim=1)
        )
        agreed = agreed_labels(predicted, self.uncertainty, step.problem.n_classes)
        corrected = torch.where(agreed == _NONE, step.state[CORRECTED][index], agreed)
        if step.phase.name == WARM_UP:
            corrected, selected = step.state[CORRECTED][index], torch.ones_like(labels, dtype=torch.float32)
        else:
            losses = functional.cross_entropy(logits.detach(), labels, reduction="none")
            small = _small_losses(step, losses, 1 - step.plan.measures[_FORGOTTEN])
            selected = (small | (corrected != _NONE)).float()
        n_selected = step.gather_rows(selected).sum()
        step.notes |= {"predicted": predicted, "corrected": corrected, "n_selected": n_selected}
        step.measure("selected_share", step.gather_rows(selected).mean())
        targets = torch.where(corrected == _NONE, labels, corrected)
        share = step.gather_rows(selected).mean().clamp_min(torch.finfo(torch.float32).tiny)
        return (functional.cross_entropy(logits, targets, reduction="none") * selected / share).mean()

    def after_step(self, step: Step) -> None:
        index = step.batch.index
        step.write_rows(PREDICTED, index, step.notes["predicted"])
        step.write_rows(N_PREDICTED, index, step.state[N_PREDICTED][index] + 1)
        step.write_rows(CORRECTED, index, step.notes["corrected"])

    def _is_warm_up(self, round: int) -> bool:
        assert self.warmup is not None
        return round - self._trainings.first_round(round) < self.warmup

    @property
    def _first_selection(self) -> int:
        """The first round that selects samples."""
        assert self.warmup is not None
        trainings = self._trainings
        if self.warmup < trainings.rounds or trainings.number == 1:
            return self.warmup
        return trainings.rounds * (trainings.number - 1) + self.warmup

    @property
    def _trainings(self) -> RepeatedTraining:
        return RepeatedTraining.of(self.restarts + 1, self.training_rounds)


def with_prediction(predicted: Tensor, n_predicted: Tensor, newest: Tensor) -> Tensor:
    """The last predictions of some samples with the newest one in place of the oldest.

    Parameters
    ----------
    predicted : Tensor of shape (b, q)
        Predictions so far, -1 where there were fewer than q.
    n_predicted : Tensor of shape (b,)
        How many there have been.
    newest : Tensor of shape (b,)
        The newest one.

    Returns
    -------
    Tensor of shape (b, q)
    """
    position = (n_predicted % predicted.shape[1]).unsqueeze(1)
    return predicted.scatter(1, position, newest.unsqueeze(1))


def agreed_labels(predicted: Tensor, uncertainty: float, n_classes: int) -> Tensor:
    """The most frequent prediction of samples whose predictions agree, -1 for the others.

    Parameters
    ----------
    predicted : Tensor of shape (b, q)
        The last predictions; samples with a -1 among them have not enough.
    uncertainty : float
        Largest entropy of predictions that agree, as a share of that of uniform ones.
    n_classes : int
        Number of classes.

    Returns
    -------
    Tensor of shape (b,)
    """
    complete = (predicted != _NONE).all(dim=1)
    shares = functional.one_hot(predicted.clamp_min(0), n_classes).float().mean(dim=1)
    entropy = torch.special.entr(shares).sum(dim=1) / math.log(n_classes)
    return torch.where(complete & (entropy <= uncertainty), shares.argmax(dim=1), _NONE)


def _small_losses(step: Step, losses: Tensor, share: float) -> Tensor:
    """(b,) whether each of this process's samples is among the smallest losses of the whole batch."""
    of_all = step.gather_rows(losses)
    small = torch.zeros(len(of_all), dtype=torch.bool, device=of_all.device)
    small[of_all.argsort(stable=True)[: int(share * len(of_all))]] = True
    return step.own_rows(small)


def _corrected_share(state: State) -> Tensor:
    return (state[CORRECTED] != _NONE).float().mean()
