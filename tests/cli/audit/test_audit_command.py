"""``laplaceconfidence audit``: what it prints and what it writes."""

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from audited_runs import confusable_points
from laplaceconfidence.auditing.statement import EVIDENCE_ALONE
from laplaceconfidence.records import read_audit
from laplaceconfidence.review.session import ReviewSession

OPTIONS = ("--label", "mood", "--features", "emb_*", "--text", "review", "--id", "number", "-k", "10")


def test_a_table_is_audited(run: Any, table: pd.DataFrame, tmp_path: Path) -> None:
    done = run("audit", "reviews.csv", *OPTIONS, "--true-label", "truth")
    assert done.exit_code == 0, done.stderr
    assert "About 3 of 59 labels (5.1%; between 5.1% and 5.1%) are expected to be wrong." in done.stdout
    assert "1 sample without a label got a suggestion." in done.stdout
    assert "Flagged:                3 (5.1%), where another class is more probable" in done.stdout
    assert "3 are wrong: 100.0% of them are flagged, and 100.0% of the flags are right" in done.stdout
    for heading in ("Worst classes", "Most confused", "To look at first"):
        assert heading in done.stdout
    assert "[red]good" in done.stdout
    assert "\x1b" not in done.stdout
    assert "review 4 with two lines" in done.stdout
    assert "Written to laplaceconfidence-audit-reviews/" in done.stdout
    audited = read_audit(tmp_path / "laplaceconfidence-audit-reviews")
    assert sorted(audited.issues.index[:3]) == [4, 10, 21]
    assert audited.issues.id[4] == "r4"
    assert audited.record.settings["n_neighbors"] == 10
    assert audited.record.settings["random_state"] == 0
    source = audited.record.source
    assert source["source"] == str(tmp_path / "reviews.csv")
    assert source["options"]["label"] == "mood"
    assert source["options"]["features"] == "emb_*"
    assert audited.record.feature_columns == ("emb_0", "emb_1")
    assert "Features: 2 columns (emb_0, emb_1)." in done.stdout


def test_features_that_are_not_named_are_asked_for(run: Any, table: pd.DataFrame) -> None:
    done = run("audit", "reviews.csv", "--label", "mood")
    assert done.exit_code == 2
    assert "\n  --features 'emb_*'\n" in done.stderr
    assert "emb_0 (float64), emb_1 (float64), truth (text)" in done.stderr


def test_the_same_seed_gives_the_same_issues(run: Any, table: pd.DataFrame, tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert run("audit", "reviews.csv", *OPTIONS, "--out", name, "--seed", 3).exit_code == 0
    assert (tmp_path / "one/issues.csv").read_bytes() == (tmp_path / "two/issues.csv").read_bytes()


def test_columns_can_be_named_one_by_one(run: Any, table: pd.DataFrame, tmp_path: Path) -> None:
    done = run(
        "audit", "reviews.csv", "--label", "mood", "--features", "emb_0", "--features", "emb_1", "-o", "x"
    )
    assert done.exit_code == 0, done.stderr
    assert read_audit(tmp_path / "x").record.n_features == 2


def test_notes_go_to_standard_error_and_into_the_record(
    run: Any, table: pd.DataFrame, tmp_path: Path
) -> None:
    done = run("audit", "reviews.csv", "--label", "mood", "--features", "emb_*", "-k", "100", "-o", "x")
    assert done.exit_code == 0
    note = "'n_neighbors' was lowered from 100 to 59: there are only 60 samples."
    assert f"Note: {note}" in done.stderr
    assert "Warning" not in done.stderr
    assert "Note" not in done.stdout
    assert note in read_audit(tmp_path / "x").record.warnings


def test_decisions_are_discarded_only_when_asked(run: Any, table: pd.DataFrame, tmp_path: Path) -> None:
    assert run("audit", "reviews.csv", *OPTIONS, "-o", "x").exit_code == 0
    session = ReviewSession(read_audit(tmp_path / "x"))
    session.decide(4, "keep", label=None, expected_version=0, who="ann", queue="worst")
    session.close()
    refused = run("audit", "reviews.csv", *OPTIONS, "-o", "x", "--overwrite")
    assert refused.exit_code == 2
    assert "holds decisions of a review" in refused.stderr
    alone = run("audit", "reviews.csv", *OPTIONS, "-o", "y", "--discard-decisions")
    assert "only applies to '--overwrite'" in alone.stderr
    both = ("--overwrite", "--discard-decisions")
    done = run("audit", "reviews.csv", *OPTIONS, "-o", "x", "--decisions", "x", *both)
    assert done.exit_code == 0, done.stderr
    assert not (tmp_path / "x" / "decisions.sqlite").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["reviews.csv", "x"]


def test_an_audit_is_replaced_only_when_asked(run: Any, table: pd.DataFrame) -> None:
    assert run("audit", "reviews.csv", *OPTIONS).exit_code == 0
    again = run("audit", "reviews.csv", *OPTIONS)
    assert again.exit_code == 2
    assert "already holds a run" in again.stderr
    assert run("audit", "reviews.csv", *OPTIONS, "--overwrite").exit_code == 0


def test_probabilities_take_the_place_of_features(run: Any, tmp_path: Path) -> None:
    pd.DataFrame({"label": list("abab"), "text": list("wxyz")}).to_csv(tmp_path / "d.csv", index=False)
    np.save(tmp_path / "p.npy", np.array([[0.9, 0.1], [0.2, 0.8], [0.1, 0.9], [0.3, 0.7]]))
    done = run("audit", "d.csv", "--pred-probs", "p.npy", "-o", "x")
    assert done.exit_code == 0, done.stderr
    assert "1 of 4 labels (25%) is flagged; how many are wrong was not estimated." in done.stdout
    assert "'normalized-margin'" in done.stdout
    record = read_audit(tmp_path / "x").record
    assert record.source["pred_probs"] == str(tmp_path / "p.npy")
    assert run("audit", "d.csv", "--pred-probs", "p.npy", "--estimator", "beta-mixture").exit_code == 0


def test_a_graph_takes_the_place_of_features(run: Any, tmp_path: Path) -> None:
    labels = np.arange(20) % 2
    near = (labels[:, None] == labels[None, :]).astype(float)
    sparse.save_npz(tmp_path / "g.npz", sparse.csr_array(near))
    labels[4] = 1
    pd.DataFrame({"label": labels, "text": ["t"] * 20}).to_csv(tmp_path / "d.csv", index=False)
    done = run("audit", "d.csv", "--knn-graph", "g.npz", "--knn-graph-kind", "similarity", "-o", "x")
    assert done.exit_code == 0, done.stderr
    assert read_audit(tmp_path / "x").issues.index[0] == 4
    alone = run("audit", "d.csv", "--knn-graph-kind", "similarity", "-o", "y")
    assert alone.exit_code == 2
    assert "'--knn-graph' are, which was not given" in alone.stderr


def test_nothing_wrong_is_said_as_such(run: Any, tmp_path: Path) -> None:
    features = np.eye(2)[np.arange(20) % 2] + 0.1
    np.savez(tmp_path / "d.npz", features=features, labels=np.arange(20) % 2, true_labels=np.arange(20) % 2)
    done = run("audit", "d.npz", "-k", "5")
    assert "No wrong label is expected among 20 labels" in done.stdout
    assert "none is wrong; false alarms: 0" in done.stdout


@pytest.mark.parametrize("suspects", [0, 2])
def test_as_many_suspects_as_asked_for(run: Any, table: pd.DataFrame, suspects: int) -> None:
    done = run("audit", "reviews.csv", *OPTIONS, "--suspects", suspects)
    assert (
        sum(f" r{row} " in f" {line}" for row in (4, 10, 21) for line in done.stdout.splitlines()) == suspects
    )


def test_an_image_folder_with_embeddings_beside_it(run: Any, tmp_path: Path) -> None:
    from PIL import Image

    truth = np.arange(24) % 2
    for row, code in enumerate(truth):
        folder = tmp_path / "photos" / ["cat", "dog"][1 - code if row == 0 else code]
        folder.mkdir(parents=True, exist_ok=True)
        Image.new("L", (4, 4)).save(folder / f"{row:02}.png")
    names = sorted(path.relative_to(tmp_path / "photos") for path in (tmp_path / "photos").rglob("*.png"))
    kinds = truth[[int(name.stem) for name in names]]
    np.save(tmp_path / "e.npy", np.eye(2)[kinds] + np.random.default_rng(0).normal(scale=0.1, size=(24, 2)))
    done = run("audit", "photos", "--features", "e.npy", "-k", "5", "--estimator", "laplace")
    assert done.exit_code == 0, done.stderr
    audited = read_audit(tmp_path / "laplaceconfidence-audit-photos")
    worst = audited.issues.iloc[0]
    assert (worst.id, worst.given_label, worst.predicted_label) == ("dog/00.png", "dog", "cat")
    assert worst.path == str(tmp_path / "photos/dog/00.png")
    assert audited.record.source["options"]["features"] == str(tmp_path / "e.npy")


@pytest.mark.parametrize("evidence", ["--pred-probs", "--knn-graph"])
def test_given_evidence_needs_no_features(run: Any, tmp_path: Path, evidence: str) -> None:
    n = 60
    true = np.arange(n) % 2
    given = true.copy()
    given[:6] = 1 - given[:6]
    table = pd.DataFrame({"label": np.array(["a", "b"])[given], "user": range(n), "year": 2020})
    table.to_csv(tmp_path / "t.csv", index=False)
    np.save(tmp_path / "p.npy", 0.1 + 0.8 * np.eye(2)[true])
    same = (true[:, None] == true).astype(float) * (1 - np.eye(n))
    sparse.save_npz(tmp_path / "g.npz", sparse.csr_array(same))
    file = {"--pred-probs": "p.npy", "--knn-graph": "g.npz"}[evidence]
    done = run("audit", "t.csv", evidence, file, "-o", "run")
    assert done.exit_code == 0, done.stderr
    assert set(read_audit(tmp_path / "run").issues.query("is_label_issue").index) == set(range(6))
    assert run("export", "run", "-o", "fixed.csv").exit_code == 0
    assert pd.read_csv(tmp_path / "fixed.csv").equals(pd.read_csv(tmp_path / "t.csv"))
    refused = run("audit", "t.csv", "-o", "other")
    assert refused.exit_code == 2
    assert "--features user --features year" in refused.stderr


@pytest.fixture
def confusable(tmp_path: Path) -> Path:
    """A table whose noise is not identified, with long paths that differ at their end."""
    features, labels, _ = confusable_points()
    frame = pd.DataFrame(features, columns=["emb_0", "emb_1", "emb_2"])
    frame["topic"] = np.array(["politics", "sports", "science"])[labels]
    folder = "/archive/of/a/department/with/a/long/name/scans-of-the-second-delivery"
    frame["scan"] = [f"{folder}/page-{row:04d}.png" for row in range(len(frame))]
    frame.to_csv(tmp_path / "news items.csv", index=False)
    return tmp_path / "news items.csv"


def test_unidentified_noise_is_no_dead_end(run: Any, confusable: Path, tmp_path: Path) -> None:
    data = ("audit", "news items.csv", "--label", "topic", "--features", "emb_*", "--path", "scan")
    done = run(*data, "--target-precision", "0.7", "--out", "x", "--suspects", 3)
    assert done.exit_code == 0, done.stderr
    audited = read_audit(tmp_path / "x")
    assert audited.record.n_issues == 0
    for said in (audited.record.statement.headline, *dict(audited.record.statement.facts).values()):
        assert said in " ".join(done.stdout.split())
    assert "no labels reach the target precision 0.7 (the highest expected one is 0." in done.stdout
    assert done.stdout.index("drawn at random") < done.stdout.index("To look at first  ")
    assert EVIDENCE_ALONE in " ".join(done.stdout.split())
    shown = done.stdout[done.stdout.index("To look at first  ") :]
    assert "probability" in shown
    assert "score" not in shown  # half of which is the reading in which all labels are right
    for row in audited.issues.index[:3]:
        assert f"/scans-of-the-second-delivery/page-{row:04d}.png" in done.stdout
    commands = [line.strip() for line in done.stdout.splitlines() if line.startswith("  laplaceconfidence")]
    assert len(commands) == 4
    drawn = run(*shlex.split(commands[0])[1:])
    assert drawn.exit_code == 0, drawn.stderr
    sample = pd.read_csv(tmp_path / "x" / "review_sample.csv")
    sample["verified_label"] = np.array(["politics", "sports", "science"])[
        confusable_points()[2][sample["row"]]
    ]
    sample.to_csv(tmp_path / "x" / "review_sample.csv", index=False)
    verified = run(*shlex.split(commands[1])[1:])
    assert verified.exit_code == 0, verified.stderr
    record = read_audit(tmp_path / "x-verified").record
    assert record.noise_is_identified
    assert record.n_issues > 0
    assert record.statement.headline in verified.stdout
