"""``laplaceconfidence audit`` of images without features: patches, and a network that learns from them."""

import io
import json
import sys
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from laplaceconfidence import NoisyDataset
from laplaceconfidence.cli.image_features import usual_size
from laplaceconfidence.records import read_audit

QUICK = ("--epochs", "6", "--device", "cpu", "--n-jobs", "1", "-k", "10")


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """300 digits of four kinds, of which some lie in the wrong folder; their true one is in their name."""
    X, y = load_digits(n_class=4, return_X_y=True)
    rng = np.random.default_rng(0)
    for row in range(300):
        given = (y[row] + 1) % 4 if rng.random() < 0.15 else y[row]
        path = tmp_path / "photos" / f"digit {given}" / f"{row:03d}_{y[row]}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((X[row].reshape(8, 8) * 15).astype(np.uint8)).save(path)
    return tmp_path / "photos"


def test_misplaced_images_are_found(run: Any, photos: Path, tmp_path: Path) -> None:
    done = run("audit", "photos", *QUICK)
    assert done.exit_code == 0, done.stderr
    audited = read_audit(tmp_path / "laplaceconfidence-audit-photos")
    issues = audited.issues
    is_wrong = np.array([name[6] != name[-5] for name in issues.id])
    flagged = issues.is_label_issue.to_numpy()
    assert (is_wrong & flagged).sum() / is_wrong.sum() > 0.9
    assert (is_wrong & flagged).sum() / flagged.sum() > 0.8
    assert audited.record.source_kind == "image"
    assert "--encoder timm:NAME" in done.stderr
    assert set(audited.record.source["encoder"]["views"]) == {"patches", "network"}
    learned = audited.record.source["features_learned_by"]
    assert (learned["network"], learned["epochs"], learned["random_state"]) == ("small_resnet", 6, 0)
    again = run("audit", "photos", *QUICK, "--out", "again")
    assert again.exit_code == 0
    first = (tmp_path / "laplaceconfidence-audit-photos/issues.csv").read_bytes()
    assert (tmp_path / "again/issues.csv").read_bytes() == first


def test_bad_images_and_other_sizes(run: Any, photos: Path, tmp_path: Path) -> None:
    Image.new("L", (20, 30)).save(photos / "digit 0" / "large_0.png")
    done = run("audit", "photos", *QUICK, "--epochs", "1", "--out", "sizes")
    assert done.exit_code == 0, done.stderr
    assert read_audit(tmp_path / "sizes").record.source["features_learned_by"]["image_size"] == 8
    (photos / "digit 1" / "empty_1.png").write_bytes(b"")
    refused = run("audit", "photos", *QUICK, "--image-size", "8")
    assert refused.exit_code == 2
    assert "empty_1.png cannot be decoded" in refused.stderr
    done = run("audit", "photos", *QUICK, "--image-size", "8", "--skip-bad", "--epochs", "1")
    assert done.exit_code == 0, done.stderr
    assert "1 image left out because of decoding errors:" in done.stderr
    record = json.loads((tmp_path / "laplaceconfidence-audit-photos/audit.json").read_text())
    learned = record["source"]["features_learned_by"]
    assert learned["skipped_images"] == [str(photos / "digit 1" / "empty_1.png")]
    assert record["n_samples"] == 301


@pytest.mark.parametrize(
    ("sides", "expected"),
    [([(8, 8)] * 3, None), ([(8, 8)] * 3 + [(640, 20)], 8), ([(120, 90), (300, 200), (30, 30)], 64)],
)
def test_images_are_resized_to_their_usual_size(
    tmp_path: Path, sides: list[tuple[int, int]], expected: int | None
) -> None:
    paths = [tmp_path / f"{row}.png" for row in range(len(sides))]
    for path, side in zip(paths, sides, strict=True):
        Image.new("RGB", side).save(path)
    paths.append(tmp_path / "damaged.png")
    paths[-1].write_bytes(b"not an image")
    sources = [str(path) for path in paths]
    data = NoisyDataset.from_arrays([0, 1] * 5, sources=(sources * 10)[:10], source_kind="image")
    assert usual_size(data) == expected


def test_arrays_of_images(run: Any, tmp_path: Path) -> None:
    X, y = load_digits(n_class=3, return_X_y=True)
    images = (X[:90].reshape(-1, 8, 8) * 15).astype(np.uint8)
    np.savez(tmp_path / "d.npz", images=images, labels=y[:90])
    done = run("audit", "d.npz", *QUICK, "--network", "mlp")
    assert done.exit_code == 0, done.stderr
    refused = run("audit", "d.npz", *QUICK, "--image-size", "4", "--out", "x")
    assert refused.exit_code == 2
    assert "'image_size' parameter must be left out" in refused.stderr


def test_options_that_would_be_ignored_are_refused(run: Any) -> None:
    done = run("audit", "digits", "--epochs", "3")
    assert done.exit_code == 2
    assert "'epochs' parameter must be left out unless images are audited without features" in done.stderr


def test_without_torch_and_without_epochs_the_patches_are_all(
    run: Any, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run("audit", "photos", *QUICK, "--epochs", "0", "--out", "patches")
    assert done.exit_code == 0, done.stderr
    record = read_audit(tmp_path / "patches").record
    assert record.source["encoder"]["name"] == "patches"
    assert "features_learned_by" not in record.source
    monkeypatch.setitem(sys.modules, "torch", None)
    without = run("audit", "photos", "-k", "10", "--n-jobs", "1", "--out", "without")
    assert without.exit_code == 0, without.stderr
    first = (tmp_path / "patches/issues.csv").read_bytes()
    assert (tmp_path / "without/issues.csv").read_bytes() == first
    refused = run("audit", "photos", "--network", "mlp")
    assert refused.exit_code == 2
    assert "pip install 'laplaceconfidence[train]'" in refused.stderr


def test_learning_the_features_is_counted_and_done_once(run: Any, photos: Path, tmp_path: Path) -> None:
    from laplaceconfidence.training.warm_up_features import WarmUp

    trained: list[WarmUp] = []
    learn = WarmUp.features

    def counted(self: WarmUp, *samples: Any, **settings: Any) -> Any:
        trained.append(self)
        return learn(self, *samples, **settings)

    quick = (*QUICK, "--epochs", "1")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WarmUp, "features", counted)
        first = run("audit", "photos", *quick, "--out", "x")
        assert first.exit_code == 0, first.stderr
        timings = read_audit(tmp_path / "x").record.timings
        assert timings["total"] > timings["learning features"] > 0
        assert "learned_features.npy" in first.stdout
        before = (tmp_path / "x" / "issues.csv").read_bytes()

        again = run("audit", "photos", *quick, "--out", "x", "--overwrite")
        assert again.exit_code == 0, again.stderr
        assert len(trained) == 1
        assert "Features not learned again" in again.stderr
        assert (tmp_path / "x" / "issues.csv").read_bytes() == before
        assert np.load(tmp_path / "x" / "learned_features.npy").shape == (300, 128)

        run("audit", "photos", *quick, "--seed", "1", "--out", "x", "--overwrite")  # other settings
        assert len(trained) == 2
        Image.new("L", (8, 8)).save(next((photos / "digit 0").iterdir()))  # other data
        run("audit", "photos", *quick, "--seed", "1", "--out", "x", "--overwrite")
        assert len(trained) == 3
        damaged = tmp_path / "x" / "learned_features.npy"
        np.save(damaged, np.load(damaged) + 1)
        run("audit", "photos", *quick, "--seed", "1", "--out", "x", "--overwrite")
        assert len(trained) == 4


def test_the_image_size_applies_to_images_inside_of_files(run: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    with tarfile.open(tmp_path / "shard.tar", "w") as archive:
        for row in range(24):
            side = 6 + row % 3
            buffer = io.BytesIO()
            gray = (row % 2) * 200 + rng.integers(0, 50, (side, side))
            Image.fromarray(gray.astype(np.uint8)).save(buffer, "PNG")
            for name, content in ((f"{row}.png", buffer.getvalue()), (f"{row}.cls", str(row % 2).encode())):
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    refused = run("audit", "shard.tar", *QUICK)
    assert refused.exit_code == 2
    assert "image_size" in refused.stderr
    done = run("audit", "shard.tar", *QUICK, "--epochs", "1", "--image-size", "8")
    assert done.exit_code == 0, done.stderr
    record = read_audit(tmp_path / "laplaceconfidence-audit-shard").record
    assert record.source["options"] == {"image_size": 8}
    exported = run("export", "laplaceconfidence-audit-shard", "--out", "again.npz")
    assert exported.exit_code == 0, exported.stderr
    with np.load(tmp_path / "again.npz") as arrays:
        assert arrays["images"].shape == (24, 8, 8, 3)


def test_an_encoder_in_place_of_a_network(
    run: Any, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pixel_encoder.py").write_text(
        "import numpy as np\n\n\n"
        "def encode(images):\n"
        "    return np.stack([np.asarray(image.resize((8, 8)))[:, :, 0].ravel() for image in images])\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    Image.new("L", (20, 30)).save(photos / "digit 0" / "large_0.png")
    (photos / "digit 1" / "empty_1.png").write_bytes(b"")
    words = ("audit", "photos", "--encoder", "pixel_encoder:encode", "--n-jobs", "1", "--out", "a")
    refused = run(*words)
    assert refused.exit_code == 2
    assert "empty_1.png cannot be decoded" in refused.stderr
    done = run(*words, "--skip-bad")
    assert done.exit_code == 0, done.stderr
    audited = read_audit(tmp_path / "a")
    assert audited.record.source["encoder"]["name"] == "pixel_encoder:encode"
    assert audited.record.source["skipped_images"] == [str(photos / "digit 1" / "empty_1.png")]
    assert audited.record.n_samples == 301
    issues = audited.issues
    is_wrong = np.array([name[6] != name[-5] for name in issues.id])
    flagged = issues.is_label_issue.to_numpy()
    assert (is_wrong & flagged).sum() / is_wrong.sum() > 0.9
    refused = run(*words, "--epochs", "3", "--overwrite")
    assert refused.exit_code == 2
    assert "'epochs' parameter must be left out where an encoder makes the features" in refused.stderr
