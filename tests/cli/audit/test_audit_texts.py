"""``laplaceconfidence audit`` of texts without features."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from laplaceconfidence import audit, read_dataset
from laplaceconfidence.records import read_audit
from laplaceconfidence.records.sample_arrays import SampleArrays
from raw_texts import noisy_texts

QUICK = ("--label", "topic", "--n-jobs", "1")


@pytest.fixture
def texts(tmp_path: Path) -> pd.DataFrame:
    frame = noisy_texts()
    frame.to_csv(tmp_path / "questions.csv", index=False)
    return frame


def test_wrong_topics_are_found_from_the_texts_alone(run: Any, texts: pd.DataFrame, tmp_path: Path) -> None:
    done = run("audit", "questions.csv", *QUICK, "--text", "text", "--out", "a")
    assert done.exit_code == 0, done.stderr
    assert "Features: TF-IDF of" in done.stdout
    audited = read_audit(tmp_path / "a")
    issues = audited.issues.sort_index()
    is_wrong = (texts.topic != texts.truth).to_numpy()
    flagged = issues.is_label_issue.to_numpy()
    assert (is_wrong & flagged).sum() / is_wrong.sum() > 0.85
    assert (is_wrong & flagged).sum() / flagged.sum() > 0.9
    assert (issues.predicted_label[is_wrong & flagged] == texts.truth[is_wrong & flagged]).all()
    encoder = audited.record.source["encoder"]
    assert encoder["name"] == "tfidf"
    assert encoder["n_features"] == audited.record.settings["n_components"]


def test_python_gives_the_same(run: Any, texts: pd.DataFrame, tmp_path: Path) -> None:
    run("audit", "questions.csv", *QUICK, "--text", "text", "--out", "a")
    result = audit(tmp_path / "questions.csv", label="topic", text="text", random_state=0, n_jobs=1)
    stored = read_audit(tmp_path / "a").issues.sort_index()
    assert np.allclose(result.table.sort_index().label_score, stored.label_score)
    assert result.dataset.encoding is not None


def test_copies_of_test_texts_are_leaks(run: Any, texts: pd.DataFrame, tmp_path: Path) -> None:
    new = noisy_texts(60, seed=5)
    pd.concat([new, texts.iloc[:3]]).to_csv(tmp_path / "test.csv", index=False)
    done = run("audit", "questions.csv", *QUICK, "--test", "test.csv", "--out", "a")
    assert done.exit_code == 0, done.stderr
    issues = read_audit(tmp_path / "a").issues.sort_index()
    assert set(np.flatnonzero(issues.is_leaked)) >= {0, 1, 2}


def test_settings_of_the_encoder(run: Any, texts: pd.DataFrame, tmp_path: Path) -> None:
    done = run("audit", "questions.csv", *QUICK, "--encoder", "tfidf", "--encoder-set", "n_components=9",
               "--out", "a")  # fmt: skip
    assert done.exit_code == 0, done.stderr
    record = json.loads((tmp_path / "a" / "audit.json").read_text())
    assert record["source"]["encoder"]["n_features"] == 9


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--encoder", "tfidf", "--encoder", "tfidf"], "different where it is given several times"),
        (["--epochs", "3"], "left out"),
        (["--encoder", "nothing"], "'encoder'"),
        (["--encoder-set", "size=3"], "encoder_set"),
        (["--skip-bad"], "'skip_bad'"),
    ],
)
def test_options_that_do_not_fit(run: Any, texts: pd.DataFrame, words: list[str], message: str) -> None:
    done = run("audit", "questions.csv", *QUICK, *words)
    assert done.exit_code == 2
    assert message in done.stderr


def test_views_are_printed_recorded_and_reported(run: Any, texts: pd.DataFrame, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    texts.assign(size=rng.normal(size=len(texts)), city=rng.choice(["x", "y"], len(texts))).to_csv(
        "questions.csv", index=False
    )
    words = ["--encoder", "tfidf", "--features", "size,city"]
    done = run("audit", "questions.csv", *QUICK, *words, "--out", "a")
    assert done.exit_code == 0, done.stderr
    assert "2 views" in done.stdout
    assert "of the weight): TF-IDF of" in done.stdout
    assert "  all views (" in done.stdout
    record = json.loads((tmp_path / "a" / "audit.json").read_text())
    assert list(record["source"]["encoder"]["views"]) == ["tfidf", "features"]
    assert sum(record["view_weights"].values()) == pytest.approx(1, abs=1e-3)
    assert record["view_weights"]["tfidf"] > record["view_weights"]["features"]
    assert run("report", "a").exit_code == 0
    page = (tmp_path / "a" / "report.html").read_text()
    assert "shares of these views in the estimate" in page
    assert run("export", "a", "--out", "fixed.csv").exit_code == 0


def test_a_text_column_that_is_empty(run: Any, tmp_path: Path) -> None:
    pd.DataFrame({"text": [""] * 9, "label": list("abcabcabc")}).to_csv(tmp_path / "t.csv", index=False)
    done = run("audit", "t.csv")
    assert done.exit_code == 2
    assert "at least two different texts" in done.stderr


def test_class_probabilities_need_no_encoder(texts: pd.DataFrame) -> None:
    data = read_dataset(texts, label="topic")
    result = audit(data, pred_probs=np.full((240, 3), 1 / 3))
    assert result.dataset.features is None


def test_features_are_kept_listed_and_cleared(run: Any, texts: pd.DataFrame) -> None:
    words = ("audit", "questions.csv", *QUICK, "--overwrite", "--out", "a")
    assert "found in the cache" not in run(*words, "--no-cache").stdout
    assert "0 entries" in run("cache").stdout
    assert "found in the cache" not in run(*words).stdout
    listed = run("cache", "list").stdout
    assert "tfidf" in listed
    assert "1 entry" in listed
    assert "found in the cache" in run(*words).stdout
    assert "found in the cache" not in run(*words, "--no-cache").stdout
    assert "1 entry removed" in run("cache", "clear").stdout
    assert "0 entries" in run("cache", "list").stdout
    assert run("cache", "remove").exit_code == 2


def test_the_report_and_the_review_tell_which_words_speak_for_the_suggestion(
    run: Any, texts: pd.DataFrame, tmp_path: Path
) -> None:
    pytest.importorskip("jinja2")
    run("audit", "questions.csv", *QUICK, "--out", "a")
    samples = SampleArrays.of(read_audit(tmp_path / "a"))
    row = int(samples.suspects[0])
    for_suggested, _ = samples.words(row)
    assert for_suggested
    assert all(word in texts.text[row] for word in for_suggested)
    assert run("report", "a").exit_code == 0
    page = next((tmp_path / "a").glob("*.html")).read_text(encoding="utf-8")
    assert ", ".join(for_suggested) in page
