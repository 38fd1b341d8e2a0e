"""What a review has settled, for an audit that goes on from it."""

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
    """The labels that people have settled, by the id of the sample; ``None`` where no class fits."""

    labels: dict[str, Any]
    at_random: frozenset[str]  # ids among them that were drawn at random
    calibration: LogOddsCalibration | None  # of confidences, where enough were drawn at random


def review_outcome(run: AuditRun) -> ReviewOutcome:
    """The settled labels of a reviewed run."""
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
    labels = {
        str(ids[decision.row]): None if decision.label is None else values[decision.label]
        for decision in read_decisions(run.folder, run.record)
        if decision.verdict in SETTLES_LABEL or decision.verdict == "none"
    }
    at_random = frozenset(str(ids[row]) for row in drawn) & labels.keys()
    return ReviewOutcome(labels, at_random, calibration)
