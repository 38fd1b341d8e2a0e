"""Which labels an export changes, and what its trail says."""

import numpy as np
import pytest

from audited_runs import ESTIMATORS, MakeRun
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.export import plan_export
from laplaceconfidence.records import AuditRun
from laplaceconfidence.review.session import ReviewSession


def reviewed(run: AuditRun, *verdicts: str, queue: str = "worst") -> list[int]:
    """Give the first suspects these verdicts; returns their rows."""
    session = ReviewSession(run)
    rows = session.samples.suspects[: len(verdicts)].tolist()
    for row, verdict in zip(rows, verdicts, strict=True):
        session.decide(row, verdict, label=None, expected_version=0, who="ann", queue=queue)
    session.close()
    return rows


def test_reviewed_only_changes_what_people_decided(make_run: MakeRun) -> None:
    run = make_run()
    kept, taken, unsure, none = reviewed(run, "keep", "suggestion", "unsure", "none")
    plan = plan_export(run)
    changed = np.flatnonzero(plan.codes != plan.samples.given)
    assert changed.tolist() == [taken]
    assert plan.codes[taken] == plan.samples.suggested[taken]
    assert np.flatnonzero(~plan.is_kept).tolist() == [none]
    assert sorted(plan.trail["row"]) == sorted([taken, none])
    assert plan.n_reviewed == 4
    assert {kept, unsure}.isdisjoint(plan.trail["row"])


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_confident_suggestions_follow_the_review(make_run: MakeRun, estimator: str) -> None:
    run = make_run(estimator=estimator)
    kept, unsure = reviewed(run, "keep", "unsure")
    plan = plan_export(run, policy="reviewed-then-confident", min_probability=0.5)
    samples = plan.samples
    expected = samples.flagged & (samples.probability >= 0.5)
    expected[[kept, unsure]] = False  # a person has looked at them
    assert ((plan.codes != samples.given) == expected).all()
    assert expected.any()


def test_drop_leaves_out_what_nobody_settled(make_run: MakeRun) -> None:
    run = make_run()
    kept, taken, unsure = reviewed(run, "keep", "suggestion", "unsure")
    plan = plan_export(run, policy="drop")
    assert plan.is_kept[[kept, taken]].all()
    assert not plan.is_kept[unsure]
    assert (~plan.is_kept).sum() == plan.samples.flagged.sum() - 2


def test_the_trail_says_what_why_who_and_when(make_run: MakeRun) -> None:
    run = make_run()
    (taken,) = reviewed(run, "suggestion")
    plan = plan_export(run, policy="reviewed-then-confident", min_probability=0.5)
    by_row = plan.trail.set_index("row")
    assert by_row.loc[taken, "why"] == "reviewed: suggestion accepted"
    assert by_row.loc[taken, "decided_by"] == "ann"
    assert by_row.loc[taken, "old_label"] == plan.samples.name(plan.samples.given[taken])
    assert by_row.loc[taken, "new_label"] == plan.samples.name(plan.samples.suggested[taken])
    assert by_row.loc[taken, "probability"] == pytest.approx(plan.samples.probability[taken], abs=1e-4)
    others = by_row.drop(taken)
    assert set(others["decided_by"]) == {"audit by 'laplace'"}
    assert set(others["decided_at"]) == {run.record.created}
    assert plan.trail["label_score"].is_monotonic_increasing


def test_a_run_nobody_reviewed_changes_nothing(make_run: MakeRun) -> None:
    plan = plan_export(make_run())
    assert plan.trail.empty
    assert plan.is_kept.all()


@pytest.mark.parametrize(
    "settings",
    [
        {"policy": "all"},
        {"min_probability": 0.5},
        {"policy": "drop", "fill_missing": True},
        {"policy": "reviewed-then-confident", "min_probability": 1.5},
    ],
)
def test_settings_that_mean_nothing_are_refused(make_run: MakeRun, settings: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError):
        plan_export(make_run(), **settings)  # type: ignore[arg-type]
