"""How a command reports errors: as one message and exit code 2; warnings become notes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.text import Text

from laplaceconfidence.cli.console import notices
from laplaceconfidence.exceptions import LaplaceConfidenceError


@contextmanager
def report_errors() -> Iterator[list[str]]:
    """Run a command inside; yields the list that collects the texts of all warnings.

    Errors that the package raises on purpose and errors about files are the user's to mend and shown in a
    line. Everything else is our fault and keeps its traceback.
    """
    collected: list[str] = []
    try:
        with _warnings_as_notes(collected):
            yield collected
    except LaplaceConfidenceError as error:
        _fail(str(error))
    except OSError as error:
        if error.filename is None:  # nothing that a user named
            raise
        _fail(f"{error.filename}: {error.strerror}.")


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
        # Deprecations are for programmers; the rest is told once, whatever was told before.
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = note
        yield
