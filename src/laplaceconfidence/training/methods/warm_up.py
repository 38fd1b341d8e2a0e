"""The warm-up that several methods begin with: cross-entropy on the given labels, network by network."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from laplaceconfidence.training.losses import negative_entropy
from laplaceconfidence.training.methods.interface import Phase
from laplaceconfidence.training.step import Step

WARM_UP = "warm-up"
"""Name of the phases; the default of ``Method.plan`` gives them all samples that have a label."""


def warm_up_phases(n_networks: int) -> tuple[Phase, ...]:
    """One phase per network, each one pass over the data.

    Parameters
    ----------
    n_networks : int
        Number of networks.

    Returns
    -------
    tuple of Phase
    """
    return tuple(Phase(WARM_UP, trains=(network,)) for network in range(n_networks))


def warm_up_loss(
    step: Step, *, entropy_penalty: bool, label_smoothing: float = 0.0, strong: bool = False
) -> Tensor:
    """Cross-entropy of the given labels.

    Parameters
    ----------
    step : Step
        A step of a warm-up phase.
    entropy_penalty : bool
        Whether to penalize overconfident predictions.
    label_smoothing : float, default=0
        Share of every target that is spread evenly over all classes.
    strong : bool, default=False
        Whether the networks see strong views; by default weak ones.

    Returns
    -------
    Tensor
        A scalar.
    """
    logits = step.trained(step.batch.strong() if strong else step.batch.weak())
    loss = functional.cross_entropy(logits, step.batch.labels, label_smoothing=label_smoothing)
    return loss + negative_entropy(logits) if entropy_penalty else loss
