"""What a reviewer can decide about a label, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from laplaceconfidence.data.labels import MISSING

Verdict = Literal["keep", "suggestion", "other", "unsure", "none"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

SETTLES_LABEL = ("keep", "suggestion", "other")
"""Verdicts after which the label is certain; 'none' means that no class fits, 'unsure' leaves it open."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The latest decision on one sample.

    Parameters
    ----------
    row : int
        Row of the sample.
    version : int
        Raised by every change.
    verdict : {"keep", "suggestion", "other", "unsure", "none"} or None
        None after an undo.
    label : int or None
        Code of the label that was decided on, if there is one.
    who : str
        Name of the reviewer.
    at : str
        Time in UTC, ISO 8601.
    queue : {"worst", "random", "unlabeled", "bulk"}
        Where it was decided.
    """

    row: int
    version: int
    verdict: Verdict | None
    label: int | None
    who: str
    at: str
    queue: str


@dataclass(frozen=True, slots=True)
class NewDecision:
    """A decision that is to be stored, and what it is based on.

    Parameters
    ----------
    row : int
        Row of the sample.
    sample_id : str
        Id of the sample.
    expected_version : int
        Version of the decision that the reviewer saw; 0 if there was none.
    verdict : {"keep", "suggestion", "other", "unsure", "none"}
        The verdict.
    label : int or None
        Code of the label that was decided on, if there is one.
    shown : dict
        What the reviewer saw.
    """

    row: int
    sample_id: str
    expected_version: int
    verdict: Verdict
    label: int | None
    shown: dict[str, Any]


def decided_label(verdict: Verdict, *, given: int, suggested: int, other: int | None) -> int | None:
    """The code of the label after a verdict; None where it leads to none."""
    if verdict == "keep":
        return None if given == MISSING else given
    if verdict == "suggestion":
        return suggested
    return other if verdict == "other" else None


def says_wrong(verdict: Verdict | None) -> bool | None:
    """Whether a verdict means that the given label is wrong; None where it leaves that open."""
    if verdict is None or verdict == "unsure":
        return None
    return verdict != "keep"
