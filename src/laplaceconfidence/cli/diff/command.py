"""The options of ``laplaceconfidence diff``, and what it prints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from laplaceconfidence.cli.console import output, plain_table, shown
from laplaceconfidence.cli.errors import report_errors
from laplaceconfidence.wording import counted, percent

if TYPE_CHECKING:
    from rich.table import Table

    from laplaceconfidence.records.audit_run import AuditRecord
    from laplaceconfidence.records.run_difference import RunDifference

_WORDS = {
    "flagged": "flagged labels",
    "outliers": "outliers",
    "copies": "samples with copies",
    "conflicting-copies": "samples with conflicting copies",
    "leaks": "samples that are also in the test data",
    "odd-images": "odd images",
    "empty": "empty texts",
    "missing-values": "samples with most values missing",
    "rare-class": "samples of rare classes",
    "bad-groups": "samples in groups with many wrong labels",
    "row-order": "samples near similar ones in the order of the rows",
}


def diff(
    before: Annotated[Path, typer.Argument(metavar="RUN1", help="Folder of the earlier audit.")],
    after: Annotated[Path, typer.Argument(metavar="RUN2", help="Folder of the later audit.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Also write every change into this CSV file: the id of the sample, the change, and the "
            "labels before and after.",
        ),
    ] = None,
    most: Annotated[
        int, typer.Option("--most", min=0, help="Number of newly flagged labels to list.", metavar="N")
    ] = 10,
) -> None:
    """Show what changed between two audits.

    The data may have grown, been sorted or been corrected in between: samples are matched by id. The command
    counts samples that are new or gone, labels that were changed, and flagged labels, outliers, copies and
    leaks that appeared or disappeared, and lists the labels that are flagged now and were not before.

    To make a pipeline fail on what is new, use [cyan]laplaceconfidence audit SOURCE --baseline RUN1 --fail-if
    'new-leaks > 0'[/cyan].
    """
    with report_errors():
        from laplaceconfidence.csv_files import write_csv
        from laplaceconfidence.files import differences
        from laplaceconfidence.records.refined_run import read_suggestions
        from laplaceconfidence.records.run_difference import compare_runs

        found = compare_runs(read_suggestions(before), read_suggestions(after))
        console = output()
        console.print(Text(_headline(found), style="bold"))
        console.print(_counts(found))
        appeared = found.flags["flagged"].appeared
        if appeared[:most]:
            console.print()
            console.print(_newly_flagged(found, appeared[:most]))
            if len(appeared) > most:
                console.print(f"... and {len(appeared) - most:,} more")
        one, two = found.before.record, found.after.record
        settings = differences(_settings(one), _settings(two))
        if settings:
            console.print()
            console.print(Text("The audits had different settings:", style="bold"))
            for line in settings:
                console.print(f"  {line}", markup=False, soft_wrap=True)
        if out is not None:
            write_csv(out, found.table())
            console.print(Text.assemble("Written: ", (str(out), "bold")), soft_wrap=True)


def _settings(record: AuditRecord) -> dict[str, Any]:
    """The estimator and its settings, without a number of components that the encoder found in the data."""
    from laplaceconfidence.auditing.fit_request import reduced_width

    settings = {"estimator": record.estimator, **record.settings}
    if settings.get("n_components") == reduced_width(record.source.get("encoder")):
        del settings["n_components"]
    return settings


def _headline(found: RunDifference) -> str:
    parts = [f"{counted(found.n_common, 'sample')} in both audits"]
    parts += [f"{len(found.new):,} new"] * bool(found.new) + [f"{len(found.gone):,} gone"] * bool(found.gone)
    changed = f"{counted(len(found.relabeled), 'label')} changed in the data"
    return f"{', '.join(parts)}; {changed}."


def _counts(found: RunDifference) -> Table:
    """What both audits counted, side by side."""
    table = plain_table("", "", "before:", "after:", "appeared:", "disappeared:")
    one, two = found.before.record, found.after.record
    sizes = (one.n_samples, two.n_samples, len(found.new), len(found.gone))
    table.add_row("samples", *(f"{size:,}" for size in sizes))
    table.add_row("expected wrong labels", _noise(one), _noise(two), "", "")
    for name, flag in found.flags.items():
        known = flag.n_before is not None and flag.n_after is not None
        changes = (f"{len(flag.appeared):,}", f"{len(flag.disappeared):,}") if known else ("", "")
        table.add_row(_WORDS[name], *(_number(n) for n in (flag.n_before, flag.n_after)), *changes)
    return table


def _number(n: int | None) -> str:
    return "not looked for" if n is None else f"{n:,}"


def _noise(record: AuditRecord) -> str:
    statement = record.statement
    if statement.is_unidentified:
        assert statement.bracket is not None
        return f"{percent(statement.bracket[0])} to {percent(statement.bracket[1])}"
    return "not estimated" if statement.noise_rate is None else percent(statement.noise_rate)


def _newly_flagged(found: RunDifference, ids: tuple[str, ...]) -> Table:
    issues = found.after.issues.set_index("id")
    table = plain_table("Flagged now and not before", "id", "", "given", "suggested", "score:")
    new = set(found.new)
    for id in ids:
        sample = issues.loc[id]
        change = "new" if id in new else "relabeled" if id in found.relabeled else ""
        table.add_row(
            shown(id),
            change,
            shown(sample["given_label"], 24),
            shown(sample["predicted_label"], 24),
            f"{sample['label_score']:.3f}",
        )
    return table
