"""``laplaceconfidence demo``: what this is good for, shown in a minute on data that comes along."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from laplaceconfidence.cli.console import notices, output, plain_table
from laplaceconfidence.cli.errors import report_errors
from laplaceconfidence.cli.numbers import count_number
from laplaceconfidence.cli.progress import showing_progress
from laplaceconfidence.cli.torch_needed import check_torch

if TYPE_CHECKING:
    from laplaceconfidence.cli.demo_experiment import DemoOutcome

DEMO_FOLDER = "laplaceconfidence-demo"


def demo(
    seed: Annotated[
        int,
        typer.Option(parser=count_number, metavar="<int>", help="Which labels are spoiled, and how."),
    ] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help=f"Folder for the audit. Default: {DEMO_FOLDER}, or a free name like it."
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the audit in that folder.")] = False,
    training: Annotated[
        bool,
        typer.Option(
            "--training/--no-training", help="Also train networks on labels most of which are wrong."
        ),
    ] = True,
) -> None:
    """See it work: spoil labels of handwritten digits, find them, mend them, and train in spite of them.

    Takes about a minute (seconds without training), needs no data and no internet.
    """
    with report_errors() as warnings:
        from laplaceconfidence.cli.demo_experiment import run_demo
        from laplaceconfidence.cli.summary import show_files
        from laplaceconfidence.records import write_audit
        from laplaceconfidence.records.run_folder import check_place

        folder = _free_folder() if out is None and not overwrite else out or Path(DEMO_FOLDER)
        replaces = overwrite or out is None  # without a name of yours, at most an earlier demonstration
        check_place(folder, overwrite=replaces)
        with showing_progress():
            outcome = run_demo(seed)
        run = write_audit(
            outcome.result,
            folder,
            source={"demo": True, "seed": seed},
            warnings=tuple(warnings),
            overwrite=replaces,
            keep_data=True,
        )
        _show(outcome)
        show_files(output(), run)
        if training:
            _show_training(seed)
        _show_report(folder)


def _show_training(seed: int) -> None:
    """Train on labels most of which are wrong; without torch, say how to get it."""
    from laplaceconfidence.cli import demo_training
    from laplaceconfidence.exceptions import MissingDependencyError

    output().print()
    try:
        check_torch("The next part of the demonstration, which trains networks,")
    except MissingDependencyError as missing:
        notices().print(Text(str(missing)), soft_wrap=True)
        return
    with showing_progress():
        outcome = demo_training.run_training_demo(seed)
    demo_training.show_training_outcome(outcome)


def _show_report(folder: Path) -> None:
    """Write a page to look at, and say how to go on from here."""
    from laplaceconfidence.report import write_report

    with showing_progress():
        report = write_report(folder)
    console = output()
    console.print()
    for words, what in (
        ("Look at it:", f"open {report.path} in a browser"),
        ("Decide label by label:", f"laplaceconfidence review {folder}"),
        ("Take what you decided:", f"laplaceconfidence export {folder}"),
    ):
        console.print(Text.assemble((f"{words:<24}", "bold"), what), soft_wrap=True)


def _free_folder() -> Path:
    """The usual place, where at most an earlier demonstration is, or the next name that is free."""
    from laplaceconfidence.exceptions import RunFolderError
    from laplaceconfidence.records import read_audit
    from laplaceconfidence.records.run_folder import check_place

    names = itertools.chain([DEMO_FOLDER], (f"{DEMO_FOLDER}-{number}" for number in itertools.count(2)))
    for folder in map(Path, names):
        if not folder.exists():
            break
        try:
            check_place(folder, overwrite=read_audit(folder).record.source.get("demo") is True)
        except RunFolderError:  # something else is there, or something was added
            continue
        break
    return folder


def _show(outcome: DemoOutcome) -> None:
    console = output()
    n, n_wrong = len(outcome.result.dataset), outcome.n_wrong
    ours = outcome.scores[0]
    console.print(
        f"\nWe took [bold]{n:,} pictures of handwritten digits[/bold] and gave [bold]{n_wrong}[/bold] of "
        f"them a wrong label ({n_wrong / n:.0%}). The audit was told neither how many nor which.\n"
    )
    console.print(
        f"It found [bold]{outcome.n_found} of the {n_wrong} wrong labels[/bold], and {ours.precision:.0%} of "
        "the labels it flagged are really wrong. Taking all its suggestions brings the number of wrong "
        f"labels down from {n_wrong} to [bold]{outcome.n_wrong_after}[/bold].\n"
    )
    headings = ("method", "AUROC:", "flags that are right:", "wrong labels found:")
    table = plain_table("How well is right told from wrong?", *headings)
    for score in outcome.scores:
        cells = (score.name, f"{score.auroc:.4f}", f"{score.precision:.1%}", f"{score.recall:.1%}")
        table.add_row(*cells, style="bold" if score is ours else "")
    console.print(table)
    console.print()
    table = plain_table(
        "What are the corrected labels worth?",
        "a logistic regression trained on the",
        f"reads {outcome.n_test} new digits right:",
    )
    for labels, accuracy in outcome.accuracy.items():
        table.add_row(f"{labels} labels", f"{accuracy:.1%}", style="bold" if labels == "corrected" else "")
    console.print(table)
    console.print()
