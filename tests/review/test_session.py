"""The labels that a review settled, used by the next audit."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from audited_runs import MakeRun
from laplaceconfidence.cli.app import app
from laplaceconfidence.exceptions import RunFolderError
from laplaceconfidence.records import read_audit
from laplaceconfidence.records.sample_arrays import SampleArrays
from laplaceconfidence.review.outcome import review_outcome
from laplaceconfidence.review.session import ReviewSession


@pytest.mark.parametrize("settings", [["--estimator", "laplace", "--alpha", "0.9"], []])
def test_a_review_is_carried_over_by_the_command(
    make_run: MakeRun, tmp_path: Path, settings: list[str]
) -> None:
    run = make_run("csv")
    session = ReviewSession(run)
    order, wrong = session.samples.random_order[:60].tolist(), []
    for row in order:
        is_wrong = row % 10 == 0
        wrong += [row] * is_wrong
        verdict = "suggestion" if is_wrong else "keep"
        session.decide(row, verdict, label=None, expected_version=0, who="ann", queue="random")
    suggested = session.samples.suggested.copy()
    session.close()
    outcome = review_outcome(run)
    assert len(outcome.labels) == 60
    assert outcome.at_random == outcome.labels.keys()
    assert outcome.calibration is not None
    words = ["audit", str(tmp_path / "data" / "texts.csv"), "--features", "emb_*", "-k", "6", *settings]
    done = CliRunner().invoke(app, [*words, "--decisions", str(run.folder), "-o", str(tmp_path / "again")])
    assert done.exit_code == 0, done.stderr
    again = SampleArrays.of(read_audit(tmp_path / "again"))
    assert (again.confidence[order] == 1).all()
    assert (again.given[wrong] == suggested[wrong]).all()
    assert len(again.suspects) == 9 - len(wrong)
    assert again.run.record.source["n_decisions"] == 60


def test_suspects_are_no_random_sample(make_run: MakeRun) -> None:
    run = make_run("csv")
    session = ReviewSession(run)
    for row in session.samples.suspects.tolist():
        session.decide(row, "keep", label=None, expected_version=0, who="ann", queue="worst")
    session.close()
    outcome = review_outcome(run)
    assert outcome.labels
    assert not outcome.at_random


def test_a_run_nobody_reviewed_is_said_to_be_so(make_run: MakeRun) -> None:
    with pytest.raises(RunFolderError, match="review it first"):
        review_outcome(make_run("csv"))
