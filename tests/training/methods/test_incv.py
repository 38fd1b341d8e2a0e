"""INCV's cross-validation against sets that are computed naively, its noise rate, and its main training."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from method_steps import whole_batch_step

from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.training.methods.co_teaching import CoTeaching
from laplaceconfidence.training.methods.incv import (
    CANDIDATE,
    DROPPED,
    INCV,
    NEXT_STATUS,
    SELECTED,
    STATUS,
    noise_rate_by_agreement,
    selected_noise_rate,
)
from laplaceconfidence.training.methods.interface import Evidence, NetworkEvidence, Plan, Problem
from small_runs import noisy_digits, quick

N, C = 60, 3
LABELS = np.where(np.arange(N) % 10 == 0, -1, np.arange(N) % C)


@given(st.floats(0, 0.95), st.integers(1, 99))
def test_the_noise_rate_solves_its_equation(rate: float, other_classes: int) -> None:
    largest = other_classes / (other_classes + 1)
    agreement = (1 - rate) ** 2 + rate**2 / other_classes
    expected = rate if rate <= largest else 2 * largest - rate  # the smaller of two solutions
    assert noise_rate_by_agreement(agreement, other_classes) == pytest.approx(expected, abs=1e-5)


def test_no_agreement_means_labels_that_say_nothing() -> None:
    assert noise_rate_by_agreement(0.0, 9) == pytest.approx(0.9)
    assert selected_noise_rate(0.9, 9) == pytest.approx(0.9)
    assert selected_noise_rate(0.0, 9) == 0


def evidence_of(round: int, seed: int = 0, rounds: int = 12) -> Evidence:
    p = np.random.default_rng(seed).dirichlet(np.full(C, 0.3), N)
    problem = Problem(torch.tensor(LABELS), C, rounds=rounds, batch_size=4, seed=0, sample_shape=(2,))
    return Evidence({0: NetworkEvidence(p, p)}, LABELS, problem, round, seed=round, inputs=lambda: p)


def planned(method: INCV, evidence: Evidence, state: Any) -> tuple[set[int], Plan]:
    plan = method.plan(method.phases(evidence.round)[0], evidence, state)
    return set(plan.streams["samples"].tolist()), plan


def test_each_half_selects_from_the_other_and_the_largest_losses_are_dropped() -> None:
    method = INCV(iterations=2, selection_rounds=2).for_rounds(12)
    labeled = set(np.flatnonzero(LABELS >= 0).tolist())
    state = method.initial_state(evidence_of(0).problem)
    first, _ = planned(method, evidence_of(0), state)
    assert first < labeled
    assert len(first) == len(labeled) / 2
    assert planned(method, evidence_of(1), state)[0] == first  # until the training is over

    seen: dict[int, NetworkEvidence] = {}
    found: dict[str, set[int]] = {"selected": set(), "dropped": set()}
    rate = None
    for round, judged in ((2, labeled - first), (4, first)):
        evidence = evidence_of(round, seed=round)
        seen[round] = evidence.networks[0]
        rows, plan = planned(method, evidence, state)
        confirmed = {row for row in judged if seen[round].probabilities[row].argmax() == LABELS[row]}
        if rate is None:
            rate = noise_rate_by_agreement(len(confirmed) / len(judged), C - 1)
            assert rows == labeled - first  # the other half, nothing is selected before both had their turn
        losses = {row: -np.log(seen[round].probabilities[row, LABELS[row]]) for row in judged - confirmed}
        n_dropped = int(min(2, rate / (1 - rate)) * len(confirmed))
        found["selected"] |= confirmed
        found["dropped"] |= set(sorted(losses, key=losses.__getitem__, reverse=True)[:n_dropped])
        assert plan.measures["noise_rate"] == pytest.approx(rate)
    status = state[STATUS].numpy()
    assert set(np.flatnonzero(status == SELECTED)) == found["selected"]
    assert set(np.flatnonzero(status == DROPPED)) == found["dropped"] | set(np.flatnonzero(LABELS < 0))
    candidates = set(np.flatnonzero(status == CANDIDATE))
    assert rows > found["selected"]
    assert rows - found["selected"] <= candidates
    assert len(rows - found["selected"]) == (len(candidates) + 1) // 2


def main_state(method: INCV) -> Any:
    state = method.initial_state(evidence_of(0).problem)
    status = np.where(LABELS < 0, DROPPED, np.where(np.arange(N) < 30, SELECTED, CANDIDATE))
    status[50:] = DROPPED
    state[STATUS] = torch.from_numpy(status)
    state[NEXT_STATUS] = state[STATUS].clone()
    state["noise_rate"] = torch.tensor(0.4)
    return state, status


def test_candidates_join_later_and_the_batch_keeps_what_the_selected_ones_should_have_right() -> None:
    method = INCV(iterations=1, selection_rounds=1, ramp=2, candidates_from=3).for_rounds(12)
    state, status = main_state(method)
    selected, candidates = (set(np.flatnonzero(status == kind)) for kind in (SELECTED, CANDIDATE))
    wrong = 0.4**2 / (0.4**2 + 2 * 0.6**2)
    for round, kept in ((3, 1 - wrong / 2), (4, 1 - wrong)):
        rows, plan = planned(method, evidence_of(round), state)
        assert rows == selected
        assert plan.measures["kept_share"] == pytest.approx(kept)
    rows, plan = planned(method, evidence_of(5), state)
    assert rows == selected | candidates
    assert plan.measures["kept_share"] == pytest.approx((1 - wrong) * len(selected) / len(rows))


def test_no_more_candidates_join_than_samples_are_selected() -> None:
    method = INCV(iterations=1, selection_rounds=1, candidates_from=0).for_rounds(12)
    state, _ = main_state(method)
    state[STATUS][5:30] = CANDIDATE
    first, second = (planned(method, evidence_of(round), state)[0] for round in (3, 4))
    n_selected = int((state[STATUS] == SELECTED).sum())
    assert len(first) == len(second) == 2 * n_selected
    assert first != second  # others in every round


def test_candidates_join_after_a_fifth_or_two_fifths_as_published() -> None:
    for noise, rate, joins in (("symmetric", 0.4, 2), ("symmetric", 0.65, 4), ("asymmetric", 0.4, 4)):
        method = INCV(iterations=1, selection_rounds=1, noise=noise).for_rounds(12)
        state, _ = main_state(method)
        state["noise_rate"] = torch.tensor(rate)
        sizes = [len(planned(method, evidence_of(round), state)[0]) for round in range(3, 12)]
        assert next(round for round, size in enumerate(sizes, start=1) if size > sizes[0]) == joins


def test_the_main_loss_is_that_of_co_teaching_with_the_planned_share() -> None:
    method = INCV(iterations=1, selection_rounds=1).for_rounds(12)
    plan = Plan({"samples": torch.arange(12)}, measures={"kept_share": 0.5})
    step = whole_batch_step(method, method.phases(3)[0], plan)
    as_co_teaching = CoTeaching(forget_rate=0.5, ramp=1)
    expected = as_co_teaching.loss(whole_batch_step(as_co_teaching, as_co_teaching.phases(5)[0]))
    torch.testing.assert_close(method.loss(step), expected)


def test_if_nothing_is_confirmed_everything_is_trained_on() -> None:
    method = INCV(iterations=1, selection_rounds=1).for_rounds(12)
    state, _ = main_state(method)
    state[STATUS].fill_(DROPPED)
    assert planned(method, evidence_of(4), state)[0] == set(np.flatnonzero(LABELS >= 0))


def test_trainings_have_their_own_learning_rates_and_predictors() -> None:
    method = INCV(iterations=1).for_rounds(600)
    shares = [method.phases(round)[0].relative_learning_rate for round in (0, 19, 20, 30, 40, 49, 50, 70)]
    assert shares == [1, 1, 0.5, 0.25, 0.1, 0.1, 1, 0.5]
    assert method.phases(100)[0].relative_learning_rate is None
    assert (method.predictors_in(99), method.predictors_in(100)) == ((0,), (0, 1))
    assert method.phases(100)[0].fresh == (0, 1)


def test_it_estimates_the_noise_and_selects_right_labels() -> None:
    X, given_labels, true = noisy_digits(500, rate=0.4)
    method = INCV(iterations=2, selection_rounds=5, ramp=2)
    run = quick(method=method, network="mlp", rounds=24, learning_rate=0.02, batch_size=16)
    history = run.fit(X, given_labels).history_
    assert history[-1]["phases"][0]["noise_rate"] == pytest.approx((given_labels != true).mean(), abs=0.15)
    assert run.summary_["chosen_round"] > 20
    assert (run.predict(X) == true).mean() > 0.8


def test_too_few_rounds_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"'rounds' parameter must be above 40: 8 x 5 rounds"):
        INCV(selection_rounds=5).for_rounds(40)
    with pytest.raises(InvalidInputError, match="'noise' parameter"):
        INCV(noise="pair")
