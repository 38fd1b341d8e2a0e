"""``laplaceconfidence bench``: what it prints and leaves, how it goes on, and what it refuses."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from rich.progress import Progress, TextColumn

from bench_runs import CLASSES, make_bench, write_blobs
from laplaceconfidence.cli.bench.progress import BenchDisplay
from laplaceconfidence.evaluation.confidence_cells import ConfidenceCells
from laplaceconfidence.evaluation.grid import Cell, Outcome, Scores
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.stages import observing, stage

QUICK = ("--noise", "symmetric:0.2", "--noise", "symmetric:0.4", "--seeds", "2", "--n-jobs", "1")
TWO = (*QUICK, "--estimators", "knn-vote,self-confidence")
TRAIN = (
    *(
        "--methods",
        "cross_entropy,laplace",
        "--noise",
        "symmetric:0.2",
        "--seeds",
        "1",
        "--test-share",
        "0.25",
    ),
    *("--set", "rounds=3", "--set", "laplace.warmup=1", "--set", "batch_size=16"),
    *("--set", "laplace.passes=1", "--set", "laplace.n_networks=1", "--set", "checkpoint_seconds=0"),
    *("--device", "cpu", "--n-jobs", "1"),
)


@pytest.fixture
def blobs(tmp_path: Path) -> Path:
    return write_blobs(tmp_path)


def lines_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]


def test_estimators_are_compared(run: Any, blobs: Path, tmp_path: Path) -> None:
    done = run("bench", "blobs.npz", *TWO)
    assert done.exit_code == 0, done.stderr
    folder = tmp_path / "laplaceconfidence-bench-blobs"
    assert "8 cells on 60 samples of 2 classes" in done.stderr
    assert "8/8 self-confidence, symmetric 40%, seed 1: AUROC " in done.stderr
    assert " left" in done.stderr
    assert "best under" in done.stdout
    assert "Mean ± standard deviation over 2 seeds" in done.stdout
    lines = lines_of(folder)
    assert len(lines) == 8
    first = lines[0]["scores"]
    assert {"auroc", "average_precision", "calibration_error", "seconds"} <= first.keys()
    assert all((folder / name).is_file() for name in ("bench.json", "tables.md", "tables.csv", "tables.tex"))
    assert json.loads((folder / "bench.json").read_text())["source"]["source"] == str(blobs)


def test_columns_used_as_features_are_recorded(run: Any, blobs: Path, tmp_path: Path) -> None:
    arrays = np.load(blobs)
    table = pd.DataFrame(arrays["features"]).add_prefix("x")
    table["label"] = arrays["labels"]
    table.to_csv(tmp_path / "t.csv", index=False)
    words = ("--features", "x*", "--estimators", "knn-vote", "--noise", "pair:0.3", "--seeds", "1")
    done = run("bench", "t.csv", *words, "-o", "out")
    assert done.exit_code == 0, done.stderr
    source = json.loads((tmp_path / "out" / "bench.json").read_text())["source"]
    assert source["feature_columns"] == [f"x{column}" for column in range(arrays["features"].shape[1])]


def test_all_estimators_are_compared_by_default(run: Any, blobs: Path, tmp_path: Path) -> None:
    done = run("bench", "blobs.npz", "--noise", "pair:0.3", "--seeds", "1", "-o", "out")
    assert done.exit_code == 0, done.stderr
    assert len(lines_of(tmp_path / "out")) == 9
    assert "refined-cross-entropy" in done.stdout
    assert "One seed." in done.stdout


def test_a_bench_goes_on_where_it_was(run: Any, blobs: Path, tmp_path: Path) -> None:
    run("bench", "blobs.npz", *TWO, "-o", "out")
    results = tmp_path / "out" / "results.jsonl"
    whole = results.read_text().splitlines(keepends=True)
    results.write_text("".join(whole[:5]) + whole[5][:20])  # as a kill in the middle of a line leaves it
    done = run("bench", "blobs.npz", *TWO, "-o", "out")
    assert done.exit_code == 0, done.stderr
    assert "Resuming (5 cells are done)" in done.stderr
    assert "6/8 " in done.stderr
    assert "5/8 " not in done.stderr

    def without_seconds(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**line, "scores": line["scores"] | {"seconds": 0}} for line in lines]

    before = [json.loads(line) for line in whole]
    assert without_seconds(lines_of(tmp_path / "out")) == without_seconds(before)
    again = run("bench", "blobs.npz", *TWO, "-o", "out")
    assert again.exit_code == 0
    assert len(lines_of(tmp_path / "out")) == 8
    assert again.stdout == done.stdout


def test_more_seeds_are_added_and_other_settings_refused(run: Any, blobs: Path, tmp_path: Path) -> None:
    run("bench", "blobs.npz", *TWO, "-o", "out")
    done = run("bench", "blobs.npz", *TWO, "--seeds", "3", "-o", "out")
    assert done.exit_code == 0, done.stderr
    assert len(lines_of(tmp_path / "out")) == 12
    other = run(
        "bench", "blobs.npz", *TWO, "-o", "out", "--noise", "asymmetric:0.4", "--mapping", f"{CLASSES[1]}=x"
    )
    assert other.exit_code == 2
    write_blobs(tmp_path, n=40)
    other = run("bench", "blobs.npz", *TWO, "-o", "out")
    assert other.exit_code == 2
    assert "source.data: '60 samples, " in other.stderr
    assert "seeds: [0, 1, 2] there, [0, 1] now" in other.stderr


def test_ctrl_c_keeps_what_is_done(
    run: Any, blobs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begins = BenchDisplay.begins

    def interrupt(self: BenchDisplay, cell: Cell) -> None:
        begins(self, cell)
        if cell.seed == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(BenchDisplay, "begins", interrupt)
    done = run("bench", "blobs.npz", *TWO, "-o", "out")
    assert done.exit_code == 130
    assert "2 of 8 cells are done and saved in out" in done.stderr
    assert (tmp_path / "out" / "tables.md").is_file()
    monkeypatch.setattr(BenchDisplay, "begins", begins)
    assert run("bench", "blobs.npz", *TWO, "-o", "out").exit_code == 0
    assert len(lines_of(tmp_path / "out")) == 8


def test_a_killed_process_loses_no_finished_cell(tmp_path: Path) -> None:
    write_blobs(tmp_path, n=300)
    words = ("bench", "blobs.npz", *QUICK, "--seeds", "40", "--estimators", "laplace,knn-vote", "-o", "out")
    process = subprocess.Popen(
        [sys.executable, "-m", "laplaceconfidence", *words], cwd=tmp_path, stderr=subprocess.DEVNULL
    )
    results = tmp_path / "out" / "results.jsonl"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (results.is_file() and results.stat().st_size > 500):
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    n_before = results.read_bytes().count(b"\n")
    assert 0 < n_before < 160
    environment = {**os.environ, "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, "-m", "laplaceconfidence", *words],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert f"Resuming ({n_before} cells are done)" in done.stderr
    lines = lines_of(tmp_path / "out")
    assert len({(line["contender"], line["noise"], line["seed"]) for line in lines}) == len(lines) == 160


def test_a_cell_that_fails_does_not_stop_the_others(
    run: Any, blobs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure = ConfidenceCells.measure

    def failing(self: ConfidenceCells, cell: Cell) -> Scores:
        if cell.contender == "knn-vote" and cell.seed == 0:
            raise InvalidInputError("too [red]few samples")
        return measure(self, cell)

    monkeypatch.setattr(ConfidenceCells, "measure", failing)
    done = run("bench", "blobs.npz", *TWO, "-o", "out")
    assert done.exit_code == 3
    assert "2 cells failed" in done.stderr
    assert "knn-vote, symmetric 20%, seed 0: too [red]few samples" in done.stderr
    monkeypatch.setattr(ConfidenceCells, "measure", measure)
    assert run("bench", "blobs.npz", *TWO, "-o", "out").exit_code == 0


def test_labels_as_given_are_scored_against_true_ones(run: Any, table: Any, tmp_path: Path) -> None:
    words = (
        "bench",
        "reviews.csv",
        "--label",
        "mood",
        "--features",
        "emb_*",
        "--noise",
        "none",
        "--seeds",
        "1",
    )
    done = run(*words, "--true-label", "truth", "--estimators", "knn-vote", "-o", "out")
    assert done.exit_code == 0, done.stderr
    assert "Features: 2 columns (emb_0, emb_1)." in done.stderr
    assert lines_of(tmp_path / "out")[0]["scores"]["noise_rate"] == pytest.approx(3 / 59)
    done = run(*words)
    assert done.exit_code == 2
    assert "--true-label" in done.stderr


def test_training_methods_are_compared(run: Any, blobs: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    done = run("bench", "blobs.npz", *TRAIN, "--estimators", "knn-vote", "-o", "out")
    assert done.exit_code == 0, done.stderr
    assert "3 cells on 45 samples of 2 classes, tested on 15 more" in done.stderr
    assert "settings are for 'laplace' and do not apply: 'cross_entropy' keeps its own" in done.stderr
    assert "best round (for comparison only)" in done.stdout
    by_task = {(line["task"], line["contender"]): line["scores"] for line in lines_of(tmp_path / "out")}
    scores = by_task["training", "laplace"]
    run_folder = tmp_path / "out" / "runs" / "laplace_symmetric-0.2_seed-0"
    rounds = [json.loads(line) for line in (run_folder / "metrics.jsonl").read_text().splitlines()]
    accuracies = [record["test_accuracy"] for record in rounds]
    assert scores["last_rounds_accuracy"] == pytest.approx(sum(accuracies) / 3)
    assert scores["best_round_accuracy"] == max(accuracies)
    assert scores["chosen_round_accuracy"] == accuracies[int(scores["chosen_round"]) - 1]
    assert scores["seconds"] > 0
    assert not (run_folder / "checkpoints").exists()
    settings = json.loads((tmp_path / "out" / "bench.json").read_text())["methods"]
    assert settings["laplace"]["method.warmup"] == 1
    assert settings["cross_entropy"]["rounds"] == 3
    assert not any(name.startswith("method.") for name in settings["cross_entropy"])
    assert run("report", "out").exit_code == 0
    assert run("report", run_folder).exit_code == 0


def test_an_interrupted_training_goes_on_inside_its_cell(
    run: Any, blobs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    from laplaceconfidence.training.loop import Loop

    finish = Loop._finish_round
    asked: list[int] = []

    def interrupt(self: Loop) -> None:
        finish(self)
        if not asked:
            asked.append(1)
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(Loop, "_finish_round", interrupt)
    stopped = run("bench", "blobs.npz", *TRAIN, "-o", "out")
    assert stopped.exit_code == 130, stopped.stderr
    assert "0 of 2 cells are done" in stopped.stderr
    assert (tmp_path / "out" / "runs" / "cross_entropy_symmetric-0.2_seed-0" / "checkpoints").is_dir()
    done = run("bench", "blobs.npz", *TRAIN, "-o", "out")
    assert done.exit_code == 0, done.stderr
    whole = run("bench", "blobs.npz", *TRAIN, "-o", "whole")
    assert whole.exit_code == 0, whole.stderr
    accuracies = [
        [line["scores"]["last_rounds_accuracy"] for line in lines_of(tmp_path / name)]
        for name in ("out", "whole")
    ]
    assert accuracies[0] == accuracies[1]


def test_a_terminal_shows_cells_rounds_and_the_time_left(tmp_path: Path) -> None:
    bench = make_bench(tmp_path, n_done=6)
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    bars = Progress(TextColumn("{task.description}|{task.total}|{task.fields[more]}"), console=console)
    progress = BenchDisplay(bench, console, bars)

    def shown() -> list[str]:
        return [f"{task.description}|{task.total}|{task.fields['more']}" for task in bars.tasks]

    cell = bench.cells[6]
    assert cell.task == "training"
    progress.begins(cell)
    assert shown()[1] == f"{cell.contender}, symmetric 20%, seed 1|None|"
    with observing(progress), stage("training", total=3) as advance:
        with stage("neighbors"):
            advance(2)
        assert shown()[1].endswith("|3|rounds")
        assert bars.tasks[1].completed == 2
    progress.ends(Outcome(cell, {"seconds": 3.5}))
    # Four cells of estimators took 0.5, 1.5, 4.5 and 5.5 s, the trainings 2.5, 3.5 and 3.5 s.
    assert shown()[0] == "Cells|16|about 28 s left"
    progress.begins(bench.cells[8])
    assert shown()[1].endswith("|None|")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--estimators", "knn-votes"), "Did you mean 'knn-vote'?"),
        (("--estimators", ","), "names with commas"),
        (("--methods", "divide_mix", "--test-share", "0.2"), "Did you mean 'dividemix'?"),
        (("--noise", "symetric:0.2"), "symmetric:0.2"),
        (("--noise", "asymmetric:0.4"), "mapping"),
        (("--noise", "asymmetric:0.4", "--mapping", "b"), "class=class"),
        (("--mapping", "a=b"), "asymmetric"),
        (("--seeds", "0"), "seeds"),
        (("--preset", "digits"), "--methods"),
        (("--test-share", "0.2"), "--methods"),
        (("--set", "rounds=3"), "--methods"),
        (("--image-size", "32"), "image_size"),
        (("--device", "cpu"), "device"),
        (("--methods", "laplace"), "--test-share"),
        (("--methods", "laplace", "--test-share", "0.2", "--set", "noise.rate=0.2"), "--noise"),
        (("--methods", "laplace", "--test-share", "0.2", "--set", "random_state=1"), "--seeds"),
        (("--methods", "laplace", "--test-share", "0.2", "--set", "roundz=1"), "rounds"),
        (("--methods", "laplace", "--test-share", "0.2", "--set", "wamup=1"), "mean 'laplace.warmup'?"),
        (("--methods", "laplace", "--test-share", "0.2", "--set", "passes=1"), "Write laplace.passes."),
        (("--methods", "all", "--test-share", "0.2", "--set", "method.ramp=1"), "co_teaching.ramp or div"),
        (("--methods", "laplace", "--test-share", "0.2", "--set", "method=dividemix"), "--methods"),
        (("--methods", "laplace", "--test-share", "0.2", "--set", "dividemix.ramp=1"), "(laplace)"),
        (("--methods", "laplace", "--test-share", "0.2", "--set", "laplace.ramp=1"), "It has warmup, "),
        (("-o", "blobs.npz"), "must be a folder"),
    ],
)
def test_mistakes_are_answered(run: Any, blobs: Path, tmp_path: Path, words: Any, said: str) -> None:
    if "--methods" in words:
        pytest.importorskip("torch")
    done = run("bench", "blobs.npz", *words)
    assert done.exit_code == 2, done.stdout
    assert said in done.stderr
    assert not (tmp_path / "laplaceconfidence-bench-blobs").exists()
