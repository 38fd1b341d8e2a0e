"""How commands report errors: one message and exit code 2. Warnings become notes on standard error."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import typer
from rich.text import Text

from laplaceconfidence.cli.console import notices
from laplaceconfidence.exceptions import LaplaceConfidenceError, MissingDependencyError
from laplaceconfidence.files import is_disk_full


@contextmanager
def report_errors() -> Iterator[list[str]]:
    """Run a command inside the block; yields the list that collects the texts of all warnings.

    Errors that the package raises on purpose, and errors about files, are shown as one message: the user can
    fix them. Anything else is a bug of ours and keeps its traceback.
    """
    collected: list[str] = []
    try:
        with _warnings_as_notes(collected):
            yield collected
    except LaplaceConfidenceError as error:
        _fail(str(error))
    except OSError as error:
        if is_disk_full(error):
            where = f" ({error.filename})" if error.filename is not None else ""
            _fail(
                f"The disk is full{where}: the command could not finish. Decisions and runs that were "
                "complete before are unchanged. Free some space, or write to another disk, and run the "
                "command again."
            )
        if error.filename is None:  # not about a file the user named
            raise
        _fail(f"{error.filename}: {error.strerror}.")


def check_torch(purpose: str) -> None:
    """Raise, before anything is read, where torch is not installed; ``purpose`` begins the sentence."""
    if find_spec("torch") is None:
        raise MissingDependencyError(
            f"{purpose} needs torch, which is not installed: pip install 'laplaceconfidence[train]'"
        )


def _fail(message: str) -> None:
    notices().print(Text.assemble(("Error: ", "bold red"), message), soft_wrap=True)
    raise typer.Exit(2) from None


@contextmanager
def _warnings_as_notes(collected: list[str]) -> Iterator[None]:
    def note(message: Warning | str, *_: Any, **__: Any) -> None:
        text = str(message)
        if text not in collected:
            collected.append(text)
            notices().print(Text.assemble(("Note: ", "bold yellow"), text), soft_wrap=True)

    with warnings.catch_warnings():
        # Deprecations are for programmers; other warnings are shown once per command.
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = note
        yield
