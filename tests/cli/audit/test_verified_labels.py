"""``audit --audited``: verified labels in tables are certain, and random ones calibrate the rest."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from laplaceconfidence.records import read_audit
from laplaceconfidence.review.session import ReviewSession

AUDIT = ("audit", "animals.csv", "--features", "emb_*", "--n-jobs", "1", "--suspects", "0")
NAMES = np.array(["cat", "dog", "owl"])


@pytest.fixture
def animals(tmp_path: Path) -> pd.DataFrame:
    """600 animals in three overlapping classes, confused where they overlap: given labels cannot tell."""
    rng = np.random.default_rng(0)
    true = np.arange(600) % 3
    features = 2.2 * np.eye(3)[true] + rng.normal(size=(600, 3))
    closeness = np.exp(-0.5 * ((features[:, None] - 2.2 * np.eye(3)) ** 2).sum(axis=2))
    bounds = (closeness / closeness.sum(axis=1, keepdims=True)).cumsum(axis=1)
    given = np.minimum((rng.random((600, 1)) > bounds).sum(axis=1), 2)
    table = pd.DataFrame(features, columns=["emb_0", "emb_1", "emb_2"])
    table["id"] = [f"s{row:03d}" for row in range(600)]
    table["label"] = NAMES[given]
    table.to_csv(tmp_path / "animals.csv", index=False)
    table["truth"] = NAMES[true]
    return table.set_index("id", drop=False)


def verify(path: Path, animals: pd.DataFrame, ids: list[str]) -> None:
    """Write a table of verified labels for these samples, all of them true."""
    pd.DataFrame({"id": ids, "verified_label": animals.truth[ids].to_numpy()}).to_csv(path, index=False)


def test_a_random_hundred_calibrates_the_rest(run: Any, animals: pd.DataFrame, tmp_path: Path) -> None:
    assert run(*AUDIT, "--sample-for-review", 100, "-o", "first").exit_code == 0
    file = tmp_path / "first/review_sample.csv"
    sample = pd.read_csv(file, dtype=str)
    sample["verified_label"] = animals.truth[sample.id].to_numpy()
    sample.to_csv(file, index=False, encoding="utf-8-sig")
    done = run(*AUDIT, "--audited", file, "-o", "second")
    assert done.exit_code == 0, done.stderr
    n_wrong = int((sample.given_label != sample.verified_label).sum())
    assert f"100 verified labels used: {100 - n_wrong} as given, {n_wrong} different." in done.stdout
    assert "They calibrated the confidences of the others." in " ".join(done.stdout.split())
    first, second = (read_audit(tmp_path / name) for name in ("first", "second"))
    is_wrong = (animals.truth != animals.label).to_numpy()
    rest = ~animals.id.isin(sample.id).to_numpy()
    off = [
        abs((1 - audited.issues.sort_index().label_score[rest].mean()) - is_wrong[rest].mean())
        for audited in (first, second)
    ]
    assert off[1] < 0.05 < off[0]
    certain = second.issues.set_index("id").loc[sample.id]
    assert (certain.label_score == 1).all()
    assert certain.given_label.tolist() == sample.verified_label.tolist()
    assert second.record.source["audited"] == [str(file)]
    assert second.record.source["n_audited"] == 100


def test_rows_without_a_verified_label_are_skipped_and_counted(
    run: Any, animals: pd.DataFrame, tmp_path: Path
) -> None:
    sample = pd.DataFrame({"id": animals.id[:60], "verified_label": animals.truth[:60]})
    sample.loc[sample.index[:4], "verified_label"] = ["", " ", "", ""]
    sample.to_csv(tmp_path / "v.csv", index=False)
    done = run(*AUDIT, "--audited", "v.csv", "-o", "x")
    assert done.exit_code == 0, done.stderr
    told = " ".join(done.stdout.split())
    assert "56 verified labels used:" in told
    assert "4 rows without a verified label skipped." in told
    assert read_audit(tmp_path / "x").record.source["n_audited"] == 56


def test_few_labels_are_certain_but_a_note_says_that_they_do_not_calibrate(
    run: Any, animals: pd.DataFrame, tmp_path: Path
) -> None:
    verify(tmp_path / "v.csv", animals, animals.id[:49].tolist())
    done = run(*AUDIT, "--audited", "v.csv", "-o", "x")
    assert done.exit_code == 0, done.stderr
    note = "49 verified labels of samples that have a given label: too few to calibrate the others"
    assert f"Note: {note}" in done.stderr
    assert any(note in kept for kept in read_audit(tmp_path / "x").record.warnings)
    assert "They did not calibrate" in " ".join(done.stdout.split())
    issues = read_audit(tmp_path / "x").issues.set_index("id")
    assert (issues.label_score[animals.id[:49]] == 1).all()


def test_several_tables_and_parquet(run: Any, animals: pd.DataFrame, tmp_path: Path) -> None:
    verify(tmp_path / "a.csv", animals, animals.id[:40].tolist())
    table = pd.DataFrame({"id": animals.id[30:80], "verified_label": animals.truth[30:80], "note": "x"})
    table.to_parquet(tmp_path / "b.parquet")
    done = run(*AUDIT, "--audited", "a.csv", "--audited", "b.parquet", "-o", "x")
    assert done.exit_code == 0, done.stderr
    assert "80 verified labels used:" in done.stdout


@pytest.mark.parametrize("written", ["number", "decimal", "name", "floats in parquet"])
def test_labels_by_number_or_by_name(run: Any, tmp_path: Path, written: str) -> None:
    rng = np.random.default_rng(0)
    true = np.arange(90) % 3
    given = true.copy()
    given[0] = 1
    features = 5 * np.eye(3)[true] + rng.normal(size=(90, 3))
    np.savez(tmp_path / "d.npz", features=features, labels=given, class_names=NAMES, ids=np.arange(90))
    texts = {"number": true.astype(str), "decimal": [f"{code}.0" for code in true], "name": NAMES[true]}
    if written in texts:
        table = pd.DataFrame({"id": np.arange(90), "verified_label": texts[written]})
        table.to_csv(tmp_path / "v.csv", index=False)
    else:
        table = pd.DataFrame({"id": np.arange(90), "verified_label": true.astype(float)})
        table.loc[80:, "verified_label"] = np.nan
        table.to_parquet(tmp_path / "v.parquet")
    file = "v.csv" if written in texts else "v.parquet"
    done = run("audit", "d.npz", "--audited", file, "--suspects", "0", "-o", "x")
    assert done.exit_code == 0, done.stderr
    n = 90 if written in texts else 80
    assert f"{n} verified labels used: {n - 1} as given, 1 different." in done.stdout
    assert read_audit(tmp_path / "x").issues.loc[0, "given_label"] == 0


def decided(run: Any, tmp_path: Path, ids: list[str], verdict: str) -> None:
    """An audit in 'reviewed' with the same verdict on several samples."""
    assert run(*AUDIT, "--estimator", "knn-vote", "-o", "reviewed").exit_code == 0
    session = ReviewSession(read_audit(tmp_path / "reviewed"))
    for id in ids:
        row = int(np.flatnonzero(session.samples.ids == id)[0])
        session.decide(row, verdict, label=None, expected_version=0, who="ann", queue="worst")
    session.close()


def test_tables_and_a_review_are_combined(run: Any, animals: pd.DataFrame, tmp_path: Path) -> None:
    right = animals.id[animals.truth == animals.label].tolist()
    decided(run, tmp_path, right[:15], "keep")
    verify(tmp_path / "v.csv", animals, right[10:60])
    done = run(*AUDIT, "--audited", "v.csv", "--decisions", "reviewed", "-o", "x")
    assert done.exit_code == 0, done.stderr
    assert "60 verified labels used: 60 as given, 0 different." in done.stdout
    source = read_audit(tmp_path / "x").record.source
    assert (source["n_audited"], source["n_decisions"]) == (50, 15)


@pytest.mark.parametrize(("verdict", "said"), [("keep", "'{label}'"), ("none", "no class")])
def test_a_table_and_a_review_that_differ_are_refused(
    run: Any, animals: pd.DataFrame, tmp_path: Path, verdict: str, said: str
) -> None:
    first = animals[animals.truth != animals.label].iloc[0]
    decided(run, tmp_path, [first.id], verdict)
    verify(tmp_path / "v.csv", animals, [first.id])
    done = run(*AUDIT, "--audited", "v.csv", "--decisions", "reviewed", "-o", "x")
    assert done.exit_code == 2
    before = said.format(label=first.label)
    assert (
        f"Sample '{first.id}' is {before} in the review of reviewed but '{first.truth}' in v.csv"
        in done.stderr
    )
    assert not (tmp_path / "x").exists()


def test_tables_that_differ_are_refused(run: Any, animals: pd.DataFrame, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,verified_label\ns000,cat\ns001,dog\n")
    (tmp_path / "b.csv").write_text("id,verified_label\ns000,dog\ns001,owl\n")
    done = run(*AUDIT, "--audited", "a.csv", "--audited", "b.csv")
    assert done.exit_code == 2
    assert "Sample 's000' is 'cat' in a.csv but 'dog' in b.csv (2 samples differ in total)" in done.stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("id,verified_label\ns000,cat\nx9,dog\nx8,dog\n", "of which 2 of 3 ids are unknown, such as 'x9'"),
        ("id,verified_label\ns000,\n,dog\n", "no id in row 1"),
        (
            "id,verified_label\ns000,catt\n",
            "among the 3 classes of the data ('cat', 'dog', 'owl'). Got 'catt'",
        ),
        ("id,verified_label\ns000,None\n", "Got 'None'"),
        ("id,verified_label\ns000,catt\n", "It is that of the id 's000' in v.csv"),
        (
            "id,verified_label\ns000,cat\ns000,dog\n",
            "v.csv verifies sample 's000' twice, as 'cat' and as 'dog'",
        ),
        ("id,verified_label\ns000,\ns001,\n", "Got 'v.csv, empty in all of its 2 rows'"),
        ("id,verified_label\n", "empty in all of its 0 rows"),
        (
            "id,label\ns000,cat\n",
            "Got \"v.csv without 'verified_label'\" instead. Existing columns: 'id'",
        ),
        ("id;verified_label\ns000;cat\n", "Existing columns: 'id;verified_label'"),
        ("id,verified_label\ns000,cat,dog\n", "v.csv cannot be read as a table"),
        ("", "v.csv cannot be read as a table"),
    ],
)
def test_tables_that_cannot_be_used(
    run: Any, animals: pd.DataFrame, tmp_path: Path, content: str, message: str
) -> None:
    (tmp_path / "v.csv").write_text(content)
    done = run(*AUDIT, "--audited", "v.csv", "-o", "x")
    assert done.exit_code == 2
    assert message in done.stderr
    assert not (tmp_path / "x").exists()


def test_files_that_are_no_tables(run: Any, animals: pd.DataFrame, tmp_path: Path) -> None:
    (tmp_path / "v.parquet").write_bytes(b"PAR1")
    (tmp_path / "v.docx").write_bytes(b"PK")
    for file, message in (
        ("v.parquet", "v.parquet cannot be read as Parquet"),
        ("v.docx", "'audited' parameter must be a table (.csv"),
        ("nowhere.csv", "'audited' parameter must be a path to an existing file. Got 'nowhere.csv'"),
    ):
        done = run(*AUDIT, "--audited", file)
        assert done.exit_code == 2
        assert message in done.stderr


def test_an_estimator_that_cannot_learn_from_them_is_refused(
    run: Any, animals: pd.DataFrame, tmp_path: Path
) -> None:
    verify(tmp_path / "v.csv", animals, animals.id[:60].tolist())
    done = run(*AUDIT, "--audited", "v.csv", "--estimator", "laplace")
    assert done.exit_code == 2
    assert "--audited must be left out for the estimator 'laplace'" in done.stderr
    assert "--estimator: 'noise-aware'" in done.stderr
    pd.DataFrame({"label": list("abab"), "text": list("wxyz")}).to_csv(tmp_path / "p.csv", index=False)
    np.save(tmp_path / "p.npy", np.full((4, 2), 0.5))
    done = run("audit", "p.csv", "--pred-probs", "p.npy", "--audited", "v.csv")
    assert done.exit_code == 2
    assert "estimator 'normalized-margin'" in done.stderr
