"""MentorNet: weights by hand, the threshold over steps, and a mentor that learns."""

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from method_steps import C, softmax, whole_batch_step

from laplaceconfidence.exceptions import Interrupted, InvalidInputError
from laplaceconfidence.training.methods.interface import Evidence, NetworkEvidence, Problem
from laplaceconfidence.training.methods.mentornet import LOSS_THRESHOLD, MENTOR, MentorNet
from small_runs import noisy_digits, quick, weights


def test_the_predefined_weights_have_three_stages() -> None:
    losses, threshold, method = torch.tensor([0.0, 1.0, 1.25, 1.5, 2.0, 3.0]), torch.tensor(1.0), MentorNet()
    assert method.predefined_weights(losses, threshold, 0.1).tolist() == [1] * 6
    assert method.predefined_weights(losses, threshold, 0.5).tolist() == [1, 1, 0, 0, 0, 0]
    assert method.predefined_weights(losses, threshold, 0.95).tolist() == [1, 1, 0.75, 0.5, 0, 0]


@pytest.mark.parametrize(("progress", "stage"), [(2.0, 0), (10.0, 1), (19.0, 2)])
def test_the_loss_is_the_weighted_mean(progress: float, stage: int) -> None:
    method = MentorNet(percentile=0.5, first_dropout=0, dropout=0)
    step = whole_batch_step(method, method.phases(0)[0], progress=progress)
    step.state[LOSS_THRESHOLD] = torch.tensor(0.8)
    p, labels = softmax(step.trained(step.batch.inputs)), step.batch.labels.numpy()
    losses = -np.log(p[np.arange(12), labels])
    threshold = 0.5 * 0.8 + 0.5 * np.median(losses)
    expected = [np.ones(12), losses <= threshold, np.clip(1 - (losses - threshold), 0, 1)][stage]
    assert float(method.loss(step).detach()) == pytest.approx((losses * expected).mean(), rel=1e-5)
    assert float(step.measures["mean_weight"]) == pytest.approx(expected.mean(), rel=1e-5)
    method.after_step(step)
    assert float(step.state[LOSS_THRESHOLD]) == pytest.approx(threshold, rel=1e-5)


@pytest.mark.parametrize(("progress", "kept"), [(2.0, 6), (10.0, 9)])
def test_weights_are_set_to_zero_at_random(progress: float, kept: int) -> None:
    method = MentorNet(burn_in=1.0, first_dropout=0.5, dropout=0.25)
    step = whole_batch_step(method, method.phases(0)[0], progress=progress)
    method.loss(step)
    assert float(step.measures["mean_weight"]) == pytest.approx(kept / 12)


def evidence_of(method: MentorNet, losses: Any, audited: Any) -> Evidence:
    labels = torch.arange(len(losses)) % C
    problem = Problem(labels, C, 10, 6, seed=0, sample_shape=(3,), audited=audited)
    at_label = np.exp(-losses)
    probabilities = np.repeat((1 - at_label)[:, None] / (C - 1), C, axis=1)
    probabilities[np.arange(len(losses)), labels.numpy()] = at_label
    seen = {0: NetworkEvidence(np.zeros((len(losses), 2)), probabilities)}
    torch.manual_seed(0)
    return Evidence(seen, labels.numpy(), problem, 5, 0, lambda: losses, method.modules(C))


def test_a_mentor_learns_which_losses_are_those_of_wrong_labels() -> None:
    rng = np.random.default_rng(0)
    method = MentorNet("learned", mentor_steps=300)
    wrong = rng.random(200) < 0.4
    losses = np.where(wrong, rng.normal(3, 0.3, 200), rng.normal(0.5, 0.2, 200)).clip(0.01)
    given = torch.arange(200) % C
    audited = torch.where(torch.from_numpy(wrong), -2, given)  # no class fits
    audited[100:] = -1  # nobody has verified these
    evidence = evidence_of(method, losses, audited)
    method.plan(method.phases(5)[0], evidence, {})
    threshold = np.quantile(losses, 0.7)
    inputs = torch.from_numpy(np.stack([losses, losses - threshold])).float()
    with torch.no_grad():
        logits = evidence.modules[MENTOR](*inputs, given, 0.5)
    assert np.array_equal(logits.numpy() > 0, ~wrong)


def test_a_mentor_weights_the_batch_after_the_burn_in() -> None:
    method = MentorNet("learned", first_dropout=0, dropout=0)
    problem = Problem(torch.arange(12) % C, C, 20, 6, 0, (3,), audited=torch.arange(12) % C)
    state = method.initial_state(problem)
    torch.manual_seed(1)
    modules = method.modules(C)
    step = whole_batch_step(method, method.phases(0)[0], progress=10.0, state=state, modules=modules)
    found = method.loss(step)
    losses = torch.nn.functional.cross_entropy(
        step.trained(step.batch.inputs), step.batch.labels, reduction="none"
    )
    threshold = 0.5 * losses.detach().quantile(0.7)
    mentor = modules[MENTOR](losses.detach(), losses.detach() - threshold, step.batch.labels, 0.5).sigmoid()
    torch.testing.assert_close(found, (losses * mentor.detach()).mean())
    early = whole_batch_step(method, method.phases(0)[0], progress=1.0, state=state, modules=modules)
    torch.testing.assert_close(method.loss(early), losses.mean())


def test_a_run_with_a_learned_mentor_resumes_with_it(tmp_path: Path) -> None:
    X, given, true = noisy_digits(100)
    audited = dict(enumerate(true[:40]))
    settings: dict[str, Any] = {"method": MentorNet("learned", burn_in=0, mentor_steps=5)}
    whole = quick(**settings).fit(X, given, audited=audited)
    other = quick(**settings).fit(X, given, audited=dict.fromkeys(range(40)))
    stopped = quick(**settings, out=tmp_path / "run", checkpoint_seconds=1e9)
    with pytest.raises(Interrupted):
        stopped.fit(X, given, audited=audited, listeners=[lambda _: signal.raise_signal(signal.SIGTERM)])
    stopped.fit(X, given, audited=audited)
    assert whole.history_ == stopped.history_ != other.history_
    assert all(torch.equal(a, b) for a, b in zip(weights(whole), weights(stopped), strict=True))


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_a_mentor_judges_in_full_precision(precision: str) -> None:
    X, given, true = noisy_digits(60)
    method = MentorNet("learned", burn_in=0, mentor_steps=2)
    audited = dict(enumerate(true[:40]))
    run = quick(method=method, rounds=1, precision=precision).fit(X, given, audited=audited)
    assert 0 < run.history_[0]["phases"][0]["mean_weight"] < 1


def test_a_mentor_needs_verified_labels_and_the_curriculum_refuses_them() -> None:
    X, y, _ = noisy_digits(60)
    with pytest.raises(InvalidInputError, match=r"'audited' .*variant='predefined'"):
        quick(method=MentorNet("learned")).fit(X, y)
    with pytest.raises(InvalidInputError, match="left out for the method MentorNet"):
        quick(method=MentorNet()).fit(X, y, audited={0: 1})
    with pytest.raises(InvalidInputError, match="'variant'"):
        MentorNet("data-driven")
