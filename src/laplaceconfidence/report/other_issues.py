"""What an audit found besides wrong labels, in its report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from laplaceconfidence.records.other_issues import OtherIssues
from laplaceconfidence.records.sample_arrays import SampleArrays
from laplaceconfidence.records.thumbnails import Thumbnails
from laplaceconfidence.report.sample_looks import PICTURE, look, look_of

MOST_SETS = 12
MOST_OF_A_SET = 6
MOST_LEAKS = 12
MOST_OUTLIERS = 12
MOST_IMAGES = 24
MOST_GROUPS = 6
MOST_RARE = 20
MOST_COLUMNS = 20
COPY_PICTURE = 128  # pixels of the longer side


def other_issues(samples: SampleArrays, issues: OtherIssues, thumbnails: Thumbnails) -> dict[str, Any]:
    """Collect what the report shows besides labels.

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
        "n_images": len(issues.odd_images),
        "images": [
            {**described(row, PICTURE), "found": issues.image_issues(row)}
            for row in issues.odd_images[:MOST_IMAGES].tolist()
        ],
        "image_kinds": _image_kinds(issues),
        "n_empty": len(issues.empty),
        "empty_ids": [str(samples.ids[row]) for row in issues.empty[:MOST_OUTLIERS].tolist()],
        "missing": _most_missing(samples)[:MOST_COLUMNS],
        "n_incomplete": len(issues.incomplete),
        "incomplete": [
            {"id": str(samples.ids[row]), "found": issues.missing_values(row)}
            for row in issues.incomplete[:MOST_OUTLIERS].tolist()
        ],
        "groups": _groups(issues, described)[:MOST_GROUPS],
        "rare": _rare_classes(samples, issues)[:MOST_RARE],
        "order": None if (order := samples.run.record.row_order) is None else order.statement,
        "n_not_random": len(issues.not_random),
    }


def _image_kinds(issues: OtherIssues) -> list[tuple[str, int]]:
    """How many images are odd in which way, the most frequent first."""
    kinds = Counter(
        kind for row in issues.odd_images.tolist() for kind in (issues.image_issues(row) or "").split(", ")
    )
    return kinds.most_common()


def _groups(issues: OtherIssues, described: Callable[[int, int], dict[str, Any]]) -> list[dict[str, Any]]:
    """The groups with many wrong labels, the worst first, with their least trustworthy labels."""
    rows = issues.in_worst_groups
    if not len(rows):
        return []
    numbers = issues.table["group"].to_numpy()
    noise = issues.table["group_noise"].to_numpy(dtype=float)
    found = []
    for number in dict.fromkeys(numbers[rows].tolist()):
        members = rows[numbers[rows] == number]
        found.append(
            {
                "n": len(members),
                "noise": float(noise[members[0]]),
                "samples": [described(row, COPY_PICTURE) for row in members[:MOST_OF_A_SET].tolist()],
            }
        )
    return found


def _most_missing(samples: SampleArrays) -> list[tuple[str, int, float]]:
    """Columns of a table with empty cells, their numbers and shares, the most empty one first."""
    found = (samples.run.record.missing_values or {}).items()
    counts = sorted(((name, n) for name, n in found if n), key=lambda item: -item[1])
    return [(name, n, n / len(samples)) for name, n in counts]


def _rare_classes(samples: SampleArrays, issues: OtherIssues) -> list[tuple[str, int]]:
    """Names and sizes of classes with less than a tenth of an even share, the smallest first."""
    if "is_rare_class_issue" not in issues.table:
        return []
    codes = samples.given[issues.table["is_rare_class_issue"].to_numpy(dtype=bool)]
    counts = Counter(samples.class_names[code] for code in codes.tolist())
    return sorted(counts.items(), key=lambda item: (item[1], item[0]))


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
