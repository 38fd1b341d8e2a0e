"""``laplaceconfidence train``: what it prints, what it writes, how it resumes and what it refuses."""

import io
import json
import os
import signal
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from rich.console import Console
from starlette.testclient import TestClient

from laplaceconfidence import folder_lock
from laplaceconfidence.cli.train import data as training_data
from laplaceconfidence.cli.train.command import _quiet_unless_first
from laplaceconfidence.cli.train.progress import RoundDisplay
from laplaceconfidence.data.noise import add_noise
from laplaceconfidence.data.readers import read_dataset
from laplaceconfidence.exceptions import AdjustedSettingWarning
from laplaceconfidence.records import read_audit
from laplaceconfidence.records.refined_run import read_suggestions
from laplaceconfidence.records.sample_arrays import SampleArrays
from laplaceconfidence.review.guard import Access
from laplaceconfidence.review.server import create_app
from laplaceconfidence.review.session import ReviewSession
from laplaceconfidence.training.callbacks import TrainingContext
from laplaceconfidence.training.classifier import RobustClassifier
from laplaceconfidence.training.methods.dividemix import DivideMix
from laplaceconfidence.training.methods.registry import METHODS, settings_of
from laplaceconfidence.training.networks.registry import NETWORKS
from laplaceconfidence.training.run_settings import described

QUICK = (
    *("--rounds", "3", "--batch-size", "16", "--device", "cpu", "--n-jobs", "1"),
    *("--set", "checkpoint_seconds=0", "--set", "method.warmup=1", "--set", "method.passes=1"),
    *("--set", "method.n_networks=1"),
)
GRAPH = ("--set", "method.n_neighbors=5")


def draw(path: Path, label: int, rng: np.random.Generator, side: int = 8) -> None:
    """Two classes: dark images and light ones."""
    pixels = rng.integers(0, 60, (side, side, 3)) + 150 * label
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels.astype(np.uint8)).save(path)


def image_folder(folder: Path, n: int = 24, side: int = 8, seed: int = 0) -> Path:
    rng = np.random.default_rng(seed)
    for number in range(n):
        label = number % 2
        draw(folder / ("dark", "light")[label] / f"{number:03d}.png", label, rng, side)
    return folder


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return image_folder(tmp_path / "photos")


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_folder_of_images_is_trained_on(run: Any, photos: Path, tmp_path: Path) -> None:
    image_folder(tmp_path / "new", n=10, seed=1)
    done = run("train", "photos", *QUICK, "--test", "new")
    assert done.exit_code == 0, done.stderr
    assert (
        "24 samples of 2 classes; preset image-folder-tiny (selected for this data and machine)"
        in done.stderr
    )
    assert "Round 3/3: loss " in done.stderr
    assert "validation" in done.stderr
    assert ", confidence " in done.stderr
    assert "Trained for 3 rounds; round " in done.stdout
    assert "mean of the last 10 rounds" in done.stdout
    assert "The refined labels differ from " in done.stdout
    folder = tmp_path / "laplaceconfidence-train-photos"
    refined = pd.read_parquet(folder / "refined_labels.parquet")
    assert sorted(refined.id)[:2] == ["dark/000.png", "dark/002.png"]
    assert set(refined.given_label) == {"dark", "light"}
    source = json.loads((folder / "source.json").read_text())
    assert source["source"] == str(photos)
    assert source["preset"] == "image-folder-tiny"
    assert source["preset_settings"]["training"]["rounds"] == 3
    assert len(read_lines(folder / "metrics.jsonl")) == 3


def interrupt_after_first_round(monkeypatch: pytest.MonkeyPatch) -> None:
    show = RoundDisplay.on_round_end

    def interrupt(self: RoundDisplay, context: TrainingContext) -> None:
        show(self, context)
        if context.round == 1:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(RoundDisplay, "on_round_end", interrupt)


def test_a_run_is_stopped_resumed_finished_and_replaced(
    run: Any, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("train", "photos", *QUICK)
    assert run(*words, "--out", "whole").exit_code == 0
    with monkeypatch.context() as patch:
        interrupt_after_first_round(patch)
        patch.setattr(sys, "argv", ["laplaceconfidence", "train", "my photos", "--overwrite"])
        stopped = run(*words, "--out", "run")
    assert stopped.exit_code == 130
    assert "Everything so far is saved in run" in stopped.stderr
    assert "To resume, run the same command again:\n  laplaceconfidence train 'my photos'\n" in stopped.stderr
    other = run(*words, "--out", "run", "--set", "learning_rate=0.5")
    assert other.exit_code == 2
    assert "training.learning_rate: 0.05 there, 0.5 now" in other.stderr
    gone_on = run(*words, "--out", "run", "--resume")
    assert gone_on.exit_code == 0, gone_on.stderr
    assert "Resuming the run in run" in gone_on.stderr
    assert "Round 1/3" not in gone_on.stderr
    assert read_lines(tmp_path / "run/metrics.jsonl") == read_lines(tmp_path / "whole/metrics.jsonl")
    again = run(*words, "--out", "run")
    assert again.exit_code == 2
    assert "The run in run is finished" in again.stderr
    assert run(*words, "--out", "run", "--overwrite").exit_code == 0
    (tmp_path / "run" / "thesis.tex").write_text("mine")
    refused = run(*words, "--out", "run", "--overwrite")
    assert refused.exit_code == 2
    assert "thesis.tex" in refused.stderr
    assert (tmp_path / "run" / "summary.json").exists()


def test_bad_images_are_named_or_skipped_and_listed(run: Any, photos: Path, tmp_path: Path) -> None:
    broken = photos / "dark" / "004.png"
    broken.write_bytes(broken.read_bytes()[:50])
    refused = run("train", "photos", *QUICK)
    assert refused.exit_code == 2
    assert "dark/004.png cannot be decoded" in refused.stderr
    assert "--skip-bad" in refused.stderr
    done = run("train", "photos", *QUICK, "--skip-bad", "--out", "run")
    assert done.exit_code == 0, done.stderr
    assert "1 image left out because of decoding errors (run/skipped_images.txt)" in done.stdout
    assert str(broken) in done.stdout
    assert (tmp_path / "run/skipped_images.txt").read_text().startswith(f"{broken}\t")
    assert len(pd.read_parquet(tmp_path / "run/refined_labels.parquet")) == 23
    exported = run("export", "run", "-o", "new.csv")
    assert exported.exit_code == 0, exported.stderr
    assert "Since the training: 1 image left out then because of decoding errors" in exported.stdout
    assert len(pd.read_csv(tmp_path / "new.csv")) == 24


def test_images_of_different_sizes_need_a_size(run: Any, photos: Path, tmp_path: Path) -> None:
    draw(photos / "dark" / "large.png", 0, np.random.default_rng(0), side=20)
    refused = run("train", "photos", *QUICK)
    assert refused.exit_code == 2
    assert "'image_size' parameter must be given" in refused.stderr
    done = run("train", "photos", *QUICK, "--image-size", "6", "--test-share", "0.2")
    assert done.exit_code == 0, done.stderr
    settings = json.loads((tmp_path / "laplaceconfidence-train-photos/settings.json").read_text())
    assert settings["data"].startswith("20 samples of 3 x 6 x 6")


def test_the_size_of_the_images_selects_the_preset(run: Any, tmp_path: Path) -> None:
    image_folder(tmp_path / "photos", n=12, side=120)
    words = ("--rounds", "1", "--device", "cpu", "--method", "cross_entropy")
    for size, out in ((("--image-size", "20"), "option"), (("--set", "data.image_size=20"), "set")):
        done = run("train", "photos", *words, *size, "--out", out)
        assert done.exit_code == 0, done.stderr
        assert "preset image-folder-small" in done.stderr
    words = (*words, "--set", "validation_fraction=2", "--image-size", "120")  # refused once it is announced
    assert "preset image-folder-small" in run("train", "photos", *words, "--out", "cpu").stderr


def test_large_image_files_are_resized_where_there_is_no_gpu(run: Any, tmp_path: Path) -> None:
    image_folder(tmp_path / "photos", n=12, side=120)
    draw(tmp_path / "photos" / "dark" / "larger.png", 0, np.random.default_rng(0), side=150)
    words = ("--rounds", "1", "--device", "cpu", "--method", "cross_entropy")
    done = run("train", "photos", *words, "--out", "small")
    assert done.exit_code == 0, done.stderr
    assert "images of more than 96 pixels are resized to 64 x 64 pixels" in done.stderr
    assert "--preset image-folder-large" in done.stderr
    assert "preset image-folder-small" in done.stderr
    settings = json.loads((tmp_path / "small/settings.json").read_text())
    assert (settings["network"], settings["image_size"]) == ("small_resnet", 64)
    assert " of 3 x 64 x 64," in settings["data"]
    fitted = RobustClassifier(method="cross_entropy", rounds=1, device="cpu")
    with pytest.warns(AdjustedSettingWarning, match="are resized to 64 x 64 pixels"):
        fitted.fit(read_dataset(tmp_path / "photos"))
    assert json.loads(json.dumps(fitted.settings_)) | {"data": settings["data"]} == settings
    assert fitted.image_size is None
    assert len(fitted.predict(read_dataset(tmp_path / "photos"))) == 13


@pytest.mark.parametrize("command", ["train", "bench"])
def test_large_image_files_keep_their_size_on_a_gpu(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr(training_data, "choose_device", lambda device: torch.device("cuda"))
    image_folder(tmp_path / "photos", n=12, side=120)
    draw(tmp_path / "photos" / "dark" / "larger.png", 0, np.random.default_rng(0), side=150)
    methods = ("--methods", "cross_entropy", "--test-share", "0.5") if command == "bench" else ()
    refused = run(command, "photos", *methods, "--out", "large")
    assert refused.exit_code == 2
    assert "'image_size' parameter must be given where images differ in size" in refused.stderr
    assert "resized to 64" not in refused.stderr
    (tmp_path / "photos" / "dark" / "larger.png").unlink()
    if command == "train":
        refused = run(command, "photos", "--set", "validation_fraction=2", "--out", "large")
        assert "preset image-folder-large (selected for this data and machine)" in refused.stderr


def test_a_network_that_is_named_gets_images_of_their_own_size(run: Any, tmp_path: Path) -> None:
    image_folder(tmp_path / "photos", n=12, side=120)
    words = ("--rounds", "1", "--device", "cpu", "--method", "cross_entropy", "--network", "small_cnn")
    done = run("train", "photos", *words, "--out", "run")
    assert done.exit_code == 0, done.stderr
    assert "resized" not in done.stderr
    settings = json.loads((tmp_path / "run/settings.json").read_text())
    assert settings["image_size"] is None
    assert " of 3 x 120 x 120," in settings["data"]


def test_a_folder_that_another_process_writes_to_is_left_alone(
    run: Any, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_lock, "PATIENCE", 0.0)
    words = ("train", "photos", *QUICK, "--out", "run")
    assert run(*words).exit_code == 0
    before = (tmp_path / "run" / "summary.json").read_bytes()
    with folder_lock.FolderLock(tmp_path / "run"), folder_lock.FolderLock(tmp_path / "new"):
        for refused in (run(*words, "--overwrite"), run(*words[:-1], "new")):
            assert refused.exit_code == 2
            assert "Another process is writing into" in refused.stderr
    assert (tmp_path / "run" / "summary.json").read_bytes() == before
    assert list((tmp_path / "new").iterdir()) == []


def test_features_and_missing_labels(run: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(40) % 2
    X = np.eye(2)[labels] + rng.normal(scale=0.1, size=(40, 2))
    words = np.array(["no", "yes"], dtype=object)[labels]
    words[3] = None
    pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "mood": words, "id": [f"r{i}" for i in range(40)]}).to_csv(
        tmp_path / "d.csv", index=False
    )
    vectors = ("--label", "mood", "--features", "a", "--features", "b")
    done = run("train", "d.csv", *vectors, *QUICK, "--set", "method.confidence=laplace", *GRAPH)
    assert done.exit_code == 0, done.stderr
    assert "1 without a label; preset embeddings-mlp" in done.stderr
    assert "Features: 2 columns (a, b)." in done.stderr
    refined = pd.read_parquet(tmp_path / "laplaceconfidence-train-d/refined_labels.parquet")
    row = refined.set_index("id").loc["r3"]
    assert pd.isna(row.given_label)
    assert np.isnan(row.confidence)


def test_verified_labels_reach_a_method_that_learns_from_them(run: Any, photos: Path, tmp_path: Path) -> None:
    rows = [("dark/000.png", "dark"), ("light/001.png", "dark"), ("dark/002.png", ""), ("gone.png", "dark")]
    pd.DataFrame(rows, columns=["id", "verified_label"]).to_csv(tmp_path / "seen.csv", index=False)
    quick = [*QUICK[: QUICK.index("--set")], "--set", "validation_fraction=0", "--audited", "seen.csv"]
    refused = run("train", "photos", *quick)
    assert refused.exit_code == 2
    assert "'audited'" in refused.stderr
    assert "Laplace, which does not use verified labels" in refused.stderr
    learned = ["--method", "mentornet", "--set", "method.variant=learned", "--set", "method.mentor_steps=2"]
    done = run("train", "photos", *quick, *learned)
    assert done.exit_code == 0, done.stderr
    assert (
        "1 verified label in seen.csv not used: their samples are not in this data (gone.png)" in done.stderr
    )
    source = json.loads((tmp_path / "laplaceconfidence-train-photos/source.json").read_text())
    assert source["audited"] == str(tmp_path / "seen.csv")


def test_noise_is_put_in_for_benchmarks_and_said(run: Any, photos: Path, tmp_path: Path) -> None:
    noise = ("--set", "noise.kind=symmetric", "--set", "noise.rate=0.5", "--set", "noise.seed=3")
    done = run("train", "photos", *QUICK, *noise)
    assert done.exit_code == 0, done.stderr
    assert "The preset adds 50% symmetric noise to the labels" in done.stderr
    assert "According to the true labels" in done.stdout


def test_noise_without_a_seed_of_its_own_follows_the_seed_of_the_run(run: Any, tmp_path: Path) -> None:
    words = ("train", "digits", *("--rounds", "1", "--device", "cpu", "--set", "method.warmup=1"))
    given = {}
    for name, more in {
        "two": ("--seed", "2", "--set", "data.test_share=0.9"),
        "fixed": ("--seed", "2", "--set", "data.test_share=0.9", "--set", "noise.seed=0"),
    }.items():
        done = run(*words, *more, "--out", name)
        assert done.exit_code == 0, done.stderr
        given[name] = pd.read_parquet(tmp_path / name / "refined_labels.parquet")["given_label"].tolist()
    data = read_dataset("digits")
    rows = np.sort(np.random.default_rng(2).permutation(len(data))[round(0.9 * len(data)) :])
    for name, seed in (("two", 2), ("fixed", 0)):
        noisy = add_noise(data.subset(rows), "symmetric", 0.8, random_state=seed)
        assert given[name] == [noisy.class_names[code] for code in noisy.labels]


def test_another_method_with_the_same_preset(run: Any, photos: Path) -> None:
    words = ("--method", "cross_entropy", "--rounds", "2", "--device", "cpu", "--batch-size", "16")
    done = run("train", "photos", "--preset", "image-folder-small", *words)
    assert done.exit_code == 0, done.stderr
    assert done.stderr.count("Note: ") == 1
    assert "Note: The preset's [method] settings are for 'laplace' and do not apply: 'cross" in done.stderr
    assert ", confidence " not in done.stderr


def test_no_setting_of_the_preset_reaches_another_method(run: Any, photos: Path, tmp_path: Path) -> None:
    words = ("--method", "dividemix", "--set", "method.ramp=3", "--rounds", "1", "--device", "cpu")
    done = run("train", "photos", "--preset", "cifar10-sym20", "--network", "mlp", *words, "--out", "run")
    assert done.exit_code == 0, done.stderr
    settings = json.loads((tmp_path / "run/settings.json").read_text())
    assert settings["method"] == described(DivideMix(ramp=3))


def test_settings_of_the_method_may_be_automatic(run: Any, photos: Path, tmp_path: Path) -> None:
    as_in_the_paper = ("confidence=laplace", "confidence_from=peer", "targets=refurbished")
    automatic = (*as_in_the_paper, "n_neighbors=auto", "alpha=auto")
    words = [word for change in automatic for word in ("--set", f"method.{change}")]
    done = run("train", "photos", *QUICK, *words, "--out", "run")
    assert done.exit_code == 0, done.stderr
    method = json.loads((tmp_path / "run/settings.json").read_text())["method"]
    assert (method["n_neighbors"], method["alpha"]) == ("auto", "auto")


def test_the_command_and_the_classifier_have_the_same_defaults(run: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)).astype(np.float32), np.arange(40) % 2
    np.savez(tmp_path / "d.npz", features=X, labels=y)
    done = run("train", "d.npz", "--rounds", "1", "--device", "cpu")
    assert done.exit_code == 0, done.stderr
    stored = json.loads((tmp_path / "laplaceconfidence-train-d/settings.json").read_text())
    settings = RobustClassifier(rounds=1, device="cpu").fit(X, y).settings_
    del stored["data"]
    assert stored == json.loads(json.dumps(settings))


def test_cifar_reports_its_published_test_set(run: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    for name in [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"]:
        records = rng.integers(0, 256, (6, 1 + 3 * 32 * 32), dtype=np.uint8)
        records[:, 0] = np.arange(6) % 3
        (folder / name).write_bytes(records.tobytes())
    done = run("train", folder.name, "--preset", "image-folder-small", *QUICK)
    assert done.exit_code == 0, done.stderr
    assert "the published test set" in done.stdout
    assert "test " in done.stderr


def test_mini_webvision_with_both_its_test_sets(run: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    root = tmp_path / "webvision"
    (root / "info").mkdir(parents=True)
    synsets = [f"n{code:08d}" for code in range(60)]
    (root / "info/synsets.txt").write_text("\n".join(synsets))
    names = [(f"google/q{label + 1:04d}/{number}.jpg", label) for number in range(12) for label in (0, 1)]
    (root / "info/train_filelist_google.txt").write_text(
        "".join(f"{name} {label}\n" for name, label in names)
    )
    (root / "info/val_filelist.txt").write_text("a.jpg 0\nb.jpg 1\nc.jpg 55\n")
    for name, label in [*names, ("val_images_256/a.jpg", 0), ("val_images_256/b.jpg", 1)]:
        draw(root / name, label, rng, side=12)
    for label in (0, 1):
        draw(tmp_path / "ilsvrc" / synsets[label] / "x.JPEG", label, rng, side=9)
    words = ("--preset", "mini-webvision", "--network", "small_cnn", *QUICK)
    done = run(
        *("train", "webvision", *words, "--image-size", "10", "--set", "weak.resized_crop=8"),
        *("--set", "method.entropy_penalty=false"),
        *("--test", "webvision", "--test", "ilsvrc"),
    )
    assert done.exit_code == 0, done.stderr
    assert "24 samples of 50 classes" in done.stderr
    assert done.stdout.count("the kept round") == done.stdout.count("mean of the last 10 rounds") == 2
    assert "ilsvrc" in done.stdout
    lines = read_lines(tmp_path / "laplaceconfidence-train-webvision/metrics.jsonl")
    assert all(line["further_test_accuracies"].keys() == {"ilsvrc"} for line in lines)


def test_large_folders_are_decoded_by_workers(
    run: Any, photos: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    image_folder(tmp_path / "new", n=4, seed=1)
    assert run("train", "photos", *QUICK, "--test", "new", "--out", "memory").exit_code == 0
    monkeypatch.setattr("laplaceconfidence.data.image_files.KEPT_UP_TO", 0)
    monkeypatch.setattr("laplaceconfidence.training.inputs.RESIDENT_UP_TO", 0)
    done = run("train", "photos", *QUICK, "--test", "new", "--out", "streamed", "--workers", "1")
    assert done.exit_code == 0, done.stderr
    assert read_lines(tmp_path / "memory/metrics.jsonl") == read_lines(tmp_path / "streamed/metrics.jsonl")
    ids = pd.read_parquet(tmp_path / "streamed/refined_labels.parquet").id
    assert ids[0] == "dark/000.png"


def test_tensorboard_is_an_option(
    run: Any, photos: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    monkeypatch.delitem(sys.modules, "torch.utils.tensorboard", raising=False)
    refused = run("train", "photos", *QUICK, "--tensorboard")
    assert refused.exit_code == 2
    assert "pip install tensorboard" in refused.stderr

    written: list[tuple[str, float, int]] = []

    class Writer:
        def __init__(self, folder: str, purge_step: int) -> None:
            assert Path(folder) == Path("run/tensorboard")
            assert purge_step == 1

        def add_scalar(self, name: str, value: float, step: int) -> None:
            written.append((name, value, step))

        def flush(self) -> None:
            pass

        def close(self) -> None:
            written.append(("closed", 0, 0))

    stand_in = types.ModuleType("torch.utils.tensorboard")
    stand_in.SummaryWriter = Writer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", stand_in)
    assert run("train", "photos", *QUICK, "--tensorboard", "--out", "run").exit_code == 0
    names = {name for name, _, step in written if step == 3}
    assert {"validation_accuracy", "learning_rate", "loss/network 1", "mean_confidence/network 1"} <= names
    assert written[-1][0] == "closed"


def test_a_terminal_shows_rounds_and_stages(run: Any, photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Console(file=io.StringIO(), force_terminal=True, width=150)
    monkeypatch.setattr("laplaceconfidence.cli.train.progress.notices", lambda: screen)
    assert run("train", "photos", *QUICK).exit_code == 0
    written = screen.file.getvalue()  # type: ignore[attr-defined]
    for part in ("Round ", "Decoding images", "/3", "loss ", "validation ", "left"):
        assert part in written
    assert "Round 1/3" not in written  # lines are for files


def test_presets_are_listed(run: Any) -> None:
    done = run("train", "--presets")
    assert done.exit_code == 0
    assert "cifar100-sym90-pca" in done.stdout
    assert "Mini-WebVision (50 classes, real noise), as in the paper" in done.stdout


def test_methods_with_their_settings_and_networks_are_listed(run: Any) -> None:
    methods, networks = run("train", "--methods"), run("train", "--networks")
    assert (methods.exit_code, networks.exit_code) == (0, 0)
    for name in METHODS:
        assert name in methods.stdout
        assert all(setting in methods.stdout for setting in settings_of(name))
    assert all(name in networks.stdout for name in NETWORKS)
    assert "Six residual blocks" in networks.stdout


WRONG = {
    "preset": (("--preset", "image-folder-smal"), ["'preset'", "image-folder-small"]),
    "setting": (("--set", "round=3"), ["no setting 'round'", "'rounds'", "batch_size"]),
    "setting of the method": (("--set", "warmup=3"), ["no setting 'warmup'", "'method.warmup'"]),
    "misspelled setting of the method": (
        ("--set", "wamup=3"),
        ["no setting 'wamup'", "Did you mean 'method.warmup'?", "batch_size", "method.n_neighbors"],
    ),
    "unknown setting of the method": (
        ("--set", "method.warmpu=3"),
        ["'laplace' has no setting 'warmpu'", "Did you mean 'warmup'?", "n_neighbors"],
    ),
    "setting of another method": (
        ("--method", "co_teaching", "--set", "method.warmup=3"),
        ["'co_teaching' has no setting 'warmup'", "It has forget_rate, ramp."],
    ),
    "method": (("--method", "laplas"), ["'method'", "'laplas'", "Did you mean 'laplace'?"]),
    "network": (("--network", "small_cn"), ["'network'", "Did you mean 'small_cnn'?"]),
    "device": (("--device", "tpu"), ["'device'", "'auto'"]),
    "resume": (("--resume",), ["holds no run to resume"]),
    "both": (("--resume", "--overwrite"), ["'resume'", "--overwrite"]),
    "two tests": (("--test", "photos", "--test-share", "0.1"), ["'test_share'", "--test"]),
    "share": (("--test-share", "0.001"), ["'test_share'", "24 samples"]),
    "folder": (("--out", "photos"), ["photos", "must be new, empty or hold a run"]),
    "classes": (("--test", "other"), ["'test'", "'dark', 'light'", "'up'"]),
    "rounds": (("--rounds", "many"), ["--rounds", "many"]),
    "warmup": (("--set", "method.warmup=-1"), ["'warmup'", "-1"]),
    "verified labels": (("--audited", "no.csv"), ["no.csv"]),
    "size": (("--image-size", "0"), ["'image_size'", "at least 1", "0"]),
    "seed": (("--seed", "-1"), ["--seed", "-1"]),
}


@pytest.mark.parametrize("name", WRONG)
def test_mistakes_are_explained(run: Any, photos: Path, tmp_path: Path, name: str) -> None:
    draw(tmp_path / "other" / "up" / "1.png", 0, np.random.default_rng(0))
    words, parts = WRONG[name]
    done = run("train", "photos", *words)
    assert done.exit_code == 2, done.stdout
    for part in parts:
        assert part in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "laplaceconfidence-train-photos").exists()


def test_columns_used_as_features_are_recorded(run: Any, tmp_path: Path) -> None:
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 3)), columns=["x", "y_", "z"])
    table["label"] = ["a", "b"] * 10
    table.to_csv(tmp_path / "t.csv", index=False)
    words = ("--features", "x", "--features", "z", "--method", "cross_entropy", "--rounds", "1")
    done = run("train", "t.csv", *words, "--device", "cpu", "--out", "trained")
    assert done.exit_code == 0, done.stderr
    assert json.loads((tmp_path / "trained" / "source.json").read_text())["feature_columns"] == ["x", "z"]


def test_fewer_rounds_than_the_warm_up_are_noted(run: Any, tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(20, 3))
    np.savez(tmp_path / "d.npz", features=X, labels=np.arange(20) % 2)
    words = ("--rounds", "2", "--set", "method.warmup=2", "--device", "cpu", "--out", "trained")
    done = run("train", "d.npz", *words)
    assert done.exit_code == 0, done.stderr
    assert "All 2 rounds are warm-up rounds" in " ".join(done.stderr.split())


def test_options_of_images_are_refused_for_features(run: Any, tmp_path: Path) -> None:
    np.savez(
        tmp_path / "d.npz", features=np.random.default_rng(0).normal(size=(20, 3)), labels=np.arange(20) % 2
    )
    for words in (("--image-size", "8"), ("--skip-bad",), ("--workers", "1")):
        done = run("train", "d.npz", *words)
        assert done.exit_code == 2
        assert "left out where images are not trained on" in done.stderr


def test_without_torch_it_says_what_to_install(
    run: Any, photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    done = run("train", "photos")
    assert done.exit_code == 2
    assert "pip install 'laplaceconfidence[train]'" in done.stderr


def test_only_the_first_process_speaks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for rank in ("0", "1"):
        monkeypatch.setenv("RANK", rank)
        with _quiet_unless_first():
            sys.stdout.write(f"process {rank}")
    assert capsys.readouterr().out == "process 0"


def test_help_teaches_with_examples(run: Any) -> None:
    done = run("train", "--help")
    assert done.exit_code == 0
    assert done.stdout.count("laplaceconfidence train ") >= 4
    assert "torchrun" in done.stdout


def test_the_refined_labels_of_a_finished_run_are_reviewed_and_exported(
    run: Any, photos: Path, tmp_path: Path
) -> None:
    (photos / "dark" / "001.png").write_bytes((photos / "light" / "001.png").read_bytes())  # a wrong label
    assert run("train", photos, "--out", "trained", *QUICK, *GRAPH).exit_code == 0
    table = pd.read_parquet(tmp_path / "trained" / "refined_labels.parquet")
    differs = table["given_label"] != table["refined_label"]
    samples = SampleArrays.of(read_suggestions(tmp_path / "trained"))
    assert samples.flagged.tolist() == differs.tolist()
    names = [samples.name(code) for code in samples.suggested.tolist()]
    assert names == table["refined_label"].tolist()
    assert samples.sources is not None
    assert all(Path(source).is_file() for source in samples.sources)
    done = run(
        "export", "trained", "-o", "new.csv", "--policy", "reviewed-then-confident", "--min-probability", "0"
    )
    assert done.exit_code == 0, done.stderr
    exported = pd.read_csv(tmp_path / "new.csv")
    assert exported["label"].tolist() == table["refined_label"].tolist()
    assert set(pd.read_csv(tmp_path / "new.trail.csv")["decided_by"]) <= {"training with Laplace"}


def test_decisions_on_a_training_run_are_exported(run: Any, photos: Path, tmp_path: Path) -> None:
    assert run("train", photos, "--out", "trained", *QUICK, *GRAPH).exit_code == 0
    session = ReviewSession(read_suggestions(tmp_path / "trained"))
    given = int(session.samples.given[3])
    session.decide(3, "other", label=1 - given, who="Ada", queue="suspects", expected_version=0)
    client = TestClient(
        create_app(session, Access("127.0.0.1", 8000), reviewer="Ada"), base_url="http://127.0.0.1:8000"
    )
    assert client.get("/").status_code == 200
    session.close()
    done = run("export", "trained", "-o", "new.csv")
    assert done.exit_code == 0, done.stderr
    assert "1 label changed" in done.stdout
    trail = pd.read_csv(tmp_path / "new.trail.csv")
    assert trail[["row", "decided_by"]].to_numpy().tolist() == [[3, "Ada"]]
    before = (tmp_path / "trained" / "refined_labels.parquet").read_bytes()
    assert run("train", photos, "--out", "trained", *QUICK, *GRAPH, "--overwrite").exit_code == 2
    assert (tmp_path / "trained" / "refined_labels.parquet").read_bytes() == before


def test_decisions_on_a_training_run_find_samples_without_ids(run: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    features = 5 * np.eye(2)[np.arange(24) % 2] + rng.normal(size=(24, 2))
    frame = pd.DataFrame(features, columns=["emb_0", "emb_1"])
    frame["label"] = np.array(["dark", "light"])[np.arange(24) % 2]
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = ("--features", "emb_*", *QUICK, "--set", "method.confidence=laplace", *GRAPH)
    done = run("train", "t.csv", "--out", "trained", *words)
    assert done.exit_code == 0, done.stderr
    ids = read_dataset(tmp_path / "t.csv", features="emb_*").sample_ids
    assert pd.read_parquet(tmp_path / "trained" / "refined_labels.parquet")["id"].tolist() == ids.tolist()
    session = ReviewSession(read_suggestions(tmp_path / "trained"))
    session.decide(3, "other", label=0, who="Ada", queue="suspects", expected_version=0)
    session.close()
    order = rng.permutation(24)
    frame.iloc[order].to_csv(tmp_path / "t.csv", index=False)
    assert run("export", "trained", "-o", "new.csv").exit_code == 0
    expected = frame["label"].where(frame.index != 3, "dark")[order]
    assert pd.read_csv(tmp_path / "new.csv")["label"].tolist() == expected.tolist()
    audited = ("audit", "t.csv", "--features", "emb_*", "--estimator", "knn-vote", "-k", "5")
    assert run(*audited, "--decisions", "trained", "-o", "again").exit_code == 0
    issues = read_audit(tmp_path / "again").issues
    assert issues.loc[int(np.flatnonzero(order == 3)[0]), "given_label"] == "dark"


def test_runs_without_labels_to_review_say_why(run: Any, photos: Path, tmp_path: Path) -> None:
    assert run("train", photos, "--out", "trained", *QUICK, *GRAPH).exit_code == 0
    source = tmp_path / "trained" / "source.json"
    record = json.loads(source.read_text())
    source.write_text(json.dumps(record | {"preset_settings": {"noise": {"kind": "symmetric", "rate": 0.2}}}))
    for command in ("export", "review"):
        done = run(command, "trained")
        assert done.exit_code == 2
        assert "is a benchmark" in done.stderr
    (tmp_path / "trained" / "summary.json").unlink()
    for command in ("export", "review"):
        done = run(command, "trained")
        assert done.exit_code == 2
        assert "is not finished" in done.stderr
        assert "--resume" in done.stderr
