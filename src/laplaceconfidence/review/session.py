"""A review: the audit, and the decisions on its labels."""

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
from laplaceconfidence.records.audit_run import AuditRun
from laplaceconfidence.records.sample_arrays import SampleArrays
from laplaceconfidence.review.decisions import VERDICTS, Decision, means_wrong, new_decision
from laplaceconfidence.review.estimates import (
    RandomSample,
    ReviewProgress,
    calibration_from,
    noise_estimate,
    random_sample,
)
from laplaceconfidence.review.queues import QueueFilter, Queues
from laplaceconfidence.review.store import DecisionStore
from laplaceconfidence.validation import check_integer, must_be


@dataclass(frozen=True, slots=True, eq=False)
class Bulk:
    """Suggestions that can be accepted all at once.

    Parameters
    ----------
    rows : ndarray of int
        Rows of the samples, the most probable suggestion first.
    versions : ndarray of int
        Versions of their decisions at the time of the preview; they are stored only if these still hold.
    fingerprint : str
        Hash of the rows and their versions, so that what was previewed is what is stored.
    """

    rows: IntArray
    versions: IntArray
    fingerprint: str


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
        # By row; verdicts are indices into VERDICTS and count only where there is a decision.
        self._verdict: IntArray = np.zeros(len(self.samples), dtype=np.int64)
        self._is_decided: BoolArray = np.zeros(len(self.samples), dtype=bool)
        self._is_wrong: FloatArray = np.full(len(self.samples), np.nan)
        self._in_random: BoolArray = np.zeros(len(self.samples), dtype=bool)
        self._sample_seen = b""
        self._calibration: LogOddsCalibration | None = None
        self._error_probability: FloatArray = 1 - self.samples.confidence
        self._refresh()

    def close(self) -> None:
        """Close the file of decisions."""
        self.store.close()

    def decision(self, row: int) -> Decision | None:
        """Return the latest decision on a sample.

        Parameters
        ----------
        row : int
            Row of the sample.

        Returns
        -------
        Decision or None
            None where there never was one.
        """
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
        verdict : {"keep", "suggestion", "other", "unsure", "none"}
            The verdict.
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
            decision = new_decision(self.samples, self.check_row(row), verdict, label, expected_version)
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
        return Bulk(rows, versions, seen)

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
        verdict : {"keep", "suggestion", "unsure", "none"}
            The verdict.
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
            decisions = [
                new_decision(self.samples, self.check_row(row), verdict, None, version)
                for row, version in rows
            ]
            return self._remember_all(self.store.decide(decisions, who=who, queue=queue))

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
            unsettled = samples.is_labeled & np.isnan(self._is_wrong)
            counts = np.bincount(self._verdict[self._is_decided], minlength=len(VERDICTS))
            return ReviewProgress(
                n_suspects=len(samples.suspects),
                n_suspects_decided=int(self._is_decided[samples.suspects].sum()),
                n_ranked=len(samples.first_rows),
                n_ranked_decided=int(self._is_decided[samples.first_rows].sum()),
                n_left={str(name): n for name, n in self.queues.n_left(self._is_decided).items()},
                by_verdict={str(verdict): int(n) for verdict, n in zip(VERDICTS, counts, strict=True)},
                expected_left=float(self._error_probability[unsettled].sum()),
                most_left=self._most_left(int(unsettled.sum())),
                noise=noise_estimate(sample.wrong),
                calibration=self._calibration,
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
        order = self.samples.random_order
        return random_sample(order, self._is_decided, self._is_wrong, self._in_random)

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
        return float(np.clip(statement.n_at_most - np.nansum(self._is_wrong), 0, n_unsettled))

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
        wrong = means_wrong(decision.verdict)
        has_label = self.samples.given[row] != MISSING
        self._is_wrong[row] = np.nan if wrong is None or not has_label else float(wrong)
        self._in_random[row] = decision.queue == "random" and decision.verdict is not None
