"""A review: the audit, and the decisions on its labels and samples."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray
from laplaceconfidence.auditing.corrections import accepted_suggestions
from laplaceconfidence.confidence.calibration import LogOddsCalibration
from laplaceconfidence.records.audit_run import AuditRun
from laplaceconfidence.records.other_issues import OtherIssues
from laplaceconfidence.records.sample_arrays import SampleArrays
from laplaceconfidence.review.copies import best_copy_to_keep, new_decisions_on_copies, rows_of_copies
from laplaceconfidence.review.decisions import (
    Decision,
    NewDecision,
    Subject,
    new_decision,
    new_sample_decision,
    subject_of,
)
from laplaceconfidence.review.estimates import (
    RandomSample,
    ReviewProgress,
    calibration_from,
    noise_estimate,
    random_sample,
)
from laplaceconfidence.review.queues import OTHER_ISSUES, QueueFilter, Queues
from laplaceconfidence.review.state import Bulk, ReviewState
from laplaceconfidence.review.store import DecisionStore
from laplaceconfidence.review.store_errors import StaleDecisionError
from laplaceconfidence.validation import check_integer, must_be


class ReviewSession:
    """The state behind the review page, which stores every decision. Safe to use from several threads.

    Parameters
    ----------
    run : AuditRun
        The audit that is reviewed.
    """

    def __init__(self, run: AuditRun) -> None:
        self.samples = SampleArrays.of(run)
        self.issues = OtherIssues.of(run)
        self.queues = Queues(self.samples, self.issues)
        self.store = DecisionStore(run.folder, run.record)
        self._lock = threading.RLock()
        self._seen_version = -1
        self._state = ReviewState(self.samples, self.issues)
        self._sample_seen = b""
        self._calibration: LogOddsCalibration | None = None
        self._error_probability: FloatArray = 1 - self.samples.confidence
        self._refresh()

    def close(self) -> None:
        """Close the file of decisions."""
        self.store.close()

    def decision(self, row: int, subject: Subject = "label") -> Decision | None:
        """Return the latest decision on a sample.

        Parameters
        ----------
        row : int
            Row of the sample.
        subject : {"label", "copies", "leaks"}, default="label"
            What was decided.

        Returns
        -------
        Decision or None
            None where there never was one.
        """
        with self._lock:
            self._refresh()
            return self._state.decision(row, subject)

    def dropped_by(self, row: int) -> Decision | None:
        """Return a decision by which a sample is left out.

        Parameters
        ----------
        row : int
            Row of the sample.

        Returns
        -------
        Decision or None
            None where the sample stays.
        """
        with self._lock:
            self._refresh()
            return self._state.dropped_by(row)

    def is_decided(self, queue: str = "worst") -> BoolArray:
        """Return which samples need no decision in a queue any more.

        Parameters
        ----------
        queue : str, default="worst"
            Name of the queue.

        Returns
        -------
        ndarray of bool of shape (n,)
        """
        with self._lock:
            self._refresh()
            return self._state.is_decided(queue)

    def check_row(self, row: Any) -> int:
        """Check that there is a sample with this row.

        Parameters
        ----------
        row : object
            Row of the sample.

        Returns
        -------
        int
            The row.

        Raises
        ------
        InvalidInputError
            If there is none.
        """
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
        """Store one decision.

        Parameters
        ----------
        row : int
            Row of the sample.
        verdict : {"keep", "suggestion", "other", "unsure", "none", "drop"}
            The verdict; on a leak, "keep", "drop" or "unsure".
        label : int or None
            Code of the class, for "other" only.
        expected_version : int
            Version of the decision that the reviewer saw; 0 if there was none.
        who : str
            Name of the reviewer.
        queue : str
            Where it was decided.

        Returns
        -------
        Decision

        Raises
        ------
        StaleDecisionError
            If another decision was stored in the meantime.
        """
        with self._lock:
            decision = self._new_decision(row, verdict, label, expected_version, queue)
            return self._remember_all(self.store.decide([decision], who=who, queue=queue))[0]

    def undo(self, *, who: str) -> list[Decision]:
        """Undo the last step of a reviewer.

        Parameters
        ----------
        who : str
            Name of the reviewer.

        Returns
        -------
        list of Decision
            The decisions that hold now.
        """
        with self._lock:
            return self._remember_all(self.store.undo(who=who))

    def bulk(self, given: int, suggested: int, min_probability: float) -> Bulk:
        """Return the suggestions for undecided suspects of a pair that are probable enough.

        Parameters
        ----------
        given, suggested : int
            Codes of the pair.
        min_probability : float
            Lowest probability of the suggestion.

        Returns
        -------
        Bulk
        """
        samples = self.samples
        with self._lock:
            self._refresh()
            filter = QueueFilter(given=given, suggested=suggested)
            rows = self.queues.rows(filter, self._state.is_decided(filter.view))
            accepted = accepted_suggestions(
                flagged=samples.flagged,
                given=samples.given,
                suggested=samples.suggested,
                probability=samples.probability,
                min_probability=min_probability,
            )
            rows = rows[accepted[rows]]
            rows = rows[np.argsort(-samples.probability[rows], kind="stable")]
            return self._state.bulk(rows, "label")

    def accept_bulk(self, bulk: Bulk, *, who: str) -> list[Decision]:
        """Accept several suggestions in one step, which is undone as one.

        Parameters
        ----------
        bulk : Bulk
            The suggestions.
        who : str
            Name of the reviewer.

        Returns
        -------
        list of Decision

        Raises
        ------
        StaleDecisionError
            If another decision on one of the samples was stored since ``bulk`` was made; none is stored then.
        """
        with self._lock:
            decisions = [
                new_decision(self.samples, int(row), "suggestion", None, int(version))
                for row, version in zip(bulk.rows, bulk.versions, strict=True)
            ]
            return self._remember_all(self.store.decide(decisions, who=who, queue="bulk"))

    def decide_many(
        self, rows: list[tuple[int, int]], verdict: str, *, who: str, queue: str
    ) -> list[Decision]:
        """Store the same verdict on several samples in one step.

        Parameters
        ----------
        rows : list of (int, int)
            Row and expected version of every sample.
        verdict : {"keep", "suggestion", "unsure", "none", "drop"}
            The verdict; on leaks, "keep", "drop" or "unsure".
        who : str
            Name of the reviewer.
        queue : str
            Where it was decided.

        Returns
        -------
        list of Decision
        """
        with self._lock:
            if len({row for row, _ in rows}) != len(rows):
                raise must_be("rows", "different from each other", [row for row, _ in rows])
            decisions = [self._new_decision(row, verdict, None, version, queue) for row, version in rows]
            return self._remember_all(self.store.decide(decisions, who=who, queue=queue))

    def copies(self, row: int) -> Bulk:
        """Return a sample and its copies.

        Parameters
        ----------
        row : int
            Row of a sample that has copies.

        Returns
        -------
        Bulk

        Raises
        ------
        InvalidInputError
            If it has none.
        """
        rows = rows_of_copies(self.issues, self.check_row(row))
        with self._lock:
            self._refresh()
            return self._state.bulk(rows, "copies")

    def best_copy(self, rows: IntArray) -> int | None:
        """Return the copy to keep, if only one is: the one that an export would keep.

        Parameters
        ----------
        rows : ndarray of int
            Rows of the copies.

        Returns
        -------
        int or None
            None where all of them are left out already.
        """
        with self._lock:
            self._refresh()
            return best_copy_to_keep(self.samples, self._state, rows)

    def decide_copies(
        self, row: int, verdict: str, *, kept: int | None, fingerprint: str, who: str
    ) -> list[Decision]:
        """Decide on a sample and all of its copies in one step.

        Parameters
        ----------
        row : int
            Row of one of them.
        verdict : {"keep-one", "keep", "drop", "unsure"}
            "keep-one" drops all but one; the others apply to all of them.
        kept : int or None
            Row of the copy that stays, for "keep-one" only.
        fingerprint : str
            That of the copies as the reviewer saw them.
        who : str
            Name of the reviewer.

        Returns
        -------
        list of Decision

        Raises
        ------
        StaleDecisionError
            If somebody decided on one of them in the meantime; nothing is stored then.
        """
        with self._lock:
            copies = self.copies(row)
            if copies.fingerprint != fingerprint:
                known = (self._state.decision(copy, "copies") for copy in copies.rows.tolist())
                latest = max((one for one in known if one), key=lambda one: one.at, default=None)
                nobody = Decision(row, 0, None, None, "someone", "", "copies", "copies")
                raise StaleDecisionError(latest or nobody, len(copies.rows))
            decisions = new_decisions_on_copies(self.samples, self._state, copies, verdict, kept)
            return self._remember_all(self.store.decide(decisions, who=who, queue="copies"))

    def progress(self) -> ReviewProgress:
        """Count the decisions, and estimate how many wrong labels are left.

        Returns
        -------
        ReviewProgress
        """
        samples = self.samples
        with self._lock:
            self._refresh()
            sample = self._random_sample()
            self._calibrate(sample)
            state = self._state
            unsettled = samples.is_labeled & np.isnan(state.is_wrong) & ~state.is_dropped
            return ReviewProgress(
                n_suspects=len(samples.suspects),
                n_suspects_decided=int(state.is_decided("worst")[samples.suspects].sum()),
                n_ranked=len(samples.first_rows),
                n_ranked_decided=int(state.is_decided("ranked")[samples.first_rows].sum()),
                n_left={str(name): n for name, n in self.queues.n_left(state.is_decided).items()},
                by_verdict=state.n_by_verdict(),
                expected_left=float(self._error_probability[unsettled].sum()),
                most_left=self._most_left(int(unsettled.sum())),
                noise=noise_estimate(sample.wrong),
                calibration=self._calibration,
                other_issues={
                    queue: (int(state.is_decided(queue)[rows].sum()), len(rows))
                    for queue, rows in self.queues.rows_of.items()
                    if queue in OTHER_ISSUES and len(rows)
                },
            )

    def random_sample(self) -> RandomSample:
        """Return the verdicts that count as drawn at random.

        Returns
        -------
        RandomSample
        """
        with self._lock:
            self._refresh()
            return self._random_sample()

    def _random_sample(self) -> RandomSample:
        state = self._state
        is_decided = state.is_decided("random")
        return random_sample(self.samples.random_order, is_decided, state.is_wrong, state.in_random_queue)

    def _calibrate(self, sample: RandomSample) -> None:
        """Calibrate the error probabilities on the random sample, if it has changed."""
        seen = sample.rows.tobytes() + sample.wrong.tobytes()
        if seen == self._sample_seen:
            return
        stored = self.samples.confidence
        self._sample_seen = seen
        self._calibration = calibration_from(sample, stored)
        self._error_probability = 1 - (stored if self._calibration is None else self._calibration(stored))

    def _most_left(self, n_unsettled: int) -> float | None:
        """Wrong labels left at the upper end of the bracket, where the confidences are only its lower end."""
        statement = self.samples.run.record.statement
        if not statement.is_unidentified or self._calibration is not None:
            return None
        return float(np.clip(statement.n_at_most - np.nansum(self._state.is_wrong), 0, n_unsettled))

    def _new_decision(
        self, row: int, verdict: str, label: int | None, version: int, queue: str
    ) -> NewDecision:
        self.check_row(row)
        subject = subject_of(queue)
        if subject == "label":
            return new_decision(self.samples, row, verdict, label, version)
        if subject == "copies":
            raise must_be("queue", "another than that of copies, which are decided on together", queue)
        leak = self.issues.leak(row)
        if leak is None:
            raise must_be("row", "that of a sample that is also in the test set", row)
        if label is not None:
            raise must_be("label", "left out where the sample, not its label, is decided on", label)
        shown = {"leaked_from": leak.id, "label_there": leak.label}
        return new_sample_decision(self.samples, row, subject, verdict, version, shown)

    def _remember_all(self, made: list[Decision]) -> list[Decision]:
        for decision in made:
            self._state.remember(decision)
        return made

    def _refresh(self) -> None:
        """Read all decisions again where another process has written some."""
        version = self.store.data_version()
        if version != self._seen_version:
            for decision in self.store.all():
                self._state.remember(decision)
            self._seen_version = version
