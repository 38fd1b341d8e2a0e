"""Weights of samples: how often they occur, for every method, and what is refused."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from laplaceconfidence.exceptions import InvalidInputError, RunFolderError, TrainingStopped
from laplaceconfidence.training.methods.cross_entropy import CrossEntropy
from laplaceconfidence.training.methods.registry import METHODS
from laplaceconfidence.training.sample_weights import combined_weights, resampled
from laplaceconfidence.training.step import Step
from small_runs import QUICK, noisy_digits, quick

pytestmark = pytest.mark.filterwarnings("ignore::laplaceconfidence.training.guards.TrainingWarning")


WEIGHTS = st.lists(st.floats(0, 50), min_size=2, max_size=60).filter(lambda values: sum(values) > 1e-3)


@given(WEIGHTS, st.integers())
@settings(max_examples=60, deadline=None)
def test_every_sample_occurs_as_often_as_its_weight_says(values: list[float], seed: int) -> None:
    given = torch.tensor(values, dtype=torch.float64)
    generator = torch.Generator().manual_seed(seed % 2**32)
    chosen = resampled(torch.arange(len(values)), given, generator, "samples")
    expected = given * (len(values) / given.sum())
    counts = chosen.bincount(minlength=len(values))
    assert len(chosen) == len(values)
    assert ((counts - expected).abs() < 1 + 1e-6).all()


def test_equal_weights_change_nothing_but_the_order_and_expectations_are_exact() -> None:
    generator = torch.Generator().manual_seed(0)
    rows = torch.arange(5, 15)
    assert resampled(rows, torch.full((20,), 0.3), generator, "a").sort().values.equal(rows)
    unequal = torch.tensor([0.5, 0.25, 2.0, 1.25])
    draws = torch.stack(
        [resampled(torch.arange(4), unequal, generator, "a").bincount(minlength=4) for _ in range(800)]
    )
    torch.testing.assert_close(draws.double().mean(0), unequal.double(), rtol=0, atol=0.06)
    with pytest.raises(TrainingStopped, match="'a' have weight 0"):
        resampled(torch.arange(4), torch.zeros(4), generator, "a")


@dataclass(frozen=True)
class Counting(CrossEntropy):
    """Counts how often each class is trained on."""

    seen: list[Tensor] = field(default_factory=list, compare=False)

    def after_step(self, step: Step) -> None:
        self.seen.append(step.batch.labels)


def test_balanced_classes_occur_equally_often() -> None:
    X, y, _ = noisy_digits(200)
    y = np.where(np.arange(200) < 180, 0, 1)
    method = Counting()
    quick(method=method, rounds=4, validation_fraction=0, class_weight="balanced").fit(X, y)
    zeros, ones = torch.cat(method.seen).bincount(minlength=2).tolist()
    assert zeros + ones == 800
    assert abs(zeros - ones) <= 8
    method = Counting()
    quick(method=method, rounds=4, validation_fraction=0, class_weight={1: 9.0}).fit(X, y)
    assert abs(int((torch.cat(method.seen) == 0).sum()) - 400) <= 8


@pytest.mark.parametrize("name", sorted(METHODS))
def test_no_method_trains_on_a_sample_of_weight_zero(name: str) -> None:
    X, y, _ = noisy_digits(120)
    seen: list[Tensor] = []

    class Seeing(METHODS[name]):  # type: ignore[misc]
        def after_step(self, step: Step) -> None:
            seen.extend(batch.index for batch in step.batches.values())

    quick(method=Seeing(**QUICK.get(name, {})), validation_fraction=0).fit(
        X, y, sample_weight=np.arange(120) % 4
    )
    occurrences = torch.cat(seen).bincount(minlength=120).reshape(-1, 4).sum(dim=0)  # by weight
    assert occurrences[0] == 0
    assert occurrences[1] < occurrences[2] < occurrences[3]


def test_weights_belong_to_the_data_of_a_run(tmp_path: Path) -> None:
    X, y, _ = noisy_digits(60)
    run = quick(method="cross_entropy", rounds=1, out=tmp_path / "run")
    run.fit(X, y, sample_weight=np.arange(60))
    assert run.fit(X, y, sample_weight=np.arange(60.0)).settings_["class_weight"] is None
    with pytest.raises(RunFolderError, match="data: "):
        run.fit(X, y)


@pytest.mark.parametrize(
    ("sample_weight", "class_weight", "message"),
    [
        ([1, 2], None, "sample_weight"),
        ([[1], [2], [3]], None, "one number per sample"),
        (["a", "b", "c"], None, "one number per sample"),
        ([1, -1, 1], None, "at least 0 for every sample"),
        ([1, float("nan"), 1], None, "sample_weight"),
        ([0, 0, 5], None, "above 0 for at least one labeled sample"),
        (None, "even", "'class_weight' parameter must be 'balanced'"),
        (None, {"cow": 1}, "weights of the classes"),
        (None, {"cat": -1}, "at least 0"),
    ],
)
def test_weights_that_make_no_sense_are_refused(sample_weight: Any, class_weight: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        combined_weights(sample_weight, class_weight, np.array([0, 1, -1]), ["cat", "dog"])


def test_weights_of_samples_and_classes_are_multiplied() -> None:
    labels = np.array([0, 0, 0, 1, -1])
    both = combined_weights([1, 2, 1, 1, 5], "balanced", labels, ["cat", "dog", "never seen"])
    np.testing.assert_allclose(both, [4 / 6, 8 / 6, 4 / 6, 2, 5])
    assert combined_weights(None, None, labels, ["cat", "dog"]) is None
