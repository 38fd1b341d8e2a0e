"""Which samples a corrected data set leaves out, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from laplaceconfidence.arrays import BoolArray, IntArray
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.records.other_issues import OtherIssues, best_copy
from laplaceconfidence.records.sample_arrays import SampleArrays
from laplaceconfidence.review.decisions import LEAVES_OUT, SETTLES_LABEL, Decision
from laplaceconfidence.validation import check_choice, must_be

CopyPolicy = Literal["keep", "drop-conflicting", "keep-one"]
COPY_POLICIES: tuple[CopyPolicy, ...] = get_args(CopyPolicy)
SamplePolicy = Literal["keep", "drop"]
SAMPLE_POLICIES: tuple[SamplePolicy, ...] = get_args(SamplePolicy)

Decisions = Mapping[int, Decision]  # on one subject, by row


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a sample is left out.

    Parameters
    ----------
    why : str
        The reason, for the trail.
    decision : Decision or None
        The decision of a person by which it is, if it is by one.
    copy_of : str or None
        Id of the copy that was chosen to stay, or of the sample of the test set.
    """

    why: str
    decision: Decision | None = None
    copy_of: str | None = None


@dataclass(frozen=True, slots=True)
class OtherPolicies:
    """What happens to copies, outliers and leaks that nobody decided on; by default they stay.

    Parameters
    ----------
    copies : {"keep", "drop-conflicting", "keep-one"}, default="keep"
        "drop-conflicting" leaves out copies with different labels, unless a person settled their label;
        "keep-one" keeps one sample of every set: one whose label a person settled, if there is one, then the
        one with the most probable label, then the first.
    outliers : {"keep", "drop"}, default="keep"
        "drop" leaves out outliers, unless a person settled their label.
    leaks : {"keep", "drop"}, default="keep"
        "drop" leaves out samples that are also in the test set.
    """

    copies: str = "keep"
    outliers: str = "keep"
    leaks: str = "keep"

    def check(self, issues: OtherIssues) -> None:
        """Raise for values that do not exist or mean nothing for an audit.

        Parameters
        ----------
        issues : OtherIssues
            What the audit found.
        """
        check_choice(self.copies, "copies", COPY_POLICIES)
        check_choice(self.outliers, "outliers", SAMPLE_POLICIES)
        check_choice(self.leaks, "leaks", SAMPLE_POLICIES)
        if not issues.were_looked_for:
            rule = "'keep' for a run that did not compare features, and so did not look for any"
            for name, value in (("copies", self.copies), ("outliers", self.outliers)):
                if value != "keep":
                    raise must_be(name, rule, value, "Audit the data with its features first.")
        if self.leaks != "keep" and not issues.had_test_set:
            advice = "Run the audit with --test first."
            raise must_be("leaks", "'keep' for an audit without a test set", self.leaks, advice)


class LeftOutSamples:
    """Collects the samples that are left out; of several reasons, the first one counts.

    Parameters
    ----------
    samples : SampleArrays
        The samples of the audit.
    issues : OtherIssues
        Its outliers, copies and leaks.

    Attributes
    ----------
    reasons : dict of int to Reason
        By row.
    """

    def __init__(self, samples: SampleArrays, issues: OtherIssues) -> None:
        self._samples = samples
        self._issues = issues
        self.reasons: dict[int, Reason] = {}

    @property
    def is_kept(self) -> BoolArray:
        """ndarray of bool of shape (n,): which samples stay."""
        result = np.ones(len(self._samples), dtype=bool)
        result[list(self.reasons)] = False
        return result

    def add(self, row: int, reason: Reason) -> None:
        """Leave out a sample.

        Parameters
        ----------
        row : int
            Its row.
        reason : Reason
            Why.
        """
        self.reasons.setdefault(row, reason)

    def add_decided_leaks(self, decisions: Decisions) -> None:
        """Leave out the leaks that people dropped.

        Parameters
        ----------
        decisions : mapping of int to Decision
            Decisions on leaks, by row.
        """
        for row, decision in decisions.items():
            if decision.verdict in LEAVES_OUT:
                self.add(row, Reason("reviewed: also in the test set", decision, self._id_in_test(row)))

    def add_decided_copies(self, decisions: Decisions) -> None:
        """Leave out the copies that people dropped.

        Parameters
        ----------
        decisions : mapping of int to Decision
            Decisions on copies, by row.
        """
        for found in self._issues.copies:
            verdicts = {row: decisions[row] for row in found.rows.tolist() if row in decisions}
            kept = [row for row, decision in verdicts.items() if decision.verdict == "keep"]
            why = "reviewed: copy of another sample" if kept else "reviewed: dropped with its copies"
            copy_of = str(self._samples.ids[kept[0]]) if len(kept) == 1 else None
            for row, decision in verdicts.items():
                if decision.verdict in LEAVES_OUT:
                    self.add(row, Reason(why, decision, copy_of))

    def add_leaks(self, decisions: Decisions) -> None:
        """Leave out the leaks that nobody settled.

        Parameters
        ----------
        decisions : mapping of int to Decision
            Decisions on leaks, by row.
        """
        for row in self._issues.leaked.tolist():
            decision = decisions.get(row)
            if decision is None or decision.verdict == "unsure":
                why = f"{_not_settled(decision)}: also in the test set"
                self.add(row, Reason(why, copy_of=self._id_in_test(row)))

    def add_outliers(self, decisions: Decisions) -> None:
        """Leave out the outliers whose label nobody settled.

        Parameters
        ----------
        decisions : mapping of int to Decision
            Decisions on labels, by row.
        """
        for row in self._issues.outliers.tolist():
            decision = decisions.get(row)
            if decision is None or decision.verdict not in SETTLES_LABEL:
                self.add(row, Reason(f"{_not_settled(decision)}: outlier"))

    def add_copies(self, policy: str, decisions: Decisions, codes: IntArray, is_verified: BoolArray) -> None:
        """Leave out copies in the sets that nobody settled.

        Only samples that are not left out for another reason are considered, so that one of them stays.

        Parameters
        ----------
        policy : {"drop-conflicting", "keep-one"}
            Which of them.
        decisions : mapping of int to Decision
            Decisions on copies, by row.
        codes : ndarray of int of shape (n,)
            Codes of the new labels.
        is_verified : ndarray of bool of shape (n,)
            Which of them a person settled.
        """
        for found in self._issues.copies:
            verdicts = [decisions[row] for row in found.rows.tolist() if row in decisions]
            rows = np.array([row for row in found.rows.tolist() if row not in self.reasons], dtype=np.int64)
            if len(rows) < 2 or any(decision.verdict != "unsure" for decision in verdicts):
                continue
            prefix = _not_settled(verdicts[0] if verdicts else None)
            if policy == "keep-one":
                probability = self._samples.probability_of(rows, codes[rows])
                kept = best_copy(rows, is_verified[rows], probability)
                why, copy_of = f"{prefix}: copy of another sample", str(self._samples.ids[kept])
                dropped = rows[rows != kept]
            else:
                labeled = rows[codes[rows] != MISSING]
                conflicts = len(np.unique(codes[labeled])) > 1
                why, copy_of = f"{prefix}: copies with different labels", None
                dropped = labeled[~is_verified[labeled]] if conflicts else labeled[:0]
            for row in dropped.tolist():
                self.add(row, Reason(why, copy_of=copy_of))

    def _id_in_test(self, row: int) -> str | None:
        leak = self._issues.leak(row)
        return None if leak is None else leak.id


def _not_settled(decision: Decision | None) -> str:
    return "not reviewed" if decision is None else "reviewed: unsure"
