"""The selection of the curriculum loss against all subsets, and its losses against their formulas."""

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from method_steps import whole_batch_step

from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.training.methods.curriculum import (
    CurriculumLoss,
    curriculum_selection,
    hinge,
    soft_hinge,
)


def objective(losses: Any, selected: Any, bound: float) -> float:
    return max(float((losses * selected).sum()), bound - float(selected.sum()))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(0, 4, width=16), min_size=1, max_size=7),
    st.integers(0, 2**7 - 1),
    st.sampled_from([0.0, 0.2, 0.5, 0.9]),
)
def test_no_subset_has_a_smaller_objective(values: list[float], bits: int, rate: float) -> None:
    losses = np.array(values)
    wrong = np.array([bits >> i & 1 for i in range(len(values))], dtype=float)
    bound = (1 - rate) ** 2 * len(values) + (1 - rate) * wrong.sum()
    selected = curriculum_selection(torch.from_numpy(losses), torch.from_numpy(wrong), rate).numpy()
    every = (np.array(subset) for subset in product((0, 1), repeat=len(values)))
    best = min(objective(losses, subset, bound) for subset in every)
    if losses.min() <= bound:  # otherwise nothing would be selected, and one sample is all the same
        assert objective(losses, selected, bound) == pytest.approx(best, abs=1e-9)
    else:
        assert selected.sum() == 1


def test_losses_are_hinges() -> None:
    logits = torch.tensor([[3.0, 1, 0], [1.0, 3, 0], [1.2, 1, 0]])
    labels = torch.tensor([0, 0, 0])
    torch.testing.assert_close(hinge(logits, labels), torch.tensor([0.0, 3.0, 0.8]))
    smooth = 1 - 1.0 + float(np.log(np.exp([1.0, 3, 0]).sum()))
    torch.testing.assert_close(soft_hinge(logits, labels), torch.tensor([0.0, smooth, 0.8]))


def test_the_network_is_trained_on_the_mean_of_the_selected() -> None:
    method = CurriculumLoss(noise_rate=0.5, warmup=1)
    step = whole_batch_step(method, method.phases(1)[0])
    logits, labels = step.trained(step.batch.inputs), step.batch.labels
    wrong = (logits.argmax(dim=1) != labels).float()
    selected = curriculum_selection(hinge(logits, labels).detach(), wrong, 0.5).bool()
    assert 0 < selected.sum() < 12
    torch.testing.assert_close(method.loss(step), soft_hinge(logits, labels)[selected].mean())
    burn_in = whole_batch_step(method, method.phases(0)[0])
    torch.testing.assert_close(method.loss(burn_in), soft_hinge(logits, labels).mean())


def test_without_a_plain_phase_the_noise_rate_has_to_be_given() -> None:
    assert CurriculumLoss(noise_rate=0.0, warmup=0).phases(0)[0].name == "curriculum"
    with pytest.raises(InvalidInputError, match="'warmup'"):
        CurriculumLoss(warmup=0)
