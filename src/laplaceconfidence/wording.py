"""Numbers, times and shortened names as people read them, for the console, pages and notebooks."""

from __future__ import annotations

from collections.abc import Callable, Sequence


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


def listed(values: Sequence[object], most: int = 10) -> str:
    """The first of several values as they are written in Python, for messages.

    Parameters
    ----------
    values : sequence
        The values, plain Python objects.
    most : int, default=10
        How many are shown.

    Returns
    -------
    str

    Examples
    --------
    >>> listed(["cat", "dog"]), listed(range(40), most=3)
    ("'cat', 'dog'", '0, 1, 2, ...')
    """
    return ", ".join(repr(value) for value in values[:most]) + (", ..." if len(values) > most else "")


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


def percent(share: float) -> str:
    """A share in percent with as many digits as tell something: "0%", "6.5%", "18%", ">99.9%".

    Parameters
    ----------
    share : float
        Between 0 and 1.

    Returns
    -------
    str

    Examples
    --------
    >>> percent(0.0), percent(0.0004), percent(0.0651), percent(0.178), percent(0.9999)
    ('0%', '<0.1%', '6.5%', '18%', '>99.9%')
    """
    if 0 < share < 0.0005:
        return "<0.1%"
    if 0.9995 <= share < 1:
        return ">99.9%"
    return f"{share:.1%}" if 0 < share < 0.0995 else f"{share:.0%}"


def shortened_middle(text: str, most: int) -> str:
    """A text with its middle left out where it is longer than ``most`` characters, for ids.

    Parameters
    ----------
    text : str
        The text.
    most : int
        Its longest length, at least 3.

    Returns
    -------
    str

    Examples
    --------
    >>> shortened_middle("annotation-2024-07-19-000137", 17)
    'annotati…9-000137'
    """
    if len(text) <= most:
        return text
    end = (most - 1) // 2
    return f"{text[: most - 1 - end]}…{text[-end:]}"


def shortened_left(text: str, most: int) -> str:
    """The end of a text that is longer than ``most`` characters, for paths, whose end tells the most.

    Parameters
    ----------
    text : str
        The text.
    most : int
        Its longest length, at least 2.

    Returns
    -------
    str

    Examples
    --------
    >>> shortened_left("/data/photos/2024/cats/000137.png", 17)
    '…/cats/000137.png'
    """
    return text if len(text) <= most else f"…{text[1 - most :]}"


def told_apart(texts: Sequence[str], most: int, shorten: Callable[[str, int], str]) -> list[str]:
    """Shorten texts that are shown together, by less than requested where they would look the same.

    Parameters
    ----------
    texts : sequence of str
        The texts.
    most : int
        Characters of each that are shown if these suffice.
    shorten : callable
        Shortens one text to a number of characters.

    Returns
    -------
    list of str
        As many different texts as there are in ``texts``.

    Examples
    --------
    >>> told_apart(["/data/a/1.png", "/data/b/1.png"], 6, shortened_left)
    ['…a/1.png', '…b/1.png']
    """
    n_different = len(set(texts))
    longest = max(map(len, texts), default=0)
    for width in range(most, max(most, longest) + 1):
        short = [shorten(text, width) for text in texts]
        if len(set(short)) == n_different:
            return short
    return list(texts)
