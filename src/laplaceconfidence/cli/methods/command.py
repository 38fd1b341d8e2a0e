"""The command ``laplaceconfidence methods``."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.padding import Padding

from laplaceconfidence.cli.console import output, plain_table
from laplaceconfidence.cli.errors import report_errors

if TYPE_CHECKING:
    from laplaceconfidence.training.methods.overview import MethodOverview

EXAMPLES = """
[bold]Examples[/bold]

All methods, with their papers and what they need:
[cyan]laplaceconfidence methods[/cyan]

The settings of one of them, and what was published for which data and noise:
[cyan]laplaceconfidence methods dividemix[/cyan]
"""


def methods(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A method, to show its settings. Default: list all methods."),
    ] = None,
) -> None:
    """List the training methods, or show the settings of one.

    The list has the paper, the number of networks, what a method has to be told besides samples and labels,
    and what a round costs relative to cross-entropy. With a name, the settings of that method are shown with
    their defaults, and the settings that were published for it by data set and noise, with where they were
    read: in the official code, in the paper, or unverified. They are written as --set of train takes them.
    This needs torch: pip install 'laplaceconfidence\\[train]'.
    """
    with report_errors():
        from laplaceconfidence.cli.errors import check_torch

        check_torch("A list of training methods")
        from laplaceconfidence.training.methods.overview import describe_method, describe_methods

        console = output()
        if name is None:
            _show_all(console, describe_methods())
        else:
            _show_one(console, describe_method(name))


methods.__doc__ = f"{inspect.cleandoc(methods.__doc__ or '')}\n{EXAMPLES}"


def _show_all(console: Console, overviews: list[MethodOverview]) -> None:
    from laplaceconfidence.training.methods.overview import COST, NEEDS

    table = plain_table("Training methods", "name", "year:", "networks:", "needs", "cost:", "paper")
    for one in overviews:
        table.add_row(one.name, one.year, one.networks, one.needs, one.cost, one.paper)
    console.print(table)
    console.print()
    for sentence in (COST, NEEDS, "laplaceconfidence methods NAME shows the settings of a method."):
        console.print(sentence, style="dim", markup=False)


def _show_one(console: Console, one: MethodOverview) -> None:
    from laplaceconfidence.training.methods.overview import noise_as_written, settings_as_written

    console.print(f"{one.name}: {one.summary}", style="bold", markup=False)
    if one.description:
        console.print(one.description.replace("``", ""), markup=False)
    year = "" if one.year == "-" else f", {one.year}"
    console.print(f"\nPaper: {one.paper}{year}", markup=False)
    console.print(f"Networks: {one.networks}. Needs: {one.needs}. Cost: {one.cost}.\n", markup=False)
    if one.defaults:
        table = plain_table("Settings", "setting", "default")
        for setting, default in one.defaults.items():
            table.add_row(f"method.{setting}", default)
        console.print(table)
    else:
        console.print("It has no settings.")
    for number, entry in enumerate(one.published):
        if number == 0:
            console.print("\nPublished settings", style="bold")
        console.print(f"{entry.data}, {noise_as_written(entry)} ({entry.source})", markup=False)
        parts = (
            settings_as_written(entry.method, "method."),
            settings_as_written(entry.training),
            entry.note and f"Note: {entry.note}",
        )
        for part in filter(None, parts):
            console.print(Padding(part.replace("[", "\\["), (0, 0, 0, 2)))
