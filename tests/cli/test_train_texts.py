"""``laplaceconfidence train`` and ``predict`` on texts and on columns of different kinds."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from raw_texts import noisy_texts

pytest.importorskip("torch")

from laplaceconfidence import RobustClassifier, read_dataset
from laplaceconfidence.exceptions import DataFormatError, InvalidInputError

QUICK = (
    "--rounds",
    "4",
    "--batch-size",
    "64",
    "--device",
    "cpu",
    "--n-jobs",
    "1",
    "--method",
    "cross_entropy",
)


@pytest.fixture
def texts(tmp_path: Path) -> pd.DataFrame:
    frame = noisy_texts(300)
    frame.to_csv(tmp_path / "questions.csv", index=False)
    return frame


@pytest.fixture
def model(run: Any, texts: pd.DataFrame, tmp_path: Path) -> Path:
    done = run("train", "questions.csv", "--label", "topic", "--text", "text", "--out", "run", *QUICK)
    assert done.exit_code == 0, done.stderr
    return tmp_path / "run"


def test_a_model_of_texts_takes_texts(run: Any, model: Path, tmp_path: Path) -> None:
    assert sorted(path.name for path in (model / "model").iterdir()) == [
        "encoder.json",
        "encoder.safetensors",
        "model.json",
        "weights.safetensors",
    ]
    source = json.loads((model / "source.json").read_text())
    assert source["encoder"]["name"] == "tfidf"
    new = noisy_texts(80, seed=9)
    new[["text"]].rename(columns={"text": "question"}).to_csv(tmp_path / "new.csv", index=False)
    done = run("predict", "run", "new.csv", "--text", "question", "-o", "p.csv", "--device", "cpu")
    assert done.exit_code == 0, done.stderr
    predicted = pd.read_csv(tmp_path / "p.csv").predicted_label
    assert (predicted == new.truth).mean() > 0.95
    loaded = RobustClassifier.load(model, device="cpu")
    assert loaded.predict(new.text.tolist()).tolist() == predicted.tolist()
    assert loaded.evaluate(new.text, new.truth).accuracy > 0.95


def test_the_accuracy_on_set_aside_texts_is_reported(run: Any, texts: pd.DataFrame, tmp_path: Path) -> None:
    words = ("--label", "topic", "--true-label", "truth", "--test-share", "0.2", "--out", "run", *QUICK)
    done = run("train", "questions.csv", *words)
    assert done.exit_code == 0, done.stderr
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["test_accuracy_of_chosen_round"] > 0.9
    noisy_texts(50, seed=3).to_csv(tmp_path / "test.csv", index=False)
    done = run("train", "questions.csv", "--label", "topic", "--test", "test.csv", "--out", "other", *QUICK)
    assert done.exit_code == 0, done.stderr


def test_columns_of_different_kinds(run: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 200)
    frame = pd.DataFrame(
        {
            "age": rng.normal(30 + 30 * truth, 5).round(),
            "code": np.where(truth, "7", "8"),
            "city": np.where(rng.random(200) < 0.9, np.array(["Rome", "Oslo"])[truth], "Bern"),
            "kind": np.array(["old", "new"])[truth],
        }
    )
    frame.to_csv(tmp_path / "data.csv", index=False)
    done = run("train", "data.csv", "--label", "kind", "--features", "age,city,code", "--out", "run", *QUICK)
    assert done.exit_code == 0, done.stderr
    frame.iloc[:3, :3].iloc[:, ::-1].to_csv(tmp_path / "new.csv", index=False)
    done = run("predict", "run", "new.csv", "-o", "p.csv", "--device", "cpu")
    assert done.exit_code == 0, done.stderr
    assert pd.read_csv(tmp_path / "p.csv").predicted_label.tolist() == frame.kind[:3].tolist()
    loaded = RobustClassifier.load(tmp_path / "run", device="cpu")
    assert loaded.predict(frame.iloc[:3]).tolist() == frame.kind[:3].tolist()


def test_a_model_with_a_function_of_ones_own(
    run: Any, texts: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "letters_encoder.py").write_text(
        "import numpy as np\n\n\n"
        "def encode(texts):\n"
        "    return np.array([[text.count(letter) for letter in 'abcdeilmnorstuwy'] for text in texts])\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    name = "letters_encoder:encode"
    words = ("--label", "topic", "--text", "text", "--encoder", name, "--out", "run", *QUICK)
    done = run("train", "questions.csv", *words)
    assert done.exit_code == 0, done.stderr
    refused = run("predict", "run", "questions.csv", "-o", "p.csv", "--device", "cpu")
    assert refused.exit_code == 2
    assert f"--encoder {name}" in refused.stderr
    done = run("predict", "run", "questions.csv", "-o", "p.csv", "--device", "cpu", "--encoder", name)
    assert done.exit_code == 0, done.stderr


@pytest.mark.parametrize("name", ["encoder.json", "encoder.safetensors"])
def test_a_damaged_encoder_is_refused(model: Path, name: str) -> None:
    path = model / "model" / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataFormatError, match=f"SHA-256 of .*{name}"):
        RobustClassifier.load(model, device="cpu")
    path.unlink()
    with pytest.raises(DataFormatError, match="not complete"):
        RobustClassifier.load(model, device="cpu")


def test_saving_again_keeps_the_encoder(model: Path, tmp_path: Path) -> None:
    loaded = RobustClassifier.load(model, device="cpu")
    loaded.save(tmp_path / "copy")
    shutil.rmtree(model)
    new = noisy_texts(20, seed=9).text.tolist()
    again = RobustClassifier.load(tmp_path / "copy", device="cpu")
    np.testing.assert_allclose(again.predict_proba(new), loaded.predict_proba(new), atol=1e-6)


def test_texts_in_python() -> None:
    frame, new = noisy_texts(200), noisy_texts(40, seed=9)
    settings: dict[str, Any] = {"rounds": 4, "batch_size": 64, "device": "cpu", "random_state": 0}
    classifier = RobustClassifier("mlp", "cross_entropy", n_jobs=1, **settings)
    classifier.fit(frame.text.tolist(), frame.topic, test=(new.text.tolist(), new.truth))
    assert classifier.score(new.text.tolist(), new.truth) >= 0.9
    data = read_dataset(frame, label="topic")
    classifier.fit(data, test=read_dataset(new, label="truth"))
    assert classifier.score(new.text.tolist(), new.truth) >= 0.9


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--text", "text", "--features", "truth"], "left out where --features are given"),
        (["--encoder", "tfidf", "--encoder-set", "size=3"], "encoder_set"),
        (["--text", "text", "--image-size", "8"], "image_size"),
        (["--encoder", "a:b", "--encoder", "c:d"], "given once"),
    ],
)
def test_options_that_do_not_fit(run: Any, texts: pd.DataFrame, words: list[str], message: str) -> None:
    done = run("train", "questions.csv", "--label", "topic", *words, *QUICK)
    assert done.exit_code == 2
    assert message in done.stderr


def test_a_model_without_an_encoder_refuses_texts(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    classifier = RobustClassifier("mlp", "cross_entropy", rounds=1, device="cpu", random_state=0, n_jobs=1)
    classifier.fit(rng.normal(size=(40, 3)), rng.integers(0, 2, 40))
    with pytest.raises(InvalidInputError, match="numeric"):
        classifier.predict(["a text", "another"])
    classifier.save(tmp_path / "model")
    assert json.loads((tmp_path / "model" / "model.json").read_text())["version"] == 1
    with pytest.raises(InvalidInputError, match="has none"):
        RobustClassifier.load(tmp_path / "model", encoder="a:b", device="cpu")
