"""``laplaceconfidence export``: the corrected data set, with a trail."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from laplaceconfidence.cli.console import count, notices, output, plain_table
from laplaceconfidence.cli.errors import report_errors

if TYPE_CHECKING:
    from laplaceconfidence.export import ExportPlan
    from laplaceconfidence.export.writing import Exported


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of an audit, reviewed or not.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="File (.csv, .tsv, .parquet, .npz, .jsonl) or folder to write. Default: RUN-corrected, in "
            "the format of the data.",
        ),
    ] = None,
    format: Annotated[
        str | None, typer.Option(help="csv, parquet, npz, jsonl or folder (images sorted by class).")
    ] = None,
    policy: Annotated[
        str,
        typer.Option(
            help="reviewed-only: what people decided. reviewed-then-confident: and suggestions with at least "
            "--min-probability. drop: leave out flagged labels that nobody settled."
        ),
    ] = "reviewed-only",
    min_probability: Annotated[
        float | None, typer.Option(help="For reviewed-then-confident: how sure a suggestion must be (0.95).")
    ] = None,
    fill_missing: Annotated[
        bool,
        typer.Option("--fill-missing", help="For reviewed-then-confident: also label what has no label."),
    ] = False,
    copy: Annotated[
        bool, typer.Option("--copy", help="Copy images into a folder instead of linking.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the counts and write nothing.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier export.")] = False,
) -> None:
    """Write the corrected data set.

    The original data is never touched. Beside the export stands its trail: for every changed label the old
    and the new one, why, the probability, who decided and when.
    """
    with report_errors():
        from laplaceconfidence.export import plan_export, write_export
        from laplaceconfidence.records import read_audit

        plan = plan_export(
            read_audit(run), policy=policy, min_probability=min_probability, fill_missing=fill_missing
        )
        _show(plan)
        if dry_run:
            output().print("Nothing was written (--dry-run).")
            return
        exported = write_export(plan, out, format=format, copy=copy, overwrite=overwrite)
        _show_files(exported)


def _show(plan: ExportPlan) -> None:
    console = output()
    n = len(plan.samples)
    changes = [count(plan.count("changed"), "label") + " changed"]
    changes += [f"{plan.count('filled'):,} filled in"] * (plan.count("filled") > 0)
    changes += [f"{plan.count('dropped'):,} left out"] * (plan.count("dropped") > 0)
    console.print(Text(f"{count(n, 'sample')}: {', '.join(changes)}.", style="bold"))
    if plan.n_reviewed == 0:
        run = plan.samples.run.folder
        console.print(f"Nobody has reviewed this run yet: laplaceconfidence review {run}", soft_wrap=True)
    if len(plan.trail):
        table = plain_table("", "why", "labels:")
        for why, number in plan.trail["why"].value_counts().items():
            table.add_row(str(why), f"{number:,}")
        console.print(table)


def _show_files(exported: Exported) -> None:
    if exported.lost is not None:
        notices().print(
            Text.assemble(("Note: ", "bold yellow"), f"no features were exported: {exported.lost}"),
            soft_wrap=True,
        )
    if exported.n_lost_files:
        lost = count(exported.n_lost_files, "image")
        notices().print(
            Text.assemble(("Note: ", "bold yellow"), f"{lost} could not be found and had to be left out."),
            soft_wrap=True,
        )
    console = output()
    console.print(Text.assemble("Written: ", (str(exported.path), "bold")), soft_wrap=True)
    console.print(Text.assemble("  trail: ", (str(exported.trail), "bold")), soft_wrap=True)
