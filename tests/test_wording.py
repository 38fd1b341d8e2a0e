"""Numbers and times as people write them."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laplaceconfidence.wording import counted, duration, percent, shortened_left, shortened_middle, told_apart


def test_numbers_with_their_nouns() -> None:
    assert counted(1, "class", "classes") == "1 class"
    assert counted(1797, "class", "classes") == "1,797 classes"
    assert counted(2, "label") == "2 labels"
    assert counted(0, "label") == "0 labels"


def test_durations_are_readable() -> None:
    assert [duration(seconds) for seconds in (4, 80, 100, 7200)] == ["4 s", "80 s", "2 min", "2.0 h"]


def test_shares_are_not_rounded_to_nothing_or_everything() -> None:
    shares = (0, 0.0001, 0.0651, 0.0995, 0.178, 0.99999, 1)
    assert [percent(share) for share in shares] == ["0%", "<0.1%", "6.5%", "10%", "18%", ">99.9%", "100%"]


@pytest.mark.parametrize("shorten", [shortened_left, shortened_middle])
@given(text=st.text(max_size=60), most=st.integers(3, 40))
def test_shortened_texts_keep_their_end(shorten: Callable[[str, int], str], text: str, most: int) -> None:
    short = shorten(text, most)
    assert len(short) == min(len(text), most)
    assert short == text or short.split("…")[-1] == "" or text.endswith(short.rpartition("…")[2])


@pytest.mark.parametrize("shorten", [shortened_left, shortened_middle])
@given(texts=st.lists(st.text("ab/", max_size=30), max_size=8), most=st.integers(3, 12))
def test_different_texts_stay_different(
    shorten: Callable[[str, int], str], texts: list[str], most: int
) -> None:
    short = told_apart(texts, most, shorten)
    assert len(short) == len(texts)
    assert len(set(short)) == len(set(texts))
    assert all(
        (a == b) == (c == d)
        for a, c in zip(texts, short, strict=True)
        for b, d in zip(texts, short, strict=True)
    )
