"""The options of ``laplaceconfidence export``, and what it prints."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from laplaceconfidence.cli.console import notices, output, plain_table
from laplaceconfidence.cli.errors import report_errors
from laplaceconfidence.wording import counted

if TYPE_CHECKING:
    from laplaceconfidence.export import ExportPlan
    from laplaceconfidence.export.correction import Correction, SourceChanges
    from laplaceconfidence.export.writing import Exported

_ACTIONS = {"filled": "filled in", "dropped": "left out"}


def export(
    run: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="Folder of an audit or a finished training run, reviewed or not."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="NAME",
            help="File (.csv, .tsv, .parquet, .npz, .jsonl; .json for Label Studio) or folder to write. "
            "Default: RUN-corrected, in the format of the data.",
        ),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="Format: csv, parquet, npz, jsonl; folder (images in one subfolder per class); huggingface "
            "(a folder for datasets.load_from_disk); fiftyone (a folder of the type "
            "FiftyOneImageClassificationDataset); or label-studio (tasks to decide on, with suggestions). "
            "Default: the one that the name of --out implies, or that of the data.",
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="reviewed-only: apply what people decided. reviewed-then-confident: also, where nobody has "
            "decided, the suggestion for a flagged label if its probability is at least --min-probability. "
            "consensus: also, where nobody has decided, the consensus of several annotators. "
            "drop: apply what people decided and leave out flagged samples that nobody has settled. "
            "Default: consensus where there are several annotators, else reviewed-only.",
        ),
    ] = None,
    min_probability: Annotated[
        float | None,
        typer.Option(
            help="For reviewed-then-confident: the least probability of a suggestion to apply. Default: 0.95."
        ),
    ] = None,
    fill_missing: Annotated[
        bool,
        typer.Option(
            "--fill-missing",
            help="For reviewed-then-confident: also label samples without a label, if the suggestion is as "
            "probable; for consensus: label them in any case.",
        ),
    ] = False,
    copies: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Copies (near-duplicates) that nobody has decided on. keep: all stay. drop-conflicting: "
            "leave out copies with different labels, except those whose label a person settled. keep-one: "
            "keep one of every set, preferably one whose label a person settled, then the one with the most "
            "probable label.",
        ),
    ] = "keep",
    outliers: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Outliers whose label nobody has settled. keep: they stay. drop: leave them out.",
        ),
    ] = "keep",
    leaks: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Samples that are also in the test set (audit --test) and that nobody has decided to keep. "
            "keep: they stay. drop: leave them out.",
        ),
    ] = "keep",
    tasks: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="For label-studio. first: the labels to look at first and samples without a label that "
            "nobody has decided on, the default. all: all samples.",
        ),
    ] = None,
    copy: Annotated[
        bool,
        typer.Option(
            "--copy",
            help="Copy images into the folder instead of making hard links to them.",
        ),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the counts and write nothing.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier export.")] = False,
) -> None:
    """Write the corrected data set.

    The original data is never changed. Next to the export, NAME.trail.csv lists every changed label and every
    sample left out: the old and the new label, why, the probability, who decided and when.

    A CSV or Parquet file keeps all other columns as they are. Samples that a person dropped, or that no class
    fits, are left out; others only with --policy drop, --copies, --outliers and --leaks. The source must
    still be where it was; if it is gone, ids and labels are written without features.

    The source may have been reordered, have grown or have lost samples since the audit: samples are found by
    their ids (an id column, the path of an image, else a digest of the content), every row of the source is
    kept in its order, new samples keep their labels, and the differences are counted. A label that was
    changed in the source since the audit is kept, also where a person decided on the earlier one. An export
    is refused if most samples are gone or most labels were changed.

    Labels of several annotators: one row per sample with its consensus, or what a person decided. Next to it,
    NAME.labels.csv says of every single label whether it is right by that.

    Tasks for Label Studio: NAME.json is imported into a project whose labeling interface is NAME.config.xml.
    When people have decided there, export the project as JSON and audit again with --decisions EXPORT.json.
    """
    with report_errors():
        from laplaceconfidence.export import plan_export, write_export
        from laplaceconfidence.export.correction import correct
        from laplaceconfidence.records.refined_run import read_suggestions

        plan = plan_export(
            read_suggestions(run),
            policy=policy,
            min_probability=min_probability,
            fill_missing=fill_missing,
            copies=copies,
            outliers=outliers,
            leaks=leaks,
        )
        correction = correct(plan)
        _show(plan, correction)
        if dry_run:
            output().print("Nothing was written (--dry-run).")
            return
        exported = write_export(
            plan, out, format=format, copy=copy, overwrite=overwrite, tasks=tasks, correction=correction
        )
        _show_files(exported)


def _show(plan: ExportPlan, correction: Correction) -> None:
    console = output()
    trail = correction.trail
    count = trail["action"].value_counts().to_dict()
    parts = [counted(count.get("changed", 0), "label") + " changed"]
    parts += [f"{count[action]:,} {what}" for action, what in _ACTIONS.items() if action in count]
    n = len(correction.dataset)
    console.print(Text(f"{counted(n, 'sample')}: {', '.join(parts)}.", style="bold"))
    is_training = plan.samples.run.record.source.get("command") == "train"
    if differences := _differences(correction.changes, is_training=is_training):
        since = "training" if is_training else "audit"
        console.print(f"Since the {since}: {'; '.join(differences)}.", soft_wrap=True)
    if plan.n_reviewed == 0:
        run = plan.samples.run.folder
        console.print(f"Nobody has reviewed this run yet: laplaceconfidence review {run}", soft_wrap=True)
    if len(trail):
        table = plain_table("", "change", "why", "samples:")
        changes = Counter(zip(trail["action"], trail["why"], strict=True))
        for (action, why), number in changes.most_common():
            table.add_row("left out" if action == "dropped" else str(action), str(why), f"{number:,}")
        console.print(table)


def _differences(changes: SourceChanges, *, is_training: bool) -> list[str]:
    """How the data differs from what was audited, and what that means for the export."""
    said = []
    keep = "keeps its label" if changes.n_new == 1 else "keep their labels"
    if changes.n_new:
        new = "new or in the test share" if is_training else "new"
        said.append(f"{_are(changes.n_new, 'sample')} {new} and {keep}")
    if changes.n_skipped:
        images = counted(changes.n_skipped, "image")
        said.append(f"{images} left out then because of decoding errors, with unchanged labels")
    if changes.n_gone:
        said.append(f"{_are(changes.n_gone, 'sample')} gone")
    if changes.n_corrected:
        said.append(f"{_are(changes.n_corrected, 'label')} already corrected in the source")
    if changes.n_relabeled:
        were = "was" if changes.n_relabeled == 1 else "were"
        text = f"{counted(changes.n_relabeled, 'label')} {were} changed in the source and kept"
        if changes.n_not_applied:
            text += f", {changes.n_not_applied:,} of them in spite of a correction (audit again to review)"
        said.append(text)
    return said


def _are(n: int, noun: str) -> str:
    return f"{counted(n, noun)} {'is' if n == 1 else 'are'}"


def _show_files(exported: Exported) -> None:
    if exported.lost is not None:
        _note(f"no features were exported: {exported.lost}")
    if exported.n_guarded_cells:
        guarded = counted(exported.n_guarded_cells, "cell")
        _note(
            f"{guarded} written with an apostrophe in front, because a spreadsheet would evaluate them as "
            "formulas. This program removes it when it reads the file; for others, export Parquet."
        )
    if exported.n_copied_files:
        copied = counted(exported.n_copied_files, "image")
        _note(
            f"{copied} copied, and take space of their own: there can be no hard links between the folder of "
            "the data and that of the export."
        )
    if exported.n_lost_files:
        lost = counted(exported.n_lost_files, "image")
        _note(f"{lost} left out because the file was not found.")
    if exported.n_outside_files:
        outside = counted(exported.n_outside_files, "image")
        _note(
            f"{outside} left out: symbolic links out of the folder of the data are not followed. Audit the "
            "folder that holds the files, or replace the links with copies."
        )
    console = output()
    console.print(Text.assemble("Written: ", (str(exported.path), "bold")), soft_wrap=True)
    console.print(Text.assemble("  trail: ", (str(exported.trail), "bold")), soft_wrap=True)
    if exported.verdicts is not None:
        console.print(Text.assemble(" labels: ", (str(exported.verdicts), "bold")), soft_wrap=True)
    if exported.config is not None:
        console.print(Text.assemble(" config: ", (str(exported.config), "bold")), soft_wrap=True)
        console.print(f"{counted(exported.n_samples, 'task')} for Label Studio.")


def _note(text: str) -> None:
    notices().print(Text.assemble(("Note: ", "bold yellow"), text), soft_wrap=True)
