"""Summaries against the same counts made by pandas."""

import numpy as np
import pandas as pd
import pytest

from laplaceconfidence import find_label_issues
from laplaceconfidence.auditing.result import AuditResult
from laplaceconfidence.auditing.summary import count_pairs


@pytest.fixture
def result() -> AuditResult:
    rng = np.random.default_rng(1)
    labels = rng.choice([10, 20, 30, None], size=200)  # type: ignore[arg-type]
    return find_label_issues(labels.tolist(), pred_probs=rng.dirichlet(np.ones(3), size=200))


def test_classes_are_counted(result: AuditResult) -> None:
    table = result.table.dropna(subset="given_label")
    flagged = table[table.is_label_issue]
    summary = result.class_summary
    assert summary.issue_share.is_monotonic_decreasing
    for row in summary.itertuples():
        own = table[table.given_label == row.label]
        assert row.n_given == len(own)
        assert row.n_issues == own.is_label_issue.sum()
        assert row.issue_share == pytest.approx(own.is_label_issue.mean())
        assert row.mean_score == pytest.approx(own.label_score.mean())
        counts = flagged[flagged.given_label == row.label].predicted_label.value_counts()
        assert counts[row.usual_suggestion] == counts.max()
        assert row.n_suggested == (flagged.predicted_label == row.label).sum()
        assert row.name == str(row.label)


def test_pairs_are_counted(result: AuditResult) -> None:
    flagged = result.table[result.table.is_label_issue]
    expected = flagged.groupby(["given_label", "predicted_label"])
    sizes, means = expected.size(), expected.predicted_probability.mean()
    pairs = result.confused_pairs
    assert len(pairs) == len(sizes)
    assert pairs.n_issues.is_monotonic_decreasing
    for row in pairs.itertuples():
        pair = (row.given_label, row.suggested_label)
        assert row.n_issues == sizes[pair]
        assert row.mean_probability == pytest.approx(means[pair])
        assert row.issue_share == pytest.approx(
            sizes[pair] / (result.table.given_label == row.given_label).sum()
        )


def test_nothing_flagged_leaves_empty_pairs_with_their_columns() -> None:
    result = find_label_issues(["a", "b"], pred_probs=np.eye(2))
    assert len(result.confused_pairs) == 0
    assert "mean_probability" in result.confused_pairs.columns
    assert result.class_summary.usual_suggestion.isna().all()
    assert isinstance(result.class_summary, pd.DataFrame)


def test_pairs_are_counted_where_labels_differ() -> None:
    given, suggested = np.array([0, 0, 1, 1, -1, 2]), np.array([1, 1, 0, 1, 0, -1])
    assert count_pairs(given, suggested, 3) == [(0, 1, 2), (1, 0, 1)]
