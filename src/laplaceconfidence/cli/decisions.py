"""Decisions of a review, carried over to another audit of the same data."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.cli.console import count, notices


@dataclass(frozen=True, slots=True, eq=False)
class Decided:
    """Labels that a review settled, by id, and how to correct the confidences of all others."""

    labels: dict[str, Any] | None = None
    at_random: frozenset[str] = frozenset()  # ids among them that were drawn at random
    recalibrate: Callable[[FloatArray], FloatArray] | None = None
    described: dict[str, Any] = field(default_factory=dict)


def decisions_for(ids: Container[str], folder: Path | None) -> Decided:
    """What the review of the run in ``folder`` says about the samples with these ids."""
    if folder is None:
        return Decided()
    from laplaceconfidence.records import read_audit
    from laplaceconfidence.review.session import review_outcome

    outcome = review_outcome(read_audit(folder))
    labels = {id: label for id, label in outcome.labels.items() if id in ids}
    if lost := len(outcome.labels) - len(labels):
        notices().print(f"{count(lost, 'decision')} about samples that this data does not have.")
    described = {"decisions": str(folder.absolute()), "n_decisions": len(labels)}
    return Decided(labels, outcome.at_random & labels.keys(), outcome.calibration, described)
