"""``laplaceconfidence tune``: settings chosen by held-out noisy labels, and nothing else."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from bench_runs import write_blobs
from laplaceconfidence.training.presets import load_preset

QUICK = (
    *("--set", "rounds=2", "--set", "method.warmup=1", "--set", "batch_size=16"),
    *("--set", "method.n_networks=1", "--set", "validation_fraction=0.3", "--device", "cpu", "--n-jobs", "1"),
)


@pytest.fixture
def blobs(tmp_path: Path) -> Path:
    return write_blobs(tmp_path, n=60)


def test_the_best_combination_on_held_out_labels_is_written_as_a_preset(
    run: Any, blobs: Path, tmp_path: Path
) -> None:
    words = ("tune", "blobs.npz", *QUICK, "--try", "sharpen=1,2", "--try", "learning_rate=0.0001,0.1")
    done = run(*words, "-o", "out")
    assert done.exit_code == 0, done.stderr
    lines = [json.loads(line) for line in (tmp_path / "out" / "results.jsonl").read_text().splitlines()]
    assert len(lines) == 4
    assert {line["noise"] for line in lines} == {"none"}
    assert not any("test" in name or "last_rounds" in name for line in lines for name in line["scores"])
    scores = {line["contender"]: line["scores"]["validation_accuracy"] for line in lines}
    best = max(scores, key=scores.__getitem__)
    assert f"Chosen: {best.partition(', ')[2]}," in done.stdout
    assert "within one standard error" in done.stdout
    preset = load_preset(str(tmp_path / "out" / "tuned.toml"))
    assert (
        f"laplace, sharpen={preset.method['sharpen']}, learning_rate={preset.training.learning_rate}" == best
    )
    assert (preset.training.rounds, preset.method["n_networks"]) == (2, 1)
    trained = run("train", "blobs.npz", "--preset", tmp_path / "out" / "tuned.toml", "--device", "cpu")
    assert trained.exit_code == 0, trained.stderr
    again = run(*words, "-o", "out")
    assert "Resuming (4 cells are done)" in again.stderr
    assert again.stdout == done.stdout
    assert run("report", "out").exit_code == 0


def test_what_is_tried_by_default_depends_on_the_targets(tmp_path: Path) -> None:
    from laplaceconfidence.cli.tune.request import TuneRequest

    paper = ("method.confidence=laplace",)
    for request in (
        TuneRequest(source="digits", n_seeds=1, changes=paper),
        TuneRequest(source="x.npz", n_seeds=1, changes=paper),
        TuneRequest(source="x.npz", n_seeds=1, preset="cifar10-sym50"),
    ):
        tried = [tuple(one.swept.values()) for one in request.bench().contenders]
        assert tried == [(sharpen, k) for sharpen in (1, 2, 3, 4) for k in (2, 10, 50, 100)]
    bench = TuneRequest(source="digits", n_seeds=1).bench()
    assert [one.swept for one in bench.contenders] == [{"label_smoothing": value} for value in (0, 0.1, 0.2)]
    assert bench.data[0].noises == ("symmetric:0.8",)  # that of the preset
    other = TuneRequest(source="x.npz", preset="embeddings-mlp", n_seeds=1).bench()
    assert [one.swept for one in other.contenders] == [{"sharpen": value} for value in (1, 2, 3, 4)]
    assert other.data[0].noises == ("none",)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--try", "sharpen"), "sharpen=1,2,3,4"),
        (("--try", "sharpen=1,2", "--set", "method.sharpen=3"), "--set does not fix"),
        (("--try", "sharpness=1,2"), "Did you mean 'sharpen'"),
        (("--method", "mixup"), "--try"),
        (("--method", "mixups"), "Did you mean 'mixup'"),
        (("--try", "sharpen=1,-1"), "sharpen"),
        (("--preset", "digits", "--try", "sharpen=1,2"), "posteriors are not sharpened"),
    ],
)
def test_mistakes_are_answered(run: Any, blobs: Path, tmp_path: Path, words: Any, said: str) -> None:
    done = run("tune", "blobs.npz", *words)
    assert done.exit_code == 2, done.stdout
    assert said in done.stderr
    assert not (tmp_path / "laplaceconfidence-tune-blobs").exists()


def test_without_held_out_labels_nothing_can_be_chosen(run: Any, blobs: Path) -> None:
    words = ("--set", "rounds=1", "--set", "validation_fraction=0", "--device", "cpu", "--try", "sharpen=1")
    done = run("tune", "blobs.npz", *words)
    assert done.exit_code == 2
    assert "validation_fraction" in done.stderr
