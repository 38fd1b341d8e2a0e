"""The report of a training run, read from its folder without torch."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from laplaceconfidence.exceptions import RunFolderError
from laplaceconfidence.report import write_report

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

N, NAMES = 80, np.array(["<b>cat</b>", "dog", "owl"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What ``training.run_folder`` leaves of a short run with two networks."""
    rng = np.random.default_rng(0)
    run = tmp_path / "training"
    (run / "confidences").mkdir(parents=True)
    true = np.arange(N) % 3
    given = np.where(rng.random(N) < 0.3, (true + 1) % 3, true)
    ids = [str(row) for row in range(N)]
    settings = {"method": {"kind": "laplace", "warmup": 1}, "training": {"rounds": 3}, "network": "mlp"}
    (run / "settings.json").write_text(json.dumps(settings))
    lines = []
    for number in (1, 2, 3):
        phases = [{"name": "robust", "networks": [n], "loss": 2.0 / number} for n in (1, 2)]
        lines.append({"round": number, "phases": phases, "validation_accuracy": 0.5, "test_accuracy": 0.6})
        if number > 1:
            confidence = np.where(given == true, 0.9, 0.1) + 0.05 * rng.random(N)
            table = pd.DataFrame({"id": ids, "confidence_1": confidence, "confidence_2": confidence})
            table.to_parquet(run / "confidences" / f"round-{number:04d}.parquet")
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    probabilities = {f"p_{name}": np.eye(3)[true][:, code] for code, name in enumerate(NAMES)}
    predicted = pd.DataFrame({"id": ids, "predicted_label": NAMES[true], **probabilities})
    predicted.to_parquet(run / "predictions.parquet")
    predicted.head(30).to_parquet(run / "test_predictions.parquet")
    refined = {"id": ids, "given_label": NAMES[given], "refined_label": NAMES[true], "confidence": 0.5}
    pd.DataFrame(refined).to_parquet(run / "refined_labels.parquet")
    summary = {"rounds": 3, "chosen_round": 2, "test_accuracy_of_chosen_round": 0.6}
    (run / "summary.json").write_text(json.dumps(summary))
    return run


def add_truth(folder: Path) -> None:
    ids, true = [str(row) for row in range(N)], NAMES[np.arange(N) % 3]
    train = pd.DataFrame({"id": ids, "true_label": true, "split": "train"})
    test = pd.DataFrame({"id": ids[:30], "true_label": true[:30], "split": "test"})
    pd.concat([train, test]).to_parquet(folder / "truth.parquet")


def test_curves_confidences_and_confusions(folder: Path, tmp_path: Path) -> None:
    report = write_report(folder, tmp_path / "r.html", figures=tmp_path / "figures")
    html = report.path.read_text(encoding="utf-8")
    assert "60.0% of the test set" in html
    names = {path.stem for path in report.figures}
    assert names == {"accuracy", "loss", "confidence", "confusions"}
    assert "<b>cat" not in html


def test_known_truth_adds_f1_and_more_confusions(folder: Path, tmp_path: Path) -> None:
    add_truth(folder)
    report = write_report(folder, figures=tmp_path / "figures")
    html = report.path.read_text(encoding="utf-8")
    assert (tmp_path / "figures" / "f1.pdf").is_file()
    assert "At the end: clean labels 1.000; wrong labels 1.000." in html
    assert "training predictions 100.0% on the diagonal; test predictions 100.0%" in html


def keep_features(folder: Path, name: str, **more: object) -> None:
    rng = np.random.default_rng(0)
    (folder / "features").mkdir(exist_ok=True)
    features = np.eye(3)[np.arange(N) % 3] + 0.1 * rng.normal(size=(N, 3))
    np.savez(folder / "features" / f"{name}.npz", rows=np.arange(N), features=features, **more)


def test_kept_features_add_maps_of_plain_and_robust_training(folder: Path, tmp_path: Path) -> None:
    keep_features(folder, "after-warm-up", rounds=1)
    keep_features(folder, "after-training", rounds=3)
    html = write_report(folder, figures=tmp_path / "figures").path.read_text(encoding="utf-8")
    assert (tmp_path / "figures" / "features.pdf").is_file()
    assert f"t-SNE maps of {N} samples, after the warm-up (1 round) and after training" in html
    assert "after training on the given labels only" in html


def test_a_method_without_warm_up_has_one_map_and_says_why(folder: Path) -> None:
    keep_features(folder, "after-training", rounds=3)
    html = write_report(folder).path.read_text(encoding="utf-8")
    assert f"t-SNE maps of {N} samples, after training, marked" in html
    assert "no warm-up on the given labels to compare with" in html


def test_features_that_cannot_be_read_are_said_to_be_damaged(folder: Path) -> None:
    (folder / "features").mkdir()
    (folder / "features" / "after-training.npz").write_bytes(b"PK no archive")
    with pytest.raises(RunFolderError, match=r"after-training\.npz cannot be read"):
        write_report(folder)


def test_an_unfinished_run_is_reported_as_far_as_it_is(folder: Path) -> None:
    for name in ("summary.json", "predictions.parquet", "refined_labels.parquet", "test_predictions.parquet"):
        (folder / name).unlink()
    html = write_report(folder).path.read_text(encoding="utf-8")
    assert "not finished: 3 of 3 rounds so far" in html


def test_a_damaged_or_empty_run_is_said_to_be_so(folder: Path) -> None:
    (folder / "metrics.jsonl").write_text('{"round": 1')
    with pytest.raises(RunFolderError, match=r"metrics\.jsonl cannot be read"):
        write_report(folder)
    (folder / "metrics.jsonl").unlink()
    with pytest.raises(RunFolderError, match="not finished a round"):
        write_report(folder)


def test_no_torch_is_needed(folder: Path) -> None:
    script = (
        f"import sys; from laplaceconfidence.report import write_report; write_report({str(folder)!r}); "
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
