"""``--decisions`` and ``--audited`` on data that was corrected, reordered or cut since: by identity only."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from laplaceconfidence.data.readers import read_dataset
from laplaceconfidence.records import read_audit
from laplaceconfidence.review.session import ReviewSession

NAMES = np.array(["cat", "dog", "owl"])
SETTINGS = ("--estimator", "knn-vote", "-k", "6", "--suspects", "0", "--n-jobs", "1")


def animals(kind: str, path: Path) -> None:
    """60 animals without an id column, every tenth label wrong; some texts look like formulas."""
    rng = np.random.default_rng(0)
    true = np.arange(60) % 3
    features = (5 * np.eye(3)[true] + rng.normal(size=(60, 3))).astype(np.float32)
    labels = NAMES[np.where(np.arange(60) % 10 == 0, (true + 1) % 3, true)]
    frame = pd.DataFrame(features, columns=["emb_0", "emb_1", "emb_2"]).assign(label=labels)
    if kind == "texts":
        frame["text"] = [f"=animal {row}\r\nline" if row % 2 else f"animal {row}" for row in range(60)]
    if kind == "npz":
        np.savez(path, features=features, labels=labels)
    elif path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False)


def review(folder: Path, rows: list[int]) -> dict[str, Any]:
    """Decide on some rows of a run: keep, another class, and no class in turn. Returns labels by text or
    features of the sample."""
    audited = read_audit(folder)
    session = ReviewSession(audited)
    data = read_dataset(audited.record.source["source"], **audited.record.source["options"])
    decided: dict[str, Any] = {}
    for number, row in enumerate(rows):
        verdict = ("keep", "other", "none")[number % 3]
        label = (int(session.samples.given[row]) + 1) % 3 if verdict == "other" else None
        session.decide(row, verdict, label=label, expected_version=0, who="ann", queue="worst")
        found = {"keep": session.samples.given[row], "other": label}.get(verdict)
        decided[content(data, row)] = None if found is None else NAMES[found]
    session.close()
    return decided


def content(data: Any, row: int) -> str:
    return str(np.float32(data.features[row]).tolist())


def shuffled(path: Path, drop: int = 0) -> None:
    order = np.random.default_rng(3).permutation(60 - drop)
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            np.savez(path, **{name: arrays[name][order[order < len(arrays[name])]] for name in arrays})
        return
    is_csv = path.suffix == ".csv"
    frame = pd.read_csv(path, dtype=str, keep_default_na=False) if is_csv else pd.read_parquet(path)
    frame = frame.iloc[order[order < len(frame)]]
    frame.to_csv(path, index=False) if is_csv else frame.to_parquet(path)


@pytest.mark.parametrize(
    ("kind", "source", "exported", "read"),
    [
        ("features", "a.csv", "b.csv", ("--features", "emb_*")),
        ("texts", "a.csv", "b.csv", ("--features", "emb_*")),
        ("features", "a.parquet", "b.parquet", ("--features", "emb_*")),
        ("npz", "a.npz", "b.npz", ()),
        ("texts", "a.csv", "b.parquet", ()),
        ("npz", "a.npz", "b.csv", ("--features", "feature_*")),
    ],
)
def test_decisions_find_their_samples_in_a_shuffled_export(
    run: Any, tmp_path: Path, kind: str, source: str, exported: str, read: tuple[str, ...]
) -> None:
    animals(kind, tmp_path / source)
    features = () if kind == "npz" else ("--features", "emb_*")
    assert run("audit", source, *features, *SETTINGS, "-o", "first").exit_code == 0
    decided = review(tmp_path / "first", list(range(0, 60, 2)))
    assert run("export", "first", "-o", exported).exit_code == 0
    shuffled(tmp_path / exported)
    done = run("audit", exported, *read, *SETTINGS, "--decisions", "first", "-o", "second")
    assert done.exit_code == 0, done.stderr
    assert "20 verified labels used: 20 as given, 0 different." in done.stdout
    assert "10 decisions not used: their samples are not in this data" in " ".join(done.stderr.split())
    second = read_audit(tmp_path / "second")
    data = read_dataset(tmp_path / exported, **second.record.source["options"])
    certain = second.issues.sort_index().label_score.to_numpy() == 1
    right = second.issues.sort_index().given_label
    for row in range(len(data)):
        expected = decided.get(content(data, row))
        assert expected is None or (certain[row] and right[row] == expected)
    assert second.record.source["n_decisions_left_out"] == 10


def test_decisions_on_the_same_data_in_another_order(run: Any, tmp_path: Path) -> None:
    animals("features", tmp_path / "a.csv")
    assert run("audit", "a.csv", "--features", "emb_*", *SETTINGS, "-o", "first").exit_code == 0
    decided = review(tmp_path / "first", list(range(30)))
    shuffled(tmp_path / "a.csv", drop=3)
    done = run("audit", "a.csv", "--features", "emb_*", *SETTINGS, "--decisions", "first", "-o", "second")
    assert done.exit_code == 0, done.stderr
    data = read_dataset(tmp_path / "a.csv", features="emb_*")
    issues = read_audit(tmp_path / "second").issues.sort_index()
    for row in range(len(data)):
        if content(data, row) in decided:
            given = issues.given_label[row]
            assert (None if pd.isna(given) else given) == decided[content(data, row)]


def test_samples_that_an_export_left_out_are_no_reason_to_refuse(run: Any, tmp_path: Path) -> None:
    animals("features", tmp_path / "a.csv")
    assert run("audit", "a.csv", "--features", "emb_*", *SETTINGS, "-o", "first").exit_code == 0
    session = ReviewSession(read_audit(tmp_path / "first"))
    for row, verdict in enumerate(["none", "none", "none", "keep"]):
        session.decide(row, verdict, label=None, expected_version=0, who="ann", queue="worst")
    session.close()
    assert run("export", "first", "-o", "b.csv").exit_code == 0
    done = run("audit", "b.csv", "--features", "emb_*", *SETTINGS, "--decisions", "first", "-o", "second")
    assert done.exit_code == 0, done.stderr
    assert "1 verified label used: 1 as given" in done.stdout
    assert "3 decisions not used" in done.stderr


def test_decisions_about_other_data_are_refused(run: Any, tmp_path: Path) -> None:
    animals("features", tmp_path / "a.csv")
    assert run("audit", "a.csv", "--features", "emb_*", *SETTINGS, "-o", "first").exit_code == 0
    review(tmp_path / "first", list(range(12)))
    frame = pd.read_csv(tmp_path / "a.csv")
    frame[["emb_0", "emb_1", "emb_2"]] *= 2
    frame.to_csv(tmp_path / "b.csv", index=False)
    done = run("audit", "b.csv", "--features", "emb_*", *SETTINGS, "--decisions", "first", "-o", "second")
    assert done.exit_code == 2
    assert "12 of 12 are about samples that are not in this data" in done.stderr
    assert not (tmp_path / "second").exists()


def test_a_decision_about_a_label_that_was_changed_since_is_left_out(run: Any, tmp_path: Path) -> None:
    animals("features", tmp_path / "a.csv")
    assert run("audit", "a.csv", "--features", "emb_*", *SETTINGS, "-o", "first").exit_code == 0
    review(tmp_path / "first", list(range(12)))
    frame = pd.read_csv(tmp_path / "a.csv")
    before = frame.loc[3, "label"]
    frame.loc[3, "label"] = next(name for name in NAMES if name != before)  # row 3 was decided as "keep"
    frame.loc[5, "label"] = np.nan  # "none", and nobody labeled it since
    frame.to_csv(tmp_path / "a.csv", index=False)
    done = run("audit", "a.csv", "--features", "emb_*", *SETTINGS, "--decisions", "first", "-o", "second")
    assert done.exit_code == 0, done.stderr
    assert "1 decision not used: the data has another label now" in " ".join(done.stderr.split())
    assert read_audit(tmp_path / "second").issues.given_label[3] == frame.loc[3, "label"]


def test_a_run_of_an_earlier_version_is_refused(run: Any, tmp_path: Path) -> None:
    animals("features", tmp_path / "a.csv")
    assert run("audit", "a.csv", "--features", "emb_*", *SETTINGS, "-o", "first").exit_code == 0
    with_row_numbers(tmp_path / "first")
    review(tmp_path / "first", list(range(12)))
    done = run("audit", "a.csv", "--features", "emb_*", *SETTINGS, "--decisions", "first", "-o", "second")
    assert done.exit_code == 2
    assert "are about row numbers" in done.stderr
    assert run("export", "first", "-o", "b.csv").exit_code == 0  # the data is unchanged, so rows are enough
    shuffled(tmp_path / "a.csv")
    done = run("export", "first", "-o", "c.csv")
    assert done.exit_code != 0
    assert "identifies samples by their rows" in done.stderr


def with_row_numbers(folder: Path) -> None:
    """Make a run look like one of an earlier version."""
    issues = pd.read_parquet(folder / "issues.parquet")
    issues.assign(id=issues["row"].astype(str)).to_parquet(folder / "issues.parquet", index=False)
    record = json.loads((folder / "audit.json").read_text())
    del record["ids_from"]
    (folder / "audit.json").write_text(json.dumps(record))


def verified_sample(run: Any, tmp_path: Path) -> pd.DataFrame:
    animals("features", tmp_path / "a.csv")
    words = ("audit", "a.csv", "--features", "emb_*", "--suspects", "0", "--n-jobs", "1")
    assert run(*words, "--sample-for-review", 20, "-o", "first").exit_code == 0
    sample = pd.read_csv(tmp_path / "first" / "review_sample.csv", dtype=str)
    sample["verified_label"] = NAMES[sample["row"].astype(int) % 3]
    return sample


def audit_again(run: Any, sample: pd.DataFrame, tmp_path: Path) -> Any:
    sample.to_csv(tmp_path / "v.csv", index=False)
    words = ("audit", "a.csv", "--features", "emb_*", "--suspects", "0", "--n-jobs", "1")
    return run(*words, "--audited", "v.csv", "-o", "second", "--overwrite")


def test_verified_labels_find_their_samples_in_shuffled_data(run: Any, tmp_path: Path) -> None:
    sample = verified_sample(run, tmp_path)
    before = read_dataset(tmp_path / "a.csv", features="emb_*")
    expected = {
        content(before, int(row)): label
        for row, label in zip(sample["row"], sample["verified_label"], strict=True)
    }
    shuffled(tmp_path / "a.csv", drop=4)
    done = audit_again(run, sample, tmp_path)
    assert done.exit_code == 0, done.stderr
    n_gone = int((sample["row"].astype(int) >= 56).sum())
    if n_gone:
        assert "in v.csv not used: their samples are not in this data" in " ".join(done.stderr.split())
    data = read_dataset(tmp_path / "a.csv", features="emb_*")
    issues = read_audit(tmp_path / "second").issues.sort_index()
    certain = {content(data, row) for row in np.flatnonzero(issues.label_score == 1)}
    for row in range(len(data)):
        if content(data, row) in expected:
            assert issues.given_label[row] == expected[content(data, row)]
            assert content(data, row) in certain


def test_unknown_ids_are_shown_and_refused_if_they_are_most(run: Any, tmp_path: Path) -> None:
    sample = verified_sample(run, tmp_path)
    sample.loc[:2, "id"] = ["x1", "x2", "x3"]
    done = audit_again(run, sample, tmp_path)
    assert done.exit_code == 0, done.stderr
    assert "3 verified labels in v.csv not used: their samples are not in this data (x1, x2, x3)" in " ".join(
        done.stderr.split()
    )
    assert "17 verified labels used" in done.stdout
    assert read_audit(tmp_path / "second").record.source["n_audited_left_out"] == 3
    sample.loc[:10, "id"] = [f"x{number}" for number in range(11)]
    done = audit_again(run, sample, tmp_path)
    assert done.exit_code == 2
    assert "11 of 20 ids are unknown" in done.stderr


def test_row_numbers_of_an_earlier_version_are_refused_with_the_reason(run: Any, tmp_path: Path) -> None:
    sample = verified_sample(run, tmp_path)
    done = audit_again(run, sample.assign(id=sample["row"]), tmp_path)
    assert done.exit_code == 2
    assert "They are row numbers" in done.stderr
    assert "--id" in done.stderr


def test_the_given_label_of_a_verified_table_is_checked(run: Any, tmp_path: Path) -> None:
    sample = verified_sample(run, tmp_path)
    frame = pd.read_csv(tmp_path / "a.csv")
    rows = sample["row"].astype(int).to_numpy()
    third = [
        next(name for name in NAMES if name not in (given, verified))
        for given, verified in zip(sample["given_label"], sample["verified_label"], strict=True)
    ]
    frame.loc[rows[:2], "label"] = third[:2]
    frame.loc[rows[2:4], "label"] = sample["verified_label"][2:4].to_numpy()  # corrected since
    frame.to_csv(tmp_path / "a.csv", index=False)
    done = audit_again(run, sample, tmp_path)
    assert done.exit_code == 0, done.stderr
    assert "18 verified labels used" in done.stdout
    told = " ".join(done.stderr.split())
    assert "2 verified labels in v.csv not used: the data has another label now" in told
    frame.loc[rows, "label"] = third
    frame.to_csv(tmp_path / "a.csv", index=False)
    done = audit_again(run, sample, tmp_path)
    assert done.exit_code == 2
    assert "20 of 20 rows have another 'given_label' than the data" in done.stderr


def test_the_console_shows_rows_beside_digests(run: Any, tmp_path: Path) -> None:
    animals("features", tmp_path / "a.csv")
    words = ("audit", "a.csv", "--features", "emb_*", "--estimator", "knn-vote", "-k", "6", "--suspects", "3")
    done = run(*words, "-o", "first")
    issues = read_audit(tmp_path / "first").issues
    worst = issues[issues.is_label_issue].iloc[0]
    (line,) = [line for line in done.stdout.splitlines() if worst.id in line]
    assert line.split()[0] == str(worst.name)
