"""Numbers and times as people write them, for the console and for notebooks."""

from __future__ import annotations


def counted(n: int, one: str, several: str | None = None) -> str:
    """A number with its noun: "1 class", "1,797 samples".

    Parameters
    ----------
    n : int
        The number.
    one : str
        The noun in the singular.
    several : str, optional
        The plural where it is not ``one`` with an s.

    Returns
    -------
    str
    """
    return f"{n:,} {one if n == 1 else several or one + 's'}"


def duration(seconds: float) -> str:
    """A time in its usual unit: "40 s", "12 min", "3.5 h".

    Parameters
    ----------
    seconds : float
        The time.

    Returns
    -------
    str
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
