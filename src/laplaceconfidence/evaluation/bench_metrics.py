"""The metrics of the cells of a benchmark: what they are called, how they are shown, and which is best."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from laplaceconfidence.evaluation.grid import BenchTask

Unit = Literal["number", "percent", "seconds", "gigabytes"]


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of a cell."""

    name: str  # among the scores
    title: str
    best: Literal["highest", "lowest"]
    unit: Unit = "number"
    note: str = ""
    short: str = ""  # used where space is limited; the title if empty
    is_minor: bool = False  # in the files and the report, but not on the console
    is_optional: bool = False  # only where a bench file asks for it

    def shown(self, value: float) -> str:
        """Format a value as in tables; values with the same format count as equal."""
        if self.unit == "percent":
            return f"{100 * value:.2f}"
        if self.unit in ("number", "gigabytes"):
            return f"{value:.3f}"
        return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"

    def on_test(self, test: str) -> Metric:
        """The same metric on a further test set, whose scores end in "@" and its name."""
        title = self.title.replace("est accuracy", f"est accuracy on {test}")
        return replace(self, name=f"{self.name}@{test}", title=title, short=f"{self.short} on {test}")

    def rounded(self, value: float) -> float:
        """Round a value to the digits that tables show."""
        return float(self.shown(value))


_OF_LABELS = (
    Metric(
        "f1_right",
        "F1 of clean labels",
        "highest",
        note="a label counts as clean if its confidence is one half or more",
        is_minor=True,
    ),
    Metric(
        "f1_wrong",
        "F1 of wrong labels",
        "highest",
        note="a label counts as wrong if its confidence is below one half",
        is_minor=True,
    ),
)
_TIMES = tuple(
    Metric(name, title, "lowest", "seconds", "per estimate of all confidences", is_optional=True)
    for name, title in (
        ("seconds_estimate", "Seconds of an estimate"),
        ("seconds_features", "Seconds for features"),
        ("seconds_search", "Seconds for the search of neighbors"),
        ("seconds_graph", "Seconds for the graph"),
        ("seconds_solve", "Seconds for the solution"),
    )
)
_MEMORY = Metric(
    "peak_memory",
    "Peak memory in GB",
    "lowest",
    "gigabytes",
    "of the whole process, with the data",
    is_minor=True,
)

METRICS: dict[BenchTask, tuple[Metric, ...]] = {
    "confidence": (
        Metric("auroc", "AUROC", "highest", note="of distinguishing right from wrong labels by confidence"),
        Metric("average_precision", "Average precision", "highest", note="of finding the wrong labels"),
        Metric("calibration_error", "Calibration error", "lowest", note="in 15 bins; lower is better"),
        Metric(
            "seconds",
            "Seconds",
            "lowest",
            "seconds",
            "features and probabilities included",
        ),
        *_OF_LABELS,
        *_TIMES,
        _MEMORY,
    ),
    "training": (
        Metric(
            "last_rounds_accuracy",
            "Test accuracy, mean of the last 10 rounds",
            "highest",
            "percent",
            "in %",
            "last 10 rounds",
        ),
        Metric(
            "chosen_round_accuracy",
            "Test accuracy, chosen round",
            "highest",
            "percent",
            "in %; the round was chosen by held-out noisy labels",
            "chosen round",
        ),
        Metric(
            "chosen_round_top_5_accuracy",
            "Top-5 test accuracy, chosen round",
            "highest",
            "percent",
            "in %; the label is among the five most probable classes",
            "top-5",
        ),
        Metric(
            "best_round_accuracy",
            "Test accuracy, best round (for comparison only)",
            "highest",
            "percent",
            "in %; the round was picked by the test set itself",
            "best round",
        ),
        Metric("seconds", "Seconds", "lowest", "seconds", "of all rounds"),
        Metric(
            "validation_accuracy",
            "Accuracy on held-out noisy labels, chosen round",
            "highest",
            "percent",
            "in %; what rounds and settings are chosen by",
            "held-out noisy labels",
            is_minor=True,
        ),
        Metric(
            "auroc",
            "AUROC of the confidences",
            "highest",
            note="of distinguishing right from wrong labels by the confidence at the end",
            short="AUROC",
            is_minor=True,
        ),
        *_OF_LABELS,
        *_TIMES,
        _MEMORY,
        Metric(
            "peak_gpu_memory",
            "Peak memory of the GPU in GB",
            "lowest",
            "gigabytes",
            "of all tensors",
            is_minor=True,
        ),
    ),
}
"""The metrics per task; the first one decides which contender is best."""
