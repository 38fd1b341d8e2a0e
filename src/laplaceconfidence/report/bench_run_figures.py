"""The paper's figures, from the training runs of a bench: sweeps, curves, confusions and feature maps.

Sweeps are drawn whenever a bench has one. The others are drawn if the bench file asks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from laplaceconfidence.evaluation.grid import Cell
from laplaceconfidence.evaluation.noises import Noise
from laplaceconfidence.evaluation.tables import Column, Table
from laplaceconfidence.evaluation.training_cells import run_folder_name
from laplaceconfidence.records.bench_run import RUNS, BenchRun
from laplaceconfidence.records.training_run import TrainingRun, is_training_run, read_training
from laplaceconfidence.report.audit_figures import draw_matrix
from laplaceconfidence.report.drawing import PALETTE, Drawing, Theme, new_figure, new_grid
from laplaceconfidence.report.training_figures import confusion_panels, f1_by_round, label_by_round
from laplaceconfidence.report.training_maps import draw_map, mapped_features

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
_STYLES = ("-", "--", ":", "-.")
_PERCENT = 100.0


def paper_figures(run: BenchRun, tables: list[Table]) -> list[Drawing]:
    """Draw the sweeps of a bench, and the figures that it asks for as far as it has the runs for them.

    Parameters
    ----------
    run : BenchRun
        The bench.
    tables : list of Table
        Its tables.

    Returns
    -------
    list of Drawing
    """
    found = list(sweep_figures(run, tables))
    for name in run.record.figures:
        found += [drawing for drawing in _FIGURES[name](run) if drawing is not None]
    return found


def sweep_figures(run: BenchRun, tables: list[Table]) -> Iterator[Drawing]:
    """Draw the main metric over the values of every swept setting, one line per data set and noise.

    Parameters
    ----------
    run : BenchRun
        The bench.
    tables : list of Table
        Its tables; the first of a task is the main one.

    Yields
    ------
    Drawing
    """
    for task in run.record.grid.tasks:
        table = next(table for table in tables if table.task == task)
        swept = [one for one in run.record.contenders if one.task == task and len(one.swept) == 1]
        for group, setting in dict.fromkeys((one.group, next(iter(one.swept))) for one in swept):
            own = [one for one in swept if one.group == group and setting in one.swept]
            values = [str(one.swept[setting]) for one in own]
            lines = {
                table.head(column): [table.at(one.name, column) for one in own] for column in table.columns
            }
            lines = {head: found for head, found in lines.items() if any(one is not None for one in found)}
            if len(values) > 1 and lines:
                yield _sweep(table, group, setting, values, lines)


def _sweep(table: Table, group: str, setting: str, values: list[str], lines: dict[str, Any]) -> Drawing:
    scale = _PERCENT if table.metric.unit == "percent" else 1.0

    def draw(theme: Theme) -> Figure:
        figure, (axes,) = new_figure(4.6, 3.0)
        for index, (head, found) in enumerate(lines.items()):
            known = [(place, one) for place, one in enumerate(found) if one is not None]
            axes.errorbar(
                [place for place, _ in known],
                [scale * one.mean for _, one in known],
                yerr=[scale * (one.deviation or 0.0) for _, one in known],
                fmt=_MARKERS[index % len(_MARKERS)] + _STYLES[index % len(_STYLES)],
                color=PALETTE[index % len(PALETTE)],
                capsize=2.2,
                markersize=5,
                label=head,
            )
        axes.set_xticks(range(len(values)), values)
        axes.set_xlabel(setting)
        axes.set_ylabel("test accuracy (%)" if table.metric.unit == "percent" else table.metric.title)
        axes.grid(axis="y", color=theme.soft, linewidth=0.4, alpha=0.5)
        figure.legend(loc="outside lower center", ncols=2, fontsize=9)
        return figure

    title = f"{group}: {table.metric.title} by {setting}"
    best = "; ".join(
        f"{head}: {values[int(np.argmax([-np.inf if one is None else one.mean for one in found]))]}"
        for head, found in lines.items()
    )
    return Drawing(_name("sweep", group, setting), title, f"{title}. The best value: {best}.", draw)


def f1_figures(run: BenchRun) -> Iterator[Drawing | None]:
    """Draw F1 of clean labels over the rounds, all contenders in one plot per data set and noise.

    Parameters
    ----------
    run : BenchRun
        The bench.

    Yields
    ------
    Drawing or None
    """
    yield from _curves(run, "f1-of-clean-labels", "F1 of clean labels", lambda one: f1_by_round(one, "right"))


def accuracy_figures(run: BenchRun) -> Iterator[Drawing | None]:
    """Draw test accuracy over the rounds, all contenders in one plot per data set and noise.

    Parameters
    ----------
    run : BenchRun
        The bench.

    Yields
    ------
    Drawing or None
    """

    def accuracies(one: TrainingRun) -> dict[int, float]:
        return {
            entry["round"]: _PERCENT * entry["test_accuracy"]
            for entry in one.metrics
            if "test_accuracy" in entry
        }

    yield from _curves(run, "test-accuracy", "test accuracy (%)", accuracies)


def _curves(
    run: BenchRun, name: str, title: str, values: Callable[[TrainingRun], dict[int, float]]
) -> Iterator[Drawing | None]:
    """One plot per column: the mean over the seeds of what ``values`` gives for every run."""
    for column, cells in _cells_by_column(run).items():
        lines: dict[str, dict[int, float]] = {}
        for contender in dict.fromkeys(cell.contender for cell in cells):
            seeds = [
                values(one) for cell in cells if cell.contender == contender and (one := _run(run, cell))
            ]
            rounds = sorted(set.intersection(*(set(seed) for seed in seeds))) if seeds else []
            if rounds:
                lines[contender] = {r: float(np.mean([seed[r] for seed in seeds])) for r in rounds}
        if lines:
            yield _curve_drawing(_name(name, column.data, column.noise.text), title, column, lines)


def _curve_drawing(name: str, title: str, column: Column, lines: dict[str, dict[int, float]]) -> Drawing:
    def draw(theme: Theme) -> Figure:
        figure, (axes,) = new_figure(5.2, 3.0)
        for index, (contender, by_round) in enumerate(lines.items()):
            axes.plot(
                list(by_round),
                list(by_round.values()),
                _STYLES[index // len(PALETTE) % len(_STYLES)],
                color=PALETTE[index % len(PALETTE)],
                label=contender,
                linewidth=1.6,
            )
        label_by_round(axes)
        axes.set_ylabel(title)
        figure.legend(loc="outside lower center", ncols=2, fontsize=9)
        return figure

    last = "; ".join(f"{contender} {list(line.values())[-1]:.3g}" for contender, line in lines.items())
    alt = f"{title} by round, {column.title}. In the last round: {last}."
    heading = title.removesuffix(" (%)")
    return Drawing(name, f"{heading[0].upper()}{heading[1:]} over the rounds: {column.title}", alt, draw)


def confusion_figures(run: BenchRun) -> Iterator[Drawing | None]:
    """Draw confusions of one contender: given labels, training and test predictions by noise.

    Parameters
    ----------
    run : BenchRun
        The bench.

    Yields
    ------
    Drawing or None
        One per contender and data set, of the first seed; noises are columns.
    """
    by_column = _cells_by_column(run)
    for contender in run.record.grid.names("training"):
        for data in run.record.data:
            panels = {}
            names: list[str] = []
            for column, cells in by_column.items():
                own = [cell for cell in cells if cell.contender == contender and column.data == data]
                found = _run(run, own[0]) if own else None
                shown = None if found is None else confusion_panels(found)
                if shown is not None:
                    panels[column.noise.title], names = shown
            if panels:
                yield _confusions(contender, data, panels, names)


def _confusions(contender: str, data: str, panels: dict[str, Any], names: list[str]) -> Drawing:
    n_rows = max(len(one) for one in panels.values())

    def draw(theme: Theme) -> Figure:
        figure, grid = new_grid(2.6 * len(panels), 2.6 * n_rows, n_rows, len(panels))
        for place, (noise, parts) in enumerate(panels.items()):
            for row, (title, words, counts) in enumerate(parts):
                axes = grid[row][place]
                draw_matrix(axes, counts, names, theme)
                for text in axes.texts:
                    text.set_fontsize(5)
                axes.tick_params(labelsize=6)
                axes.set_title(f"{noise}: {title}", fontsize=8)
                axes.set_ylabel(words, fontsize=8)
        return figure

    right = "; ".join(
        f"{noise}: " + ", ".join(f"{title} {np.trace(c) / max(1, c.sum()):.1%}" for title, _, c in parts)
        for noise, parts in panels.items()
    )
    alt = f"Confusion matrices of {contender} on {data}. On the diagonal: {right}."
    return Drawing(_name("confusions", contender, data), f"Confusions of {contender} on {data}", alt, draw)


def feature_figures(run: BenchRun) -> Iterator[Drawing | None]:
    """Draw t-SNE maps of the features that the runs learned, side by side, colored by true label.

    Parameters
    ----------
    run : BenchRun
        The bench.

    Yields
    ------
    Drawing or None
        One per data set, of the first seed; contenders and noises are panels.
    """
    for data in run.record.data:
        maps = {}
        for column, cells in _cells_by_column(run).items():
            for contender in dict.fromkeys(cell.contender for cell in cells if column.data == data):
                cell = next(cell for cell in cells if cell.contender == contender)
                found = _run(run, cell)
                shown = None if found is None else mapped_features(found)
                if shown is not None:
                    maps[f"{contender} ({column.noise.title})"] = shown
        if maps:
            yield _maps(data, maps)


def _maps(data: str, maps: dict[str, Any]) -> Drawing:
    def draw(theme: Theme) -> Figure:
        figure, axes = new_figure(3.6 * len(maps), 3.8, len(maps))
        for (title, (points, classes)), one in zip(maps.items(), axes, strict=True):
            draw_map(one, points, classes, theme)
            one.set_title(title)
        return figure

    alt = f"t-SNE maps of learned features on {data}, marked by true label: {', '.join(maps)}."
    return Drawing(_name("features", data), f"Learned features: {data}", alt, draw)


def figure_note(name: str) -> str:
    """Describe what a figure shows.

    Parameters
    ----------
    name : str
        Name of the drawing.

    Returns
    -------
    str
    """
    kind = next((kind for kind in _NOTES if name.startswith(kind)), "")
    return _NOTES.get(kind, "")


_FIGURES: dict[str, Callable[[BenchRun], Iterator[Drawing | None]]] = {
    "f1": f1_figures,
    "accuracy": accuracy_figures,
    "confusion": confusion_figures,
    "features": feature_figures,
}
_NOTES = {
    "sweep": "Mean and standard deviation over the seeds.",
    "f1-of-clean-labels": "Labels whose confidence is one half or more count as clean. Mean over the seeds.",
    "test-accuracy": "Mean over the seeds. Rounds and settings are never chosen by it.",
    "confusions": "Rows are true labels. First seed.",
    "features": "t-SNE of the inputs of the last layer; colors are true labels. First seed.",
}


def _cells_by_column(run: BenchRun) -> dict[Column, list[Cell]]:
    """The finished training cells of every column."""
    found: dict[Column, list[Cell]] = {}
    for cell in run.done:
        if cell.task == "training":
            found.setdefault(Column(cell.data, Noise.parse(cell.noise)), []).append(cell)
    return found


def _run(run: BenchRun, cell: Cell) -> TrainingRun | None:
    folder = run.folder / RUNS / run_folder_name(cell)
    return read_training(folder) if is_training_run(folder) else None


def _name(*parts: str) -> str:
    """A file name of words: letters, digits and hyphens."""
    words = "".join(character if character.isalnum() else "-" for character in "-".join(parts))
    return "-".join(word for word in words.lower().split("-") if word)
