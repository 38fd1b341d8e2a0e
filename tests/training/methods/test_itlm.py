"""ITLM's trimming against a sorted list, and its trainings."""

import logging
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.training.methods.interface import Evidence, NetworkEvidence, Problem
from laplaceconfidence.training.methods.itlm import ITLM, KEPT, smallest_losses
from small_runs import noisy_digits, quick


@given(
    st.lists(st.floats(0, 10), min_size=2, max_size=30),
    st.floats(0.01, 1),
    st.integers(1, 29),
)
def test_trimming_keeps_the_smallest_losses_of_each_group(
    losses: list[float], share: float, cut: int
) -> None:
    everyone = list(range(len(losses)))
    groups = [group for group in (everyone[:cut], everyone[cut:]) if group]
    kept = smallest_losses(np.array(losses), [np.array(group) for group in groups], share)
    expected: list[int] = []
    for group in groups:
        by_loss = sorted(group, key=lambda row: (losses[row], row))
        expected += by_loss[: max(1, int(share * len(group)))]
    assert kept.tolist() == sorted(expected)


def evidence_of(labels: Any, round: int) -> Evidence:
    p = np.random.default_rng(0).dirichlet(np.ones(3), len(labels))
    problem = Problem(torch.tensor(labels), 3, rounds=6, batch_size=4, seed=0, sample_shape=(2,))
    seen = {0: NetworkEvidence(p, p)}
    return Evidence(seen, np.array(labels), problem, round, seed=0, inputs=lambda: p)


def test_only_samples_with_a_label_are_ranked_and_the_selection_lasts() -> None:
    method = ITLM(kept_share=0.5, retrainings=1).for_rounds(6)
    labels = [0, 1, 2, -1, 0, 1, 2, -1, 0, 1]
    state: dict[str, Any] = {}
    assert method.plan(method.phases(0)[0], evidence_of(labels, 0), state).streams["samples"].tolist() == [
        0, 1, 2, 4, 5, 6, 8, 9,
    ]  # fmt: skip
    seen = evidence_of(labels, 3)
    planned = method.plan(method.phases(3)[0], seen, state).streams["samples"].tolist()
    losses = {row: -np.log(seen.networks[0].probabilities[row, y]) for row, y in enumerate(labels) if y >= 0}
    assert planned == sorted(sorted(losses, key=losses.__getitem__)[:4])
    assert state[KEPT].tolist() == planned
    assert method.plan(method.phases(4)[0], evidence_of(labels, 4), state).streams["samples"].tolist() == (
        planned
    )


def test_each_training_starts_anew_on_the_kept_share() -> None:
    X, y, _ = noisy_digits(200, rate=0.2)
    counted: dict[int, int] = {}

    class Counting(ITLM):
        def loss(self, step: Any) -> Any:
            counted[step.round] = counted.get(step.round, 0) + len(step.batch)
            return ITLM.loss(self, step)

    run = quick(method=Counting(kept_share=0.6, retrainings=2), rounds=6, validation_fraction=0)
    run.fit(X, y)
    assert counted == {0: 200, 1: 200, 2: 120, 3: 120, 4: 120, 5: 120}
    phases = [Counting(retrainings=2).for_rounds(6).phases(round)[0] for round in range(6)]
    assert [phase.fresh for phase in phases] == [(), (), (0,), (), (0,), ()]
    assert [record.get("counts", True) for record in run.history_] == [False] * 4 + [True] * 2


def test_an_unknown_share_is_estimated_and_either_half_is_trimmed(caplog: pytest.LogCaptureFixture) -> None:
    X, given_labels, true = noisy_digits(600, rate=0.4)
    run = quick(
        method=ITLM(retrainings=1, training_rounds=4),
        network="mlp",
        rounds=6,
        validation_fraction=0,
    )
    with caplog.at_level(logging.INFO, logger="laplaceconfidence"):
        history = run.fit(X, given_labels).history_
    rates = [record["phases"][0].get("noise_rate") for record in history]
    assert rates[:4] == [None] * 4
    assert rates[4] == rates[5] == pytest.approx((given_labels != true).mean(), abs=0.1)
    assert any("'kept_share'" in line for line in caplog.messages)


def test_too_few_rounds_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"'rounds' parameter must be above 40: 4 x 10 rounds"):
        ITLM(training_rounds=10).for_rounds(40)
    with pytest.raises(InvalidInputError, match="'rounds' parameter must be at least 5"):
        ITLM().for_rounds(4)
