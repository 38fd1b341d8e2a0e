"""SELFIE's corrections and selection against counts that are made by hand."""

import math
from collections import Counter
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from method_steps import C, whole_batch_step
from torch.nn import functional

from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.training.methods.interface import Plan
from laplaceconfidence.training.methods.selfie import (
    CORRECTED,
    N_PREDICTED,
    PREDICTED,
    SELFIE,
    agreed_labels,
    with_prediction,
)
from small_runs import noisy_digits, quick

METHOD = SELFIE(noise_rate=0.5, history=3, warmup=1, restarts=1).for_rounds(8)


@given(st.lists(st.lists(st.integers(0, 4), min_size=6, max_size=6), min_size=1, max_size=5), st.floats(0, 1))
def test_predictions_that_agree_give_the_most_frequent_one(
    predicted: list[list[int]], uncertainty: float
) -> None:
    found = agreed_labels(torch.tensor(predicted), uncertainty, n_classes=5).tolist()
    for label, row in zip(found, predicted, strict=True):
        counted = Counter(row)
        entropy = -sum(n / 6 * math.log(n / 6) for n in counted.values()) / math.log(5)
        if abs(entropy - uncertainty) < 1e-6:
            continue
        if entropy > uncertainty:
            assert label == -1
        else:
            assert counted[label] == max(counted.values())


def test_fifteen_predictions_have_to_be_unanimous_and_complete() -> None:
    same = torch.full((3, 15), 2)
    same[1, 4] = 1  # one of them differs
    same[2, 4] = -1  # one is missing
    assert agreed_labels(same, SELFIE().uncertainty, n_classes=10).tolist() == [2, -1, -1]


def test_the_newest_prediction_replaces_the_oldest() -> None:
    predicted, n = torch.full((1, 3), -1), torch.zeros(1, dtype=torch.long)
    for newest in range(7):
        predicted = with_prediction(predicted, n, torch.tensor([newest]))
        n += 1
        assert sorted(predicted[0].tolist())[-min(newest + 1, 3) :] == list(
            range(max(0, newest - 2), newest + 1)
        )


def prepared() -> Any:
    """A step after the warm-up; sample 0 is about to be corrected, sample 1 was corrected before."""
    plan = Plan({"samples": torch.arange(12)}, measures={"share_left_out": 0.5})
    step = whole_batch_step(METHOD, METHOD.phases(1)[0], plan)
    now = step.trained(step.batch.inputs).argmax(dim=1)
    step.state[PREDICTED][0] = torch.tensor([(int(now[0]) + 1) % C, int(now[0]), int(now[0])])
    step.state[N_PREDICTED][0] = 3  # the next one replaces the first, which differs
    step.state[CORRECTED][1] = 2
    return step, now


def test_the_loss_is_the_mean_over_corrected_samples_and_small_losses() -> None:
    step, now = prepared()
    logits = step.trained(step.batch.inputs)
    losses = functional.cross_entropy(logits, step.batch.labels, reduction="none")
    small = losses.argsort()[:6].tolist()
    targets = step.batch.labels.clone()
    targets[0], targets[1] = now[0], 2
    selected = sorted({0, 1, *small})
    expected = functional.cross_entropy(logits[selected], targets[selected])
    torch.testing.assert_close(METHOD.loss(step), expected)
    METHOD.after_step(step)
    assert step.state[CORRECTED].tolist() == [int(now[0]), 2] + [-1] * 10
    assert step.state[N_PREDICTED].tolist() == [4] + [1] * 11
    assert (step.state[PREDICTED][0] == now[0]).all()
    assert torch.equal(step.state[PREDICTED][1:, 0], now[1:])


def test_a_batch_without_selected_samples_is_skipped_and_remembered() -> None:
    plan = Plan({"samples": torch.arange(12)}, measures={"share_left_out": 0.99})
    step = whole_batch_step(METHOD, METHOD.phases(1)[0], plan)
    assert list(METHOD.losses(step)) == []
    METHOD.after_step(step)
    assert step.state[N_PREDICTED].tolist() == [1] * 12


def test_the_warm_up_trains_on_everything_with_the_corrected_labels() -> None:
    step = whole_batch_step(METHOD, METHOD.phases(0)[0])
    step.state[CORRECTED][:4] = 1
    targets = torch.where(step.state[CORRECTED] == -1, step.batch.labels, step.state[CORRECTED])
    logits = step.trained(step.batch.inputs)
    torch.testing.assert_close(METHOD.loss(step), functional.cross_entropy(logits, targets))


def test_a_restart_keeps_corrections_only_and_leaves_out_less() -> None:
    X, y, _ = noisy_digits(300, rate=0.3)
    method = SELFIE(noise_rate=0.6, history=2, warmup=3, restarts=1)
    history = (
        quick(method=method, network="mlp", rounds=12, learning_rate=0.02, batch_size=16).fit(X, y).history_
    )
    phases = [record["phases"][0] for record in history]
    assert [phase["name"] for phase in phases] == (["warm-up"] * 3 + ["selection and correction"] * 3) + (
        ["warm-up"] * 3 + ["selection and correction"] * 3
    )
    corrected = [phase["corrected_share"] for phase in phases]
    assert corrected[:4] == [0] * 4
    assert 0 < corrected[4] <= corrected[6] == corrected[7]
    assert phases[3]["share_left_out"] == 0.6
    assert phases[9]["share_left_out"] == pytest.approx(min(0.6, 1 - corrected[6]))
    assert phases[9]["loss"] > 0


def test_settings_follow_the_rounds_and_bad_ones_are_refused() -> None:
    resolved = SELFIE().for_rounds(400)
    assert (resolved.training_rounds, resolved.warmup) == (100, 25)
    with pytest.raises(InvalidInputError, match="'warmup' parameter must be below 5"):
        SELFIE(warmup=5, restarts=1).for_rounds(10)
    with pytest.raises(InvalidInputError, match="'history' parameter"):
        SELFIE(history=0)
