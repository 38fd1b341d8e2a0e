"""The labels that a review has settled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from laplaceconfidence.confidence.calibration import LogOddsCalibration
from laplaceconfidence.exceptions import RunFolderError
from laplaceconfidence.records.audit_run import AuditRun
from laplaceconfidence.review.decisions import SETTLES_LABEL
from laplaceconfidence.review.session import ReviewSession
from laplaceconfidence.review.store import FILE, read_decisions


@dataclass(frozen=True, slots=True, eq=False)
class ReviewOutcome:
    """The labels that reviewers have settled.

    Parameters
    ----------
    labels : dict of str to label
        By the id of the sample; None where no class fits.
    at_random : frozenset of str
        Ids among them that were drawn at random.
    calibration : LogOddsCalibration or None
        Calibration of the confidences, if enough samples were drawn at random.
    dropped : frozenset of str
        Ids of samples that reviewers dropped: as copies, as leaks, or for another reason than that no class
        fits.
    """

    labels: dict[str, Any]
    at_random: frozenset[str]
    calibration: LogOddsCalibration | None
    dropped: frozenset[str]


def review_outcome(run: AuditRun) -> ReviewOutcome:
    """Collect the labels that the review of a run has settled.

    Parameters
    ----------
    run : AuditRun
        A reviewed audit.

    Returns
    -------
    ReviewOutcome

    Raises
    ------
    RunFolderError
        If nobody has reviewed it.
    """
    if not (run.folder / FILE).is_file():
        raise RunFolderError(
            f"{run.folder} has no decisions: review it first with 'laplaceconfidence review {run.folder}'."
        )
    session = ReviewSession(run)
    try:
        calibration = session.progress().calibration
        drawn = {int(row) for row in session.random_sample().rows}
        ids = session.samples.ids
    finally:
        session.close()
    values = run.record.class_values
    decisions = read_decisions(run.folder, run.record)
    dropped = frozenset(str(ids[decision.row]) for decision in decisions if decision.verdict == "drop")
    labels = {
        str(ids[decision.row]): None if decision.label is None else values[decision.label]
        for decision in decisions
        if decision.subject == "label" and (decision.verdict in SETTLES_LABEL or decision.verdict == "none")
    }
    at_random = frozenset(str(ids[row]) for row in drawn) & labels.keys()
    return ReviewOutcome(labels, at_random, calibration, dropped)
