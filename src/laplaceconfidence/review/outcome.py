"""The labels that a review has settled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from laplaceconfidence.confidence.calibration import LogOddsCalibration
from laplaceconfidence.data.labels import MISSING
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
    given : dict of str to label
        The labels that the same samples had in the data then; None where they had none.
    paths : dict of str to str
        The full paths of their images; empty if the samples are not image files.
    at_random : frozenset of str
        Ids among them that were drawn at random.
    calibration : LogOddsCalibration or None
        Calibration of the confidences, if enough samples were drawn at random.
    dropped : frozenset of str
        Ids of samples that reviewers dropped: as copies, as leaks, or for another reason than that no class
        fits.
    """

    labels: dict[str, Any]
    given: dict[str, Any]
    paths: dict[str, str]
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
        samples = session.samples
    finally:
        session.close()
    values = run.record.class_values
    decisions = read_decisions(run.folder, run.record)
    row_of: dict[str, int] = {}
    labels: dict[str, Any] = {}
    for decision in decisions:
        settles = decision.verdict in SETTLES_LABEL or decision.verdict == "none"
        if decision.subject == "label" and settles:
            id = str(samples.ids[decision.row])
            row_of[id] = decision.row
            labels[id] = None if decision.label is None else values[decision.label]
    sources = samples.sources if run.record.source_kind == "image" else None
    given = {id: int(samples.in_data[row]) for id, row in row_of.items()}
    return ReviewOutcome(
        labels,
        given={id: None if code == MISSING else values[code] for id, code in given.items()},
        paths={} if sources is None else {id: str(sources[row]) for id, row in row_of.items()},
        at_random=frozenset(id for id, row in row_of.items() if row in drawn),
        calibration=calibration,
        dropped=frozenset(str(samples.ids[one.row]) for one in decisions if one.verdict == "drop"),
    )
