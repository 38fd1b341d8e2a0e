"""Figures: how they look, and how they become SVG for a report, and PDF and PNG for papers.

In a report, a figure takes its colors from the style sheet of the page, in light and in dark mode: it is
drawn in placeholder colors, which become CSS variables in the SVG.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from laplaceconfidence.exceptions import MissingDependencyError
from laplaceconfidence.files import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colors, which are distinguishable with any color vision.
PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999999")


@dataclass(frozen=True, slots=True)
class Theme:
    """The colors that depend on the background of a figure.

    Parameters
    ----------
    ink : str
        Text.
    soft : str
        Axes and lines.
    trusted : str
        Labels that are not flagged, and counts.
    suspect : str
        Flagged labels.
    ground : str
        The background.
    """

    ink: str
    soft: str
    trusted: str
    suspect: str
    ground: str  # the background


PAPER = Theme(ink="#1b1f24", soft="#8a939d", trusted="#0072b2", suspect="#e69f00", ground="#ffffff")
_PLACEHOLDERS = Theme(ink="#010203", soft="#010204", trusted="#010205", suspect="#010206", ground="#010207")
_VARIABLES = {
    "#010203": "var(--ink)",
    "#010204": "var(--figure-line)",
    "#010205": "var(--trusted)",
    "#010206": "var(--suspect)",
    "#010207": "var(--card)",
}

# Pixels of the page per point of the figure: on a wide page, and at least. On a phone, a wide figure is
# scrolled, not shrunk until it is illegible.
_ENLARGED, _LEAST, _LEAST_IF_WIDE = 1.75, 0.8, 1.15
_WIDE = 450  # points

Draw = Callable[[Theme], "Figure"]


@dataclass(frozen=True, slots=True, eq=False)
class Drawing:
    """A figure that can be drawn for a report and for a paper.

    Parameters
    ----------
    name : str
        Name of its files.
    title : str
        Its heading.
    alt : str
        What it shows, for people who cannot see it.
    draw : callable
        Draws it in the colors of a ``Theme``.
    """

    name: str
    title: str
    alt: str
    draw: Draw

    def svg(self) -> str:
        """Return the figure as an ``<svg>`` element for a page.

        Returns
        -------
        str
        """
        buffer = io.StringIO()
        with _settings(_PLACEHOLDERS, self.name):
            self.draw(_PLACEHOLDERS).savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
        return _for_page(buffer.getvalue(), self.name)

    def save(self, folder: Path) -> list[Path]:
        """Write the figure as PDF and PNG.

        Parameters
        ----------
        folder : pathlib.Path
            Where to write the files.

        Returns
        -------
        list of pathlib.Path
            The files.
        """
        paths = [folder / f"{self.name}.{format}" for format in ("pdf", "png")]
        with _settings(PAPER, self.name):
            figure = self.draw(PAPER)
            for path in paths:
                with replacing(path) as temporary:
                    figure.savefig(temporary, format=path.suffix[1:], dpi=200, facecolor="white")
        return paths


class Plot(Protocol):
    """What is drawn into one pair of axes, of a report or of a notebook."""

    @property
    def size(self) -> tuple[float, float]:
        """tuple of float: width and height of a figure that holds nothing else, in inches."""

    def paint(self, axes: Axes, theme: Theme) -> None:
        """Draw the plot.

        Parameters
        ----------
        axes : matplotlib.axes.Axes
            Where to draw.
        theme : Theme
            Colors.
        """


def drawing_of(plot: Plot, name: str, title: str, alt: str) -> Drawing:
    """Make a figure of a report from a plot.

    Parameters
    ----------
    plot : Plot
        What is drawn.
    name, title, alt : str
        As in ``Drawing``.

    Returns
    -------
    Drawing
    """

    def draw(theme: Theme) -> Figure:
        figure, (axes,) = new_figure(*plot.size)
        plot.paint(axes, theme)
        return figure

    return Drawing(name, title, alt, draw)


def plot_into(plot: Plot, axes: Axes | None = None) -> Axes:
    """Draw a plot in the user's own axes and style, for scripts and notebooks.

    Parameters
    ----------
    plot : Plot
        What is drawn.
    axes : matplotlib.axes.Axes, optional
        Where to draw; by default the axes of a new figure of ``matplotlib.pyplot``.

    Returns
    -------
    matplotlib.axes.Axes
    """
    try:
        import matplotlib
        from matplotlib import pyplot
    except ImportError as error:
        raise MissingDependencyError(
            "Figures need matplotlib: pip install 'laplaceconfidence[review]'"
        ) from error
    own: dict[Any, Any] = {"text.parse_math": False, "axes.spines.top": False, "axes.spines.right": False}
    with matplotlib.rc_context(own):
        if axes is None:
            _, axes = pyplot.subplots(figsize=plot.size, layout="constrained")
        plot.paint(axes, PAPER)
    return axes


@dataclass(frozen=True, slots=True, eq=False)
class Page:
    """A report: its figures, its template, and what the template is filled with.

    Parameters
    ----------
    template : str
        Name of the template.
    drawings : list of Drawing
        The figures.
    content : dict
        Values of the template's variables.
    """

    template: str
    drawings: list[Drawing]
    content: dict[str, Any]


def new_figure(width: float, height: float, columns: int = 1) -> tuple[Figure, list[Axes]]:
    """Make an empty figure with axes side by side.

    Parameters
    ----------
    width, height : float
        Inches.
    columns : int, default=1
        Number of axes.

    Returns
    -------
    figure : matplotlib.figure.Figure
        The figure.
    axes : list of matplotlib.axes.Axes
        Its axes.
    """
    figure, grid = new_grid(width, height, 1, columns)
    return figure, grid[0]


def new_grid(width: float, height: float, rows: int, columns: int) -> tuple[Figure, list[list[Axes]]]:
    """Make an empty figure with axes in rows and columns.

    Parameters
    ----------
    width, height : float
        Inches.
    rows, columns : int
        Number of axes below each other and side by side.

    Returns
    -------
    figure : matplotlib.figure.Figure
        The figure.
    axes : list of list of matplotlib.axes.Axes
        Its axes by row.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes: Any = figure.subplots(rows, columns, squeeze=False)
    return figure, [list(row) for row in axes]


@contextmanager
def _settings(theme: Theme, salt: str) -> Iterator[None]:
    """Matplotlib's settings while a figure is drawn and saved, whatever the user has set."""
    import matplotlib

    own: dict[Any, Any] = {
        "font.family": "sans-serif",
        "font.size": 10.0,
        "axes.titlesize": 10.5,
        "axes.edgecolor": theme.soft,
        "axes.labelcolor": theme.ink,
        "axes.titlecolor": theme.ink,
        "text.color": theme.ink,
        "xtick.color": theme.soft,
        "ytick.color": theme.soft,
        "xtick.labelcolor": theme.ink,
        "ytick.labelcolor": theme.ink,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        "text.parse_math": False,  # a class called '$' is not a formula
        "svg.fonttype": "none",
        "svg.hashsalt": salt,
    }
    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(own)
        # A class name may be in a script that Matplotlib's font lacks; the browser has it.
        warnings.filterwarnings("ignore", message=".*[Gg]lyph.*")
        yield


def _for_page(svg: str, name: str) -> str:
    """Only the element itself, with unique ids, and with the colors and fonts of the page."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(\sid="|xlink:href="#|url\(#)', rf"\g<1>{name}-", svg)
    width = re.search(r'<svg[^>]*? width="([\d.]+)pt"', svg)
    svg = re.sub(r'<svg([^>]*?) width="[^"]*"', r"<svg\1", svg, count=1)
    svg = re.sub(r'<svg([^>]*?) height="[^"]*"', r"<svg\1", svg, count=1)
    svg = re.sub(r"font-family: [^;\"]*|(font: [^;\"]*px) [^;\"]*", _page_font, svg)
    for placeholder, variable in _VARIABLES.items():
        svg = svg.replace(placeholder, variable)
    assert width is not None  # matplotlib always writes it
    points = float(width[1])
    least = points * (_LEAST_IF_WIDE if points > _WIDE else _LEAST)
    style = f"width:min(100%,{_ENLARGED * points:.0f}px);min-width:{least:.0f}px"
    return svg.replace("<svg", f'<svg aria-hidden="true" focusable="false" style="{style}"', 1)


def _page_font(found: re.Match[str]) -> str:
    return f"{found[1]} system-ui, sans-serif" if found[1] else "font-family: system-ui, sans-serif"
