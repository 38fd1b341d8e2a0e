"""What is known at the end of an audit: the console, reports, notebooks and reviews all say it this way."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, sqrt

import numpy as np

from laplaceconfidence.arrays import BoolArray, IntArray
from laplaceconfidence.auditing.table import FlagRule
from laplaceconfidence.wording import counted, percent

MOST_LISTED = 2_000  # about a day's work for one reviewer
LISTED_WITHOUT_ESTIMATE = 100
VERIFIED_LABELS = 100
"""Labels drawn at random that are recommended to be verified where the noise is not identified."""

MAJORITY_LABEL = "majority label"
"""What the given label of a sample is called where several annotators labeled it."""

EVIDENCE_ALONE = (
    "Probabilities of suggested labels are by the evidence without the given label. Which of the two is "
    "right is what the evidence cannot tell."
)
"""What is said beside suggestions where the noise is not identified; scores are not shown there."""

_STANDARD_ERRORS = 1.96  # of a 95% confidence interval


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditStatement:
    """Expected wrong labels, flagged labels and labels to look at first, as numbers and as sentences.

    Parameters
    ----------
    n_labeled : int
        Labels.
    n_missing : int, default=0
        Samples without a label, which got a suggestion.
    noise_rate : float, optional
        Expected share of wrong labels; None where the estimator does not estimate it.
    bracket : tuple of float, optional
        Lowest and highest share of wrong labels, where the estimator reports them.
    identified : bool, optional
        Whether wrong labels can be told from overlapping classes; None where the estimator does not say.
    n_flagged : int
        Flagged labels.
    rule : FlagRule, optional
        How they were chosen.
    expected_precision : float, optional
        Share of the flagged labels that is expected to be wrong, where the scores are probabilities.
    reachable_precision : float, optional
        The largest target precision for which any label would have been flagged, where none was.
    unit : str, default="label"
        What the given label of a sample is called.
    n_corrected : int, default=0
        Wrong labels that verified ones have replaced; estimate and bracket count them.
    """

    n_labeled: int
    n_missing: int = 0
    noise_rate: float | None = None
    bracket: tuple[float, float] | None = None
    identified: bool | None = None
    n_flagged: int
    rule: FlagRule = field(default_factory=FlagRule)
    expected_precision: float | None = None
    reachable_precision: float | None = None
    unit: str = "label"
    n_corrected: int = 0

    @property
    def is_unidentified(self) -> bool:
        """bool: whether only a bracket is known, because the evidence cannot tell how many are wrong."""
        return self.identified is False and self.bracket is not None

    @property
    def n_expected(self) -> float | None:
        """float or None: expected number of wrong labels; None if only a bracket or nothing is known."""
        if self.noise_rate is None or self.is_unidentified:
            return None
        return self.noise_rate * self.n_labeled

    @property
    def n_at_most(self) -> int:
        """int: wrong labels left, at the upper end of the bracket; without one, as expected or flagged."""
        if self.bracket is None and self.noise_rate is None:
            return self.n_flagged
        highest = self.noise_rate or 0.0 if self.bracket is None else self.bracket[1]
        return max(0, min(self.n_labeled, ceil(highest * self.n_labeled - 1e-9)) - self.n_corrected)

    @property
    def n_listed(self) -> int:
        """int: labels to look at first: all flagged ones, and as many as may be wrong, up to 2,000."""
        if self.n_flagged == 0 and self.bracket is None and self.noise_rate is None:
            return min(self.n_labeled, LISTED_WITHOUT_ESTIMATE)
        return max(self.n_flagged, min(self.n_at_most, MOST_LISTED))

    @property
    def headline(self) -> str:
        """str: one sentence: the estimate, and not the number of flags."""
        labels = counted(self.n_labeled, self.unit)
        if self.is_unidentified:
            assert self.bracket is not None
            low, high = self.bracket
            sentence = (
                f"Between {_lowest(low)} and {percent(high)} of {labels} may be wrong; the evidence cannot "
                "tell how many."
            )
        elif self.n_expected is None:
            n = f"{self.n_flagged:,}" if self.n_flagged else "None"
            share = f" ({percent(self.n_flagged / max(1, self.n_labeled))})" if self.n_flagged else ""
            verb = "is" if self.n_flagged <= 1 else "are"
            sentence = f"{n} of {labels}{share} {verb} flagged; how many are wrong was not estimated."
        elif self.n_expected < 0.5:
            most = f" (at most {percent(self.bracket[1])})" if self.bracket else ""
            sentence = f"No wrong {self.unit} is expected among {labels}{most}."
        else:
            verb = "is" if round(self.n_expected) == 1 else "are"
            sentence = (
                f"About {self.n_expected:,.0f} of {labels} ({self._shares()}) {verb} expected to be wrong."
            )
        if self.n_corrected:
            verb = "was" if self.n_corrected == 1 else "were"
            sentence += f" {counted(self.n_corrected, 'label')} {verb} corrected{self._left()}."
        if self.n_missing:
            sentence += f" {counted(self.n_missing, 'sample')} without a label got a suggestion."
        return sentence

    @property
    def expected(self) -> str:
        """str: how many labels are expected to be wrong, and the bracket."""
        if self.is_unidentified:
            assert self.bracket is not None
            low, high = (share * self.n_labeled for share in self.bracket)
            return (
                f"between {low:,.0f} and {ceil(high - 1e-9):,} of {self.n_labeled:,} "
                f"({_lowest(self.bracket[0])} to {percent(self.bracket[1])})"
            )
        if self.n_expected is None:
            return "not estimated by this estimator"
        corrected = f"; {self.n_corrected:,} were corrected" if self.n_corrected else ""
        return f"about {self.n_expected:,.0f} of {self.n_labeled:,} ({self._shares()}){corrected}"

    @property
    def flagged(self) -> str:
        """str: how many labels are flagged, by which rule, and why none is."""
        if self.n_flagged == 0:
            return f"none; {self.why_none_is_flagged or f'labels are flagged {self.rule.words}'}"
        text = f"{self.n_flagged:,} ({percent(self.n_flagged / self.n_labeled)}), {self.rule.words}"
        is_known = self.expected_precision is not None and self.rule.target_precision is None
        if is_known and not self.is_unidentified:
            assert self.expected_precision is not None
            text += f"; {percent(self.expected_precision)} of them are expected to be wrong"
        return text

    @property
    def why_none_is_flagged(self) -> str | None:
        """str or None: why a target precision flags nothing, and what to do about it."""
        target = self.rule.target_precision
        if target is None or self.n_flagged:
            return None
        reason = f"no labels reach the target precision {target:g}"
        if self.reachable_precision is not None:
            reason += f" (the highest expected one is {self.reachable_precision:.2f})"
        if self.is_unidentified:
            return (
                f"{reason}, because the evidence cannot tell how many labels are wrong: verify labels drawn "
                "at random, which calibrates the scores, and audit again"
            )
        return f"{reason}: choose a lower one, or look at the labels by rank"

    @property
    def listed(self) -> str:
        """str: how many labels to look at first, and in which order."""
        order = "the flagged ones, then by rank" if 0 < self.n_flagged < self.n_listed else "by rank"
        more = f" (of up to {self.n_at_most:,})" if self.n_at_most > self.n_listed else ""
        return f"{counted(self.n_listed, 'label')}{more}, {order}"

    def error_of_sample(self, n: int) -> str:
        """Say how well a verified random sample tells the share of wrong labels, and what is known now.

        Parameters
        ----------
        n : int
            Labels in the sample.

        Returns
        -------
        str
        """
        rate = min(self.bracket[1] if self.bracket is not None else self.noise_rate or 0.1, 0.5)
        error = 100 * _STANDARD_ERRORS * sqrt(rate * (1 - rate) / n)
        sample = (
            f"Those drawn at random tell the share of wrong labels to within {error:.0f} percentage points"
        )
        if self.is_unidentified:
            assert self.bracket is not None
            low, high = self.bracket
            return f"{sample}; without them it is between {_lowest(low)} and {percent(high)}."
        known = (
            "it is not estimated"
            if self.noise_rate is None
            else f"the audit estimates {percent(self.noise_rate)}"
        )
        return f"{sample}, whatever the noise is like; without them {known}."

    @property
    def verifying(self) -> str | None:
        """str or None: what a verified random sample gives, where the noise is not identified.

        None also if there are so few labels that the sample would be all of them.
        """
        if not self.is_unidentified or self.n_labeled <= VERIFIED_LABELS:
            return None
        assert self.bracket is not None
        rate = min(self.bracket[1], 0.5)
        error = _STANDARD_ERRORS * sqrt(rate * (1 - rate) / VERIFIED_LABELS)
        return (
            f"First verify {VERIFIED_LABELS} labels drawn at random: they tell how many are wrong, to within "
            f"about {100 * error:.0f} percentage points, and calibrate the scores of all others."
        )

    @property
    def facts(self) -> list[tuple[str, str]]:
        """list of (str, str): the three statements side by side, each with its name."""
        return [
            ("Expected wrong labels", self.expected),
            ("Flagged", self.flagged),
            ("To look at first", self.listed),
        ]

    @property
    def short(self) -> str:
        """str: the estimate and the flags in a few words."""
        if self.n_expected is None and not self.is_unidentified:
            return f"{self.n_flagged:,} of {counted(self.n_labeled, 'label')} flagged"
        estimate = self.expected.replace(" (", " labels (", 1)
        verb = "may be" if self.is_unidentified else "expected to be"
        return f"{estimate} {verb} wrong, {self.n_flagged:,} flagged"

    def _left(self) -> str:
        if self.n_expected is None:
            return ""
        return f"; about {max(0.0, self.n_expected - self.n_corrected):,.0f} wrong ones are left"

    def _shares(self) -> str:
        assert self.noise_rate is not None
        text = percent(self.noise_rate)
        if self.bracket is not None:
            text += f"; between {_lowest(self.bracket[0])} and {percent(self.bracket[1])}"
        return text


def rows_to_look_at(order: IntArray, flagged: BoolArray, n: int) -> IntArray:
    """Select the labels to look at first: the flagged ones, then the others by rank.

    Parameters
    ----------
    order : ndarray of int of shape (m,)
        Rows with a label, the least trustworthy first.
    flagged : ndarray of bool of shape (m,)
        Which of them are flagged, in the same order.
    n : int
        How many to select.

    Returns
    -------
    ndarray of int of shape (n,)
    """
    rows: IntArray = np.concatenate([order[flagged], order[~flagged]])[:n]
    return rows


def _lowest(share: float) -> str:
    """The lower end of a bracket, where "less than 0.1%" would say no more than 0%."""
    return "0%" if share < 0.0005 else percent(share)
