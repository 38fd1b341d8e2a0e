"""Numbers and times as people write them."""

from laplaceconfidence.wording import counted, duration


def test_numbers_with_their_nouns() -> None:
    assert counted(1, "class", "classes") == "1 class"
    assert counted(1797, "class", "classes") == "1,797 classes"
    assert counted(2, "label") == "2 labels"
    assert counted(0, "label") == "0 labels"


def test_durations_are_readable() -> None:
    assert [duration(seconds) for seconds in (4, 80, 100, 7200)] == ["4 s", "80 s", "2 min", "2.0 h"]
