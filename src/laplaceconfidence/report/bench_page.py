"""The content of the report of a bench."""

from __future__ import annotations

from typing import Any

from laplaceconfidence.evaluation.noises import Noise
from laplaceconfidence.evaluation.tables import TASK_TITLES, Column, Table, leader_sentence
from laplaceconfidence.exceptions import RunFolderError
from laplaceconfidence.records.bench_run import BenchRun
from laplaceconfidence.report.bench_figures import metric_drawing
from laplaceconfidence.report.bench_run_figures import figure_note, paper_figures
from laplaceconfidence.report.drawing import Drawing, Page

MOST_CLASS_NAMES = 30


def bench_page(run: BenchRun) -> Page:
    """Build the report of a bench, finished or not.

    Parameters
    ----------
    run : BenchRun
        The bench.

    Returns
    -------
    Page

    Raises
    ------
    RunFolderError
        If it has no finished cell yet.
    """
    if not run.done:
        raise RunFolderError(
            f"The bench in {run.folder} has no finished cell yet: there is nothing to report."
        )
    tables = run.tables()
    drawn = [(table, metric_drawing(table)) for table in tables]
    further = paper_figures(run, tables)
    record = run.record
    content = {
        "headline": _headline(run, tables),
        "facts": _facts(run),
        "is_finished": run.is_finished,
        "n_done": len(run.done),
        "n_cells": len(run.cells),
        "tasks": [
            {
                "title": TASK_TITLES[task],
                "metrics": [_metric(table, drawing) for table, drawing in drawn if table.task == task],
            }
            for task in record.grid.tasks
        ],
        "title": record.title,
        "further": [(drawing.name, drawing.title, figure_note(drawing.name)) for drawing in further],
        "failed": [(_cell(outcome.cell), outcome.error) for outcome in run.failed],
        "data": [
            (name, [(key, _words(value)) for key, value in table.items() if value not in ({}, 0, None)])
            for name, table in record.data.items()
        ],
        "contenders": [
            (one.name, rows) for one in record.contenders if (rows := _settings_rows(one.settings))
        ],
        "machines": sorted({outcome.machine for outcome in run.outcomes.values() if outcome.machine}),
        "versions": list(record.versions.items()),
        "created": record.created,
    }
    drawings = [*further, *(drawing for _, drawing in drawn if drawing is not None)]
    return Page("bench.html", drawings, content)


def _headline(run: BenchRun, tables: list[Table]) -> str:
    """Which contender is best how often, for every task."""
    leading = [next(table for table in tables if table.task == task) for task in run.record.grid.tasks]
    if len(leading) == 1:
        return leader_sentence(leading[0])
    return " ".join(f"{TASK_TITLES[table.task]}: {leader_sentence(table)}" for table in leading)


def _facts(run: BenchRun) -> list[tuple[str, str]]:
    record, grid = run.record, run.record.grid
    facts = [("cells", f"{len(run.done):,}")]
    if len(record.data) > 1:
        facts.append(("data sets", f"{len(record.data):,}"))
    noises = {noise for table in record.data.values() for noise in table["noises"]}
    facts += [("noises", f"{len(noises):,}"), ("seeds", f"{len(record.seeds):,}")]
    for task in grid.tasks:
        facts.append((TASK_TITLES[task].lower(), f"{len(grid.names(task)):,}"))
    return facts


def _settings_rows(settings: dict[str, dict[str, Any]]) -> list[tuple[str, str]]:
    """Settings that are the same in all columns once, the others with their columns."""
    names = sorted({name for one in settings.values() for name in one})
    rows = []
    for name in names:
        by_value: dict[str, list[str]] = {}
        for column, one in settings.items():
            if name in one:
                by_value.setdefault(_words(one[name]), []).append(column)
        everywhere = len(by_value) == 1 and len(next(iter(by_value.values()))) == len(settings)
        text = "; ".join(
            value if everywhere else f"{value} ({', '.join(columns)})" for value, columns in by_value.items()
        )
        rows.append((name, text))
    return rows


def _metric(table: Table, drawing: Drawing | None) -> dict[str, Any]:
    note = table.metric.note
    return {
        "figure": None if drawing is None else drawing.name,
        "title": table.metric.title,
        "note": f"{note[0].upper()}{note[1:]}." if note else "",
        "id": f"{table.task}-{table.metric.name}",
        "heads": [
            (head, is_published) for column in table.columns for head, is_published in _heads(table, column)
        ],
        "rows": [
            (name, [cell for column in table.columns for cell in _cells(table, name, column)])
            for name in table.contenders
        ],
        "sources": table.published_sources,
    }


def _heads(table: Table, column: Column) -> list[tuple[str, bool]]:
    return [(table.head(column), False), *([("published", True)] if table.has_published(column) else [])]


def _cells(table: Table, name: str, column: Column) -> list[tuple[str, str]]:
    """The texts of a contender in a column, and how each is shown: "best", "published" or plainly."""
    best = "best" if table.is_best(name, column) else ""
    published = [(table.published_text(name, column), "published")] if table.has_published(column) else []
    return [(table.text(name, column), best), *published]


def _cell(cell: Any) -> str:
    return f"{cell.contender}, {cell.data}, {Noise.parse(cell.noise).title}, seed {cell.seed}"


def _words(value: Any) -> str:
    """A setting as readable text."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_words(inner)}" for key, inner in value.items())
    if isinstance(value, list):
        more = f", ... ({len(value):,})" if len(value) > MOST_CLASS_NAMES else ""
        return ", ".join(_words(inner) for inner in value[:MOST_CLASS_NAMES]) + more
    return str(value)
