"""``laplaceconfidence report``: one page to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from laplaceconfidence.cli.console import count, output
from laplaceconfidence.cli.errors import report_errors
from laplaceconfidence.cli.progress import showing_progress


def report(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="Folder of an audit, a training run or a bench.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="HTML file to write. Default: RUN/report.html.")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(help="Folder for every figure as PDF and PNG.", metavar="DIR")
    ] = None,
) -> None:
    """Write one page to look at.

    A single HTML file with all figures, tables and pictures in it: it opens offline, also from a mail.
    """
    with report_errors():
        from laplaceconfidence.report import write_report

        with showing_progress():
            written = write_report(run, out, figures=figures)
        console = output()
        size = written.path.stat().st_size / 1e6
        console.print(
            Text.assemble("Report: ", (str(written.path), "bold"), f" ({size:.1f} MB)"), soft_wrap=True
        )
        if written.figures:
            folder = written.figures[0].parent
            console.print(
                Text.assemble(
                    "Figures: ", (str(folder), "bold"), f" ({count(len(written.figures), 'file')})"
                ),
                soft_wrap=True,
            )
