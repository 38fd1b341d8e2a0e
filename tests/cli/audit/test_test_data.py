"""``laplaceconfidence audit --test``: leaks, near-duplicates and outliers in summary, table and record."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from laplaceconfidence.data.readers import read_dataset
from laplaceconfidence.records import read_audit


@pytest.fixture
def files(tmp_path: Path) -> None:
    features, labels = load_digits(return_X_y=True)
    train, test = features[:600], features[600:900].copy()
    test[[4, 9]] = train[[100, 200]]
    train[30] = train[31]
    np.savez(tmp_path / "train.npz", features=train, labels=labels[:600])
    np.savez(tmp_path / "test.npz", features=test, labels=labels[600:900])
    np.save(tmp_path / "train.npy", train)
    np.save(tmp_path / "test.npy", test)
    for name, part in (("train", labels[:600]), ("test", labels[600:900])):
        (tmp_path / f"{name}.txt").write_text("\n".join(map(str, part)) + "\n")
        pd.DataFrame({"label": part, "image": name}).to_csv(tmp_path / f"{name}.csv", index=False)


def test_leaks_are_shown_and_recorded(run: Any, files: None, tmp_path: Path) -> None:
    done = run("audit", "train.npz", "--test", "test.npz", "--out", "x")
    assert done.exit_code == 0, done.stderr
    assert "Other issues: " in done.stdout
    assert "2 samples in 1 set of near-duplicates (1 set with conflicting labels)" in done.stdout
    assert "2 samples also in the test data." in done.stdout
    assert "laplaceconfidence report x" in done.stdout
    assert "laplaceconfidence review x --queue copies (or leaks" in done.stdout
    audited = read_audit(tmp_path / "x")
    issues = audited.issues.sort_index()
    assert np.flatnonzero(issues.is_leaked).tolist() == [100, 200]
    assert issues.leaked_from_row[[100, 200]].tolist() == [4, 9]
    tested = read_dataset(tmp_path / "test.npz").sample_ids
    assert issues.leaked_from[[100, 200]].tolist() == tested[[4, 9]].tolist()
    labels = load_digits().target
    assert issues.leaked_from_label[[100, 200]].tolist() == labels[[604, 609]].tolist()
    assert issues.leaked_from_label.isna().sum() == 598
    assert issues.near_duplicate_set[[30, 31]].tolist() == [0, 0]
    record = audited.record
    assert (record.n_leaked, record.n_near_duplicates, record.n_conflicting_duplicates) == (2, 2, 2)
    assert record.n_outliers == issues.is_outlier_issue.sum()
    assert record.source["test"] == str(tmp_path / "test.npz")


def test_without_test_data_leaks_are_not_mentioned(run: Any, files: None, tmp_path: Path) -> None:
    done = run("audit", "train.npz", "--out", "x")
    assert "also in the test data" not in done.stdout
    assert read_audit(tmp_path / "x").record.n_leaked is None


@pytest.mark.parametrize(
    "words",
    [
        ("train.npy", "--labels", "train.txt", "--test", "test.npy", "--test-labels", "test.txt"),
        ("train.csv", "--features", "train.npy", "--test", "test.csv", "--test-features", "test.npy"),
    ],
)
def test_files_of_the_test_data_have_their_own_options(run: Any, files: None, words: tuple[str, ...]) -> None:
    done = run("audit", *words, "--out", "x")
    assert done.exit_code == 0, done.stderr
    assert "2 samples also in the test data." in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("train.npz", "--test-features", "test.npy"), "'--test-features' describes the data of '--test'"),
        (("train.csv", "--features", "train.npy", "--test", "test.csv"), "'--test-features'"),
        (("train.npz", "--test", "nowhere.npz"), "nowhere.npz"),
    ],
)
def test_what_does_not_fit_is_refused(run: Any, files: None, words: tuple[str, ...], message: str) -> None:
    done = run("audit", *words, "--out", "x")
    assert done.exit_code != 0
    assert message in " ".join(done.stderr.split())
