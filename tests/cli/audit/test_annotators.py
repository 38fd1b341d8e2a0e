"""``audit``, ``report`` and ``export`` of labels of several annotators, on the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def tables(tmp_path: Path) -> np.ndarray:
    """labels.csv (one row per label), items.csv (with embeddings) and wide.csv; returns the truth."""
    rng = np.random.default_rng(0)
    n = 90
    truth = np.arange(n) % 3
    ids = [f"s{row:02d}" for row in range(n)]
    wide = pd.DataFrame({"item": ids})
    for who, accuracy in (("Ann", 0.95), ("小林", 0.8), ("عمر", 0.5)):
        codes = np.where(rng.random(n) < accuracy, truth, rng.integers(3, size=n))
        wide[f"by {who}"] = np.array(["cat", "dog", "owl"], dtype=object)[codes]
        wide.loc[rng.random(n) < 0.2, f"by {who}"] = ""
    long = wide.melt("item", var_name="worker", value_name="label")
    long["worker"] = long["worker"].str.removeprefix("by ")
    long[long["label"] != ""].to_csv(tmp_path / "labels.csv", index=False)
    points = pd.DataFrame(3 * np.eye(3)[truth] + rng.normal(size=(n, 3)), columns=["u", "v", "w"])
    items = pd.concat([wide[["item"]], points], axis=1)
    items.to_csv(tmp_path / "items.csv", index=False)
    wide.merge(items).to_csv(tmp_path / "wide.csv", index=False)
    return truth


def found(folder: str) -> pd.Series:
    table = pd.read_parquet(Path(folder) / "issues.parquet")
    return table.set_index("id")["predicted_label"].sort_index()


def test_long_and_wide_tables_give_the_same_consensus(run, tables):  # type: ignore[no-untyped-def]
    options = ("--features", "u,v,w")
    long = run(
        "audit",
        "labels.csv",
        "--id",
        "item",
        "--annotator",
        "worker",
        "--samples",
        "items.csv",
        *options,
        "-o",
        "a",
    )
    assert long.exit_code == 0, long.output
    wide = run("audit", "wide.csv", "--id", "item", "--annotators", "by *", *options, "-o", "b")
    assert wide.exit_code == 0, wide.output
    pd.testing.assert_series_equal(found("a"), found("b"))
    assert (found("a") == np.array(["cat", "dog", "owl"])[tables]).mean() > 0.9
    for text in ("majority labels", "3 annotators gave", "小林", "labels.csv", "questions.csv"):
        assert text in long.output
    assert run("report", "a").exit_code == 0
    exported = run("export", "a", "--fill-missing")
    assert exported.exit_code == 0, exported.output
    table = pd.read_csv("a-corrected.csv")
    assert table["label"].tolist() == found("a")[table["id"]].tolist()
    assert list(table.columns) == ["id", "label", "u", "v", "w"]
    trail = pd.read_csv("a-corrected.trail.csv")
    assert set(trail["why"]) == {"not reviewed: consensus of the annotators"}
    assert len(pd.read_csv("a-corrected.labels.csv")) == len(pd.read_csv("labels.csv"))
    refused = run("export", "a", "--out", "items.csv", "--overwrite")
    assert refused.exit_code != 0


def test_labels_alone_are_enough_and_an_audit_goes_on_from_a_review(run, tables):  # type: ignore[no-untyped-def]
    words = ("audit", "labels.csv", "--id", "item", "--annotator", "worker")
    assert run(*words, "-o", "a", "--sample-for-review", 10).exit_code == 0
    sample = pd.read_csv("a/review_sample.csv", dtype=str)
    names = np.array(["cat", "dog", "owl"])
    sample["verified_label"] = [names[tables[int(id[1:])]] for id in sample["id"]]
    sample.to_csv("verified.csv", index=False)
    again = run(*words, "-o", "b", "--audited", "verified.csv")
    assert again.exit_code == 0, again.output
    assert (found("b")[sample["id"]].tolist()) == sample["verified_label"].tolist()


def test_what_is_missing_is_named(run, tables):  # type: ignore[no-untyped-def]
    for words, message in (
        (("--annotator", "who", "--id", "item"), "annotator"),
        (("--annotators", "by *", "--annotator", "worker", "--id", "item"), "annotator"),
        (("--samples", "items.csv", "--id", "item"), "annotator"),
        (("--annotator", "worker", "--id", "item", "--estimator", "laplace"), "estimator"),
    ):
        result = run("audit", "labels.csv", *words)
        assert result.exit_code == 2
        assert message in result.output
