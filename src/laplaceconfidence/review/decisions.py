"""Decisions of a reviewer about labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.records.sample_arrays import SampleArrays
from laplaceconfidence.validation import check_choice, check_integer, must_be

Verdict = Literal["keep", "suggestion", "other", "unsure", "none"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

SETTLES_LABEL = ("keep", "suggestion", "other")
"""Verdicts after which the label is certain. After "none" no class fits; after "unsure" it is still open."""

SHOWN_NEIGHBORS = 8  # of a sample under review


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
    queue : {"worst", "ranked", "random", "unlabeled", "bulk"}
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


def new_decision(
    samples: SampleArrays, row: int, verdict: str, label: int | None, expected_version: int
) -> NewDecision:
    """Build a decision from what a reviewer chose.

    Another class that is the given or the suggested one becomes "keep" or "suggestion".

    Parameters
    ----------
    samples : SampleArrays
        The samples of the audit.
    row : int
        Row of the sample.
    verdict : {"keep", "suggestion", "other", "unsure", "none"}
        The verdict.
    label : int or None
        Code of the class, for "other" only.
    expected_version : int
        Version of the decision that the reviewer saw; 0 if there was none.

    Returns
    -------
    NewDecision
    """
    chosen: Verdict = check_choice(verdict, "verdict", VERDICTS)  # type: ignore[assignment]
    if chosen == "other":
        check_integer(label, "label", minimum=0, maximum=len(samples.class_names) - 1)
    elif label is not None:
        raise must_be("label", "left out unless 'verdict' is 'other'", label)
    given, suggested = int(samples.given[row]), int(samples.offered[row])
    if chosen == "other" and label in (given, suggested):
        chosen = "keep" if label == given else "suggestion"
    if chosen == "suggestion" and suggested == given:
        chosen = "keep"
    code = {"keep": None if given == MISSING else given, "suggestion": suggested, "other": label}.get(chosen)
    confidence = float(samples.confidence[row])
    shown = {
        "given": samples.name(given),
        "suggested": samples.name(suggested),
        "probability": round(float(samples.offered_probability[row]), 6),
        "confidence": None if np.isnan(confidence) else round(confidence, 6),
        "neighbors": [neighbor.row for neighbor in samples.neighbors(row, SHOWN_NEIGHBORS)],
    }
    return NewDecision(row, str(samples.ids[row]), expected_version, chosen, code, shown)


def means_wrong(verdict: Verdict | None) -> bool | None:
    """Return whether a verdict means that the given label is wrong.

    Parameters
    ----------
    verdict : {"keep", "suggestion", "other", "unsure", "none"} or None
        The verdict.

    Returns
    -------
    bool or None
        None for "unsure" and for no verdict.
    """
    if verdict is None or verdict == "unsure":
        return None
    return verdict != "keep"
