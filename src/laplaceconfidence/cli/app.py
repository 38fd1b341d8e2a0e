"""The command ``laplaceconfidence`` and its subcommands."""

from __future__ import annotations

from typing import Annotated

import typer

from laplaceconfidence.cli.audit.command import audit
from laplaceconfidence.cli.bench.command import bench
from laplaceconfidence.cli.cache.command import cache
from laplaceconfidence.cli.console import output
from laplaceconfidence.cli.demo.command import demo
from laplaceconfidence.cli.diff.command import diff
from laplaceconfidence.cli.export.command import export
from laplaceconfidence.cli.methods.command import methods
from laplaceconfidence.cli.onnx.command import onnx
from laplaceconfidence.cli.predict.command import predict
from laplaceconfidence.cli.report.command import report
from laplaceconfidence.cli.review.command import review
from laplaceconfidence.cli.train.command import train
from laplaceconfidence.cli.tune.command import tune

app = typer.Typer(
    name="laplaceconfidence",
    help="How far can each label be trusted? Find wrong labels, see why, and fix them.\n\n"
    "Results go to standard output; progress, notes and errors go to standard error. Exit codes: 0 done; "
    "1 an audit meets a condition of --fail-if; 2 an input cannot be used, and the message says what to do; "
    "3 a bench finished, but some of its cells failed; 130 training or a bench was stopped and can be "
    "resumed. Anything else ends with a traceback and exit code 1: please report it.",
    epilog="Start with: [bold]laplaceconfidence demo[/bold]",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("audit")(audit)
app.command("train")(train)
app.command("predict")(predict)
app.command("onnx")(onnx)
app.command("bench")(bench)
app.command("tune")(tune)
app.command("methods")(methods)
app.command("demo")(demo)
app.command("report")(report)
app.command("review")(review)
app.command("export")(export)
app.command("diff")(diff)
app.command("cache")(cache)


def _show_version(wanted: bool) -> None:
    if wanted:
        from laplaceconfidence import __version__

        output().print(f"laplaceconfidence {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Options of the command itself."""
