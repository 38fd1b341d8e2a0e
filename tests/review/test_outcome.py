"""An audit that goes on from a review: decided labels are certain, and teach about the others."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from audited_runs import MakeRun, noisy_blobs
from laplaceconfidence.auditing.issues import audit
from laplaceconfidence.cli.app import app
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.exceptions import InvalidInputError, RunFolderError
from laplaceconfidence.records import read_audit
from laplaceconfidence.records.judgments import Judgments
from laplaceconfidence.review.outcome import review_outcome
from laplaceconfidence.review.session import ReviewSession


def test_verified_labels_are_certain() -> None:
    features, given, true = noisy_blobs()
    data = NoisyDataset.from_arrays(given, features)
    result = audit(
        data,
        audited={0: int(true[0]), 1: int(given[1]), 2: None},
        estimator="laplace",
        n_neighbors=6,
        alpha=0.9,
    )
    table = result.table
    assert table.loc[[0, 1], "label_score"].tolist() == [1.0, 1.0]
    assert table.loc[0, "given_label"] == table.loc[0, "predicted_label"] == true[0]
    assert not table.loc[[0, 1, 2], "is_label_issue"].any()
    assert np.isnan(table.loc[2, "label_score"])
    assert data.labels[0] == given[0]


def test_verified_labels_change_what_is_thought_of_their_neighbors() -> None:
    rng = np.random.default_rng(0)
    features = np.concatenate([rng.normal(size=(30, 2)) + 9, rng.normal(size=(30, 2)) - 9]).astype(np.float32)
    labels = np.repeat([0, 1], 30)
    labels[:14] = 1  # nearly half of the first cluster is mislabeled
    before = audit(NoisyDataset.from_arrays(labels, features), estimator="laplace", n_neighbors=8, alpha=0.9)
    after = audit(
        NoisyDataset.from_arrays(labels, features),
        audited=dict.fromkeys(range(7), 0),
        estimator="laplace",
        n_neighbors=8,
        alpha=0.9,
    )
    rest = np.arange(7, 14)
    doubt_before, doubt_after = (
        1 - result.table.loc[rest, "label_score"].mean() for result in (before, after)
    )
    assert doubt_after > doubt_before


def test_an_estimator_that_learns_from_verified_labels_is_told_them() -> None:
    from laplaceconfidence.confidence.noise_aware import NoiseAwareConfidence

    features, given, true = noisy_blobs(4)
    data = NoisyDataset.from_arrays(given, features)
    audited: dict[int, object] = {row: int(true[row]) for row in range(0, 60)}
    result = audit(data, estimator=NoiseAwareConfidence(random_state=0), audited={**audited, 61: None})
    assert (result.table.loc[list(audited), "label_score"] == 1).all()
    assert (result.predicted == true)[62:].mean() > 0.9


def test_labels_of_unknown_classes_and_rows_are_refused() -> None:
    features, given, _ = noisy_blobs()
    data = NoisyDataset.from_arrays(given, features)
    for wrong in ({0: 7}, {90: 0}, {"0": 0}):
        with pytest.raises(InvalidInputError, match="audited"):
            audit(data, audited=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("settings", [["--estimator", "laplace", "--alpha", "0.9"], []])
def test_a_review_is_carried_over_by_the_command(
    make_run: MakeRun, tmp_path: Path, settings: list[str]
) -> None:
    run = make_run("csv")
    session = ReviewSession(run)
    order, wrong = session.judged.random_order[:60].tolist(), []
    for row in order:
        is_wrong = row % 10 == 0
        wrong += [row] * is_wrong
        verdict = "suggestion" if is_wrong else "keep"
        session.decide(row, verdict, label=None, expected_version=0, who="ann", queue="random")
    suggested = session.judged.suggested.copy()
    session.close()
    outcome = review_outcome(run)
    assert len(outcome.labels) == 60
    assert outcome.at_random == outcome.labels.keys()
    assert outcome.calibration is not None
    words = ["audit", str(tmp_path / "data" / "texts.csv"), "--features", "emb_*", "-k", "6", *settings]
    done = CliRunner().invoke(app, [*words, "--decisions", str(run.folder), "-o", str(tmp_path / "again")])
    assert done.exit_code == 0, done.stderr
    again = Judgments.of(read_audit(tmp_path / "again"))
    assert (again.confidence[order] == 1).all()
    assert (again.given[wrong] == suggested[wrong]).all()
    assert len(again.suspects) == 9 - len(wrong)
    assert again.run.record.source["n_decisions"] == 60


def test_suspects_are_no_random_sample(make_run: MakeRun) -> None:
    run = make_run("csv")
    session = ReviewSession(run)
    for row in session.judged.suspects.tolist():
        session.decide(row, "keep", label=None, expected_version=0, who="ann", queue="worst")
    session.close()
    outcome = review_outcome(run)
    assert outcome.labels
    assert not outcome.at_random


def test_a_run_nobody_reviewed_is_said_to_be_so(make_run: MakeRun) -> None:
    with pytest.raises(RunFolderError, match="review it first"):
        review_outcome(make_run("csv"))
