"""The small parts of the loop, each by what it promises."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from laplaceconfidence.exceptions import DataFormatError
from laplaceconfidence.files import differences
from laplaceconfidence.training.augment.weak import WeakAugment
from laplaceconfidence.training.methods.interface import Phase
from laplaceconfidence.training.methods.laplace import Laplace
from laplaceconfidence.training.phase_steps import endless_batches, shuffled_batches, split_into_batches
from laplaceconfidence.training.progress import TrainingProgress
from laplaceconfidence.training.run_folder import read_checkpoint, write_checkpoint
from laplaceconfidence.training.run_settings import described
from laplaceconfidence.training.sample_views import SampleViews, build_augmentations, input_statistics
from laplaceconfidence.training.seeds import derived_seed, root_seed
from laplaceconfidence.training.settings import TrainingSettings


@given(st.integers(1, 200), st.integers(1, 40), st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_every_pass_holds_every_sample_once_in_another_order(n: int, size: int, passes: int) -> None:
    batches = shuffled_batches(torch.arange(n), size, seed=3, passes=passes)
    rows = torch.cat(batches)
    assert torch.equal(rows.bincount(minlength=n), torch.full((n,), passes))
    if n > 20 and passes > 1:
        assert not torch.equal(rows[:n], rows[n : 2 * n])
    if n > 1 and size > 1:
        assert min(len(batch) for batch in batches) >= 2
    again = shuffled_batches(torch.arange(n), size, seed=3, passes=passes)
    assert all(torch.equal(a, b) for a, b in zip(batches, again, strict=True))


def test_a_short_last_batch_joins_the_one_before() -> None:
    assert [len(batch) for batch in split_into_batches(torch.arange(130), 64)] == [64, 66]
    assert [len(batch) for batch in split_into_batches(torch.arange(140), 64)] == [64, 64, 12]


def test_an_endless_stream_goes_round_as_often_as_needed() -> None:
    batches = endless_batches(torch.arange(10), 4, seed=0, n_batches=8)
    assert len(batches) == 8
    assert torch.cat(batches[:3]).sort().values.tolist() == list(range(10))


def test_seeds_depend_on_all_that_they_are_for() -> None:
    seeds = {derived_seed(0, "order", r, p) for r in range(10) for p in range(10)}
    assert len(seeds) == 100
    assert derived_seed(0, "order", 1) != derived_seed(0, "plan", 1)
    assert derived_seed(0, "order", 1) != derived_seed(1, "order", 1)
    assert derived_seed(5, "x") == derived_seed(5, "x")
    assert root_seed(7) == 7
    assert root_seed(np.random.default_rng(1)) == root_seed(np.random.default_rng(1))


def test_the_learning_rate_drops_as_in_the_paper() -> None:
    paper = TrainingSettings()
    assert [paper.learning_rate_in(r) for r in (0, 299)] == [0.01, 0.01]
    assert paper.learning_rate_in(300) == pytest.approx(0.001)
    assert paper.learning_rate_in(399) == pytest.approx(0.001)
    twice = TrainingSettings(rounds=10, learning_rate=1, learning_rate_drops=(4, 0.8))
    assert [twice.learning_rate_in(r) for r in (3, 4, 8)] == pytest.approx([1, 0.1, 0.01])


def test_differences_name_nested_settings() -> None:
    before = {"a": 1, "b": {"c": [1], "d": 2}}
    now = {"a": 1, "b": {"c": [2], "d": 2}, "e": None}
    assert differences(before, now) == ["b.c: [1] there, [2] now", "e: 'not set' there, None now"]


def test_descriptions_are_the_same_for_the_same_setting_and_differ_otherwise() -> None:
    assert described(Laplace(sharpen=3)) == described(Laplace(sharpen=3))
    assert described(Laplace(sharpen=3)) != described(Laplace(sharpen=2))
    assert described(WeakAugment(padding=1)) != described(WeakAugment(padding=2))
    first, second = nn.Linear(2, 2), nn.Linear(2, 2)
    assert described(first) == described(first)
    assert described(first) != described(second)
    assert described(test_differences_name_nested_settings).endswith("test_differences_name_nested_settings")


def test_a_checkpoint_comes_back_and_loads_with_plain_torch(tmp_path: Path) -> None:
    content: dict[str, Any] = {"w": torch.arange(5.0), "history": [{"loss": 0.5, "name": "a"}], "none": None}
    write_checkpoint(tmp_path / "a.pt", content)
    for loaded in (read_checkpoint(tmp_path / "a.pt"), torch.load(tmp_path / "a.pt", weights_only=True)):
        assert torch.equal(loaded["w"], content["w"])
        assert loaded["history"] == content["history"]


@given(st.data())
@settings(max_examples=30, deadline=None)
def test_no_cut_and_no_flipped_bit_of_a_checkpoint_goes_unnoticed(data: st.DataObject) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.pt"
        write_checkpoint(path, {"w": torch.arange(50.0)})
        whole = bytearray(path.read_bytes())
        place = data.draw(st.integers(0, len(whole) - 1))
        if data.draw(st.booleans()):
            whole = whole[:place]
        else:
            whole[place] ^= 1 << data.draw(st.integers(0, 7))
        path.write_bytes(bytes(whole))
        with pytest.raises(DataFormatError, match=r"a\.pt"):
            read_checkpoint(path)


def test_inputs_are_brought_to_mean_zero_and_deviation_one() -> None:
    images = torch.randint(0, 256, (50, 3, 4, 4), dtype=torch.uint8)
    images[:, 2] = 7  # a constant channel
    views = SampleViews(*build_augmentations("none", "none", (3, 4, 4)), *input_statistics(images))
    values = views.normalized(images)
    torch.testing.assert_close(values.mean(dim=(0, 2, 3)), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(values.std(dim=(0, 2, 3), correction=0)[:2], torch.ones(2), atol=1e-4, rtol=0)
    assert torch.isfinite(values).all()


def test_the_strong_view_begins_with_the_weak_one() -> None:
    weak, strong = build_augmentations(lambda x, g: x + 1, lambda x, g: x * 10, (1, 8, 8))
    inputs, generator = torch.ones(2, 1, 8, 8), torch.Generator()
    assert float(weak(inputs, generator).mean()) == 2
    assert float(strong(inputs, generator).mean()) == 20


def test_the_last_round_within_one_standard_error_is_chosen() -> None:
    progress = TrainingProgress(state={})
    chosen = []
    for number, accuracy in enumerate([0.2, 0.5, 0.46, 0.44, 0.47, 0.3]):
        progress.round = number
        chosen.append(progress.choose(accuracy, n_samples=100))  # the error at 0.5 is 0.05
    assert chosen == [True, True, True, False, True, False]
    assert progress.best == {"round": 5, "validation_accuracy": 0.47, "highest_validation_accuracy": 0.5}


def test_phases_of_the_paper() -> None:
    method = Laplace(warmup=2)
    assert method.phases(1) == (Phase("warm-up", trains=(0,)), Phase("warm-up", trains=(1,)))
    assert method.phases(2) == (
        Phase("robust", trains=(0,), passes=2, evidence=(1,)),
        Phase("robust", trains=(1,), passes=2, evidence=(0,)),
    )
    assert Laplace(warmup=0, n_networks=1).phases(0) == (
        Phase("robust", trains=(0,), passes=2, evidence=(0,)),
    )


def test_without_torch_the_message_says_what_to_install() -> None:
    code = (
        "import sys, importlib.util as u\n"
        "find = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'torch' else find(name, *a)\n"
        "try:\n    import laplaceconfidence.training\n"
        "except ImportError as error:\n    assert 'laplaceconfidence[train]' in str(error), error\n"
        "else:\n    raise SystemExit('imported')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
