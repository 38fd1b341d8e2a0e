"""``laplaceconfidence bench``: what it prints and leaves, how it goes on, and what it refuses."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from rich.console import Console
from rich.progress import Progress, TextColumn

from bench_runs import CLASSES, make_bench, write_blobs
from laplaceconfidence.cli.bench.progress import BenchDisplay
from laplaceconfidence.evaluation.bench_file import bench_names
from laplaceconfidence.evaluation.confidence_cells import ConfidenceCells
from laplaceconfidence.evaluation.grid import Cell, Outcome, Scores
from laplaceconfidence.evaluation.metrics import score_confidence
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
    assert json.loads((folder / "bench.json").read_text())["data"]["blobs"]["source"] == str(blobs)


def test_columns_used_as_features_are_recorded(run: Any, blobs: Path, tmp_path: Path) -> None:
    arrays = np.load(blobs)
    table = pd.DataFrame(arrays["features"]).add_prefix("x")
    table["label"] = arrays["labels"]
    table.to_csv(tmp_path / "t.csv", index=False)
    words = ("--features", "x*", "--estimators", "knn-vote", "--noise", "pair:0.3", "--seeds", "1")
    done = run("bench", "t.csv", *words, "-o", "out")
    assert done.exit_code == 0, done.stderr
    source = json.loads((tmp_path / "out" / "bench.json").read_text())["data"]["t"]
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
        of_machine = {"seconds": 0, "peak_memory": 0}
        return [{**line, "scores": line["scores"] | of_machine} for line in lines]

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
    assert "data.blobs.data: '60 samples, " in other.stderr
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
    run_folder = tmp_path / "out" / "runs" / "blobs_laplace_symmetric-0.2_seed-0"
    rounds = [json.loads(line) for line in (run_folder / "metrics.jsonl").read_text().splitlines()]
    accuracies = [record["test_accuracy"] for record in rounds]
    assert scores["last_rounds_accuracy"] == pytest.approx(sum(accuracies) / 3)
    assert scores["best_round_accuracy"] == max(accuracies)
    assert scores["chosen_round_accuracy"] == accuracies[int(scores["chosen_round"]) - 1]
    assert scores["seconds"] > 0
    assert not (run_folder / "checkpoints").exists()
    refined = pd.read_parquet(run_folder / "refined_labels.parquet")
    truth = pd.read_parquet(run_folder / "truth.parquet")
    assert truth["split"].value_counts().to_dict() == {"train": 45, "test": 15}
    right = refined["given_label"].to_numpy() == truth["true_label"].to_numpy()[:45]
    expected = score_confidence(refined["confidence"], right)
    assert scores["auroc"] == pytest.approx(expected.auroc)
    assert scores["f1_right"] == pytest.approx(expected.f1_right)
    assert scores["f1_wrong"] == pytest.approx(expected.f1_wrong)
    assert scores["validation_accuracy"] == max(record["validation_accuracy"] for record in rounds)
    assert len(list((run_folder / "confidences").iterdir())) == 2  # the rounds after the warm-up
    tables = (tmp_path / "out" / "tables.md").read_text()
    assert "## Training methods: F1 of clean labels" in tables
    assert "F1 of clean labels" not in done.stdout
    contenders = json.loads((tmp_path / "out" / "bench.json").read_text())["contenders"]
    settings = {one["kind"]: one["settings"]["blobs, symmetric:0.2"] for one in contenders}
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
    assert (tmp_path / "out" / "runs" / "blobs_cross_entropy_symmetric-0.2_seed-0" / "checkpoints").is_dir()
    done = run("bench", "blobs.npz", *TRAIN, "-o", "out")
    assert done.exit_code == 0, done.stderr
    whole = run("bench", "blobs.npz", *TRAIN, "-o", "whole")
    assert whole.exit_code == 0, whole.stderr
    accuracies = [
        [line["scores"]["last_rounds_accuracy"] for line in lines_of(tmp_path / name)]
        for name in ("out", "whole")
    ]
    assert accuracies[0] == accuracies[1]


FILE = """
title = "Neighbors"
seeds = 2

[[data]]
source = "blobs.npz"
noises = ["symmetric:0.2", "symmetric:0.4"]

[[data]]
name = "again"
source = "blobs.npz"
noises = ["pair:0.3"]

[[contender]]
name = "LC"
estimator = "laplace"
n_neighbors = [2, 5]

[[contender]]
estimator = "knn-vote"
data = ["again"]
"""


def test_a_bench_file_states_data_contenders_and_sweeps(run: Any, blobs: Path, tmp_path: Path) -> None:
    (tmp_path / "table.toml").write_text(FILE)
    dry = run("bench", "table.toml", "--dry-run")
    assert dry.exit_code == 0, dry.stderr
    assert "Neighbors: 14 cells, 0 of them done." in dry.stdout
    assert "LC, n_neighbors=5" in dry.stdout
    assert not (tmp_path / "laplaceconfidence-bench-table").exists()
    done = run("bench", "table.toml", "--n-jobs", "1")
    assert done.exit_code == 0, done.stderr
    assert "again: 60 samples of 2 classes" in done.stderr
    folder = tmp_path / "laplaceconfidence-bench-table"
    lines = lines_of(folder)
    assert len(lines) == 14
    by_cell = {(line["contender"], line["data"], line["noise"], line["seed"]): line for line in lines}
    assert ("knn-vote", "again", "pair:0.3", 1) in by_cell
    assert not any(name == "knn-vote" and data == "blobs" for name, data, _, _ in by_cell)
    few, more = (by_cell[f"LC, n_neighbors={k}", "blobs", "symmetric:0.4", 0] for k in (2, 5))
    assert few["scores"]["calibration_error"] != more["scores"]["calibration_error"]
    assert lines[0]["machine"]
    text = (folder / "tables.md").read_text()
    assert "| blobs, symmetric 20% | blobs, symmetric 40% | again, pair 30% |" in text
    dry = run("bench", "table.toml", "--dry-run")
    assert "14 of them done" in dry.stdout
    assert "Nothing is left to do" in dry.stdout
    assert run("report", folder).exit_code == 0


def test_the_bench_files_of_the_package_are_listed(run: Any) -> None:
    done = run("bench", "--list")
    assert done.exit_code == 0, done.stderr
    for name in bench_names():
        assert name in done.stdout


def test_shards_measure_every_cell_once_and_finished_ones_never_again(
    run: Any, blobs: Path, tmp_path: Path
) -> None:
    (tmp_path / "table.toml").write_text(FILE)
    words = ("bench", "table.toml", "--n-jobs", "1", "-o", "out")
    first = run(*words, "--shard", "1/2")
    assert first.exit_code == 0, first.stderr
    assert "shard 1/2, 7 of 14 cells" in first.stderr
    assert "7/7 " in first.stderr
    again = run(*words, "--shard", "1/2")
    assert "Resuming (7 cells are done)" in again.stderr
    assert "1/7" not in again.stderr
    second = run(*words, "--shard", "2/2")
    assert second.exit_code == 0, second.stderr
    files = sorted((tmp_path / "out" / "shards").glob("*/results.jsonl"))
    assert [path.parent.name for path in files] == ["1-of-2", "2-of-2"]
    lines = [json.loads(line) for path in files for line in path.read_text().splitlines()]
    assert len({json.dumps({**line, "scores": 0}, sort_keys=True) for line in lines}) == len(lines) == 14
    whole = run(*words)
    assert "Resuming (14 cells are done)" in whole.stderr
    assert not (tmp_path / "out" / "results.jsonl").exists()
    other = run(*words, "--shard", "2/3")  # another division of the same cells finds them done
    assert other.exit_code == 0
    assert not (tmp_path / "out" / "shards" / "2-of-3" / "results.jsonl").exists()


def test_a_shard_and_a_whole_bench_do_not_run_in_one_folder(
    run: Any, blobs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from laplaceconfidence import folder_lock

    monkeypatch.setattr(folder_lock, "PATIENCE", 0.0)
    (tmp_path / "table.toml").write_text(FILE)
    words = ("bench", "table.toml", "--n-jobs", "1", "-o", "out")
    with folder_lock.FolderLock(tmp_path / "out"):
        refused = run(*words, "--shard", "1/2")
    assert refused.exit_code == 2
    assert "A bench without --shard is running" in refused.stderr
    with folder_lock.FolderLock(tmp_path / "out" / "shards" / "1-of-2"):
        refused = run(*words, "--shard", "1/2")
        assert "measures the shard 1/2 already" in refused.stderr
        assert run(*words, "--shard", "2/2").exit_code == 0


def test_any_failure_of_a_cell_is_recorded_and_the_rest_goes_on(
    run: Any, blobs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure = ConfidenceCells.measure

    def failing(self: ConfidenceCells, cell: Cell) -> Scores:
        if cell.contender == "knn-vote":
            raise MemoryError("no room")
        return measure(self, cell)

    monkeypatch.setattr(ConfidenceCells, "measure", failing)
    (tmp_path / "table.toml").write_text(FILE)
    done = run("bench", "table.toml", "-o", "out")
    assert done.exit_code == 3
    assert "MemoryError: no room (test_bench.py, line " in done.stderr
    assert len(lines_of(tmp_path / "out")) == 14


def test_a_bench_file_of_methods_with_a_named_test_set(run: Any, blobs: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    arrays = np.load(blobs)
    np.savez(
        tmp_path / "both.npz",
        train=arrays["features"],
        train_labels=arrays["labels"],
        test=arrays["features"][:20],
        test_labels=arrays["labels"][:20],
    )
    (tmp_path / "table.toml").write_text(
        """
        seeds = [4]
        preset = "embeddings-mlp"
        passes = 4
        metrics = ["best_round_accuracy", "last_rounds_accuracy"]
        figures = ["f1", "accuracy", "confusion", "features"]
        [training]
        batch_size = 16
        [[data]]
        name = "both"
        features = "train"
        label = "train_labels"
        samples = 40
        noises = ["symmetric:0.2"]
        [[data.test]]
        name = "held out"
        features = "test"
        label = "test_labels"
        [[data.test]]
        name = "twice"
        features = "test"
        label = "test_labels"
        [[contender]]
        method = "cross_entropy"
        [[contender]]
        name = "LC"
        method = "laplace"
        n_networks = 1
        warmup = 1
        passes = [1, 2]
        """
    )
    words = ("bench", "table.toml", "--data", "both=both.npz", "--device", "cpu", "--n-jobs", "1")
    dry = run(*words, "--dry-run")
    assert dry.exit_code == 0, dry.stderr
    assert "About " in dry.stdout
    assert "tested on held out (20), twice (20)" in dry.stdout
    done = run(*words, "-o", "out")
    assert done.exit_code == 0, done.stderr
    lines = lines_of(tmp_path / "out")
    assert [line["seed"] for line in lines] == [4, 4, 4]
    for line in lines:
        scores = line["scores"]
        assert scores["chosen_round_accuracy@twice"] == scores["chosen_round_accuracy"]
    contenders = json.loads((tmp_path / "out" / "bench.json").read_text())["contenders"]
    rounds = {one["name"]: one["settings"]["both, symmetric:0.2"]["rounds"] for one in contenders}
    assert rounds == {"cross_entropy": 4, "LC, passes=1": 4, "LC, passes=2": 3}
    assert len(list((tmp_path / "out" / "runs").iterdir())) == 3
    titles = [line for line in (tmp_path / "out" / "tables.md").read_text().splitlines() if line[:1] == "#"]
    assert [title.partition(": ")[2] for title in titles] == [
        "Test accuracy, best round (for comparison only)",
        "Test accuracy on twice, best round (for comparison only)",
        "Test accuracy, mean of the last 10 rounds",
        "Test accuracy on twice, mean of the last 10 rounds",
    ]
    figures = {path.name for path in (tmp_path / "out" / "figures").glob("*.pdf")}
    assert {
        "sweep-lc-passes.pdf",
        "f1-of-clean-labels-both-symmetric-0-2.pdf",
        "test-accuracy-both-symmetric-0-2.pdf",
        "confusions-cross-entropy-both.pdf",
        "features-both.pdf",
    } <= figures
    html = (tmp_path / "out" / "report.html").read_text()
    assert "On the diagonal: symmetric 20%: given labels " in html


def test_mini_webvision_with_both_test_sets_top_1_and_top_5(run: Any, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    root, synsets = tmp_path / "webvision", [f"n{code:08d}" for code in range(60)]
    (root / "info").mkdir(parents=True)
    (root / "info/synsets.txt").write_text("\n".join(synsets))
    names = [(f"google/q{label + 1:04d}/{number}.png", label) for number in range(6) for label in (0, 1)]
    (root / "info/train_filelist_google.txt").write_text("".join(f"{name} {code}\n" for name, code in names))
    (root / "info/val_filelist.txt").write_text("a.png 0\nb.png 1\n")
    for path, label in (
        *((root / name, label) for name, label in names),
        *((root / "val_images_256" / f"{name}.png", label) for name, label in (("a", 0), ("b", 1))),
        *((tmp_path / "ilsvrc" / synsets[label] / "x.png", label) for label in (0, 1)),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 60, (14, 20, 3), dtype=np.uint8)
        pixels[..., label] += 180
        Image.fromarray(pixels).save(path)
    text = (resources.files("laplaceconfidence") / "benches" / "table-webvision.toml").read_text()
    text = re.sub(r"method = \[.*\]", 'method = ["cross_entropy"]', text)
    changed = text[: text.rindex("[[contender]]")] + "[training]\nnetwork = 'small_cnn'\nrounds = 2\n"
    (tmp_path / "table.toml").write_text(changed + "weak = { resized_crop = 8 }\nbatch_size = 8\n")
    done = run(
        *("bench", "table.toml", "--data", "Mini-WebVision=webvision", "--data", "ILSVRC12=ilsvrc"),
        *("--device", "cpu", "--n-jobs", "1", "-o", "out"),
    )
    assert done.exit_code == 0, done.stderr
    (line,) = lines_of(tmp_path / "out")
    scores = line["scores"]
    for end in ("", "@ILSVRC12"):
        assert 0 <= scores[f"best_round_accuracy{end}"] <= 1
        assert scores[f"chosen_round_top_5_accuracy{end}"] >= scores[f"chosen_round_accuracy{end}"]
    assert "Top-5 test accuracy on ILSVRC12, chosen round" in (tmp_path / "out" / "tables.md").read_text()
    settings = next((tmp_path / "out" / "runs").glob("*/settings.json")).read_text()
    assert json.loads(settings)["image_size"] == 320


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--noise", "pair:0.1"), "a bench file states everything"),
        (("--label", "x"), "a bench file states everything"),
        (("--data", "blobs"), "name=path"),
        (("--data", "blub=x"), "Did you mean 'blobs'"),
        (("--set", "rounds=3"), "training methods are compared"),
        (("--shard", "3/2"), "2/8"),
    ],
)
def test_options_beside_a_bench_file_are_checked(
    run: Any, blobs: Path, tmp_path: Path, words: Any, said: str
) -> None:
    (tmp_path / "table.toml").write_text(FILE)
    done = run("bench", "table.toml", *words)
    assert done.exit_code == 2, done.stdout
    assert said in done.stderr


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
