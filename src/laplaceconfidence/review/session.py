"""A review: the audit, the decisions on its labels, and what has been settled."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray
from laplaceconfidence.auditing.corrections import accepted_suggestions
from laplaceconfidence.confidence.calibration import LogOddsCalibration
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.exceptions import RunFolderError
from laplaceconfidence.records.audit_run import AuditRun
from laplaceconfidence.records.sample_arrays import SampleArrays
from laplaceconfidence.review.decisions import (
    SETTLES_LABEL,
    VERDICTS,
    Decision,
    NewDecision,
    Verdict,
    decided_label,
    says_wrong,
)
from laplaceconfidence.review.estimates import (
    RandomSample,
    ReviewProgress,
    calibration_from,
    noise_estimate,
    random_sample,
)
from laplaceconfidence.review.queues import QueueFilter, Queues
from laplaceconfidence.review.store import FILE, DecisionStore, read_decisions
from laplaceconfidence.validation import check_choice, check_integer, must_be

SHOWN_NEIGHBORS = 8


@dataclass(frozen=True, slots=True, eq=False)
class Bulk:
    """Suggestions that can be accepted all at once.

    Parameters
    ----------
    rows : ndarray of int
        Rows of the samples, the most probable suggestion first.
    fingerprint : str
        Hash of the rows and their versions, so that what was previewed is what is stored.
    """

    rows: IntArray
    fingerprint: str


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
    """

    labels: dict[str, Any]
    at_random: frozenset[str]
    calibration: LogOddsCalibration | None


class ReviewSession:
    """The state behind the review page, which stores every decision. Safe to use from several threads.

    Parameters
    ----------
    run : AuditRun
        The audit that is reviewed.
    """

    def __init__(self, run: AuditRun) -> None:
        self.samples = SampleArrays.of(run)
        self.queues = Queues(self.samples)
        self.store = DecisionStore(run.folder, run.record)
        self._lock = threading.RLock()
        self._seen_version = -1
        self._decisions: dict[int, Decision] = {}
        self._verdict: IntArray = np.zeros(
            len(self.samples), dtype=np.int64
        )  # index into VERDICTS, if decided
        self._is_decided: BoolArray = np.zeros(len(self.samples), dtype=bool)
        self._said_wrong: FloatArray = np.full(len(self.samples), np.nan)
        self._in_random: BoolArray = np.zeros(len(self.samples), dtype=bool)
        self._sample_seen = b""
        self._calibration: LogOddsCalibration | None = None
        self._error_probability: FloatArray = 1 - self.samples.confidence  # calibrated, by row
        self._refresh()

    def close(self) -> None:
        """Close the file of decisions."""
        self.store.close()

    def decision(self, row: int) -> Decision | None:
        """The latest decision on a sample; None where there never was one."""
        with self._lock:
            self._refresh()
            return self._decisions.get(row)

    @property
    def is_decided(self) -> BoolArray:
        """ndarray of bool of shape (n,): which samples have a decision."""
        with self._lock:
            self._refresh()
            return self._is_decided.copy()

    def check_row(self, row: Any) -> int:
        """Return ``row`` if there is such a sample; raise otherwise."""
        return check_integer(row, "row", minimum=0, maximum=len(self.samples) - 1)

    def decide(
        self,
        row: int,
        verdict: str,
        *,
        label: int | None,
        expected_version: int,
        who: str,
        queue: str,
    ) -> Decision:
        """Store one decision; raises ``StaleDecisionError`` where another one was stored in the meantime."""
        with self._lock:
            decision = self._new_decision(self.check_row(row), verdict, label, expected_version)
            return self._remember_all(self.store.decide([decision], who=who, queue=queue))[0]

    def undo(self, *, who: str) -> list[Decision]:
        """Undo the last step of a reviewer; returns the decisions that hold now."""
        with self._lock:
            return self._remember_all(self.store.undo(who=who))

    def bulk(self, given: int, suggested: int, min_probability: float) -> Bulk:
        """The undecided suspects of a pair whose suggestion has at least this probability."""
        samples = self.samples
        with self._lock:
            self._refresh()
            rows = self.queues.rows(QueueFilter(given=given, suggested=suggested), self._is_decided)
            accepted = accepted_suggestions(
                flagged=samples.flagged,
                given=samples.given,
                suggested=samples.suggested,
                probability=samples.probability,
                min_probability=min_probability,
            )
            rows = rows[accepted[rows]]
            rows = rows[np.argsort(-samples.probability[rows], kind="stable")]
            versions = np.array([self._version(int(row)) for row in rows], dtype=np.int64)
        seen = hashlib.sha256(rows.tobytes() + versions.tobytes()).hexdigest()
        return Bulk(rows, seen)

    def accept_bulk(self, bulk: Bulk, *, who: str) -> list[Decision]:
        """Accept every suggestion of ``bulk`` in one step, which is undone as one."""
        with self._lock:
            decisions = [
                self._new_decision(int(row), "suggestion", None, self._version(int(row))) for row in bulk.rows
            ]
            return self._remember_all(self.store.decide(decisions, who=who, queue="bulk"))

    def decide_many(
        self, rows: list[tuple[int, int]], verdict: str, *, who: str, queue: str
    ) -> list[Decision]:
        """The same verdict on several samples, given as (row, expected version)."""
        with self._lock:
            if len({row for row, _ in rows}) != len(rows):
                raise must_be("rows", "different from each other", [row for row, _ in rows])
            decisions = [
                self._new_decision(self.check_row(row), verdict, None, version) for row, version in rows
            ]
            return self._remember_all(self.store.decide(decisions, who=who, queue=queue))

    def progress(self) -> ReviewProgress:
        """How far the review is."""
        samples = self.samples
        with self._lock:
            self._refresh()
            sample = self._random_sample()
            self._calibrate(sample)
            unsettled = samples.is_labeled & np.isnan(self._said_wrong)
            counts = np.bincount(self._verdict[self._is_decided], minlength=len(VERDICTS))
            return ReviewProgress(
                n_suspects=len(samples.suspects),
                n_suspects_decided=int(self._is_decided[samples.suspects].sum()),
                by_verdict={str(verdict): int(n) for verdict, n in zip(VERDICTS, counts, strict=True)},
                expected_left=float(self._error_probability[unsettled].sum()),
                noise=noise_estimate(sample.wrong),
                calibration=self._calibration,
            )

    def random_sample(self) -> RandomSample:
        """The verdicts that count as drawn at random."""
        with self._lock:
            self._refresh()
            return self._random_sample()

    def _random_sample(self) -> RandomSample:
        order = self.samples.random_order
        return random_sample(order, self._is_decided, self._said_wrong, self._in_random)

    def _calibrate(self, sample: RandomSample) -> None:
        """Calibrate the error probabilities on the random sample, if it has changed."""
        seen = sample.rows.tobytes() + sample.wrong.tobytes()
        if seen == self._sample_seen:
            return
        stored = self.samples.confidence
        self._sample_seen = seen
        self._calibration = calibration_from(sample, stored)
        self._error_probability = 1 - (stored if self._calibration is None else self._calibration(stored))

    def _new_decision(self, row: int, verdict: str, label: int | None, expected_version: int) -> NewDecision:
        said: Verdict = check_choice(verdict, "verdict", VERDICTS)  # type: ignore[assignment]
        samples = self.samples
        if said == "other":
            check_integer(label, "label", minimum=0, maximum=len(samples.class_names) - 1)
        elif label is not None:
            raise must_be("label", "left out unless 'verdict' is 'other'", label)
        given, suggested = int(samples.given[row]), int(samples.suggested[row])
        if said == "other" and label in (given, suggested):  # picked from the list, but not another class
            said, label = ("keep" if label == given else "suggestion"), None
        if said == "suggestion" and suggested == given:  # the given label is right
            said = "keep"
        confidence = float(samples.confidence[row])
        shown = {
            "given": samples.name(given),
            "suggested": samples.name(suggested),
            "probability": round(float(samples.probability[row]), 6),
            "confidence": None if np.isnan(confidence) else round(confidence, 6),
            "neighbors": [n.row for n in samples.neighbors(row, SHOWN_NEIGHBORS)],
        }
        code = decided_label(said, given=given, suggested=suggested, other=label)
        return NewDecision(row, str(samples.ids[row]), expected_version, said, code, shown)

    def _version(self, row: int) -> int:
        known = self._decisions.get(row)
        return known.version if known else 0

    def _remember_all(self, made: list[Decision]) -> list[Decision]:
        for decision in made:
            self._remember(decision)
        return made

    def _refresh(self) -> None:
        """Read all decisions again where another process has written some."""
        version = self.store.data_version()
        if version != self._seen_version:
            for decision in self.store.all():
                self._remember(decision)
            self._seen_version = version

    def _remember(self, decision: Decision) -> None:
        row = decision.row
        self._decisions[row] = decision
        self._is_decided[row] = decision.verdict is not None
        if decision.verdict is not None:
            self._verdict[row] = VERDICTS.index(decision.verdict)
        wrong = says_wrong(decision.verdict)
        has_label = self.samples.given[row] != MISSING
        self._said_wrong[row] = np.nan if wrong is None or not has_label else float(wrong)
        self._in_random[row] = decision.queue == "random" and decision.verdict is not None


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
    labels = {
        str(ids[decision.row]): None if decision.label is None else values[decision.label]
        for decision in read_decisions(run.folder, run.record)
        if decision.verdict in SETTLES_LABEL or decision.verdict == "none"
    }
    at_random = frozenset(str(ids[row]) for row in drawn) & labels.keys()
    return ReviewOutcome(labels, at_random, calibration)
