"""The figures of an audit: confidences, and pairs of given and suggested classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from laplaceconfidence.arrays import IntArray
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.records.sample_arrays import SampleArrays
from laplaceconfidence.report.drawing import Drawing, Theme, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_CLASSES = 25
CLASSES_WITH_NUMBERS = 16
LONGEST_NAME = 18


def confidence_histogram(samples: SampleArrays) -> Drawing:
    """Histogram of the confidences, flagged labels in another color."""
    confidence = samples.confidence[samples.is_labeled]
    flagged = samples.flagged[samples.is_labeled]

    def draw(theme: Theme) -> Figure:
        figure, (axes,) = new_figure(5.2, 2.5)
        parts = [confidence[~flagged], confidence[flagged]]
        axes.hist(
            parts,
            bins=np.linspace(0, 1, 41).tolist(),
            stacked=True,
            color=[theme.trusted, theme.suspect],
            label=["not flagged", "flagged"],
        )
        axes.set_xlabel("confidence: probability that the given label is right")
        axes.set_ylabel("labels")
        axes.set_xlim(0, 1)
        figure.legend(loc="outside upper left", ncols=2)
        return figure

    below = int((confidence[flagged] < 0.1).sum())
    alt = (
        f"Histogram of the confidence of {len(confidence):,} labels: {int(flagged.sum()):,} are flagged, "
        f"{below:,} of them with a confidence below 0.1; the mean confidence of the others is "
        f"{np.mean(confidence[~flagged]) if (~flagged).any() else float('nan'):.2f}."
    )
    return Drawing("confidence", "Confidence of the labels", alt, draw)


def confusion(samples: SampleArrays) -> Drawing:
    """Flagged labels by given and suggested class, the worst classes first."""
    counts = flagged_counts(samples)
    order = worst_classes(counts)[:MOST_CLASSES]
    part = counts[np.ix_(order, order)]
    names = [samples.class_names[code] for code in order]
    more = len(samples.class_names) - len(order)

    def draw(theme: Theme) -> Figure:
        names_need = 0.07 * min(LONGEST_NAME, max(map(len, names)))
        side = min(1.0 + 0.29 * len(order) + names_need, 8.3)
        figure, (axes,) = new_figure(max(side, 2.6), side)
        draw_matrix(axes, part, names, theme)
        axes.set_xlabel("suggested")
        axes.set_ylabel("given")
        return figure

    top = np.unravel_index(np.argmax(part), part.shape) if part.any() else None
    most = (
        f" Most often {names[top[1]]} is suggested for {names[top[0]]}, {part[top]:,} times." if top else ""
    )
    left_out = f" {more} classes with fewer are left out." if more > 0 else ""
    alt = f"Table of given against suggested class of the flagged labels.{most}{left_out}"
    return Drawing("confusion", "Given and suggested classes", alt, draw)


def flagged_counts(samples: SampleArrays) -> IntArray:
    """(C, C) flagged labels by given and suggested class."""
    n_classes = len(samples.class_names)
    counted = samples.flagged & (samples.given != MISSING)
    cells = samples.given[counted] * n_classes + samples.suggested[counted]
    return np.bincount(cells, minlength=n_classes**2).reshape(n_classes, n_classes)


def worst_classes(counts: IntArray) -> IntArray:
    """Classes, those with the most flagged labels given or suggested first."""
    order: IntArray = np.argsort(-(counts.sum(axis=0) + counts.sum(axis=1)), kind="stable").astype(np.int64)
    return order


def shortened(name: str) -> str:
    """A class name, cut to the length that a figure has room for."""
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def draw_matrix(axes: Axes, counts: IntArray, names: list[str], theme: Theme) -> None:
    """Draw counts as shades of one color, zeros blank; with numbers where there is room for them."""
    from matplotlib.patches import Rectangle

    n, most = len(names), max(1, int(counts.max(initial=0)))
    for i, j in zip(*np.nonzero(counts), strict=True):
        shade = 0.07 + 0.43 * counts[i, j] / most  # numbers stay legible on all shades, in light and dark
        axes.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, facecolor=theme.trusted, alpha=shade, linewidth=0))
        if n <= CLASSES_WITH_NUMBERS:
            axes.text(j, i, f"{counts[i, j]}", ha="center", va="center", size=8)
    axes.set_aspect("equal")
    axes.set_xlim(-0.5, n - 0.5)
    axes.set_ylim(n - 0.5, -0.5)
    labels = [shortened(name) for name in names]
    axes.set_xticks(range(n), labels, rotation=90 if max(map(len, labels), default=0) > 2 else 0)
    axes.set_yticks(range(n), labels)
    axes.set_xticks(np.arange(n + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(n + 1) - 0.5, minor=True)
    axes.grid(which="minor", color=theme.soft, linewidth=0.3)
    axes.tick_params(which="both", length=0)
