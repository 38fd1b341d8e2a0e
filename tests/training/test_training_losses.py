"""Each term of the losses against the formula written out with loops."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from laplaceconfidence.training.losses import (
    negative_entropy,
    refurbish,
    sharpen,
    soft_cross_entropy,
    uniform_prior_divergence,
)


def random_case(seed: int, n: int = 6, n_classes: int = 4) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(n, n_classes, generator=generator)
    targets = torch.rand(n, n_classes, generator=generator).softmax(dim=1)
    labels = torch.randint(-1, n_classes, (n,), generator=generator)
    return logits, targets, labels


def naive_softmax(row: Any) -> list[float]:
    exponentials = [math.exp(value) for value in row]
    return [value / sum(exponentials) for value in exponentials]


@given(st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_soft_cross_entropy_and_negative_entropy(seed: int) -> None:
    logits, targets, _ = random_case(seed)
    rows = [naive_softmax(row) for row in logits.tolist()]
    cross = [
        -sum(t * math.log(p) for t, p in zip(ts, ps, strict=True))
        for ts, ps in zip(targets.tolist(), rows, strict=True)
    ]
    entropy = [sum(p * math.log(p) for p in ps) for ps in rows]
    assert float(soft_cross_entropy(logits, targets)) == pytest.approx(np.mean(cross), rel=1e-4)
    assert float(negative_entropy(logits)) == pytest.approx(np.mean(entropy), rel=1e-4)


@given(st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_uniform_prior_term(seed: int) -> None:
    logits, _, _ = random_case(seed)
    mean = np.mean([naive_softmax(row) for row in logits.tolist()], axis=0)
    naive = sum(0.25 * math.log(0.25 / p) for p in mean)
    assert float(uniform_prior_divergence(logits.softmax(dim=1).mean(dim=0))) == pytest.approx(
        naive, rel=1e-3
    )
    assert float(uniform_prior_divergence(torch.full((4,), 0.25))) == pytest.approx(0, abs=1e-6)


def test_uniform_prior_term_stays_finite_when_a_class_is_gone() -> None:
    mean = torch.tensor([0.5, 0.5, 0.0], requires_grad=True)
    uniform_prior_divergence(mean).backward()
    assert torch.isfinite(mean.grad).all()  # type: ignore[arg-type]


@given(st.integers(0, 1000), st.sampled_from([1.0, 2.0, 3.0, 4.0]))
@settings(max_examples=30, deadline=None)
def test_sharpening_is_the_normalized_power(seed: int, power: float) -> None:
    _, probabilities, _ = random_case(seed)
    naive = probabilities.numpy().astype(float) ** power
    naive /= naive.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(sharpen(probabilities, power).numpy(), naive, rtol=1e-4)


def test_sharpening_by_two_lowers_the_entropy_and_by_one_does_nothing() -> None:
    _, probabilities, _ = random_case(0)

    def entropy(p: torch.Tensor) -> torch.Tensor:
        return -(p * p.log()).sum(dim=1)

    assert (entropy(sharpen(probabilities, 2)) < entropy(probabilities)).all()
    assert torch.equal(sharpen(probabilities, 1), probabilities)


@given(st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_refurbished_labels(seed: int) -> None:
    _, pseudo, labels = random_case(seed)
    confidence = torch.rand(len(labels), generator=torch.Generator().manual_seed(seed))
    targets = refurbish(labels, confidence, pseudo)
    for i, label in enumerate(labels.tolist()):
        for c in range(pseudo.shape[1]):
            w = 0.0 if label == -1 else float(confidence[i])
            assert float(targets[i, c]) == pytest.approx(
                w * (label == c) + (1 - w) * float(pseudo[i, c]), abs=1e-6
            )
    torch.testing.assert_close(targets.sum(dim=1), torch.ones(len(labels)))
