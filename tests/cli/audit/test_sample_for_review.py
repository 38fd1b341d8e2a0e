"""``audit --sample-for-review``: labels drawn at random, as a table and in the review."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from laplaceconfidence.exceptions import RunFolderError
from laplaceconfidence.records import read_audit
from laplaceconfidence.records.sample_arrays import SampleArrays
from laplaceconfidence.review.queues import QueueFilter
from laplaceconfidence.review.session import ReviewSession

AUDIT = (
    "audit",
    "reviews.csv",
    "--label",
    "mood",
    "--features",
    "emb_*",
    "--text",
    "review",
    "--id",
    "number",
)
FAST = ("--estimator", "knn-vote", "-k", "10")


def drawn(folder: Path) -> pd.DataFrame:
    return pd.read_csv(folder / "review_sample.csv", dtype=str, keep_default_na=False)


@contextmanager
def session_of(folder: Path) -> Iterator[ReviewSession]:
    session = ReviewSession(read_audit(folder))
    yield session
    session.close()


def test_the_table_is_ready_to_be_filled_in(run: Any, table: pd.DataFrame, tmp_path: Path) -> None:
    done = run(*AUDIT, *FAST, "--sample-for-review", 20, "-o", "x")
    assert done.exit_code == 0, done.stderr
    sample = drawn(tmp_path / "x")
    assert list(sample.columns) == ["id", "row", "text", "given_label", "chosen", "verified_label"]
    rows = sample["row"].astype(int)
    assert len(set(rows)) == 20
    assert sample["id"].tolist() == [f"r{row}" for row in rows]
    assert sample["text"].tolist() == table["review"][rows].tolist()
    assert sample["given_label"].tolist() == table["mood"][rows].tolist()
    assert (sample["verified_label"] == "").all()
    assert 30 not in rows  # it has no label
    assert not set(rows) <= {4, 10, 21}  # not the suspects
    for words in ("20 labels drawn at random", "--audited x/review_sample.csv", "laplaceconfidence review x"):
        assert words in done.stdout
    assert "Fewer than 50" in done.stdout


def test_the_draw_follows_the_seed(run: Any, table: pd.DataFrame, tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        assert run(*AUDIT, *FAST, "--sample-for-review", 20, "--seed", seed, "-o", name).exit_code == 0
    a, b, c = (drawn(tmp_path / name)["id"].tolist() for name in "abc")
    assert a == b
    assert set(a) != set(c)


def test_the_review_begins_with_this_very_sample(run: Any, table: pd.DataFrame, tmp_path: Path) -> None:
    assert run(*AUDIT, *FAST, "--sample-for-review", 20, "--seed", 5, "-o", "x").exit_code == 0
    rows = drawn(tmp_path / "x")["row"].astype(int).tolist()
    with session_of(tmp_path / "x") as session:
        queue = session.queues.rows(QueueFilter(view="random"), session.is_decided("random")).tolist()
        for row in rows[:3]:
            session.decide(row, "keep", label=None, expected_version=0, who="ann", queue="random")
        assert session.progress().noise.n_verdicts == 3
    assert queue[:20] == rows
    assert sorted(queue) == [row for row in range(60) if row != 30]


def test_a_run_without_a_sample_is_reviewed_as_ever(run: Any, table: pd.DataFrame, tmp_path: Path) -> None:
    assert run(*AUDIT, *FAST, "-o", "x").exit_code == 0
    assert not (tmp_path / "x/review_sample.csv").exists()
    order = SampleArrays.of(read_audit(tmp_path / "x")).random_order
    labeled = [row for row in range(60) if row != 30]
    assert order.tolist() == np.random.default_rng(60).permutation(labeled).tolist()


def test_verified_labels_are_not_drawn_again(run: Any, table: pd.DataFrame, tmp_path: Path) -> None:
    assert run(*AUDIT, "--sample-for-review", 40, "-o", "first").exit_code == 0
    sample = drawn(tmp_path / "first")
    sample["verified_label"] = sample["given_label"]
    sample.to_csv(tmp_path / "filled.csv", index=False)
    again = (*AUDIT, "--audited", "filled.csv", "--sample-for-review")
    assert run(*again, 19, "-o", "second").exit_code == 0
    assert not set(drawn(tmp_path / "second")["id"]) & set(sample["id"])
    done = run(*again, 20, "-o", "third")
    assert done.exit_code == 2
    assert (
        "'sample_for_review' parameter must be at most the 19 labels that nobody has verified" in done.stderr
    )


@pytest.mark.parametrize("wrong", [0, -3, 60])
def test_impossible_sizes_are_refused(run: Any, table: pd.DataFrame, tmp_path: Path, wrong: int) -> None:
    done = run(*AUDIT, *FAST, "--sample-for-review", wrong, "-o", "x")
    assert done.exit_code == 2
    assert "'sample_for_review' parameter must be" in done.stderr
    assert f"Got {wrong}" in done.stderr
    assert not (tmp_path / "x").exists()


def test_a_filled_in_table_is_never_overwritten(run: Any, table: pd.DataFrame, tmp_path: Path) -> None:
    words = (*AUDIT, *FAST, "--sample-for-review", 20, "-o", "x")
    assert run(*words).exit_code == 0
    assert run(*words, "--overwrite").exit_code == 0  # nobody has put work into it
    sample = drawn(tmp_path / "x")
    sample.loc[3, "verified_label"] = "bad"
    sample.to_csv(tmp_path / "x/review_sample.csv", index=False)
    done = run(*words, "--overwrite")
    assert done.exit_code == 2
    assert "review_sample.csv" in done.stderr
    assert "would be lost" in done.stderr
    assert drawn(tmp_path / "x")["verified_label"][3] == "bad"


def test_the_run_stays_whole_when_the_table_is_moved(run: Any, table: pd.DataFrame, tmp_path: Path) -> None:
    assert run(*AUDIT, *FAST, "--sample-for-review", 20, "-o", "x").exit_code == 0
    rows = drawn(tmp_path / "x")["row"].astype(int).tolist()
    (tmp_path / "x/review_sample.csv").rename(tmp_path / "elsewhere.csv")
    assert SampleArrays.of(read_audit(tmp_path / "x")).random_order[:20].tolist() == rows


def test_a_damaged_sample_is_said_to_be_so(run: Any, table: pd.DataFrame, tmp_path: Path) -> None:
    assert run(*AUDIT, *FAST, "--sample-for-review", 2, "-o", "x").exit_code == 0
    record = json.loads((tmp_path / "x/audit.json").read_text())
    for wrong in ([3, 3], [60], [30]):
        (tmp_path / "x/audit.json").write_text(json.dumps(record | {"review_sample": wrong}))
        with pytest.raises(RunFolderError, match="review_sample"):
            _ = SampleArrays.of(read_audit(tmp_path / "x")).random_order


def test_pictures_of_the_sample_are_kept_before_all_others(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laplaceconfidence.records.pictures.MOST_BYTES", 30 * 64)
    done = run("audit", "digits", "--estimator", "knn-vote", "--sample-for-review", 30, "-o", "x")
    assert done.exit_code == 0, done.stderr
    rows = drawn(tmp_path / "x")["row"].astype(int)
    pictures = read_audit(tmp_path / "x").pictures
    assert all(pictures.of(row) is not None for row in rows)


def test_what_is_uncertain_is_marked_and_does_not_calibrate(run: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    truth = np.arange(200) % 2
    frame = pd.DataFrame(np.eye(2)[truth] + rng.normal(scale=0.4, size=(200, 2)), columns=["emb_0", "emb_1"])
    frame["mood"] = np.array(["bad", "good"])[np.where(rng.random(200) < 0.1, 1 - truth, truth)]
    frame["number"] = [f"r{row}" for row in range(200)]
    frame.to_csv(tmp_path / "some.csv", index=False)
    words = ("audit", "some.csv", "--label", "mood", "--features", "emb_*", "--id", "number")
    done = run(*words, "--sample-for-review", 60, "-o", "x")
    assert done.exit_code == 0, done.stderr
    sample = drawn(tmp_path / "x")
    assert sample["chosen"].value_counts().to_dict() == {"at random": 50, "uncertain": 10}
    assert "and 10 whose answer is least certain" in done.stdout
    assert "percentage points" in done.stdout
    with session_of(tmp_path / "x") as session:
        uncertain = sample.loc[sample["chosen"] == "uncertain", "row"].astype(int).tolist()
        assert session.queues.rows_of["uncertain"].tolist() == uncertain
        for row in uncertain:
            session.decide(row, "keep", label=None, expected_version=0, who="ann", queue="uncertain")
        assert session.progress().noise.n_verdicts == 0
    sample["verified_label"] = [("bad", "good")[truth[int(row)]] for row in sample["row"]]
    sample.to_csv(tmp_path / "filled.csv", index=False)
    again = run(*words, "--audited", "filled.csv", "-o", "y")
    assert again.exit_code == 0, again.stderr
    n_wrong = (sample["verified_label"] != sample["given_label"])[:50].sum()
    assert f"{n_wrong} of the 50 that were drawn at random differ" in again.stdout
    sample[sample["chosen"] == "uncertain"].to_csv(tmp_path / "filled.csv", index=False)
    few = run(*words, "--audited", "filled.csv", "-o", "z")
    assert "did not calibrate" in few.stdout
    assert "0 verified labels of samples that have a given label" in few.stderr
