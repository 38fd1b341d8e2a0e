"""PENCIL's label gradient against autograd and finite differences, its stages, and its independence."""

from dataclasses import dataclass

import pytest
import torch
from method_steps import C, step_of, whole_batch_step
from torch import Tensor

from laplaceconfidence.training.methods.interface import Plan, Problem
from laplaceconfidence.training.methods.pencil import LABEL_LOGITS, Pencil
from laplaceconfidence.training.step import Step
from small_runs import noisy_digits, quick

METHOD = Pencil(warmup=1, correction=2, final=3, compatibility=0.3, entropy_weight=0.2, label_rate=5.0)


def loss_of(label_logits: Tensor, p: Tensor, labels: Tensor) -> Tensor:
    """Sum over the samples of the loss as the paper writes it."""
    learned = label_logits.softmax(dim=1)
    fit = (p * (p / learned).log()).sum(dim=1) / C
    kept = -learned[torch.arange(len(p)), labels].log()
    entropy = -(p * p.log()).sum(dim=1) / C
    return (fit + 0.3 * kept + 0.2 * entropy).sum()


def drawn() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(6, C, generator=generator, dtype=torch.float64)
    p = torch.randn(6, C, generator=generator, dtype=torch.float64).softmax(dim=1)
    return logits, p, torch.arange(6) % C


def test_the_label_gradient_is_that_of_autograd_and_of_finite_differences() -> None:
    logits, p, labels = drawn()
    slope = METHOD.label_gradient(logits, p, labels)
    variable = logits.clone().requires_grad_()
    (expected,) = torch.autograd.grad(loss_of(variable, p, labels), variable)
    torch.testing.assert_close(slope, expected)
    for row, column in ((0, 0), (3, 1), (5, 2)):
        step = torch.zeros_like(logits)
        step[row, column] = 1e-6
        difference = loss_of(logits + step, p, labels) - loss_of(logits - step, p, labels)
        assert float(difference / 2e-6) == pytest.approx(float(slope[row, column]), rel=1e-5)


def test_labels_move_by_their_gradient_while_they_are_corrected_only() -> None:
    for number, moves in ((0, False), (1, True), (3, False)):
        step = whole_batch_step(METHOD, METHOD.phases(number)[0])
        before = step.state[LABEL_LOGITS].clone()
        p = step.trained(step.batch.inputs).detach().softmax(dim=1)
        METHOD.loss(step)
        METHOD.after_step(step)
        slope = METHOD.label_gradient(before, p, step.batch.labels)
        expected = before - 5.0 / 6 * slope if moves else before  # the batch size of the run is 6
        torch.testing.assert_close(step.state[LABEL_LOGITS], expected)


def test_neither_precision_nor_scaled_losses_change_the_labels() -> None:
    X, y, _ = noisy_digits(64)
    learned = {}

    @dataclass(frozen=True)
    class Watched(Pencil):
        def after_step(self, step: Step) -> None:
            Pencil.after_step(self, step)
            learned[step.round] = step.state[LABEL_LOGITS].clone()

    moved = {}
    for precision in ("float32", "float16"):
        method = Watched(warmup=0, correction=1, final=1, label_rate=100.0)
        quick(method=method, precision=precision, rounds=1, weak="none", validation_fraction=0).fit(X, y)
        moved[precision] = learned[0]
    torch.testing.assert_close(moved["float16"], moved["float32"], rtol=0, atol=0.05)
    assert (moved["float32"] - moved["float32"].round()).abs().max() > 0.05  # they did move


def test_the_loss_is_the_mean_that_the_paper_writes() -> None:
    step = whole_batch_step(METHOD, METHOD.phases(1)[0])
    p = step.trained(step.batch.inputs).softmax(dim=1)
    expected = loss_of(step.state[LABEL_LOGITS], p, step.batch.labels) / 12
    torch.testing.assert_close(METHOD.loss(step), expected)


def test_the_size_of_a_batch_does_not_change_the_step_of_a_label() -> None:
    phase = METHOD.phases(1)[0]
    short = step_of(METHOD, phase, Plan({"samples": torch.arange(2)}), {"samples": [0, 1]})
    full = whole_batch_step(METHOD, phase)
    for step in (short, full):
        METHOD.loss(step)
        METHOD.after_step(step)
    torch.testing.assert_close(short.state[LABEL_LOGITS][:2], full.state[LABEL_LOGITS][:2])
    untouched = METHOD.initial_state(short.problem)[LABEL_LOGITS][2:]
    assert torch.equal(short.state[LABEL_LOGITS][2:], untouched)


def test_labels_start_at_the_given_ones_and_missing_ones_uniform() -> None:
    problem = Problem(torch.tensor([2, -1, 0]), C, rounds=5, batch_size=2, seed=0, sample_shape=(3,))
    start = METHOD.initial_state(problem)[LABEL_LOGITS]
    assert torch.equal(start, torch.tensor([[0.0, 0, 10], [0, 0, 0], [10, 0, 0]]))


def test_stages_and_learning_rates_follow_the_published_order() -> None:
    phases = {number: Pencil().phases(number)[0] for number in (0, 69, 70, 199, 200, 239, 240, 280, 500)}
    assert [phases[number].name for number in (69, 70, 199, 200)] == [
        "warm-up",
        "label correction",
        "label correction",
        "final training",
    ]
    assert phases[0].learning_rate is None
    rates = [phases[number].learning_rate for number in (200, 239, 240, 280, 500)]
    assert rates == pytest.approx([0.2, 0.2, 0.02, 0.002, 0.002])
    assert Pencil(final_learning_rate=None).phases(250)[0].learning_rate is None
