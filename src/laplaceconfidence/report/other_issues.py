"""Outliers, copies and leaks in the report of an audit."""

from __future__ import annotations

from typing import Any

from laplaceconfidence.records.other_issues import OtherIssues
from laplaceconfidence.records.sample_arrays import SampleArrays
from laplaceconfidence.records.thumbnails import Thumbnails
from laplaceconfidence.report.sample_looks import PICTURE, look, look_of

MOST_SETS = 12
MOST_OF_A_SET = 6
MOST_LEAKS = 12
MOST_OUTLIERS = 12
COPY_PICTURE = 128  # pixels of the longer side


def other_issues(samples: SampleArrays, issues: OtherIssues, thumbnails: Thumbnails) -> dict[str, Any]:
    """Collect what the report shows of outliers, copies and leaks.

    Parameters
    ----------
    samples : SampleArrays
        The samples of the audit.
    issues : OtherIssues
        What the audit found besides wrong labels.
    thumbnails : Thumbnails
        The pictures of the samples.

    Returns
    -------
    dict of str to object
        Counts, and the first of each kind.
    """

    def described(row: int, longest: int) -> dict[str, Any]:
        confidence = float(samples.confidence[row])
        return {
            "id": str(samples.ids[row]),
            "given": samples.name(int(samples.given[row])),
            "confidence": None if samples.given[row] < 0 else confidence,
            **look(samples, thumbnails, row, longest),
        }

    scores = issues.table["outlier_score"] if issues.were_looked_for else None
    return {
        "looked_for": issues.were_looked_for,
        "had_test_set": issues.had_test_set,
        "n_copies": issues.n_copies,
        "n_sets": len(issues.copies),
        "n_conflicting": issues.n_conflicting,
        "copies": [
            {
                "n": len(found.rows),
                "conflicting": found.is_conflicting,
                "samples": [described(row, COPY_PICTURE) for row in found.rows[:MOST_OF_A_SET].tolist()],
            }
            for found in issues.copies[:MOST_SETS]
        ],
        "n_leaks": len(issues.leaked),
        "leaks": [
            {**described(row, COPY_PICTURE), "leak": _leak(samples, issues, thumbnails, row)}
            for row in issues.leaked[:MOST_LEAKS].tolist()
        ],
        "n_outliers": len(issues.outliers),
        "outliers": [
            {**described(row, PICTURE), "outlier_score": float(scores.iloc[row])}
            for row in issues.outliers[:MOST_OUTLIERS].tolist()
            if scores is not None
        ],
    }


def _leak(samples: SampleArrays, issues: OtherIssues, thumbnails: Thumbnails, row: int) -> dict[str, Any]:
    """The sample of the test set that a sample is a copy of."""
    found = issues.leak(row)
    assert found is not None  # of a leaked sample
    given = samples.name(int(samples.given[row]))
    picture = thumbnails.of_test_sample(row, COPY_PICTURE)
    return {
        "id": found.id,
        "label": found.label,
        "differs": None not in (found.label, given) and found.label != given,
        **look_of(picture, found.text, is_picture=found.path is not None),
    }
