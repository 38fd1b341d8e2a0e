"""The pieces of HTML that notebooks show: escaped, whole, and nothing loaded from elsewhere."""

import pytest

from html_pages import EVIL, Page
from laplaceconfidence.notebook_html import (
    Html,
    bar,
    element,
    escaped,
    joined,
    panel,
    picture,
    shortened,
    table,
)


def test_text_is_escaped_and_html_is_not() -> None:
    assert Page(f"<p>{escaped(EVIL)}</p>").text == EVIL
    assert escaped(Html("<b>x</b>")) == "<b>x</b>"
    assert joined(["<", Html("<i></i>"), 3]) == "&lt;<i></i>3"


def test_attributes_are_escaped_and_named() -> None:
    page = Page(element("div", EVIL, title=EVIL, class_="a", aria_label="b", style=None))
    assert page.tags == [("div", {"title": EVIL, "class": "a", "aria-label": "b"})]
    assert page.text == EVIL


def test_every_piece_escapes_what_it_is_given() -> None:
    shown = panel(EVIL, table([EVIL], [[EVIL]]), picture(EVIL, EVIL, 10), note=EVIL)
    page = Page(shown)
    assert page.text == 4 * EVIL
    assert [tag for tag, _ in page.tags if tag in ("script", "b")] == []
    assert [a["onerror"] for _, a in page.tags if "onerror" in a] == []


def test_text_that_utf8_cannot_hold_is_shown() -> None:
    assert escaped("caf\udcff").encode() == rb"caf\udcff"


@pytest.mark.parametrize(("share", "width"), [(-1, "0.0"), (0.25, "25.0"), (7, "100.0")])
def test_bars_stay_inside_of_their_track(share: float, width: str) -> None:
    assert f"width:{width}%" in bar(share)


def test_rows_must_have_a_cell_per_heading() -> None:
    with pytest.raises(ValueError):
        table(["a", "b"], [[1]])


def test_long_text_is_shortened() -> None:
    assert shortened("abcdef", 6) == "abcdef"
    assert shortened("abcdefg", 6) == "abcde…"
