"""Runs that are killed, stopped or damaged end exactly as if nothing had happened."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from laplaceconfidence.exceptions import Interrupted, LaplaceConfidenceWarning, RunFolderError
from laplaceconfidence.training.run_folder import read_checkpoint
from small_runs import noisy_digits, quick, weights

# So few samples make the guards speak.
pytestmark = pytest.mark.filterwarnings("ignore::laplaceconfidence.training.guards.TrainingWarning")

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "training_resume.py"


def assert_same_run(first: Path, second: Path) -> None:
    for name in ("metrics.jsonl", "settings.json", "summary.json", "refined_labels.parquet"):
        assert (first / name).read_bytes() == (second / name).read_bytes(), name
    for part in ("confidences", "features"):
        names = sorted(path.name for path in (first / part).iterdir())
        assert names == sorted(path.name for path in (second / part).iterdir())
        for name in names:
            assert (first / part / name).read_bytes() == (second / part / name).read_bytes(), name
    for name in ("last.pt", "best.pt"):
        ours, theirs = (read_checkpoint(folder / "checkpoints" / name) for folder in (first, second))
        for one, other in zip(ours["networks"], theirs["networks"], strict=True):
            assert all(torch.equal(one[key], other[key]) for key in one)


def test_killed_at_random_moments_a_run_ends_bit_identical(tmp_path: Path) -> None:
    sizes = ["--kills", "3", "--samples", "150", "--rounds", "5", "--seed", "1"]
    subprocess.run(
        [sys.executable, str(BENCHMARK), *sizes, "--results", str(tmp_path / "results.json")],
        check=True,
        capture_output=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    result = json.loads((tmp_path / "results.json").read_text())
    assert result["differing"] == []
    assert any(0 < rounds < 5 for rounds in result["rounds_done_at_each_kill"])


def test_asked_to_stop_a_run_saves_says_how_to_go_on_and_ends_bit_identical(tmp_path: Path) -> None:
    X, y, _ = noisy_digits()
    whole = quick(random_state=3, out=tmp_path / "whole").fit(X, y)
    stopped = quick(random_state=3, out=tmp_path / "stopped", checkpoint_seconds=1e9)
    with pytest.raises(Interrupted, match="same folder") as caught:
        stopped.fit(X, y, listeners=[lambda record: signal.raise_signal(signal.SIGTERM)])
    assert caught.value.folder == tmp_path / "stopped"
    saved = read_checkpoint(tmp_path / "stopped" / "checkpoints" / "last.pt")["progress"]
    assert (saved["round"], saved["phase"], saved["step"]) == (1, 0, 1)  # the first step after the signal
    stopped.fit(X, y)
    assert_same_run(tmp_path / "whole", tmp_path / "stopped")
    assert all(torch.equal(a, b) for a, b in zip(weights(whole), weights(stopped), strict=True))


@pytest.mark.parametrize("method", ["cross_entropy", "co_teaching", "dividemix"])
def test_every_method_survives_being_stopped(tmp_path: Path, method: str) -> None:
    X, y, _ = noisy_digits(120)
    quick(method=method, out=tmp_path / "whole").fit(X, y)
    stopped = quick(method=method, out=tmp_path / "stopped")
    for _ in range(2):
        with pytest.raises(Interrupted):
            stopped.fit(X, y, listeners=[lambda record: signal.raise_signal(signal.SIGINT)])
    stopped.fit(X, y)
    assert_same_run(tmp_path / "whole", tmp_path / "stopped")


@pytest.mark.parametrize("damage", ["cut", "changed", "empty"])
def test_a_damaged_checkpoint_is_noticed_and_the_one_before_is_used(tmp_path: Path, damage: str) -> None:
    X, y, _ = noisy_digits(120)
    quick(out=tmp_path / "whole").fit(X, y)
    run = quick(out=tmp_path / "damaged")
    run.fit(X, y)
    last = tmp_path / "damaged" / "checkpoints" / "last.pt"
    content = bytearray(last.read_bytes())
    if damage == "changed":
        content[len(content) // 2] ^= 1
    last.write_bytes({"cut": bytes(content[:-100]), "changed": bytes(content), "empty": b""}[damage])
    with pytest.warns(LaplaceConfidenceWarning, match="is resumed from the one before"):
        run.fit(X, y)
    assert_same_run(tmp_path / "whole", tmp_path / "damaged")


def test_without_a_whole_checkpoint_the_run_says_that_it_starts_over(tmp_path: Path) -> None:
    X, y, _ = noisy_digits(120)
    quick(out=tmp_path / "whole").fit(X, y)
    run = quick(out=tmp_path / "damaged")
    run.fit(X, y)
    for name in ("last.pt", "previous.pt"):
        (tmp_path / "damaged" / "checkpoints" / name).write_bytes(b"")
    with pytest.warns(LaplaceConfidenceWarning, match="starts over at round 1") as caught:
        run.fit(X, y)
    assert not any("one before" in str(warning.message) for warning in caught)
    assert_same_run(tmp_path / "whole", tmp_path / "damaged")


def test_resuming_with_other_settings_or_data_shows_the_difference(tmp_path: Path) -> None:
    X, y, _ = noisy_digits(120)
    quick(out=tmp_path / "run").fit(X, y)
    with pytest.raises(RunFolderError, match=r"training.rounds: 3 there, 4 now"):
        quick(out=tmp_path / "run", rounds=4).fit(X, y)
    with pytest.raises(RunFolderError, match=r"method.sharpen: 2.0 there, 3 now"):
        quick(own={"sharpen": 3}, out=tmp_path / "run").fit(X, y)
    with pytest.raises(RunFolderError, match="data: "):
        quick(out=tmp_path / "run").fit(X[::-1], y)


def test_killed_while_its_first_file_is_written_a_run_can_begin_again(tmp_path: Path) -> None:
    X, y, _ = noisy_digits(60)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".settings.json.x1.json").write_text("{")
    quick(out=tmp_path / "run", rounds=2).fit(X, y)
    assert not list((tmp_path / "run").rglob(".*"))


def test_a_finished_run_is_taken_up_without_training(tmp_path: Path) -> None:
    X, y, _ = noisy_digits(120)
    first = quick(out=tmp_path / "run").fit(X, y)
    rounds: list[object] = []
    second = quick(out=tmp_path / "run").fit(X, y, listeners=[rounds.append])
    assert rounds == []
    assert (first.predict_proba(X) == second.predict_proba(X)).all()
    assert first.history_ == second.history_


def test_a_run_without_a_seed_goes_on_with_the_seed_it_drew(tmp_path: Path) -> None:
    X, y, _ = noisy_digits(120)
    run = quick(out=tmp_path / "run", random_state=None)
    with pytest.raises(Interrupted):
        run.fit(X, y, listeners=[lambda record: signal.raise_signal(signal.SIGTERM)])
    assert len(run.fit(X, y).history_) == 3


@pytest.fixture
def heeded_interrupts() -> Iterator[None]:
    """A shell that starts tests in the background makes them ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeded_interrupts")
def test_signals_are_left_alone_without_a_folder_and_given_back_with_one(tmp_path: Path) -> None:
    X, y, _ = noisy_digits(60)
    with pytest.raises(KeyboardInterrupt):
        quick().fit(X, y, listeners=[lambda record: signal.raise_signal(signal.SIGINT)])
    quick(out=tmp_path / "run").fit(X, y)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
