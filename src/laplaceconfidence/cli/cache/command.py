"""The command ``laplaceconfidence cache``."""

from __future__ import annotations

import inspect
from typing import Annotated

import typer

from laplaceconfidence.cli.console import output, plain_table
from laplaceconfidence.cli.errors import report_errors

EXAMPLES = """
[bold]Examples[/bold]

See what is kept, and how large it is:
[cyan]laplaceconfidence cache list[/cyan]

Remove all of it:
[cyan]laplaceconfidence cache clear[/cyan]
"""

_MEGABYTE = 1e6


def cache(
    action: Annotated[
        str, typer.Argument(metavar="ACTION", help="list (show the entries) or clear (remove all of them).")
    ] = "list",
) -> None:
    """Show or remove features that encoders made.

    Features of texts and images are kept so that they are encoded once: an entry is found by the digest of
    the samples, the encoder, its settings, its weights and the versions of its packages. An entry that is
    damaged is not used. The folder is features/ in LAPLACECONFIDENCE_DATA, or else in the user's cache
    folder.
    """
    with report_errors():
        from laplaceconfidence.encoders.cache import FeatureCache
        from laplaceconfidence.validation import check_choice
        from laplaceconfidence.wording import counted

        check_choice(action, "action", ("list", "clear"))
        kept, console = FeatureCache.of_user(), output()
        if action == "clear":
            n_removed, n_bytes = kept.clear()
            console.print(
                f"{counted(n_removed, 'entry', 'entries')} removed ({n_bytes / _MEGABYTE:,.1f} MB) from "
                f"{kept.folder}.",
                markup=False,
                soft_wrap=True,
            )
            return
        entries = kept.entries()
        if entries:
            table = plain_table("", "made", "encoder", "samples:", "features:", "MB:")
            for entry in entries:
                shape = [f"{number:,}" for number in entry.shape] or ["", ""]
                encoder = entry.encoder or "damaged, not used"
                table.add_row(entry.created[:16], encoder, *shape, f"{entry.n_bytes / _MEGABYTE:,.1f}")
            console.print(table)
        total = sum(entry.n_bytes for entry in entries) / _MEGABYTE
        console.print(
            f"{counted(len(entries), 'entry', 'entries')}, {total:,.1f} MB, in {kept.folder}.",
            markup=False,
            soft_wrap=True,
        )


cache.__doc__ = f"{inspect.cleandoc(cache.__doc__ or '')}\n{EXAMPLES}"
