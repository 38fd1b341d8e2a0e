"""Decisions on samples that are copies of each other, which are made on all of them at once."""

from __future__ import annotations

import numpy as np

from laplaceconfidence.arrays import IntArray
from laplaceconfidence.records.other_issues import NO_SET, OtherIssues, best_copy
from laplaceconfidence.records.sample_arrays import SampleArrays
from laplaceconfidence.review.decisions import (
    VERDICTS_ON_SAMPLES,
    NewDecision,
    Subject,
    new_sample_decision,
)
from laplaceconfidence.review.state import Bulk, ReviewState
from laplaceconfidence.validation import check_choice, must_be

SHOWN_COPIES = 24  # of one set, on the page
_OTHER_REASONS: tuple[Subject, ...] = ("label", "leaks")


def rows_of_copies(issues: OtherIssues, row: int) -> IntArray:
    """Return the rows of a sample and its copies.

    Parameters
    ----------
    issues : OtherIssues
        The copies that the audit found.
    row : int
        Row of one of them.

    Returns
    -------
    ndarray of int
        In the order of the data.

    Raises
    ------
    InvalidInputError
        If the sample has no copy.
    """
    position = int(issues.set_of[row])
    if position == NO_SET:
        raise must_be("row", "that of a sample with copies", row)
    return issues.copies[position].rows


def best_copy_to_keep(samples: SampleArrays, state: ReviewState, rows: IntArray) -> int | None:
    """Return the copy to keep, if only one is: the one that an export would keep.

    Parameters
    ----------
    samples : SampleArrays
        The samples of the audit.
    state : ReviewState
        What was decided so far.
    rows : ndarray of int
        Rows of the copies.

    Returns
    -------
    int or None
        None where all of them are left out for other reasons.
    """
    stays = np.array([state.dropped_by(row, _OTHER_REASONS) is None for row in rows.tolist()], dtype=bool)
    left = rows[stays]
    if len(left) == 0:
        return None
    return best_copy(left, state.is_verified[left], samples.probability_of(left, state.codes[left]))


def new_decisions_on_copies(
    samples: SampleArrays, state: ReviewState, copies: Bulk, verdict: str, kept: int | None
) -> list[NewDecision]:
    """Build the decisions on all copies of a set.

    Parameters
    ----------
    samples : SampleArrays
        The samples of the audit.
    state : ReviewState
        What was decided so far.
    copies : Bulk
        The copies as the reviewer saw them.
    verdict : {"keep-one", "keep", "drop", "unsure"}
        "keep-one" drops all but one; the others apply to all of them.
    kept : int or None
        Row of the copy that stays, for "keep-one" only.

    Returns
    -------
    list of NewDecision
    """
    check_choice(verdict, "verdict", ("keep-one", *VERDICTS_ON_SAMPLES))
    rows = copies.rows.tolist()
    if verdict != "keep-one":
        if kept is not None:
            raise must_be("kept", "left out unless 'verdict' is 'keep-one'", kept)
    elif kept is None or kept not in rows:
        raise must_be("kept", "the row of one of the copies", kept)
    elif state.dropped_by(kept, _OTHER_REASONS) is not None:
        rule = "a copy that is not left out for another reason"
        raise must_be("kept", rule, kept, "Keep another one, or change that decision first.")
    shown = {"copies": rows[:SHOWN_COPIES], "n_copies": len(rows), "kept": kept}
    verdicts = [verdict] * len(rows)
    if verdict == "keep-one":
        verdicts = ["keep" if row == kept else "drop" for row in rows]
    return [
        new_sample_decision(samples, row, "copies", one, version, shown)
        for row, one, version in zip(rows, verdicts, copies.versions.tolist(), strict=True)
    ]
