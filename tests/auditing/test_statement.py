"""What is said at the end of an audit, in whatever place."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audited_runs import confusable_points, noisy_blobs
from laplaceconfidence import find_label_issues
from laplaceconfidence.auditing.result import AuditResult
from laplaceconfidence.auditing.statement import EVIDENCE_ALONE, MOST_LISTED, AuditStatement, rows_to_look_at
from laplaceconfidence.auditing.table import FlagRule, best_alternatives, with_support
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.exceptions import LaplaceConfidenceWarning
from laplaceconfidence.records import read_audit

KNOWN: dict[str, Any] = {"n_labeled": 10_000, "noise_rate": 0.15, "bracket": (0.09, 0.17), "identified": True}
UNKNOWN: dict[str, Any] = {
    "n_labeled": 10_000,
    "noise_rate": 0.0,
    "bracket": (0.0, 0.178),
    "identified": False,
}


@pytest.fixture(scope="module")
def unidentified() -> AuditResult:
    features, labels, _ = confusable_points()
    with pytest.warns(LaplaceConfidenceWarning):
        return find_label_issues(labels, features, random_state=0)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            {**KNOWN, "n_flagged": 195},
            "About 1,500 of 10,000 labels (15%; between 9.0% and 17%) are expected to be wrong.",
        ),
        (
            {**KNOWN, "n_flagged": 195, "n_missing": 2, "bracket": None},
            "About 1,500 of 10,000 labels (15%) are expected to be wrong. "
            "2 samples without a label got a suggestion.",
        ),
        (
            {**KNOWN, "n_flagged": 19, "n_corrected": 1_400},
            "About 1,500 of 10,000 labels (15%; between 9.0% and 17%) are expected to be wrong. "
            "1,400 labels were corrected; about 100 wrong ones are left.",
        ),
        (
            {**UNKNOWN, "n_flagged": 0},
            "Between 0% and 18% of 10,000 labels may be wrong; the evidence cannot tell how many.",
        ),
        (
            {
                "n_labeled": 90,
                "noise_rate": 1e-4,
                "bracket": (1e-4, 0.02),
                "identified": True,
                "n_flagged": 0,
            },
            "No wrong label is expected among 90 labels (at most 2.0%).",
        ),
        (
            {"n_labeled": 90, "n_flagged": 9},
            "9 of 90 labels (10%) are flagged; how many are wrong was not estimated.",
        ),
        (
            {"n_labeled": 90, "n_flagged": 0},
            "None of 90 labels is flagged; how many are wrong was not estimated.",
        ),
    ],
)
def test_the_headline_is_the_estimate(arguments: dict[str, Any], sentence: str) -> None:
    assert AuditStatement(**arguments).headline == sentence


def test_expected_flagged_and_listed_are_three_things() -> None:
    assert AuditStatement(**KNOWN, n_flagged=200, expected_precision=0.93).facts == [
        ("Expected wrong labels", "about 1,500 of 10,000 (15%; between 9.0% and 17%)"),
        (
            "Flagged",
            "200 (2.0%), where another class is more probable than the given one; 93% of them are expected "
            "to be wrong",
        ),
        ("To look at first", "1,700 labels, the flagged ones, then by rank"),
    ]


def test_a_target_precision_that_flags_nothing_says_why() -> None:
    rule = FlagRule(target_precision=0.7)
    told = AuditStatement(**UNKNOWN, n_flagged=0, rule=rule, reachable_precision=0.31).flagged
    assert "no labels reach the target precision 0.7 (the highest expected one is 0.31)" in told
    assert "verify labels drawn at random" in told
    told = AuditStatement(**KNOWN, n_flagged=0, rule=rule, reachable_precision=0.31).flagged
    assert "choose a lower one" in told


@given(
    n_labeled=st.integers(1, 50_000),
    share=st.floats(0, 1),
    rates=st.lists(st.floats(0, 1), min_size=2, max_size=2).map(sorted),
    identified=st.sampled_from([True, False, None]),
    estimates=st.booleans(),
)
def test_all_flagged_labels_are_listed_and_no_more_than_there_are(
    n_labeled: int, share: float, rates: list[float], identified: bool | None, estimates: bool
) -> None:
    n_flagged = round(share * n_labeled)
    known = {"noise_rate": rates[0], "bracket": (rates[0], rates[1])} if estimates else {}
    statement = AuditStatement(n_labeled=n_labeled, n_flagged=n_flagged, identified=identified, **known)  # type: ignore[arg-type]
    assert n_flagged <= statement.n_listed <= max(n_flagged, min(n_labeled, MOST_LISTED))
    assert statement.headline.endswith(".")
    assert len(statement.facts) == 3


def test_a_random_sample_is_recommended_only_where_it_is_a_part() -> None:
    told = AuditStatement(**UNKNOWN, n_flagged=0).verifying
    assert told is not None
    assert "to within about 7 percentage points" in told  # 1.96 * sqrt(0.178 * 0.822 / 100)
    assert AuditStatement(**{**UNKNOWN, "n_labeled": 80}, n_flagged=0).verifying is None
    assert AuditStatement(**KNOWN, n_flagged=0).verifying is None


def test_flagged_labels_come_before_others_of_lower_rank() -> None:
    order, flagged = np.array([4, 2, 0, 3, 1]), np.array([False, True, False, True, False])
    assert rows_to_look_at(order, flagged, 4).tolist() == [2, 3, 4, 0]


def test_the_label_itself_is_no_alternative() -> None:
    distributions = np.array([[0.9, 0.02, 0.08], [0.1, 0.2, 0.7], [0.0, 1.0, 0.0]])
    labels = np.array([0, MISSING, 1])
    codes, probabilities = best_alternatives(distributions, labels)
    assert codes[:2].tolist() == [2, 2]
    assert codes[2] != 1
    np.testing.assert_allclose(probabilities, [0.08, 0.7, 0.0])
    support = np.array([0.5, np.nan, 0.3])
    np.testing.assert_allclose(
        with_support(distributions, labels, support), [[0.5, 0.1, 0.4], [0.1, 0.2, 0.7], [0, 1, 0]]
    )
    codes, probabilities = best_alternatives(distributions, labels, support)
    assert probabilities[:2].tolist() == pytest.approx([0.4, 0.7])


def test_labels_to_look_at_are_listed_where_no_noise_is_found(unidentified: AuditResult) -> None:
    result, (_, labels, truth) = unidentified, confusable_points()
    assert result.n_issues == 0
    assert result.statement.is_unidentified
    low, high = result.statement.bracket or (0, 0)
    assert low < (labels != truth).mean() < high
    listed = result.first_rows
    assert len(listed) == result.statement.n_listed == np.ceil(high * len(labels))
    assert listed.tolist() == result.table.index[: len(listed)].tolist()
    suggested = np.array([result.suggestion(row)[0] for row in listed[:40]])
    assert (suggested != labels[listed[:40]]).all()
    assert (suggested == truth[listed[:40]]).mean() > 0.9
    probabilities = [result.suggestion(row)[1] for row in listed[:10]]
    html = result._repr_html_()
    assert EVIDENCE_ALONE in html
    assert "score<" not in html
    assert min(probabilities) > 0.5  # by the evidence, and not by the reading in which all labels are right
    assert result.suspects(5)["alternative_label"].tolist() == suggested[:5].tolist()
    assert " of 240 labels (1.3% to 34%) may be wrong, 0 flagged, by noise-aware)" in repr(result)


def test_suggestions_of_unidentified_noise_are_not_applied(unidentified: AuditResult) -> None:
    assert len(unidentified.correct()) == 0
    assert (unidentified.corrected_labels() == confusable_points()[1]).all()


def test_an_unreachable_precision_is_reported() -> None:
    features, labels, _ = confusable_points()
    with pytest.warns(LaplaceConfidenceWarning):
        result = find_label_issues(labels, features, random_state=0, target_precision=0.7)
    highest = result.estimator.expected_curve().precision.max()  # type: ignore[attr-defined]
    assert result.statement.reachable_precision == highest < 0.7
    assert f"the highest expected one is {highest:.2f}" in result.statement.flagged


def test_the_record_of_a_run_says_the_same(unidentified: AuditResult, tmp_path: Path) -> None:
    features, labels, _ = noisy_blobs()
    for name, result in (
        ("unidentified", unidentified),
        ("found", find_label_issues(labels, features, random_state=0, threshold=0.3)),
        ("unknown", find_label_issues(labels, features, estimator="knn-vote")),
    ):
        folder = result.save(tmp_path / name)
        assert read_audit(folder).record.statement == result.statement
        said = json.loads((folder / "audit.json").read_text())["statement"]
        assert said == {"headline": result.statement.headline, **dict(result.statement.facts)}


def test_verified_labels_need_no_alternative() -> None:
    from laplaceconfidence import NoisyDataset, audit

    features, labels, truth = confusable_points()
    verified = {row: int(truth[row]) for row in range(20)}  # too few to calibrate the others
    with pytest.warns(LaplaceConfidenceWarning):
        result = audit(NoisyDataset.from_arrays(labels, features), audited=verified, random_state=0)
    assert result.statement.is_unidentified
    assert not set(result.first_rows.tolist()) & set(verified)
    assert result.support is not None
    assert (result.support[:20] == 1).all()
    assert (result.table["alternative_probability"].sort_index()[:20] == 0).all()
