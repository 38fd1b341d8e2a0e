"""MentorNet (Jiang et al., 2018): a mentor weights the samples that the network is trained on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.training.methods.interface import Evidence, Method, Phase, Plan, Problem, State
from laplaceconfidence.training.methods.published import MethodFacts, PublishedSettings
from laplaceconfidence.training.step import Step
from laplaceconfidence.validation import check_choice, check_integer, check_real, must_be

PREDEFINED, LEARNED = "predefined", "learned"
MENTOR = "mentor"
LOSS_THRESHOLD = "loss_threshold"  # in the state: the moving average of the percentile

_FIRST_PART = 0.17  # of the run, with another share of weights that are set to 0
_SOFT_FROM = 0.9  # share of the run after which the predefined weights fall linearly
_SOFT_WIDTH = 1.0  # gamma of the paper
_N_EPOCHS = 100  # that the mentor tells apart: percent of the run
_MENTOR_RATE = 0.01

_TRAINING: dict[str, Any] = {
    "rounds": 100,
    "batch_size": 128,
    "optimizer": "sgd",
    "learning_rate": 0.1,
    "momentum": 0.9,
    "weight_decay": 2e-4,
    "learning_rate_drops": (50, 64, 77),
}
_PERCENTILES = {PREDEFINED: {0.2: 0.75, 0.4: 0.75, 0.8: 0.5}, LEARNED: {0.2: 0.8, 0.4: 0.6, 0.8: 0.5}}
_NOTE = (
    "ResNet-101, 39,000 steps; a misspelled option in the authors' scripts probably leaves 0.7 for "
    "'percentile'"
)


@dataclass(frozen=True, slots=True)
class MentorNet(Method):
    """MentorNet: every sample of a batch gets a weight from its loss, by a curriculum or a learned mentor.

    The losses of a batch are compared with a moving average of one of their percentiles. In the predefined
    curriculum (MentorNet PD), all samples count at first, then those below that threshold, and near the end
    also some above it, with smaller weights. A learned mentor (MentorNet DD) is a small network that predicts
    from loss, threshold, label and progress whether a label is right. It needs labels that a person has
    verified (``fit(..., audited=...)``) and is fitted to them before every round; the published one was
    fitted once, in another run. Some weights are set to 0 at random.

    Parameters
    ----------
    variant : {"predefined", "learned"}, default="predefined"
        Where the weights come from.
    percentile : float, default=0.7
        Which percentile of the losses of a batch is averaged, in [0, 1]: about the share of right labels.
    decay : float, default=0.5
        Share of the moving average that stays in every step.
    burn_in : float, default=0.18
        Share of the run in which all samples have the weight 1.
    first_dropout : float, default=0.5
        Share of every batch whose weights are set to 0 in the first 17% of the run.
    dropout : float, default=0.05
        The same for the rest of the run.
    mentor_steps : int, default=100
        Steps of Adam that a learned mentor makes before every round.

    References
    ----------
    Jiang et al., "MentorNet: Learning Data-Driven Curriculum for Very Deep Neural Networks on Corrupted
    Labels", ICML 2018.
    """

    variant: str = PREDEFINED
    percentile: float = 0.7
    decay: float = 0.5
    burn_in: float = 0.18
    first_dropout: float = 0.5
    dropout: float = 0.05
    mentor_steps: int = 100
    n_networks: ClassVar[int] = 1
    facts: ClassVar[MethodFacts] = MethodFacts(
        'Jiang et al., "MentorNet: Learning Data-Driven Curriculum for Very Deep Neural Networks on '
        'Corrupted Labels", ICML',
        year=2018,
        cost=1.0,  # a learned mentor needs another forward pass
        needs=("verified labels for a learned mentor",),
    )
    published: ClassVar[tuple[PublishedSettings, ...]] = tuple(
        PublishedSettings(
            data,
            "symmetric",
            (rate,),
            "official code",
            {"variant": variant, "percentile": percentile},
            _TRAINING,
            _NOTE,
        )
        for data in ("CIFAR-10", "CIFAR-100")
        for variant, by_rate in _PERCENTILES.items()
        for rate, percentile in by_rate.items()
    )

    def __post_init__(self) -> None:
        check_choice(self.variant, "variant", (PREDEFINED, LEARNED))
        check_real(self.percentile, "percentile", at_least=0, at_most=1)
        check_real(self.decay, "decay", at_least=0, below=1)
        check_real(self.burn_in, "burn_in", at_least=0, at_most=1)
        check_real(self.first_dropout, "first_dropout", at_least=0, below=1)
        check_real(self.dropout, "dropout", at_least=0, below=1)
        check_integer(self.mentor_steps, "mentor_steps", minimum=1)

    @property
    def takes_audited(self) -> bool:
        return self.variant == LEARNED

    def phases(self, round: int) -> tuple[Phase, ...]:
        observed = (0,) if self.variant == LEARNED else ()
        return (Phase("training", trains=(0,), evidence=observed),)

    def modules(self, n_classes: int) -> dict[str, nn.Module]:
        return {MENTOR: Mentor(n_classes)} if self.variant == LEARNED else {}

    def initial_state(self, problem: Problem) -> State:
        if self.variant == LEARNED:
            audited = problem.audited
            if audited is None or not bool(((audited != MISSING) & (problem.labels != MISSING)).any()):
                rule = f"given for at least one trained sample with a label where 'variant' is {LEARNED!r}"
                advice = f"Pass fit(..., audited={{row: label}}), or use variant={PREDEFINED!r}."
                raise must_be("audited", rule, None, advice)
        return {LOSS_THRESHOLD: torch.zeros(())}

    def plan(self, phase: Phase, evidence: Evidence, state: State) -> Plan:
        if self.variant == LEARNED:
            self._fit_mentor(evidence)
        return Method.plan(self, phase, evidence, state)

    def loss(self, step: Step) -> Tensor:
        losses = functional.cross_entropy(
            step.trained(step.batch.weak()), step.batch.labels, reduction="none"
        )
        of_all = step.gather_rows(losses).float()
        threshold = self.decay * step.state[LOSS_THRESHOLD] + (1 - self.decay) * of_all.quantile(
            self.percentile
        )
        step.notes[LOSS_THRESHOLD] = threshold
        share = step.progress / step.problem.rounds
        weights = self._weights(step, losses.detach().float(), threshold, share)
        weights = weights * step.own_rows(self._drawn(step, len(of_all), share))
        step.measure("mean_weight", weights.mean() * step.batch.weight)
        return (losses * weights).mean()

    def after_step(self, step: Step) -> None:
        step.state[LOSS_THRESHOLD] = step.notes[LOSS_THRESHOLD]

    def predefined_weights(self, losses: Tensor, threshold: Tensor, share: float) -> Tensor:
        """The weights of the predefined curriculum.

        Parameters
        ----------
        losses : Tensor of shape (b,)
            Losses of the samples.
        threshold : Tensor
            The moving average of the percentile of the losses, a scalar.
        share : float
            Share of the run that is done.

        Returns
        -------
        Tensor of shape (b,)
        """
        if share <= self.burn_in:
            return torch.ones_like(losses)
        if share < _SOFT_FROM:
            return (losses <= threshold).to(losses.dtype)
        return (1 - (losses - threshold) / _SOFT_WIDTH).clamp(0, 1)

    def _weights(self, step: Step, losses: Tensor, threshold: Tensor, share: float) -> Tensor:
        if self.variant == PREDEFINED or share <= self.burn_in:
            return self.predefined_weights(losses, threshold, share)
        # In full precision, in which it was fitted; an LSTM has no other on many processors.
        with torch.no_grad(), torch.autocast(losses.device.type, enabled=False):
            logits: Tensor = step.modules[MENTOR](losses, losses - threshold, step.batch.labels, share)
        return logits.sigmoid()

    def _drawn(self, step: Step, n_samples: int, share: float) -> Tensor:
        """1 for the samples of the whole batch whose weights stay, 0 for those drawn at random."""
        rate = self.first_dropout if share <= _FIRST_PART else self.dropout
        n_kept = max(1, int(n_samples * (1 - rate)))
        drawn = torch.zeros(n_samples)
        drawn[torch.randperm(n_samples, generator=step.generator)[:n_kept]] = 1
        return drawn.to(step.problem.labels.device)

    def _fit_mentor(self, evidence: Evidence) -> None:
        """Fit the mentor to whether the verified labels are the given ones."""
        labels, audited = evidence.problem.labels, evidence.problem.audited
        assert audited is not None  # as checked before the first round
        losses = torch.from_numpy(evidence.networks[0].losses(evidence.labels)).float().to(labels.device)
        threshold = losses[labels != MISSING].quantile(self.percentile)
        known = (audited != MISSING) & (labels != MISSING)
        right = (audited == labels)[known].float()
        inputs = losses[known], (losses - threshold)[known], labels[known]
        share, mentor = evidence.round / evidence.problem.rounds, evidence.modules[MENTOR]
        optimizer = torch.optim.Adam(mentor.parameters(), lr=_MENTOR_RATE)
        for _ in range(self.mentor_steps):
            optimizer.zero_grad()
            loss = functional.binary_cross_entropy_with_logits(mentor(*inputs, share), right)
            torch.autograd.backward(loss)
            optimizer.step()


class Mentor(nn.Module):
    """The published mentor: a bidirectional LSTM on losses, embeddings of label and progress, two layers."""

    def __init__(self, n_classes: int) -> None:
        super().__init__()
        self.losses = nn.LSTM(2, 1, bidirectional=True, batch_first=True)
        self.label = nn.Embedding(n_classes, 2)
        self.epoch = nn.Embedding(_N_EPOCHS, 5)
        self.epoch.weight.requires_grad_(False)
        self.layers = nn.Sequential(nn.Linear(2 + 2 + 5, 20), nn.Tanh(), nn.Linear(20, 1))

    def forward(self, losses: Tensor, above_threshold: Tensor, labels: Tensor, share: float) -> Tensor:
        """Logits (b,) that labels are right.

        ``losses``, their distances to the threshold, and ``labels`` are of shape (b,); ``share`` is the share
        of the run that is done.
        """
        seen = self.losses(torch.stack([losses, above_threshold], dim=1).unsqueeze(1))[0].squeeze(1)
        percent = torch.full_like(labels, min(int(share * _N_EPOCHS), _N_EPOCHS - 1))
        logits: Tensor = self.layers(torch.cat([self.label(labels), self.epoch(percent), seen], dim=1))
        return logits.squeeze(1)
