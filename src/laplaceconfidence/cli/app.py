"""The command ``laplaceconfidence`` and its sub-commands."""

from __future__ import annotations

from typing import Annotated

import typer

from laplaceconfidence.cli.audit import audit
from laplaceconfidence.cli.bench.command import bench
from laplaceconfidence.cli.console import output
from laplaceconfidence.cli.demo import demo
from laplaceconfidence.cli.export import export
from laplaceconfidence.cli.report import report
from laplaceconfidence.cli.review import review
from laplaceconfidence.cli.train.command import train

app = typer.Typer(
    name="laplaceconfidence",
    help="How far can each label be trusted? Find wrong labels, see why, and fix them.",
    epilog="Start with: [bold]laplaceconfidence demo[/bold]",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("audit")(audit)
app.command("train")(train)
app.command("bench")(bench)
app.command("demo")(demo)
app.command("report")(report)
app.command("review")(review)
app.command("export")(export)


def _show_version(wanted: bool) -> None:
    if wanted:
        from laplaceconfidence import __version__

        output().print(f"laplaceconfidence {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options of the command itself."""
