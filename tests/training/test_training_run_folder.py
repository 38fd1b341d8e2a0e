"""The folder of a run: checkpoints, and features from the end of the warm-up and of the run."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from laplaceconfidence.exceptions import DataFormatError
from laplaceconfidence.training.methods.co_teaching import CoTeaching
from laplaceconfidence.training.methods.cross_entropy import CrossEntropy
from laplaceconfidence.training.methods.dividemix import DivideMix
from laplaceconfidence.training.methods.interface import Method
from laplaceconfidence.training.methods.laplace import Laplace
from laplaceconfidence.training.run_folder import (
    MOST_SAMPLES,
    end_of_plain_training,
    read_checkpoint,
    shown_rows,
    write_checkpoint,
)
from small_runs import noisy_digits, quick

pytestmark = pytest.mark.filterwarnings("ignore::laplaceconfidence.training.guards.TrainingWarning")


@pytest.mark.parametrize(
    ("method", "moment"),
    [
        (Laplace(warmup=2), (2, 0)),
        (Laplace(warmup=0), None),  # nothing was trained before confidences were estimated
        (Laplace(warmup=9), None),  # the run ends before
        (DivideMix(warmup=3), (3, 0)),
        (CrossEntropy(), None),
        (CoTeaching(), None),
    ],
)
def test_plain_training_ends_where_confidences_are_first_estimated(
    method: Method, moment: tuple[int, int] | None
) -> None:
    assert end_of_plain_training(method, rounds=5) == moment


def test_the_shown_samples_are_training_samples_few_and_fixed_by_the_seed() -> None:
    train = torch.arange(0, 3 * MOST_SAMPLES, 2)
    rows = shown_rows(train, seed=1)
    assert len(rows) == MOST_SAMPLES == len(rows.unique())
    assert set(rows.tolist()) <= set(train.tolist())
    assert torch.equal(rows, rows.sort().values)
    assert torch.equal(rows, shown_rows(train, seed=1))
    assert not torch.equal(rows, shown_rows(train, seed=2))


def test_the_kept_features_are_those_of_plain_training_and_of_the_chosen_network(tmp_path: Path) -> None:
    X, y, _ = noisy_digits()
    settings = {"own": {"warmup": 2}, "validation_fraction": 0.0, "learning_rate_drops": ()}
    robust = quick(out=tmp_path / "robust", **settings).fit(X, y)
    plain = quick(rounds=2, **settings).fit(X, y)
    with np.load(tmp_path / "robust" / "features" / "after-warm-up.npz") as kept:
        rows, at_warm_up, rounds = kept["rows"], kept["features"], int(kept["rounds"])
    with np.load(tmp_path / "robust" / "features" / "after-training.npz") as kept:
        np.testing.assert_array_equal(kept["rows"], rows)
        at_end = kept["features"]
    assert rounds == 2
    np.testing.assert_allclose(at_end, robust.embed(X[rows]), rtol=1e-5, atol=1e-6)
    assert at_warm_up.shape == at_end.shape
    np.testing.assert_allclose(at_warm_up, plain.embed(X[rows]), rtol=1e-5, atol=1e-6)
    assert not np.allclose(at_warm_up, at_end)


def test_plain_methods_keep_the_end_only(tmp_path: Path) -> None:
    X, y, _ = noisy_digits(120)
    quick(method="cross_entropy", out=tmp_path / "run").fit(X, y)
    assert [path.name for path in (tmp_path / "run" / "features").iterdir()] == ["after-training.npz"]


def test_without_a_folder_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    X, y, _ = noisy_digits(60)
    quick(rounds=2).fit(X, y)
    assert not list(tmp_path.iterdir())


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
