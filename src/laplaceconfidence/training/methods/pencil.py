"""PENCIL, also called P-correction (Yi and Wu, 2019): labels are learned together with the network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from laplaceconfidence.training.methods.interface import Method, Phase, Problem, State
from laplaceconfidence.training.methods.published import MethodFacts, PublishedSettings, Source
from laplaceconfidence.training.methods.warm_up import WARM_UP, warm_up_loss
from laplaceconfidence.training.step import Step
from laplaceconfidence.validation import check_integer, check_real

LABEL_LOGITS = "label_logits"
_FIRST_LOGIT = 10.0  # of the given label; the others start at 0
_CORRECTION, _FINAL = "label correction", "final training"


def _settings(
    noise: str, rates: tuple[float, ...], source: Source, learning_rate: float, **method: Any
) -> PublishedSettings:
    training = {
        "rounds": 320,
        "batch_size": 128,
        "optimizer": "sgd",
        "learning_rate": learning_rate,
        "momentum": 0.9,
        "weight_decay": 1e-4,
        "learning_rate_drops": (),
    }
    return PublishedSettings("CIFAR-10", noise, rates, source, method, training, "PreAct ResNet-32")


@dataclass(frozen=True, slots=True)
class Pencil(Method):
    """PENCIL: every sample has label logits that gradient descent changes along with the network.

    First the network is trained with cross-entropy. Then its predictions p and the label distributions d,
    which start at the given labels, are fitted to each other: (1/C) KL(p, d) + compatibility * cross-entropy
    of the given label under d + (entropy_weight / C) * entropy of p. At last d is fixed and the network
    trained on it. The label step is computed in closed form and divided by the batch size of the run, so that
    neither precision nor processes nor a short batch change it. The published code computes the compatibility
    from a softmax of a softmax and stops training in the last stage by an integer division; that is not
    followed.

    Parameters
    ----------
    warmup : int, default=70
        Rounds of cross-entropy on the given labels that come first.
    correction : int, default=130
        Rounds after the warm-up in which labels are learned.
    final : int, default=120
        Rounds after that in which labels are fixed; their learning rate is divided by ten after each third.
    final_learning_rate : float or None, default=0.2
        Learning rate at the beginning of the last stage; ``None`` keeps the schedule of the run.
    label_rate : float, default=600
        Learning rate of the label logits, lambda in the paper.
    compatibility : float, default=0.4
        Weight of the given labels, alpha. The paper states 0.1; 0.4 is in the published code.
    entropy_weight : float, default=0.1
        Weight of the entropy of the predictions, beta. The paper states 0.4; 0.1 is in the published code.

    References
    ----------
    Yi and Wu, "Probabilistic End-to-end Noise Correction for Learning with Noisy Labels", CVPR 2019.
    """

    warmup: int = 70
    correction: int = 130
    final: int = 120
    final_learning_rate: float | None = 0.2
    label_rate: float = 600.0
    compatibility: float = 0.4
    entropy_weight: float = 0.1
    n_networks: ClassVar[int] = 1
    facts: ClassVar[MethodFacts] = MethodFacts(
        'Yi and Wu, "Probabilistic End-to-end Noise Correction for Learning with Noisy Labels", CVPR',
        year=2019,
        cost=1.0,
        title="PENCIL",
    )
    published: ClassVar[tuple[PublishedSettings, ...]] = (
        _settings("asymmetric", (), "official code", 0.06, label_rate=600.0),
        *(
            _settings(
                noise, rates, "unverified", rate, label_rate=step, compatibility=0.1, entropy_weight=0.4
            )
            for noise, rates, rate, step in (
                ("symmetric", (0.1,), 0.02, 200.0),
                ("symmetric", (0.3,), 0.03, 300.0),
                ("symmetric", (0.5,), 0.04, 400.0),
                ("symmetric", (0.7,), 0.08, 800.0),
                ("symmetric", (0.9,), 0.12, 1200.0),
                ("asymmetric", (0.1, 0.2, 0.3), 0.06, 600.0),
                ("asymmetric", (0.4, 0.5), 0.03, 4000.0),
            )
        ),
    )

    def __post_init__(self) -> None:
        check_integer(self.warmup, "warmup", minimum=0)
        check_integer(self.correction, "correction", minimum=0)
        check_integer(self.final, "final", minimum=1)
        if self.final_learning_rate is not None:
            check_real(self.final_learning_rate, "final_learning_rate", above=0)
        check_real(self.label_rate, "label_rate", at_least=0)
        check_real(self.compatibility, "compatibility", at_least=0)
        check_real(self.entropy_weight, "entropy_weight", at_least=0)

    def phases(self, round: int) -> tuple[Phase, ...]:
        if round < self.warmup:
            return (Phase(WARM_UP, trains=(0,)),)
        done = round - self.warmup - self.correction
        if done < 0:
            return (Phase(_CORRECTION, trains=(0,)),)
        rate = self.final_learning_rate
        if rate is not None:
            rate *= 0.1 ** min(3 * done // self.final, 2)
        return (Phase(_FINAL, trains=(0,), learning_rate=rate),)

    def initial_state(self, problem: Problem) -> State:
        given = functional.one_hot(problem.labels.clamp_min(0), problem.n_classes).float()
        return {LABEL_LOGITS: _FIRST_LOGIT * given * (problem.labels >= 0).unsqueeze(1)}

    def loss(self, step: Step) -> Tensor:
        if step.phase.name == WARM_UP:
            return warm_up_loss(step, entropy_penalty=False)
        n_classes = step.problem.n_classes
        log_p = step.trained(step.batch.weak()).log_softmax(dim=1)
        p = log_p.exp()
        log_labels = step.state[LABEL_LOGITS][step.batch.index].log_softmax(dim=1)
        step.show_targets(log_labels)
        fit = (p * (log_p - log_labels)).sum(dim=1).mean() / n_classes
        if step.phase.name == _FINAL:
            return fit
        step.notes["probabilities"] = p.detach()
        kept = functional.nll_loss(log_labels, step.batch.labels)
        entropy = -(p * log_p).sum(dim=1).mean() / n_classes
        return fit + self.compatibility * kept + self.entropy_weight * entropy

    def after_step(self, step: Step) -> None:
        if step.phase.name != _CORRECTION:
            return
        logits = step.state[LABEL_LOGITS][step.batch.index]
        slope = self.label_gradient(logits, step.notes["probabilities"], step.batch.labels)
        moved = logits - self.label_rate / step.problem.batch_size * slope
        step.write_rows(LABEL_LOGITS, step.batch.index, moved)

    def label_gradient(self, label_logits: Tensor, probabilities: Tensor, labels: Tensor) -> Tensor:
        """The gradient of each sample's loss with respect to its label logits.

        Parameters
        ----------
        label_logits : Tensor of shape (b, C)
            Label logits.
        probabilities : Tensor of shape (b, C)
            Predictions of the network.
        labels : Tensor of shape (b,)
            Given labels.

        Returns
        -------
        Tensor of shape (b, C)
        """
        n_classes = label_logits.shape[1]
        learned = label_logits.softmax(dim=1)
        given = functional.one_hot(labels, n_classes)
        with torch.no_grad():
            return (learned - probabilities) / n_classes + self.compatibility * (learned - given)
