"""``laplaceconfidence predict``: what it reads, writes and prints, and what it refuses."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from laplaceconfidence import RobustClassifier
from small_runs import quick

RNG = np.random.default_rng(0)
LABELS = np.arange(24) % 2
NAMES = np.array(["dark", "light"])[LABELS]
PHOTOS = (RNG.integers(0, 60, (24, 8, 8, 3)) + 150 * LABELS[:, None, None, None]).astype(np.uint8)
MEASURED = np.eye(2)[LABELS] * [1, 100] + RNG.normal(scale=0.1, size=(24, 2))
TABLE = pd.DataFrame(MEASURED, columns=["age", "pay"])
PLAIN: dict[str, Any] = {"weak": "none", "strong": "none", "validation_fraction": 0, "rounds": 8}


@pytest.fixture(scope="module")
def photo_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a training run on the photos."""
    folder = tmp_path_factory.mktemp("photos") / "run"
    quick("cross_entropy", network="small_cnn", out=folder, **PLAIN).fit(PHOTOS, NAMES)
    return folder


@pytest.fixture(scope="module")
def table_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("table") / "model"
    quick("cross_entropy", network="mlp", **PLAIN).fit(TABLE, NAMES).save(folder)
    return folder


def write_photos(folder: Path, *, by_class: bool) -> Path:
    for number, (pixels, name) in enumerate(zip(PHOTOS, NAMES, strict=True)):
        path = folder / name / f"{number:02d}.png" if by_class else folder / f"{number:02d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)
    return folder


def test_a_folder_of_images_without_labels(run: Any, photo_run: Path, tmp_path: Path) -> None:
    write_photos(tmp_path / "new", by_class=False)
    (tmp_path / "new" / "99.png").write_bytes(b"no image")
    done = run("predict", photo_run, "new")
    assert done.exit_code == 0, done.stderr
    assert "24 samples predicted" in done.stdout
    assert "1 image left out because of decoding errors" in done.stderr
    assert "99.png" in (tmp_path / "new-predictions.parquet.skipped.txt").read_text()
    table = pd.read_parquet("new-predictions.parquet")
    assert table.columns.tolist() == ["id", "predicted_label", "p_dark", "p_light"]
    assert table["id"].tolist() == [f"{number:02d}.png" for number in range(24)]
    expected = RobustClassifier.load(photo_run).predict_proba(PHOTOS)
    np.testing.assert_allclose(table[["p_dark", "p_light"]], expected, atol=1e-6)
    again = run("predict", photo_run, "new")
    assert again.exit_code == 2
    assert "use --overwrite" in again.stderr
    assert run("predict", photo_run, "new", "--overwrite").exit_code == 0


def test_one_image_of_another_size(run: Any, photo_run: Path) -> None:
    Image.fromarray(PHOTOS[1]).resize((40, 30)).save("one.jpg")
    done = run("predict", photo_run / "model", "one.jpg", "-o", "one.csv")
    assert done.exit_code == 0, done.stderr
    table = pd.read_csv("one.csv")
    assert table["id"].tolist() == ["one.jpg"]
    assert table["predicted_label"].tolist() == ["light"]


def test_predictions_are_compared_with_labels(run: Any, photo_run: Path, tmp_path: Path) -> None:
    write_photos(tmp_path / "new", by_class=True)
    (tmp_path / "new" / "dark" / "00.png").rename(tmp_path / "new" / "light" / "00.png")
    done = run("predict", photo_run, "new", "--evaluate")
    assert done.exit_code == 0, done.stderr
    expected = RobustClassifier.load(photo_run).evaluate(PHOTOS, ["light", *NAMES[1:]])
    assert f"Accuracy {expected.accuracy:.2%}; calibration error" in done.stdout
    assert "Classes, lowest recall first" in done.stdout
    table = pd.read_parquet("new-predictions.parquet").set_index("id")
    assert table.loc["light/00.png", "given_label"] == "light"
    assert (table["given_label"] == table.index.str.split("/").str[0]).all()


@pytest.mark.parametrize("channels", ["first", "last"])
def test_arrays_of_images(run: Any, photo_run: Path, channels: str) -> None:
    np.save("photos.npy", PHOTOS if channels == "last" else PHOTOS.transpose(0, 3, 1, 2))
    done = run("predict", photo_run, "photos.npy", "-o", "out.npz")
    assert done.exit_code == 0, done.stderr
    with np.load("out.npz") as arrays:
        assert arrays["id"].tolist() == [str(row) for row in range(24)]
        assert arrays["class_names"].tolist() == ["dark", "light"]
        expected = RobustClassifier.load(photo_run).predict_proba(PHOTOS)
        np.testing.assert_allclose(arrays["probabilities"], expected, atol=1e-6)
        assert (arrays["predicted_label"] == NAMES).mean() > 0.9


def test_an_archive_with_labels(run: Any, photo_run: Path) -> None:
    np.savez("photos.npz", images=PHOTOS, y=NAMES, id=[f"photo {row}" for row in range(24)])
    done = run("predict", photo_run, "photos.npz", "--evaluate", "-o", "out.npz")
    assert done.exit_code == 0, done.stderr
    with np.load("out.npz") as arrays:
        assert arrays["given_label"].tolist() == NAMES.tolist()
        assert arrays["id"][3] == "photo 3"
    np.save("photos.npy", PHOTOS)
    Path("labels.txt").write_text("\n".join(NAMES))
    done = run("predict", photo_run, "photos.npy", "--evaluate", "--labels", "labels.txt")
    assert "Accuracy" in done.stdout


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_table_is_read_by_the_names_of_its_columns(run: Any, table_model: Path, suffix: str) -> None:
    table = pd.DataFrame({"note": "x", "pay": TABLE["pay"], "id": [f"p{row}" for row in range(24)]})
    table = table.assign(age=TABLE["age"], mood=NAMES)
    table.to_csv("people.csv", index=False)
    table.to_parquet("people.parquet")
    done = run("predict", table_model, f"people.{suffix}")
    assert done.exit_code == 0, done.stderr
    assert "scale" not in done.stderr
    found = pd.read_parquet("people-predictions.parquet")
    assert found["id"].tolist() == table["id"].tolist()
    expected = RobustClassifier.load(table_model).predict_proba(TABLE)
    np.testing.assert_allclose(found[["p_dark", "p_light"]], expected, atol=1e-5)
    done = run("predict", table_model, f"people.{suffix}", "--evaluate", "--label", "mood", "--overwrite")
    assert "Accuracy 100.00%" in done.stdout, done.stderr


def test_a_table_of_paths(run: Any, photo_run: Path, tmp_path: Path) -> None:
    write_photos(tmp_path / "new", by_class=False)
    pd.DataFrame({"path": ["new/01.png", "new/gone.png", "new/02.png"]}).to_csv("list.csv", index=False)
    done = run("predict", photo_run, "list.csv")
    assert done.exit_code == 0, done.stderr
    assert pd.read_parquet("list-predictions.parquet")["predicted_label"].tolist() == ["light", "dark"]
    assert "gone.png" in done.stderr


def refused(run: Any, *words: object) -> str:
    done = run("predict", *words)
    assert done.exit_code == 2, done.stdout
    return " ".join(done.stderr.split())


def test_what_does_not_fit_is_refused(run: Any, photo_run: Path, table_model: Path, tmp_path: Path) -> None:
    write_photos(tmp_path / "new", by_class=False)
    TABLE[["age"]].to_csv("short.csv", index=False)
    np.save("rgba.npy", np.zeros((3, 8, 8, 4), np.uint8))
    np.savez("other.npz", images=PHOTOS, label=["cat"] * 24)
    assert "2 columns that the model was trained on" in refused(run, table_model, "short.csv")
    assert "without 'pay'" in refused(run, table_model, "short.csv")
    assert "features, which the model was trained on" in refused(run, table_model, "new")
    assert "Convert the images to 3 channels" in refused(run, photo_run, "rgba.npy")
    assert "one of the classes of the model ('dark', 'light')" in refused(
        run, photo_run, "other.npz", "--evaluate"
    )
    assert "is not there" in refused(run, "nowhere", "new")
    assert "'source' parameter must be an existing file" in refused(run, photo_run, "gone")
    assert "unless --evaluate" in refused(run, photo_run, "other.npz", "--label", "label")
    assert "ends in .parquet, .csv, .npz" in refused(run, photo_run, "new", "-o", "out.txt")
    assert "'labels' parameter must be given" in refused(run, photo_run, "rgba.npy", "--evaluate")
    assert "must hold at least one label" not in refused(run, photo_run, "new", "--evaluate")
    assert "does not exist" in refused(run, photo_run, "new", "-o", "no/out.csv")
    assert "'batch_size' parameter must be an integer of at least 1" in refused(
        run, photo_run, "new", "--batch-size", "0"
    )


def test_a_network_of_the_user_has_to_be_named(run: Any, tmp_path: Path) -> None:
    quick("cross_entropy", rounds=1).fit(PHOTOS, NAMES).save("model")
    np.save("photos.npy", PHOTOS)
    message = refused(run, "model", "photos.npy")
    assert "--network small_runs:tiny_mlp" in message
    done = run("predict", "model", "photos.npy", "--network", "small_runs:tiny_mlp")
    assert done.exit_code == 0, done.stderr
    described = json.loads((tmp_path / "model" / "model.json").read_text())
    assert described["network"]["name"] == "small_runs:tiny_mlp"


def test_columns_with_other_names_are_named(run: Any, table_model: Path) -> None:
    TABLE.rename(columns={"age": "years", "pay": "income"}).to_csv("renamed.csv", index=False)
    done = run("predict", table_model, "renamed.csv", "--features", "years", "--features", "income")
    assert done.exit_code == 0, done.stderr
    found = pd.read_parquet("renamed-predictions.parquet")
    expected = RobustClassifier.load(table_model).predict_proba(TABLE)
    np.testing.assert_allclose(found[["p_dark", "p_light"]], expected, atol=1e-5)


def test_a_model_becomes_an_onnx_file(run: Any, photo_run: Path, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    done = run("onnx", photo_run, "-o", "photos.onnx")
    assert done.exit_code == 0, done.stderr
    session = onnxruntime.InferenceSession("photos.onnx")
    pixels = PHOTOS.transpose(0, 3, 1, 2).astype(np.float32) / 255
    (found,) = session.run(None, {"inputs": pixels})
    np.testing.assert_allclose(found, RobustClassifier.load(photo_run).predict_proba(PHOTOS), atol=1e-5)
    assert run("onnx", photo_run, "-o", "photos.onnx").exit_code == 2
    assert run("onnx", photo_run, "-o", "photos.onnx", "--overwrite").exit_code == 0
    assert run("onnx", tmp_path / "nothing").exit_code == 2
