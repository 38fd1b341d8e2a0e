"""HTML elements that results are shown with in notebooks.

Everything that is not ``Html`` already is escaped where it is inserted, so that a label called ``<script>``
stays a label. The HTML loads nothing from elsewhere and takes its text color from the notebook, so
that it is readable on light and dark backgrounds.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

# Distinguishable with any color vision, and visible on white and on black.
BLUE, ORANGE = "#3d8fc9", "#e08a1e"

_VOID = {"img", "line", "circle", "polyline"}  # elements without children
_STYLE = """
.lc-notebook{font:13px/1.45 system-ui,sans-serif;color:inherit;max-width:60rem;overflow-x:auto}
.lc-notebook .lc-title{font-size:15px;font-weight:600;margin:0 0 2px}
.lc-notebook .lc-note{opacity:.75;margin:0 0 6px}
.lc-notebook .lc-heading{font-weight:600;margin:10px 0 3px}
.lc-notebook table{border-collapse:collapse;margin:0;color:inherit;font-size:13px;border:none}
.lc-notebook th,.lc-notebook td{padding:3px 12px 3px 0;text-align:left;vertical-align:middle;border:none;
border-bottom:1px solid rgba(128,128,128,.3);color:inherit;background:none;white-space:normal;
overflow-wrap:break-word}
.lc-notebook tbody tr{background:none}
.lc-notebook th{font-weight:600;opacity:.75}
.lc-notebook .lc-number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.lc-notebook .lc-text{min-width:16rem;overflow-wrap:anywhere}
.lc-notebook .lc-track{width:9rem;height:9px;background:rgba(128,128,128,.22);border-radius:2px}
.lc-notebook .lc-bar{height:9px;border-radius:2px}
.lc-notebook img{display:block;margin:0;max-width:none;background:rgba(128,128,128,.2)}
.lc-notebook .lc-coarse{image-rendering:pixelated}
.lc-notebook .lc-lost{font-size:11px;opacity:.75;border:1px dashed rgba(128,128,128,.6);padding:4px 6px}
.lc-notebook .lc-strip{display:flex;flex-wrap:wrap;gap:10px}
.lc-notebook .lc-strip>div{max-width:7rem;font-size:12px;overflow-wrap:anywhere}
"""


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def escaped(content: object) -> Html:
    """HTML for any content: ``Html`` as it is, everything else as text.

    Parameters
    ----------
    content : object
        What to show. Characters that UTF-8 cannot encode are shown as escapes such as ``\\udcff``.

    Returns
    -------
    Html
    """
    return content if isinstance(content, Html) else Html(_quoted(content))


def joined(contents: Iterable[object]) -> Html:
    """The contents one after the other, escaped where they are not ``Html``.

    Parameters
    ----------
    contents : iterable of object
        Text or ``Html``.

    Returns
    -------
    Html
    """
    return Html("".join(escaped(content) for content in contents))


def element(tag: str, *children: object, **attributes: object) -> Html:
    """One HTML or SVG element.

    Parameters
    ----------
    tag : str
        Name of the element.
    *children : object
        Text is escaped, ``Html`` is not.
    **attributes : object
        Values are escaped. In names a trailing underscore is left out and others become hyphens (``class_``,
        ``stroke_width``); ``None`` leaves the attribute out.

    Returns
    -------
    Html
    """
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_quoted(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    if tag in _VOID:
        return Html(f"<{tag}{written}/>")
    return Html(f"<{tag}{written}>{joined(children)}</{tag}>")


def panel(title: str, *parts: object, note: str = "") -> Html:
    """The outermost element of what a notebook shows: a title, a note below it and the parts.

    Parameters
    ----------
    title : str
        The first line.
    *parts : object
        Text is escaped, ``Html`` is not.
    note : str, default=""
        One line below the title.

    Returns
    -------
    Html
    """
    head = [element("div", title, class_="lc-title")]
    if note:
        head.append(element("div", note, class_="lc-note"))
    return element("div", element("style", Html(_STYLE)), *head, *parts, class_="lc-notebook")


def section(heading: str, content: Html) -> Html:
    """A part of a panel below a heading.

    Parameters
    ----------
    heading : str
        Text of the heading.
    content : Html
        What is below it.

    Returns
    -------
    Html
    """
    return joined([element("div", heading, class_="lc-heading"), content])


def table(headings: Sequence[str], rows: Iterable[Sequence[object]], numbers: Iterable[str] = ()) -> Html:
    """A table.

    Parameters
    ----------
    headings : sequence of str
        One per column.
    rows : iterable of sequence of object
        The cells of every row; text is escaped, ``Html`` is not.
    numbers : iterable of str, default=()
        Headings of the columns that are aligned to the right.

    Returns
    -------
    Html
    """
    right = set(numbers)
    classes = ["lc-number" if heading in right else None for heading in headings]
    head = [element("th", heading, class_=name) for heading, name in zip(headings, classes, strict=True)]
    body = [
        element("tr", *(element("td", cell, class_=name) for cell, name in zip(row, classes, strict=True)))
        for row in rows
    ]
    return element("table", element("thead", element("tr", *head)), element("tbody", *body))


def bar(share: float, color: str = BLUE) -> Html:
    """A horizontal bar.

    Parameters
    ----------
    share : float
        Its length from 0 to 1.
    color : str, default=BLUE
        A CSS color.

    Returns
    -------
    Html
    """
    width = f"width:{100 * min(max(share, 0.0), 1.0):.1f}%;background:{color}"
    return element("div", element("div", class_="lc-bar", style=width), class_="lc-track")


def picture(address: str, alternative: str, side: int, *, coarse: bool = False) -> Html:
    """A picture.

    Parameters
    ----------
    address : str
        A ``data:`` address.
    alternative : str
        A description for people who cannot see the picture.
    side : int
        Pixels of the square it is fitted into.
    coarse : bool, default=False
        Whether the pixels stay visible if the picture is enlarged.

    Returns
    -------
    Html
    """
    return element(
        "img",
        src=address,
        alt=alternative,
        class_="lc-coarse" if coarse else None,
        style=f"width:{side}px;height:{side}px;object-fit:contain",
    )


def shortened(text: str, most: int) -> str:
    """A text, cut and marked with an ellipsis if it has more than ``most`` characters.

    Parameters
    ----------
    text : str
        Any text.
    most : int
        Largest number of characters of the result.

    Returns
    -------
    str
    """
    return text if len(text) <= most else text[: most - 1] + "…"


def _quoted(content: object) -> str:
    return html.escape(str(content).encode(errors="backslashreplace").decode())
