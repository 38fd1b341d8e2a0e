"""The figures of a bench: one per metric, with all contenders under all kinds of noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laplaceconfidence.evaluation.tables import Table
from laplaceconfidence.report.drawing import PALETTE, Drawing, Theme, new_figure
from laplaceconfidence.wording import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
_SPREAD = 0.72  # share of a noise's width that its points take
_CHARACTERS_PER_INCH = 17  # of the legend
_PERCENT = 100.0


def metric_drawing(table: Table) -> Drawing | None:
    """Draw means as points and standard deviations as bars, grouped by data and noise.

    Parameters
    ----------
    table : Table
        The results of one metric.

    Returns
    -------
    Drawing or None
        None without results.
    """
    if not table.entries:
        return None
    scale = _PERCENT if table.metric.unit == "percent" else 1.0

    def draw(theme: Theme) -> Figure:
        n_contenders, n_columns = len(table.contenders), len(table.columns)
        width = min(9.0, max(5.4, 1.5 * n_columns))
        n_rows, n_legend_columns = _legend_shape(table.contenders, width)
        figure, (axes,) = new_figure(width, 2.7 + 0.2 * n_rows)
        step = _SPREAD / max(1, n_contenders)
        for index, contender in enumerate(table.contenders):
            found = [(number, table.at(contender, column)) for number, column in enumerate(table.columns)]
            shift = (index - (n_contenders - 1) / 2) * step
            known = [(number + shift, summary) for number, summary in found if summary is not None]
            axes.errorbar(
                [place for place, _ in known],
                [scale * summary.mean for _, summary in known],
                yerr=[scale * (summary.deviation or 0.0) for _, summary in known],
                fmt=_MARKERS[index % len(_MARKERS)],
                color=PALETTE[index % len(PALETTE)],
                # Colors repeat after the seventh: those markers are hollow.
                markerfacecolor="none" if index >= len(PALETTE) else None,
                markersize=5.5,
                elinewidth=1.3,
                capsize=2.2,
                label=contender,
            )
        for border in range(1, n_columns):
            axes.axvline(border - 0.5, color=theme.soft, linewidth=0.5)
        axes.set_xlim(-0.5, n_columns - 0.5)
        axes.set_xticks(range(n_columns), [_broken(table.head(column)) for column in table.columns])
        axes.tick_params(axis="x", length=0)
        axes.grid(axis="y", color=theme.soft, linewidth=0.4, alpha=0.5)
        axes.set_axisbelow(True)
        if table.metric.unit == "seconds":
            _use_log_scale(axes, min(summary.mean for summary in table.entries.values()))
        axes.set_ylabel(_axis_title(table))
        figure.legend(
            loc="outside lower center",
            ncols=n_legend_columns,
            fontsize=9,
            handletextpad=0.3,
            columnspacing=1.2,
        )
        return figure

    return Drawing(
        f"{table.task}-{table.metric.name}".replace("_", "-"), table.metric.title, _alt(table), draw
    )


def _legend_shape(contenders: tuple[str, ...], width: float) -> tuple[int, int]:
    """Rows and columns of the legend: few rows, of nearly equal length."""
    needed = 6 + max(len(name) for name in contenders)  # with the marker
    n_columns = max(1, min(len(contenders), int(width * _CHARACTERS_PER_INCH / needed)))
    n_rows = -(-len(contenders) // n_columns)
    return n_rows, -(-len(contenders) // n_rows)


def _use_log_scale(axes: Axes, shortest: float) -> None:
    """Use a logarithmic axis for seconds; a bar that would reach 0 ends at the axis."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_yscale("log")
    axes.set_ylim(bottom=max(axes.get_ylim()[0], shortest / 3))
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _axis_title(table: Table) -> str:
    metric = table.metric
    if metric.unit == "seconds":
        return "seconds"
    if metric.unit == "gigabytes":
        return "GB"
    return "test accuracy (%)" if metric.unit == "percent" else metric.title


def _broken(head: str) -> str:
    """The heading of a column on several lines: data if there are several, kind and rate of the noise."""
    head = head.replace(", ", "\n")
    return "\n".join(head.rsplit(" ", 1)) if head[-1:] == "%" else head


def _alt(table: Table) -> str:
    """The best contender per noise, for people who cannot see the figure."""
    parts = []
    for column in table.columns:
        best = [name for name in table.contenders if table.is_best(name, column)]
        if best:
            parts.append(f"{table.head(column)}: {' and '.join(best)} with {table.text(best[0], column)}")
    leaders = f" The best by noise: {'; '.join(parts)}." if parts else ""
    n = len(table.contenders)
    return (
        f"{table.title}: points with standard deviations of {n} contender{'' if n == 1 else 's'} under "
        f"{counted(len(table.columns), 'noise')}.{leaders}"
    )
