"""What has been decided so far, by sample."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.records.other_issues import NO_SET, OtherIssues
from laplaceconfidence.records.sample_arrays import SampleArrays
from laplaceconfidence.review.decisions import (
    LEAVES_OUT,
    SETTLES_LABEL,
    VERDICTS,
    Decision,
    Subject,
    means_wrong,
    subject_of,
)

SUBJECTS: tuple[Subject, ...] = ("label", "copies", "leaks")


@dataclass(frozen=True, slots=True, eq=False)
class Bulk:
    """Samples that can be decided on all at once.

    Parameters
    ----------
    rows : ndarray of int
        Rows of the samples: the most probable suggestion first, or copies in the order of the data.
    versions : ndarray of int
        Versions of their decisions when they were shown; they are stored only if these still hold.
    fingerprint : str
        Hash of the rows and their versions, so that what was shown is what is stored.
    """

    rows: IntArray
    versions: IntArray
    fingerprint: str


class ReviewState:
    """The latest decisions, and what follows from them for every sample.

    Parameters
    ----------
    samples : SampleArrays
        The samples of the audit.
    issues : OtherIssues
        Its outliers, copies and leaks.

    Attributes
    ----------
    is_wrong : ndarray of shape (n,)
        1 where the label was found wrong, 0 where right, NaN where nobody judged it.
    in_random_queue : ndarray of bool of shape (n,)
        Labels that were decided in the random queue.
    is_dropped : ndarray of bool of shape (n,)
        Samples that are left out, for whichever reason.
    is_verified : ndarray of bool of shape (n,)
        Labels that a person settled.
    codes : ndarray of int of shape (n,)
        Codes of the labels after the review, MISSING where there is none.
    """

    def __init__(self, samples: SampleArrays, issues: OtherIssues) -> None:
        n = len(samples)
        self._samples = samples
        self._issues = issues
        self._decisions: dict[tuple[Subject, int], Decision] = {}
        self._has_verdict: dict[Subject, BoolArray] = {
            subject: np.zeros(n, dtype=bool) for subject in SUBJECTS
        }
        self._verdict: IntArray = np.zeros(n, dtype=np.int64)  # of labels: indices into VERDICTS
        self.is_wrong: FloatArray = np.full(n, np.nan)
        self.in_random_queue: BoolArray = np.zeros(n, dtype=bool)
        self.is_dropped: BoolArray = np.zeros(n, dtype=bool)
        self.is_verified: BoolArray = np.zeros(n, dtype=bool)
        self.codes: IntArray = samples.given.copy()

    def remember(self, decision: Decision) -> None:
        """Take in a decision.

        Parameters
        ----------
        decision : Decision
            The latest decision on a sample and subject.
        """
        row = decision.row
        self._decisions[decision.subject, row] = decision
        self._has_verdict[decision.subject][row] = decision.verdict is not None
        self.is_dropped[row] = self.dropped_by(row) is not None
        if decision.subject != "label":
            return
        if decision.verdict is not None:
            self._verdict[row] = VERDICTS.index(decision.verdict)
        wrong = means_wrong(decision.verdict)
        has_label = self._samples.given[row] != MISSING
        self.is_wrong[row] = np.nan if wrong is None or not has_label else float(wrong)
        self.in_random_queue[row] = decision.queue == "random" and decision.verdict is not None
        self.is_verified[row] = decision.verdict in SETTLES_LABEL
        label = MISSING if decision.label is None else decision.label
        self.codes[row] = label if self.is_verified[row] else self._samples.given[row]

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
        return self._decisions.get((subject, row))

    def version(self, row: int, subject: Subject = "label") -> int:
        """Return the version of the latest decision on a sample.

        Parameters
        ----------
        row : int
            Row of the sample.
        subject : {"label", "copies", "leaks"}, default="label"
            What was decided.

        Returns
        -------
        int
            0 where there never was one.
        """
        known = self.decision(row, subject)
        return known.version if known else 0

    def bulk(self, rows: IntArray, subject: Subject) -> Bulk:
        """Take down the versions of the decisions on some samples.

        Parameters
        ----------
        rows : ndarray of int
            Rows of the samples.
        subject : {"label", "copies", "leaks"}
            What is to be decided.

        Returns
        -------
        Bulk
        """
        versions = np.array([self.version(row, subject) for row in rows.tolist()], dtype=np.int64)
        return Bulk(rows, versions, hashlib.sha256(rows.tobytes() + versions.tobytes()).hexdigest())

    def dropped_by(self, row: int, subjects: tuple[Subject, ...] = SUBJECTS) -> Decision | None:
        """Return a decision by which a sample is left out.

        Parameters
        ----------
        row : int
            Row of the sample.
        subjects : tuple of {"label", "copies", "leaks"}, optional
            Only decisions on these; all by default.

        Returns
        -------
        Decision or None
            None where the sample stays.
        """
        decisions = (self.decision(row, subject) for subject in subjects)
        return next((found for found in decisions if found and found.verdict in LEAVES_OUT), None)

    def is_decided(self, queue: str) -> BoolArray:
        """Return which samples need no decision in a queue any more.

        Nothing has to be decided about a sample that is left out; of copies, all of a set are decided at
        once, and nothing is left to decide where at most one of them stays.

        Parameters
        ----------
        queue : str
            Name of the queue.

        Returns
        -------
        ndarray of bool of shape (n,)
        """
        subject = subject_of(queue)
        if subject != "copies":
            return self._has_verdict[subject] | self.is_dropped
        result = np.zeros(len(self._samples), dtype=bool)
        if not self._issues.copies:
            return result
        in_set = self._issues.set_of != NO_SET
        sets, n_sets = self._issues.set_of[in_set], len(self._issues.copies)
        n_open = np.bincount(sets[~self._has_verdict["copies"][in_set]], minlength=n_sets)
        n_left = np.bincount(sets[~self.is_dropped[in_set]], minlength=n_sets)
        result[in_set] = ((n_open == 0) | (n_left <= 1))[sets]
        return result

    def n_by_verdict(self) -> dict[str, int]:
        """Count the decisions on labels.

        Returns
        -------
        dict of str to int
            By verdict.
        """
        counts = np.bincount(self._verdict[self._has_verdict["label"]], minlength=len(VERDICTS))
        return {str(verdict): int(n) for verdict, n in zip(VERDICTS, counts, strict=True)}
