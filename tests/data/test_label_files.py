"""Labels in files of their own."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laplaceconfidence.data.label_files import given_labels, parse_labels
from laplaceconfidence.data.labels import encode_labels
from laplaceconfidence.exceptions import DataFormatError, InvalidInputError


@given(st.lists(st.integers(-(2**62), 2**62) | st.just(None), min_size=1, max_size=20))
@settings(max_examples=60, deadline=None)
def test_integers_are_read_as_integers(labels: list[int | None]) -> None:
    parsed = parse_labels(["" if label is None else str(label) for label in labels])
    expected = sorted({label for label in labels if label is not None})
    assert encode_labels(parsed).class_values.tolist() == expected


@pytest.mark.parametrize(
    ("texts", "names", "codes"),
    [
        (["10", "9", "NaN"], ("9", "10"), [1, 0, -1]),
        (["1.0", "", "0.0"], ("0", "1"), [1, -1, 0]),
        (["007", "7", ""], ("007", "7"), [0, 1, -1]),
        (["None", "cat", ""], ("None", "cat"), [0, 1, -1]),
        (["NA", "nan"], ("NA", "nan"), [0, 1]),
        (["-0", "+1"], ("+1", "-0"), [1, 0]),
        (["1e5", "inf"], ("1e5", "inf"), [0, 1]),
    ],
)
def test_what_a_text_means(texts: list[str], names: tuple[str, ...], codes: list[int]) -> None:
    encoded = encode_labels(parse_labels(texts))
    assert encoded.class_names == names
    assert encoded.codes.tolist() == codes


def test_decimals_are_no_labels() -> None:
    with pytest.raises(InvalidInputError, match=r"strings or integers .* such as 0.5"):
        encode_labels(parse_labels(["0.5", "1"]))


def test_an_empty_line_is_a_gap(tmp_path: Path) -> None:
    (tmp_path / "y.txt").write_text("cat\n\ndog\n", encoding="utf-8")
    (tmp_path / "y.csv").write_text('"cat, big"\n\n"dog"\n', encoding="utf-8")
    assert given_labels(tmp_path / "y.txt").tolist() == ["cat", "", "dog"]
    assert given_labels(tmp_path / "y.csv").tolist() == ["cat, big", "", "dog"]


def test_a_byte_order_mark_is_no_part_of_a_label(tmp_path: Path) -> None:
    (tmp_path / "y.txt").write_text("\ufeffköter\nkatze\n", encoding="utf-8")
    assert given_labels(str(tmp_path / "y.txt")).tolist() == ["köter", "katze"]


def test_labels_themselves_pass_through() -> None:
    labels = np.array([1, 2])
    assert given_labels(labels) is labels


def test_what_is_no_list_of_labels(tmp_path: Path) -> None:
    (tmp_path / "y.csv").write_text("a,b\nc,d\n")
    with pytest.raises(DataFormatError, match=r"y.csv must hold one label per line; line 1 has 2 cells"):
        given_labels(tmp_path / "y.csv")
    (tmp_path / "y.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataFormatError, match=r"y.txt cannot be read as labels .*UTF-8"):
        given_labels(tmp_path / "y.txt")
    with pytest.raises(InvalidInputError, match="'labels' parameter must be a path to an existing file"):
        given_labels(tmp_path / "nowhere.txt")


@pytest.mark.parametrize("text", ["\0", "cat\0"])
def test_a_nul_at_the_end_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="NUL"):
        parse_labels(["cat", "dog", text])
