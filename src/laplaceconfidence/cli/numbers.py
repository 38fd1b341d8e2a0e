"""Numbers as they are typed; a mistake is answered with what was typed."""

from __future__ import annotations

import typer


def whole_number(text: str | int) -> int:
    """Any integer."""
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"must be a whole number. Got {text!r}.") from None


def count_number(text: str | int) -> int:
    """An integer of at least 0."""
    number = whole_number(text)
    if number < 0:
        raise typer.BadParameter(f"must be a whole number of at least 0. Got {number}.")
    return number


def real_number(text: str | float) -> float:
    """Any number; the rest of the rule is the library's to check."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"must be a number. Got {text!r}.") from None


def number_or_word(text: str) -> int | float | str:
    """An integer or a number, else the word itself, right ones such as 'auto' and wrong ones alike."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
