"""Conditions that make a pipeline fail, and the differences of two audits."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audited_runs import ESTIMATORS, confusable_points, make_audit_with_other_issues, noisy_blobs
from laplaceconfidence import NoisyDataset, audit
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.records import AuditRun, write_audit
from laplaceconfidence.records.gate import check_conditions, parse_condition, reasons_to_fail
from laplaceconfidence.records.run_difference import compare_runs


def audited(
    folder: Path, rows: Any = slice(None), changed: dict[int, int] | None = None, **extra: Any
) -> AuditRun:
    features, given, _ = noisy_blobs()
    labels = given.copy()
    for row, label in (changed or {}).items():
        labels[row] = label
    ids = np.array([f"s{row}" for row in range(len(given))])
    data = NoisyDataset.from_arrays(labels[rows], features[rows], classes=[0, 1, 2], ids=ids[rows])
    return write_audit(audit(data, random_state=0, **extra), folder)


@pytest.mark.parametrize(
    ("text", "measure", "limit", "is_share", "is_new"),
    [
        ("noise > 0.05", "noise", 0.05, True, False),
        ("noise>=5%", "noise", 0.05, True, False),
        (" leaks > 0 ", "leaks", 0, False, False),
        ("conflicting-copies<=.5%", "conflicting-copies", 0.005, True, False),
        ("new-conflicting-copies > 0", "conflicting-copies", 0, False, True),
    ],
)
def test_conditions_are_parsed(text: str, measure: str, limit: float, is_share: bool, is_new: bool) -> None:
    found = parse_condition(text)
    assert (found.measure, found.is_share, found.is_new) == (measure, is_share, is_new)
    assert found.limit == pytest.approx(limit)


@pytest.mark.parametrize(
    "text",
    ["noise", "noise > ", "noise = 0.1", "noise > -1", "> 5", "noise > 5", "wrong > 1", "new-noise > 0", ""],
)
def test_other_conditions_are_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="fail_if"):
        parse_condition(text)


def test_the_measures_are_those_of_the_record(tmp_path: Path) -> None:
    run = make_audit_with_other_issues(tmp_path)
    record = run.record
    for measure, n in (
        ("flagged", record.n_issues),
        ("outliers", record.n_outliers),
        ("copies", record.n_near_duplicates),
        ("conflicting-copies", record.n_conflicting_duplicates),
        ("leaks", record.n_leaked),
        ("missing", 0),
    ):
        assert n is not None
        holding = [parse_condition(f"{measure} >= {n}"), parse_condition(f"{measure} <= {n}")]
        assert len(reasons_to_fail(holding, run)) == 2
        assert reasons_to_fail([parse_condition(f"{measure} > {n}")], run) == []
        share = 100 * n / record.n_samples
        assert reasons_to_fail([parse_condition(f"{measure} > {share + 0.01}%")], run) == []
        assert len(reasons_to_fail([parse_condition(f"{measure} >= {max(share - 0.01, 0)}%")], run)) == 1
    (reason,) = reasons_to_fail([parse_condition("leaks > 0")], run)
    assert reason.startswith("leaks > 0: 4 samples (")


def test_the_noise_is_that_of_the_estimator(tmp_path: Path) -> None:
    run = audited(tmp_path / "run")
    rate = run.record.noise_rate
    assert len(reasons_to_fail([parse_condition(f"noise > {rate - 0.001}")], run)) == 1
    assert reasons_to_fail([parse_condition(f"noise > {rate + 0.001}")], run) == []
    other = audited(tmp_path / "other", estimator=ESTIMATORS[0])
    with pytest.raises(InvalidInputError, match="does not estimate"):
        reasons_to_fail([parse_condition("noise > 0.1")], other)


def test_a_range_fails_if_both_ends_do(tmp_path: Path) -> None:
    X, y, _ = confusable_points()
    run = write_audit(audit((X, y), random_state=0), tmp_path / "run")
    assert run.record.noise_is_identified is False
    run = AuditRun(run.folder, replace(run.record, noise_rate_bracket=(0.1, 0.3)))
    assert len(reasons_to_fail([parse_condition("noise > 5%")], run)) == 1
    assert reasons_to_fail([parse_condition("noise > 20%")], run) == []


def test_what_was_not_looked_for_cannot_be_checked(tmp_path: Path) -> None:
    for text, message in (("leaks > 0", "--test"), ("new-flagged > 0", "--baseline")):
        with pytest.raises(InvalidInputError, match=message):
            check_conditions([parse_condition(text)], has_test=False, has_baseline=False)
    run = audited(tmp_path / "run")
    with pytest.raises(InvalidInputError, match="cannot be checked"):
        reasons_to_fail([parse_condition("leaks > 0")], run)
    with pytest.raises(InvalidInputError, match="both audits"):
        reasons_to_fail([parse_condition("new-leaks > 0")], run, compare_runs(run, run))


def test_an_audit_does_not_differ_from_itself(tmp_path: Path) -> None:
    run = audited(tmp_path / "run")
    found = compare_runs(run, run)
    assert (found.n_common, found.new, found.gone, found.relabeled) == (90, (), (), {})
    assert all(flag.n_before == flag.n_after for flag in found.flags.values())
    assert len(found.table()) == 0
    assert reasons_to_fail([parse_condition("new-flagged > 0")], run, found) == []


def test_samples_and_labels_that_changed(tmp_path: Path) -> None:
    before = audited(tmp_path / "before", slice(0, 80))
    _, given, true = noisy_blobs()
    wrong = (int(true[41]) + 1) % 3
    order = np.random.default_rng(0).permutation(np.arange(5, 90))
    after = audited(tmp_path / "after", order, {40: int(true[40]), 41: wrong})
    found = compare_runs(before, after)
    assert sorted(found.new) == sorted(f"s{row}" for row in range(80, 90))
    assert sorted(found.gone) == [f"s{row}" for row in range(5)]
    assert found.n_common == 75
    assert found.relabeled == {
        "s40": (str(given[40]), str(true[40])),
        "s41": (str(given[41]), str(wrong)),
    }
    flagged = found.flags["flagged"]
    earlier, later = (set(run.issues.loc[run.issues["is_label_issue"], "id"]) for run in (before, after))
    assert set(flagged.appeared) == later - earlier
    assert "s41" in flagged.appeared
    assert set(flagged.disappeared) == (earlier - later) - set(found.gone)
    assert "s40" in flagged.disappeared
    (reason,) = reasons_to_fail([parse_condition("new-flagged > 0")], after, found)
    assert f"{len(flagged.appeared)} sample" in reason
    changes = found.table()
    assert set(changes[changes["id"] == "s41"]["change"]) == {"label changed", "+flagged"}
    assert set(changes[changes["id"] == "s0"]["change"]) == {"gone"}


def test_audits_of_other_data_cannot_be_compared(tmp_path: Path) -> None:
    run = audited(tmp_path / "run", slice(0, 40))
    with pytest.raises(InvalidInputError, match="no sample in common"):
        compare_runs(run, audited(tmp_path / "other", slice(40, 90)))
    labels = NoisyDataset.from_arrays(["a", "b"] * 30)
    numbered = write_audit(
        audit(labels, pred_probs=np.full((60, 2), 0.5), estimator="self-confidence"), tmp_path / "rows"
    )
    with pytest.raises(InvalidInputError, match="row numbers"):
        compare_runs(numbered, numbered)
