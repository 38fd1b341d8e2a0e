"""What a person can say about a label, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from laplaceconfidence.data.labels import MISSING

Verdict = Literal["keep", "suggestion", "other", "unsure", "none"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

SETTLES_LABEL = ("keep", "suggestion", "other")
"""Verdicts after which the label is certain; 'none' says that no class fits, 'unsure' says nothing."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The latest word on one sample. Every change raises ``version``; undone, ``verdict`` is ``None``."""

    row: int
    version: int
    verdict: Verdict | None
    label: int | None  # code of the label that was decided on, where one was
    who: str
    at: str  # time in UTC, ISO 8601
    queue: str  # where it was decided: worst, random, unlabeled or bulk


@dataclass(frozen=True, slots=True)
class Wish:
    """A decision that somebody wants to be stored, and what it is based on."""

    row: int
    sample_id: str
    expected_version: int  # of the decision that was seen; 0 where there was none
    verdict: Verdict
    label: int | None
    shown: dict[str, Any]  # what the person saw


def decided_label(verdict: Verdict, *, given: int, suggested: int, other: int | None) -> int | None:
    """The code that a verdict leads to."""
    if verdict == "keep":
        return None if given == MISSING else given
    if verdict == "suggestion":
        return suggested
    return other if verdict == "other" else None


def says_wrong(verdict: Verdict | None) -> bool | None:
    """Whether a verdict calls the given label wrong; ``None`` where it does not say."""
    if verdict is None or verdict == "unsure":
        return None
    return verdict != "keep"
