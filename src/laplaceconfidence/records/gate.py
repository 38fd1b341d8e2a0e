"""Conditions on what an audit found, such as ``noise > 0.05``, that make a pipeline fail."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.records.audit_run import AuditRun
from laplaceconfidence.records.run_difference import SAMPLE_FLAGS, RunDifference
from laplaceconfidence.validation import must_be
from laplaceconfidence.wording import counted, percent

NOISE, MISSING_LABELS = "noise", "missing"
MEASURES = (NOISE, MISSING_LABELS, *SAMPLE_FLAGS)
"""What a condition may be about: the expected share of wrong labels, or a number of samples."""

_NEW = "new-"
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_CONDITION = re.compile(r"\s*([a-z-]+?)\s*(>=|<=|>|<)\s*(\d+\.?\d*|\.\d+)\s*(%?)\s*")


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on an audit.

    Parameters
    ----------
    text : str
        As the user wrote it.
    measure : str
        One of ``MEASURES``.
    is_new : bool
        Whether only samples count that an earlier audit did not flag.
    comparison : {">", ">=", "<", "<="}
        How the measure is compared.
    limit : float
        With what it is compared.
    is_share : bool
        Whether the limit is a share of the samples, or labels, and not a number of them.
    """

    text: str
    measure: str
    is_new: bool
    comparison: str
    limit: float
    is_share: bool

    def holds(self, value: float) -> bool:
        """Return whether a value meets the condition.

        Parameters
        ----------
        value : float
            The value of the measure.

        Returns
        -------
        bool
        """
        return _COMPARISONS[self.comparison](value, self.limit)


def parse_condition(text: str) -> Condition:
    """Parse a condition: a measure, a comparison and a number, which may be a percentage.

    Parameters
    ----------
    text : str
        For example "noise > 0.05", "leaks > 0", "flagged >= 2%" or "new-conflicting-copies > 0".

    Returns
    -------
    Condition

    Examples
    --------
    >>> from laplaceconfidence.records.gate import parse_condition
    >>> condition = parse_condition("flagged > 2%")
    >>> condition.measure, condition.limit, condition.is_share
    ('flagged', 0.02, True)
    """
    found = _CONDITION.fullmatch(text)
    if found is None:
        rule = (
            "a measure, a comparison (>, >=, < or <=) and a number, such as 'noise > 0.05' or 'flagged > 2%'"
        )
        raise must_be("fail_if", rule, text)
    name, comparison, number, sign = found.groups()
    is_new = name.startswith(_NEW)
    measure = name.removeprefix(_NEW)
    if measure not in (SAMPLE_FLAGS if is_new else MEASURES):
        listed = ", ".join((*MEASURES, *(f"{_NEW}{flag}" for flag in SAMPLE_FLAGS)))
        raise must_be("fail_if", f"about one of {listed}", name)
    is_share = sign == "%" or measure == NOISE
    limit = float(number) / (100 if sign == "%" else 1)
    if measure == NOISE and limit > 1:
        raise must_be("fail_if", "a share of at most 1, or a percentage, for 'noise'", text)
    return Condition(text.strip(), measure, is_new, comparison, limit, is_share)


def check_conditions(conditions: Sequence[Condition], *, has_test: bool, has_baseline: bool) -> None:
    """Raise for conditions that cannot be checked because of options that were not given.

    Parameters
    ----------
    conditions : sequence of Condition
        The conditions.
    has_test : bool
        Whether the data is compared with a test set.
    has_baseline : bool
        Whether there is an earlier audit to compare with.
    """
    for condition in conditions:
        if condition.measure == "leaks" and not has_test:
            raise InvalidInputError(
                f"--fail-if '{condition.text}' needs test data to look for leaks in: name it with --test."
            )
        if condition.is_new and not has_baseline:
            raise InvalidInputError(
                f"--fail-if '{condition.text}' needs an earlier audit to compare with: name it with "
                "--baseline RUN."
            )


def reasons_to_fail(
    conditions: Sequence[Condition], run: AuditRun, difference: RunDifference | None = None
) -> list[str]:
    """Return why an audit fails, one sentence per condition that it meets.

    Where only a range is known for the share of wrong labels, a condition on it is met if both ends meet it.

    Parameters
    ----------
    conditions : sequence of Condition
        The conditions.
    run : AuditRun
        The audit.
    difference : RunDifference, optional
        What changed since an earlier audit, for conditions on new samples.

    Returns
    -------
    list of str
        Empty if it passes.

    Raises
    ------
    InvalidInputError
        If the audit did not look for what a condition is about.
    """
    reasons = []
    for condition in conditions:
        values, words = _values(condition, run, difference)
        if all(map(condition.holds, values)):
            reasons.append(f"{condition.text}: {words}.")
    return reasons


def _values(
    condition: Condition, run: AuditRun, difference: RunDifference | None
) -> tuple[tuple[float, ...], str]:
    """The values to compare, and what was found in words."""
    record = run.record
    if condition.measure == NOISE:
        statement = record.statement
        if statement.noise_rate is None:
            raise InvalidInputError(
                f"--fail-if '{condition.text}' cannot be checked: the estimator {record.estimator!r} does "
                "not estimate how many labels are wrong. Use noise-aware, or a condition on 'flagged'."
            )
        if statement.is_unidentified:
            assert statement.bracket is not None
            return statement.bracket, f"{statement.expected} labels may be wrong"
        return (statement.noise_rate,), f"{statement.expected} labels are expected to be wrong"
    if condition.measure == MISSING_LABELS:
        n, total = record.n_samples - record.n_labeled, record.n_samples
        words = f"{counted(n, 'sample')} without a label"
    elif condition.is_new:
        assert difference is not None
        found = difference.flags.get(condition.measure)
        if found is None or found.n_before is None or found.n_after is None:
            raise InvalidInputError(
                f"--fail-if '{condition.text}' cannot be checked: both audits must have looked for it, with "
                "features, and for leaks with test data."
            )
        n, total = len(found.appeared), record.n_samples
        words = f"{counted(n, 'sample')} not flagged before ({_few(found.appeared)})"
    else:
        column = SAMPLE_FLAGS[condition.measure]
        if column not in run.issues:
            raise InvalidInputError(
                f"--fail-if '{condition.text}' cannot be checked: the audit had no features to look for it."
            )
        n = int(run.issues[column].sum())
        total = record.n_labeled if condition.measure == "flagged" else record.n_samples
        words = counted(n, "label" if condition.measure == "flagged" else "sample")
    share = n / max(1, total)
    return (share if condition.is_share else float(n),), f"{words} ({percent(share)})"


def _few(ids: tuple[str, ...], most: int = 3) -> str:
    return ", ".join(ids[:most]) + (", ..." if len(ids) > most else "") if ids else "none"
