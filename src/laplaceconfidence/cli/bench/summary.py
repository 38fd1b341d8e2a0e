"""The summary of a bench on the console."""

from __future__ import annotations

from rich.table import Table as RichTable
from rich.text import Text

from laplaceconfidence.cli.bench.progress import cell_text
from laplaceconfidence.cli.console import notices, output, plain_table
from laplaceconfidence.evaluation.tables import TASK_TITLES, Column, Table, leader_sentence
from laplaceconfidence.records.bench_run import BenchRun
from laplaceconfidence.wording import counted

MOST_FAILURES = 10
PUBLISHED = "published"


def show_bench(run: BenchRun, *, has_report: bool = False) -> None:
    """Print the best contenders, the main tables, the failures and the files written."""
    console = output()
    tables = run.tables()
    trains = "training" in run.record.grid.tasks
    for task in run.record.grid.tasks:
        own = [table for table in tables if table.task == task]
        console.print()
        console.print(Text(f"{TASK_TITLES[task]}: {leader_sentence(own[0])}", style="bold"), soft_wrap=True)
        n = len(run.record.seeds)
        console.print("One seed." if n == 1 else f"Mean ± standard deviation over {n} seeds.", style="dim")
        for table in own:
            if table.metric.is_minor:
                continue
            console.print()
            note = f" ({table.metric.note})" if table.metric.note else ""
            console.print(Text.assemble((table.metric.title, "bold"), (note, "dim")), soft_wrap=True)
            for columns in _fitting(table, console.width):
                console.print(_for_console(table, columns))
            for source in table.published_sources:
                console.print(Text(f"{PUBLISHED}: {source}", style="dim"), soft_wrap=True)
    show_failures(run)
    console.print()
    console.print(Text.assemble("Written to ", (f"{run.folder}/", "bold"), ":"), soft_wrap=True)
    for name, meaning in (
        ("tables.md", "these and more tables; tables.tex for papers, tables.csv with unrounded numbers"),
        ("results.jsonl", "every cell, one line each"),
        ("bench.json", "what was measured on what"),
        *((("runs/", "the folder of every training run"),) if trains else ()),
        *((("report.html", "everything on one page; figures/ has its figures"),) if has_report else ()),
    ):
        console.print(f"  [bold]{name:<14}[/bold] {meaning}", soft_wrap=True)
    if not has_report:
        console.print(
            Text.assemble("To write a report: ", (f"laplaceconfidence report {run.folder}", "bold")),
            soft_wrap=True,
        )


def show_failures(run: BenchRun) -> None:
    """Print the cells that failed, with their reasons."""
    if failed := run.failed:
        errors = notices()
        errors.print(
            f"\n[bold red]{counted(len(failed), 'cell')} failed[/bold red]. The same command repeats them:"
        )
        for outcome in failed[:MOST_FAILURES]:
            text = cell_text(outcome.cell, with_data=len(run.record.data) > 1)
            errors.print(Text(f"  {text}: {outcome.error}"), soft_wrap=True)
        if len(failed) > MOST_FAILURES:
            errors.print(f"  ... and {len(failed) - MOST_FAILURES:,} more")


def _fitting(table: Table, width: int) -> list[list[Column]]:
    """The columns in groups that fit into a line, with at least one column each."""
    names = max(len(name) for name in table.contenders)
    groups: list[list[Column]] = []
    space = 0
    for column in table.columns:
        texts = (table.head(column), *(table.text(name, column) for name in table.contenders))
        needed = 2 + max(len(text) for text in texts)
        needed += 2 + len(PUBLISHED) if table.has_published(column) else 0
        if not groups or needed > space:
            groups.append([])
            space = width - names
        groups[-1].append(column)
        space -= needed
    return groups


def _for_console(table: Table, columns: list[Column]) -> RichTable:
    heads = []
    for column in columns:
        heads += [f"{table.head(column)}:", *([f"{PUBLISHED}:"] if table.has_published(column) else [])]
    shown = plain_table("", "", *heads)
    for contender in table.contenders:
        cells = []
        for column in columns:
            style = "bold" if table.is_best(contender, column) else ""
            cells.append(Text(table.text(contender, column), style=style))
            if table.has_published(column):
                cells.append(Text(table.published_text(contender, column), style="dim italic"))
        shown.add_row(Text(contender, no_wrap=True), *cells)
    return shown
