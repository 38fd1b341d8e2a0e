"""The figures of an audit: confidences, and pairs of given and suggested classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray
from laplaceconfidence.notebook_html import shortened
from laplaceconfidence.report.drawing import Drawing, Theme, drawing_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_CLASSES = 25
CLASSES_WITH_NUMBERS = 16
LONGEST_NAME = 18


@dataclass(frozen=True, slots=True, eq=False)
class ScoreHistogram:
    """A histogram of the scores, with the flagged labels in another color.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Probability that the given label is right, NaN where there is none.
    flagged : ndarray of bool of shape (n,)
        Which labels are flagged.
    """

    scores: FloatArray
    flagged: BoolArray

    @property
    def size(self) -> tuple[float, float]:
        """tuple of float: width and height in inches."""
        return 5.2, 2.5

    def paint(self, axes: Axes, theme: Theme) -> None:
        """Draw the histogram.

        Parameters
        ----------
        axes : matplotlib.axes.Axes
            Where to draw.
        theme : Theme
            Colors.
        """
        labeled = ~np.isnan(self.scores)
        axes.hist(
            [self.scores[labeled & ~self.flagged], self.scores[labeled & self.flagged]],
            bins=np.linspace(0, 1, 41).tolist(),
            stacked=True,
            color=[theme.trusted, theme.suspect],
            label=["not flagged", "flagged"],
        )
        axes.set_xlabel("confidence: probability that the given label is right")
        axes.set_ylabel("labels")
        axes.set_xlim(0, 1)
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False, borderaxespad=0.2)

    def drawing(self) -> Drawing:
        """Return the histogram as a figure of the report.

        Returns
        -------
        Drawing
        """
        labeled = ~np.isnan(self.scores)
        confidence, flagged = self.scores[labeled], self.flagged[labeled]
        below = int((confidence[flagged] < 0.1).sum())
        alt = (
            f"Histogram of the confidence of {len(confidence):,} labels: {int(flagged.sum()):,} are flagged, "
            f"{below:,} of them with a confidence below 0.1; the mean confidence of the others is "
            f"{np.mean(confidence[~flagged]) if (~flagged).any() else float('nan'):.2f}."
        )
        return drawing_of(self, "confidence", "Confidence of the labels", alt)


@dataclass(frozen=True, slots=True, eq=False)
class ConfusionMatrix:
    """Flagged labels by given and suggested class, the classes with most of them first.

    Parameters
    ----------
    counts : ndarray of int of shape (C, C)
        Flagged labels by given and suggested class.
    class_names : tuple of str
        Names of the classes.
    """

    counts: IntArray
    class_names: tuple[str, ...]

    @property
    def order(self) -> IntArray:
        """ndarray of int: codes of the classes that are shown."""
        return worst_classes(self.counts)[:MOST_CLASSES]

    @property
    def names(self) -> list[str]:
        """list of str: names of the classes that are shown."""
        return [self.class_names[code] for code in self.order]

    @property
    def size(self) -> tuple[float, float]:
        """tuple of float: width and height in inches."""
        names_need = 0.07 * min(LONGEST_NAME, max(map(len, self.names)))
        side = min(1.0 + 0.29 * len(self.order) + names_need, 8.3)
        return max(side, 2.6), side

    def paint(self, axes: Axes, theme: Theme) -> None:
        """Draw the matrix.

        Parameters
        ----------
        axes : matplotlib.axes.Axes
            Where to draw.
        theme : Theme
            Colors.
        """
        draw_matrix(axes, self.counts[np.ix_(self.order, self.order)], self.names, theme)
        axes.set_xlabel("suggested")
        axes.set_ylabel("given")

    def drawing(self) -> Drawing:
        """Return the matrix as a figure of the report.

        Returns
        -------
        Drawing
        """
        names, part = self.names, self.counts[np.ix_(self.order, self.order)]
        top = np.unravel_index(np.argmax(part), part.shape) if part.any() else None
        most = (
            f" The most frequent pair: given {names[top[0]]}, suggested {names[top[1]]}, {part[top]:,} times."
            if top
            else ""
        )
        more = len(self.class_names) - len(self.order)
        left_out = f" {more} classes with fewer are left out." if more > 0 else ""
        alt = f"Table of given against suggested class of the flagged labels.{most}{left_out}"
        return drawing_of(self, "confusion", "Given and suggested classes", alt)


@dataclass(frozen=True, slots=True, eq=False)
class FlaggedShares:
    """The share of flagged labels per class, as horizontal bars.

    Parameters
    ----------
    shares : ndarray of shape (C,)
        The largest first; NaN for a class without labels.
    class_names : tuple of str
        Names of the classes, in the same order.
    """

    shares: FloatArray
    class_names: tuple[str, ...]

    @property
    def size(self) -> tuple[float, float]:
        """tuple of float: width and height in inches."""
        return 5.2, 0.9 + 0.22 * min(len(self.class_names), MOST_CLASSES)

    def paint(self, axes: Axes, theme: Theme) -> None:
        """Draw the bars.

        Parameters
        ----------
        axes : matplotlib.axes.Axes
            Where to draw.
        theme : Theme
            Colors.
        """
        names = [shortened(name, LONGEST_NAME) for name in self.class_names[:MOST_CLASSES]]
        places = np.arange(len(names))
        axes.barh(places, 100 * np.nan_to_num(self.shares[: len(names)]), color=theme.suspect, height=0.7)
        axes.set_yticks(places, names)
        axes.invert_yaxis()
        axes.set_xlabel("flagged labels of the class (%)")
        _show_names_as_text(axes)


def worst_classes(counts: IntArray) -> IntArray:
    """Order classes by the number of flagged labels in which they are given or suggested.

    Parameters
    ----------
    counts : ndarray of int of shape (C, C)
        Flagged labels by given and suggested class.

    Returns
    -------
    ndarray of int of shape (C,)
        Codes, the largest number first.
    """
    order: IntArray = np.argsort(-(counts.sum(axis=0) + counts.sum(axis=1)), kind="stable").astype(np.int64)
    return order


def draw_matrix(axes: Axes, counts: IntArray, names: list[str], theme: Theme) -> None:
    """Draw counts as shades of one color, zeros blank, and with numbers if there are few classes.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Where to draw.
    counts : ndarray of int of shape (C, C)
        The counts.
    names : list of str
        Names of the classes.
    theme : Theme
        Colors.
    """
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
    labels = [shortened(name, LONGEST_NAME) for name in names]
    axes.set_xticks(range(n), labels, rotation=90 if max(map(len, labels), default=0) > 2 else 0)
    axes.set_yticks(range(n), labels)
    axes.set_xticks(np.arange(n + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(n + 1) - 0.5, minor=True)
    axes.grid(which="minor", color=theme.soft, linewidth=0.3)
    axes.tick_params(which="both", length=0)
    _show_names_as_text(axes)


def _show_names_as_text(axes: Axes) -> None:
    """Show names of classes as they are: '$x$' is not a formula."""
    for label in (*axes.get_xticklabels(), *axes.get_yticklabels()):
        label.set_parse_math(False)
