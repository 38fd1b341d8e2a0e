"""The options of ``laplaceconfidence demo``, and what it prints."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from laplaceconfidence.cli.console import notices, output, plain_table
from laplaceconfidence.cli.errors import check_torch, report_errors
from laplaceconfidence.cli.options import nonnegative, word
from laplaceconfidence.cli.progress import showing_progress

if TYPE_CHECKING:
    from laplaceconfidence.cli.demo.experiment import DemoOutcome

DEMO_FOLDER = "laplaceconfidence-demo"


def demo(
    seed: Annotated[int, nonnegative(None, "Seed that decides which labels are corrupted, and how.")] = 0,
    out: Annotated[
        Path | None,
        word(
            None,
            f"Folder for the audit. Default: {DEMO_FOLDER}, where it replaces an earlier demonstration and "
            f"nothing else; otherwise the first free one of {DEMO_FOLDER}-2, -3, ...",
            "--out",
            "-o",
            metavar="FOLDER",
        ),
    ] = None,
    overwrite: Annotated[bool, word(None, "Replace the audit in that folder.", "--overwrite")] = False,
    training: Annotated[
        bool,
        typer.Option(
            "--training/--no-training",
            help="Whether to train networks on labels that are mostly wrong as well, which needs torch.",
        ),
    ] = True,
) -> None:
    """See it work on handwritten digits: corrupt labels, find and correct them, and train despite them.

    Replaces 40% of the labels of 1,347 handwritten digits with random ones, finds the wrong ones, compares
    this with the paper's estimator, a kNN vote and a Gaussian mixture of losses, and shows how much more
    accurate a classifier gets with the corrected labels. Then it trains a small network on digits of which
    80% have a random label, in the usual way and with LaplaceConfidence. It takes about a minute on two cores
    (seconds without training) and needs neither data nor an internet connection.
    """
    with report_errors() as warnings:
        from laplaceconfidence.cli.audit.summary import show_files
        from laplaceconfidence.cli.demo.experiment import run_demo
        from laplaceconfidence.records import write_audit
        from laplaceconfidence.records.run_folder import reserved_place

        folder = _free_folder() if out is None and not overwrite else out or Path(DEMO_FOLDER)
        # _free_folder picks a new folder, which stays one, or an earlier demonstration.
        replaces = overwrite or (out is None and folder.exists())
        with reserved_place(folder, overwrite=replaces):
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
    """Train on labels that are mostly wrong; without torch, print how to install it."""
    from laplaceconfidence.cli.demo import training
    from laplaceconfidence.exceptions import MissingDependencyError

    output().print()
    try:
        check_torch("The next part of the demonstration, which trains networks,")
    except MissingDependencyError as missing:
        notices().print(Text(str(missing)), soft_wrap=True)
        return
    with showing_progress():
        outcome = training.run_training_demo(seed)
    training.show_training_outcome(outcome)


def _show_report(folder: Path) -> None:
    """Write the report of the audit, and print what to do next; without the extra, how to install it."""
    from laplaceconfidence.exceptions import MissingDependencyError
    from laplaceconfidence.report import write_report

    try:
        with showing_progress():
            seen = f"open {write_report(folder).path} in a browser"
    except MissingDependencyError as missing:
        notices().print(
            Text(f"No report was written, and the review page cannot be shown. {missing}"), soft_wrap=True
        )
        seen = f"laplaceconfidence report {folder}"
    console = output()
    console.print()
    for purpose, command in (
        ("See the report:", seen),
        ("Decide label by label:", f"laplaceconfidence review {folder}"),
        ("Export what you decided:", f"laplaceconfidence export {folder}"),
    ):
        console.print(Text.assemble((f"{purpose:<25}", "bold"), command), soft_wrap=True)


def _free_folder() -> Path:
    """The default folder if it is new or holds an earlier demonstration, otherwise the next such name."""
    from laplaceconfidence.exceptions import RunFolderError
    from laplaceconfidence.records import read_audit
    from laplaceconfidence.records.run_folder import check_place

    names = itertools.chain([DEMO_FOLDER], (f"{DEMO_FOLDER}-{number}" for number in itertools.count(2)))
    for folder in map(Path, names):
        if not folder.exists():
            break
        try:
            check_place(folder, overwrite=read_audit(folder).record.source.get("demo") is True)
        except RunFolderError:  # it holds something else, or files were added
            continue
        break
    return folder


def _show(outcome: DemoOutcome) -> None:
    console = output()
    n, n_wrong = len(outcome.result.dataset), outcome.n_wrong
    ours = outcome.scores[0]
    console.print(
        f"\nWe took [bold]{n:,} images of handwritten digits[/bold] and gave [bold]{n_wrong}[/bold] of "
        f"them a wrong label ({n_wrong / n:.0%}). The audit knows neither how many nor which.\n"
    )
    console.print(
        f"It estimates {outcome.result.statement.expected} to be wrong.\n"
        f"It found [bold]{outcome.n_found} of the {n_wrong} wrong labels[/bold], and {ours.precision:.0%} of "
        "the labels it flagged are really wrong. Accepting all its suggestions brings the number of wrong "
        f"labels down from {n_wrong} to [bold]{outcome.n_wrong_after}[/bold].\n"
    )
    headings = ("method", "AUROC:", "flags that are right:", "wrong labels found:")
    table = plain_table("How well are right and wrong labels distinguished?", *headings)
    for score in outcome.scores:
        cells = (score.name, f"{score.auroc:.4f}", f"{score.precision:.1%}", f"{score.recall:.1%}")
        table.add_row(*cells, style="bold" if score is ours else "")
    console.print(table)
    console.print()
    table = plain_table(
        "How much do the corrected labels help?",
        "a logistic regression trained on the",
        f"accuracy on {outcome.n_test} new digits:",
    )
    for labels, accuracy in outcome.accuracy.items():
        table.add_row(f"{labels} labels", f"{accuracy:.1%}", style="bold" if labels == "corrected" else "")
    console.print(table)
    console.print()
