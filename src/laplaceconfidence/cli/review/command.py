"""The options of ``laplaceconfidence review``, and what it prints."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from laplaceconfidence.cli.console import output
from laplaceconfidence.cli.errors import report_errors

if TYPE_CHECKING:
    from laplaceconfidence.records import AuditRun
    from laplaceconfidence.review.guard import Access


def review(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="Folder of an audit or a finished training run.")
    ],
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="Address to serve at. Only this machine can reach the default; any other address needs the "
            "token that is printed once.",
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to serve at; 0 picks a free one.")] = 0,
    reviewer: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Your name, stored with every decision. It can be changed on the page. Default: your user "
            "name.",
        ),
    ] = None,
    queue: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The queue to begin with: worst (the suspects), disputed (several annotators differ), "
            "random, uncertain (chosen by --sample-for-review), unlabeled, outliers, copies "
            "(near-duplicates, those with conflicting labels first), leaks (samples that are also in the "
            "test set), images (odd ones), empty (texts), missing (most values of a row), groups (those "
            "with many wrong labels), rare (classes) or order (rows near similar ones). Default: worst; "
            "disputed where there are several annotators.",
        ),
    ] = None,
    browser: Annotated[bool, typer.Option(help="Whether to open the page in the browser.")] = True,
) -> None:
    """Decide label by label in the browser.

    Opens a local page with the suspects, worst first: the flagged labels of an audit, or those that a
    training run refined. Further queues hold labels that are not flagged, by rank, and a random sample, which
    comes first where only a range is known for the number of wrong labels, samples about which several
    annotators differ, the least certain consensus first, samples without a label, outliers, copies, leaks,
    odd images, empty texts, rows with missing values, groups with many wrong labels, rare classes and rows
    that are not in random order, as far as the audit found any.
    Every decision is on disk, in RUN/decisions.sqlite, before the page confirms it: stop with Ctrl+C at any
    time and continue later. Then write the corrected data set with [cyan]laplaceconfidence export RUN[/cyan].
    It needs the extra review: pip install 'laplaceconfidence\\[review]'.
    """
    with report_errors():
        from laplaceconfidence.records.refined_run import read_suggestions
        from laplaceconfidence.review.serving import serve

        audit = read_suggestions(run)
        serve(
            audit,
            host=host,
            port=port,
            reviewer=reviewer or _user_name(),
            queue=queue,
            open_browser=browser,
            announce=lambda address, access: _announce(audit, address, access),
        )


def _announce(run: AuditRun, address: str, access: Access) -> None:
    console = output()
    console.print(Text.assemble("Reviewing ", (str(run.folder), "bold"), " at"), soft_wrap=True)
    console.print(Text(f"  {address}", style="bold cyan"), soft_wrap=True)
    if access.needs_token:
        console.print("  The address contains the token that opens the page; it is not shown again.")
        console.print("  It is sent unencrypted: use it only in networks you trust.", style="yellow")
    console.print("Every decision is stored immediately. Stop with Ctrl+C.")


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a user without a name, as in some containers
        return "someone"
