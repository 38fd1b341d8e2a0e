"""The options of ``laplaceconfidence report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from laplaceconfidence.cli.console import output
from laplaceconfidence.cli.errors import report_errors
from laplaceconfidence.cli.progress import showing_progress
from laplaceconfidence.wording import counted


def report(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="RUN", help="Folder of an audit, a training run or a bench; a bench may be unfinished."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="HTML file to write. Default: RUN/report.html."),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(help="Also write every figure into this folder, as PDF and PNG.", metavar="FOLDER"),
    ] = None,
) -> None:
    """Write a run as one HTML page.

    The page holds all figures, tables and pictures, so it opens offline and can be sent as an attachment. It
    needs the extra review: pip install 'laplaceconfidence\\[review]'.

    The report of an audit shows how many labels are expected to be wrong, the confidences, which classes are
    confused, every class, the labels to look at first with their neighbors, copies, leaks and outliers,
    settings and timings. The report of a training run shows accuracy and loss per round, the confidences over
    the rounds, confusions, and maps of the learned features. The report of a bench shows which estimator or
    method is best under which noise, with a figure and a table for each metric.
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
                    "Figures: ", (str(folder), "bold"), f" ({counted(len(written.figures), 'file')})"
                ),
                soft_wrap=True,
            )
