"""Numbers as words of a report."""

from __future__ import annotations


def share(value: float | None) -> str:
    """A share in percent; what is nearly none or nearly all is not rounded to it.

    >>> share(0.416), share(0.99999), share(0.0001), share(1.0), share(None)
    ('41.6%', '>99.9%', '<0.1%', '100.0%', '–')
    """
    if value is None:
        return "–"
    if 0 < value < 0.0005:
        return "<0.1%"
    if 0.9995 <= value < 1:
        return ">99.9%"
    return f"{value:.1%}"
