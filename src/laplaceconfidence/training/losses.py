"""Terms of training losses. All take logits or probabilities of shape (batch, classes)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

_SMALLEST = 1e-12  # below this a probability is taken as this, so that its logarithm stays finite


def soft_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean over the batch of -sum_c target_c log p_c."""
    return -(targets * functional.log_softmax(logits, dim=1)).sum(dim=1).mean()


def negative_entropy(logits: Tensor) -> Tensor:
    """Mean over the batch of sum_c p_c log p_c: the penalty on overconfident predictions in the warm-up."""
    log_p = functional.log_softmax(logits, dim=1)
    return (log_p.exp() * log_p).sum(dim=1).mean()


def uniform_prior_divergence(mean_prediction: Tensor) -> Tensor:
    """sum_c pi_c log(pi_c / mean_c) with pi_c = 1/C: large when few classes are predicted in a batch."""
    prior = 1.0 / mean_prediction.shape[-1]
    return (prior * (prior / mean_prediction.clamp_min(_SMALLEST)).log()).sum()


def sharpen(probabilities: Tensor, power: float) -> Tensor:
    """p^power, normalized: 1 leaves the distribution as it is, a higher power lowers its entropy.

    The paper writes the power as 1/T and means a distribution of lower entropy.
    """
    if power == 1:
        return probabilities
    # By logarithms, so that high powers of small probabilities do not all become 0.
    return (probabilities.clamp_min(_SMALLEST).log() * power).softmax(dim=1)


def refurbish(labels: Tensor, confidence: Tensor, pseudo_labels: Tensor) -> Tensor:
    """w * given + (1 - w) * pseudo-label; where no label was given (-1) the pseudo-label alone."""
    weight = torch.where(labels >= 0, confidence, 0.0).unsqueeze(1)  # (batch, 1)
    given = functional.one_hot(labels.clamp_min(0), pseudo_labels.shape[1])
    return weight * given + (1 - weight) * pseudo_labels


def contrastive_losses(similarities: Tensor, positives: Tensor, allowed: Tensor) -> Tensor:
    """For each row, -mean over its positive columns of log p, where p is the softmax over allowed columns.

    Similarities are divided by their temperature before. ``positives`` and ``allowed`` are of the same shape
    (n, m), boolean. A row without a positive column that is allowed has the loss 0.
    """
    log_p = similarities.masked_fill(~allowed, torch.finfo(similarities.dtype).min / 2).log_softmax(dim=1)
    positives = positives & allowed
    total = log_p.masked_fill(~positives, 0).sum(dim=1)
    return -total / positives.sum(dim=1).clamp_min(1)
