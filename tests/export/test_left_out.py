"""Which outliers, copies and leaks an export leaves out, and what its trail says."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audited_runs import make_audit_with_other_issues
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.export import plan_export, write_export
from laplaceconfidence.export.left_out import LeftOutSamples, Reason
from laplaceconfidence.export.plan import ExportPlan
from laplaceconfidence.records import AuditRun
from laplaceconfidence.records.other_issues import OtherIssues
from laplaceconfidence.records.sample_arrays import SampleArrays
from laplaceconfidence.review.session import ReviewSession


@pytest.fixture
def run(tmp_path: Path) -> AuditRun:
    return make_audit_with_other_issues(tmp_path)


def left_out(plan: ExportPlan) -> list[int]:
    return np.flatnonzero(~plan.is_kept).tolist()


def decide(run: AuditRun, row: int, verdict: str, queue: str = "worst") -> None:
    session = ReviewSession(run)
    session.decide(row, verdict, label=None, expected_version=0, who="ann", queue=queue)
    session.close()


def decide_copies(run: AuditRun, row: int, verdict: str, kept: int | None = None) -> None:
    session = ReviewSession(run)
    seen = session.copies(row).fingerprint
    session.decide_copies(row, verdict, kept=kept, fingerprint=seen, who="ann")
    session.close()


def test_nothing_is_left_out_unasked(run: AuditRun) -> None:
    plan = plan_export(run)
    assert plan.is_kept.all()
    assert plan.trail.empty


def test_one_of_every_set_of_copies_is_kept(run: AuditRun) -> None:
    plan = plan_export(run, copies="keep-one")
    samples = plan.samples
    for rows in ([1, 90], [2, 91], [4, 92, 93]):
        kept = [row for row in rows if plan.is_kept[row]]
        assert len(kept) == 1
        assert samples.confidence[kept[0]] == samples.confidence[rows].max()
    by_row = plan.trail.set_index("row")
    assert set(by_row["why"]) == {"not reviewed: copy of another sample"}
    assert set(by_row["action"]) == {"dropped"}
    assert by_row.loc[91, "copy_of"] == "s002"
    assert (~plan.is_kept).sum() == 4


def test_the_copy_whose_label_a_person_settled_is_kept(run: AuditRun) -> None:
    decide(run, 91, "keep")  # its confidence is the lower one
    plan = plan_export(run, copies="keep-one")
    assert plan.is_kept[91]
    assert not plan.is_kept[2]


def test_conflicting_copies_are_left_out_unless_a_person_settled_them(run: AuditRun) -> None:
    assert left_out(plan_export(run, copies="drop-conflicting")) == [2, 91]
    decide(run, 2, "keep")
    plan = plan_export(run, copies="drop-conflicting")
    assert left_out(plan) == [91]
    assert plan.trail["why"].tolist() == ["not reviewed: copies with different labels"]


def test_copies_whose_labels_the_review_made_equal_do_not_conflict(run: AuditRun) -> None:
    samples = SampleArrays.of(run)
    session = ReviewSession(run)
    session.decide(91, "other", label=int(samples.given[2]), expected_version=0, who="ann", queue="worst")
    session.close()
    assert plan_export(run, copies="drop-conflicting").is_kept.all()


def test_leaks_and_outliers_are_left_out_on_request(run: AuditRun) -> None:
    assert left_out(plan_export(run, outliers="drop")) == [94]
    plan = plan_export(run, leaks="drop")
    assert left_out(plan) == [4, 5, 92, 93]
    by_row = plan.trail.set_index("row")
    assert set(by_row["why"]) == {"not reviewed: also in the test set"}
    assert by_row.loc[5, "copy_of"] == "t000"
    assert by_row.loc[5, "decided_by"] == "audit by 'laplace'"


def test_a_set_of_copies_that_is_wholly_in_the_test_set_goes_as_a_leak(run: AuditRun) -> None:
    plan = plan_export(run, leaks="drop", copies="keep-one")
    assert not plan.is_kept[[4, 92, 93]].any()
    assert set(plan.trail.set_index("row").loc[[4, 92, 93], "copy_of"]) == {"t001"}
    assert plan.is_kept[[1, 90]].sum() == plan.is_kept[[2, 91]].sum() == 1


def test_what_people_decided_comes_before_the_policies(run: AuditRun) -> None:
    decide(run, 5, "keep", queue="leaks")
    decide(run, 4, "unsure", queue="leaks")
    decide(run, 94, "keep", queue="outliers")
    decide_copies(run, 1, "keep")
    plan = plan_export(run, leaks="drop", outliers="drop", copies="keep-one")
    assert plan.is_kept[[5, 94, 1, 90]].all()
    by_row = plan.trail.set_index("row")
    assert by_row.loc[4, "why"] == "reviewed: unsure: also in the test set"


def test_what_people_dropped_is_left_out_and_the_trail_says_why(run: AuditRun) -> None:
    decide(run, 5, "drop", queue="leaks")
    decide(run, 94, "drop", queue="outliers")
    decide_copies(run, 1, "keep-one", kept=90)
    decide_copies(run, 2, "drop")
    plan = plan_export(run)
    assert left_out(plan) == [1, 2, 5, 91, 94]
    by_row = plan.trail.set_index("row")
    assert by_row["why"].to_dict() == {
        1: "reviewed: copy of another sample",
        2: "reviewed: dropped with its copies",
        5: "reviewed: also in the test set",
        91: "reviewed: dropped with its copies",
        94: "reviewed: dropped",
    }
    assert by_row["copy_of"].dropna().to_dict() == {1: "s090", 5: "t000"}
    assert set(by_row["decided_by"]) == {"ann"}
    assert plan.n_reviewed == 6


def test_a_set_that_was_partly_dropped_for_other_reasons_keeps_one_of_the_rest(run: AuditRun) -> None:
    best = plan_export(run, copies="keep-one").is_kept
    kept = next(row for row in (4, 92, 93) if best[row])
    decide(run, kept, "none")
    plan = plan_export(run, copies="keep-one")
    assert not plan.is_kept[kept]
    assert plan.is_kept[[4, 92, 93]].sum() == 1


def test_the_exported_table_has_neither_leaks_nor_more_than_one_copy(run: AuditRun, tmp_path: Path) -> None:
    plan = plan_export(run, leaks="drop", outliers="drop", copies="keep-one")
    exported = write_export(plan, tmp_path / "fixed.csv")
    ids = set(pd.read_csv(exported.path)["id"])
    assert len(ids) == exported.n_samples == 95 - 4 - 1 - 2
    assert {"s004", "s005", "s092", "s093", "s094"}.isdisjoint(ids)
    trail = pd.read_csv(exported.trail)
    assert set(trail["id"]).isdisjoint(ids)
    assert len(trail) == 7


def test_an_export_without_any_sample_is_refused(run: AuditRun, tmp_path: Path) -> None:
    plan = plan_export(run)
    with pytest.raises(InvalidInputError, match="No sample would be left"):
        write_export(replace(plan, is_kept=np.zeros(95, dtype=bool)), tmp_path / "fixed.csv")


@pytest.mark.parametrize("option", ["copies", "outliers", "leaks"])
def test_policies_that_do_not_exist_are_refused(run: AuditRun, option: str) -> None:
    with pytest.raises(InvalidInputError, match=f"'{option}'"):
        plan_export(run, **{option: "drop-all"})  # type: ignore[arg-type]


def test_policies_for_what_was_not_looked_for_are_refused(make_run: Any) -> None:
    run = make_run("csv")
    with pytest.raises(InvalidInputError, match="without a test set"):
        plan_export(run, leaks="drop")
    run.__dict__["issues"] = run.issues[["id", *run.issues.columns[1:6]]]
    for option, value in (("copies", "keep-one"), ("outliers", "drop")):
        with pytest.raises(InvalidInputError, match=f"'{option}'.*did not compare features"):
            plan_export(run, **{option: value})


class AnySamples:
    """Samples with random labels and confidences; some have no label."""

    def __init__(self, n: int, rng: np.random.Generator) -> None:
        self.ids = np.array([f"s{row}" for row in range(n)], dtype=object)
        self.given = rng.integers(-1, 3, size=n)
        self.confidence = np.where(self.given == -1, np.nan, rng.integers(0, 4, size=n) / 4)

    def __len__(self) -> int:
        return len(self.ids)

    def probability_of(self, rows: Any, codes: Any) -> Any:
        assert (codes == self.given[rows]).all()
        return self.confidence[rows]


def issues_with_sets(numbers: list[int | None], rng: np.random.Generator) -> OtherIssues:
    """Sets of copies by their numbers, one for each row; a number that occurs once is no set."""
    n = len(numbers)
    sets = [number if numbers.count(number) > 1 else None for number in numbers]
    table = pd.DataFrame(
        {
            "near_duplicate_set": pd.array(sets, dtype="Int64"),
            "near_duplicate_score": rng.random(n),
            "has_conflicting_duplicate": rng.random(n) < 0.5,
        }
    )
    record = SimpleNamespace(class_values=(), class_names=())
    run: Any = SimpleNamespace(issues=table.sample(frac=1, random_state=0), record=record)
    return OtherIssues.of(run)


@given(
    numbers=st.lists(st.one_of(st.none(), st.integers(0, 4)), min_size=1, max_size=24),
    seed=st.integers(0, 1_000),
)
def test_keep_one_leaves_exactly_one_of_every_set(numbers: list[int | None], seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = len(numbers)
    issues = issues_with_sets(numbers, rng)
    samples: Any = AnySamples(n, rng)
    is_verified = rng.random(n) < 0.3
    already = set(np.flatnonzero(rng.random(n) < 0.3).tolist())
    results = []
    for _ in range(2):
        collected = LeftOutSamples(samples, issues)
        for row in already:
            collected.add(row, Reason("dropped before"))
        collected.add_copies("keep-one", {}, samples.given, is_verified)
        results.append(dict(collected.reasons))
    assert results[0] == results[1]
    for found in issues.copies:
        before = [row for row in found.rows.tolist() if row not in already]
        after = [row for row in before if row not in results[0]]
        assert len(after) == min(1, len(before))  # exactly one, and none only where all were gone before
        if after:
            rank = {row: (is_verified[row], np.nan_to_num(samples.confidence[row], nan=-1)) for row in before}
            assert rank[after[0]] == max(rank.values())
    in_sets = {row for found in issues.copies for row in found.rows.tolist()}
    assert results[0].keys() <= already | in_sets
