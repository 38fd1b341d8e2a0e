"""Decisions of a reviewer about labels, copies and leaks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.records.sample_arrays import SampleArrays
from laplaceconfidence.validation import check_choice, check_integer, must_be

Verdict = Literal["keep", "suggestion", "other", "unsure", "none", "drop"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

Subject = Literal["label", "copies", "leaks"]
"""What is decided: the label, which of several copies stay, or whether a sample of the test set stays.

Each has its own verdict: that a copy stays does not mean that its label is right.
"""

VERDICTS_ON_SAMPLES: tuple[Verdict, ...] = ("keep", "drop", "unsure")
"""Verdicts on copies and leaks, which are about the sample and not about its label."""

SETTLES_LABEL = ("keep", "suggestion", "other")
"""Verdicts after which the label is certain. After "none" no class fits; after "unsure" it is still open."""

LEAVES_OUT = ("none", "drop")
"""Verdicts after which the sample is left out: because no class fits, or for another reason."""

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
    verdict : {"keep", "suggestion", "other", "unsure", "none", "drop"} or None
        None after an undo.
    label : int or None
        Code of the label that was decided on, if there is one.
    who : str
        Name of the reviewer.
    at : str
        Time in UTC, ISO 8601.
    queue : {"worst", "ranked", "random", "unlabeled", "bulk", "outliers", "copies", "leaks"}
        Where it was decided.
    subject : {"label", "copies", "leaks"}, default="label"
        What was decided.
    """

    row: int
    version: int
    verdict: Verdict | None
    label: int | None
    who: str
    at: str
    queue: str
    subject: Subject = "label"


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
    verdict : {"keep", "suggestion", "other", "unsure", "none", "drop"}
        The verdict.
    label : int or None
        Code of the label that was decided on, if there is one.
    shown : dict
        What the reviewer saw.
    subject : {"label", "copies", "leaks"}, default="label"
        What was decided.
    """

    row: int
    sample_id: str
    expected_version: int
    verdict: Verdict
    label: int | None
    shown: dict[str, Any]
    subject: Subject = "label"


def subject_of(queue: str) -> Subject:
    """Return what is decided in a queue.

    Parameters
    ----------
    queue : str
        Name of the queue.

    Returns
    -------
    {"label", "copies", "leaks"}
    """
    return queue if queue in ("copies", "leaks") else "label"  # type: ignore[return-value]


def new_decision(
    samples: SampleArrays, row: int, verdict: str, label: int | None, expected_version: int
) -> NewDecision:
    """Build a decision on a label from what a reviewer chose.

    Another class that is the given or the suggested one becomes "keep" or "suggestion".

    Parameters
    ----------
    samples : SampleArrays
        The samples of the audit.
    row : int
        Row of the sample.
    verdict : {"keep", "suggestion", "other", "unsure", "none", "drop"}
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


def new_sample_decision(
    samples: SampleArrays,
    row: int,
    subject: Subject,
    verdict: str,
    expected_version: int,
    shown: dict[str, Any],
) -> NewDecision:
    """Build a decision on whether a sample stays, whatever its label.

    Parameters
    ----------
    samples : SampleArrays
        The samples of the audit.
    row : int
        Row of the sample.
    subject : {"copies", "leaks"}
        What was decided.
    verdict : {"keep", "drop", "unsure"}
        The verdict.
    expected_version : int
        Version of the decision that the reviewer saw; 0 if there was none.
    shown : dict
        What the reviewer saw.

    Returns
    -------
    NewDecision
    """
    chosen: Verdict = check_choice(verdict, "verdict", VERDICTS_ON_SAMPLES)  # type: ignore[assignment]
    given = {"given": samples.name(int(samples.given[row])), **shown}
    return NewDecision(row, str(samples.ids[row]), expected_version, chosen, None, given, subject)


def means_wrong(verdict: Verdict | None) -> bool | None:
    """Return whether a verdict means that the given label is wrong.

    Parameters
    ----------
    verdict : {"keep", "suggestion", "other", "unsure", "none", "drop"} or None
        The verdict.

    Returns
    -------
    bool or None
        None for "unsure", for "drop", which does not judge the label, and for no verdict.
    """
    if verdict in (None, "unsure", "drop"):
        return None
    return verdict != "keep"
