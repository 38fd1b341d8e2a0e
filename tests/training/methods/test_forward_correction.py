"""The forward-corrected loss and the estimated noise matrix, written out; two trainings in one run."""

import numpy as np
import pytest
import torch
from method_steps import C, softmax, whole_batch_step

from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.training.methods.forward_correction import (
    TRANSITION,
    ForwardCorrection,
    anchored_transition,
    forward_loss,
)
from laplaceconfidence.training.methods.repeated_training import RepeatedTraining, rounds_of_each
from small_runs import noisy_digits, quick

METHOD = ForwardCorrection(estimation_rounds=2)
NOISE = torch.tensor([[0.7, 0.3, 0.0], [0.1, 0.8, 0.1], [0.0, 0.0, 1.0]])


def test_the_loss_is_that_of_the_labels_as_the_noise_shows_them() -> None:
    step = whole_batch_step(METHOD, METHOD.phases(3)[0])
    step.state[TRANSITION] = NOISE
    p = softmax(step.trained(step.batch.inputs))
    labels = step.batch.labels.numpy()
    shown = p @ NOISE.numpy()  # P(label = j) = sum over classes i of P(class = i) T[i, j]
    expected = -np.log(shown[np.arange(12), labels]).mean()
    assert METHOD.loss(step).item() == pytest.approx(expected, rel=1e-5)


def test_without_noise_the_loss_is_cross_entropy_and_so_is_the_first_training() -> None:
    corrected = whole_batch_step(METHOD, METHOD.phases(3)[0])
    first = whole_batch_step(METHOD, METHOD.phases(0)[0])
    first.state[TRANSITION] = NOISE
    torch.testing.assert_close(METHOD.loss(corrected), METHOD.loss(first))


def test_an_impossible_label_gives_a_finite_loss() -> None:
    logits = torch.tensor([[90.0, 0.0, 0.0]], requires_grad=True)
    loss = forward_loss(logits, torch.tensor([2]), NOISE)
    loss.backward()
    assert logits.grad is not None
    assert torch.isfinite(loss)
    assert torch.isfinite(logits.grad).all()


def test_a_network_that_knows_the_noise_gives_its_matrix() -> None:
    # Samples of certain class have the row of their class as prediction; the others are mixtures of rows.
    rng = np.random.default_rng(0)
    classes = np.concatenate([np.eye(C)[np.arange(300) % C], rng.dirichlet(np.ones(C), 300)])
    np.testing.assert_allclose(anchored_transition(classes @ NOISE.numpy(), 100), NOISE, atol=1e-6)


def test_the_anchor_is_the_largest_below_the_percentile() -> None:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(C), 200)
    for percentile in (50.0, 97.0, 100.0):
        rows = []
        for i in range(C):
            order = sorted(range(200), key=lambda row: p[row, i])
            limit = np.percentile(p[:, i], percentile)
            rows.append([row for row in order if percentile == 100 or p[row, i] < limit][-1])
        np.testing.assert_allclose(anchored_transition(p, percentile), p[rows])


def test_predictions_that_are_all_alike_give_their_row() -> None:
    p = np.full((10, C), 1 / C)
    np.testing.assert_allclose(anchored_transition(p, 97), np.full((C, C), 1 / C))


def test_the_second_training_starts_anew_with_the_matrix_of_the_first() -> None:
    X, given, _ = noisy_digits(300, rate=0.3)
    run = quick(
        method=ForwardCorrection(), network="mlp", rounds=6, learning_rate=0.02, learning_rate_drops=(2,)
    )
    history = run.fit(X, given).history_
    names = [record["phases"][0]["name"] for record in history]
    assert names == ["estimation"] * 3 + ["forward correction"] * 3
    kept = {record["phases"][0]["mean_kept_share"] for record in history[3:]}
    assert len(kept) == 1
    assert 0.3 < kept.pop() < 1
    rates = [record["phases"][0]["learning_rate"] for record in history]
    assert rates == pytest.approx([0.02, 0.02, 0.002] * 2)
    assert run.summary_["chosen_round"] > 3


def test_trainings_are_divided_evenly_and_the_last_one_takes_the_rest() -> None:
    trainings = RepeatedTraining(3, rounds_of_each(3, None, "each", 11))
    assert [trainings.current(round) for round in range(11)] == [0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 2]
    assert [round for round in range(11) if trainings.begins_again(round)] == [3, 6]
    stages = [trainings.stage(round) for round in (0, 5, 10)]
    assert [(one.first_round, one.rounds, one.counts) for one in stages] == [
        (0, 3, False),
        (3, 3, False),
        (6, None, True),
    ]


def test_too_few_rounds_and_bad_settings_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"'rounds' parameter must be above 5.*'estimation_rounds'"):
        ForwardCorrection(estimation_rounds=5).for_rounds(5)
    with pytest.raises(InvalidInputError, match="'rounds' parameter must be at least 2"):
        ForwardCorrection().for_rounds(1)
    with pytest.raises(InvalidInputError, match="'percentile' parameter"):
        ForwardCorrection(percentile=101)
    with pytest.raises(ValueError, match="for_rounds"):
        ForwardCorrection().phases(0)
