"""The content of the report of a training run."""

from __future__ import annotations

from typing import Any

from laplaceconfidence.records.training_run import TrainingRun
from laplaceconfidence.report.drawing import Page
from laplaceconfidence.report.training_figures import (
    accuracy_curves,
    confidence_over_rounds,
    confusions,
    f1_over_rounds,
    loss_curves,
)
from laplaceconfidence.report.training_maps import feature_maps, maps_note
from laplaceconfidence.stages import stage

_NOTES = {
    "accuracy": "The round is chosen by the held-out given labels; the test set has no influence.",
    "confidence": "Each column is the histogram of one round, averaged over the networks.",
    "f1": "A label counts as wrong if its confidence is below one half, and as clean otherwise.",
}


def training_page(run: TrainingRun) -> Page:
    """Build the report of a training run, finished or not.

    Parameters
    ----------
    run : TrainingRun
        The run.

    Returns
    -------
    Page
    """
    makers = (accuracy_curves, loss_curves, confidence_over_rounds, f1_over_rounds, confusions, feature_maps)
    with stage("figures"):
        drawings = [drawing for make in makers if (drawing := make(run)) is not None]
    notes = {**_NOTES, "features": maps_note(run)}
    content = {
        "headline": _headline(run),
        "facts": _facts(run),
        "sections": [(drawing.name, notes.get(drawing.name, "")) for drawing in drawings],
        "settings": _flat(run.settings),
        "is_finished": run.summary is not None,
    }
    return Page("training.html", drawings, content)


def _headline(run: TrainingRun) -> str:
    n_rounds = len(run.metrics)
    summary = run.summary
    if summary is None:
        planned = run.settings.get("training", {}).get("rounds")
        return f"Training is not finished: {n_rounds:,} of {planned or 'the planned'} rounds so far."
    refined = run.refined_labels
    changed = ""
    if refined is not None:
        n = int((refined["given_label"] != refined["refined_label"]).sum())
        changed = f" {n:,} of {len(refined):,} labels would be changed."
    if "test_accuracy_of_chosen_round" in summary:
        accuracy = summary["test_accuracy_of_chosen_round"]
        chosen = f"round {summary['chosen_round']:,} of {n_rounds:,}"
        return f"{accuracy:.1%} of the test set is classified correctly ({chosen}).{changed}"
    return f"Trained for {n_rounds:,} rounds.{changed}"


def _facts(run: TrainingRun) -> list[tuple[str, str]]:
    facts = [("rounds", f"{len(run.metrics):,}")]
    summary = run.summary or {}
    if "chosen_round" in summary:
        facts.append(("chosen round", f"{summary['chosen_round']:,}"))
    if "validation_accuracy" in summary:
        facts.append(("on held-out given labels", f"{summary['validation_accuracy']:.1%}"))
    if "test_accuracy_mean_of_last_rounds" in summary:
        facts.append(("test, mean of the last rounds", f"{summary['test_accuracy_mean_of_last_rounds']:.1%}"))
    if run.seconds is not None:
        facts.append(("seconds", f"{run.seconds:,.0f}"))
    return facts


def _flat(settings: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for name, value in settings.items():
        if isinstance(value, dict):
            rows += _flat(value, f"{prefix}{name}.")
        else:
            rows.append((f"{prefix}{name}", "none" if value is None else str(value)))
    return rows
