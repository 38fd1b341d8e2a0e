"""CSV files: one row per sample whatever the cells hold, nothing that a spreadsheet evaluates, read back."""

import csv
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from laplaceconfidence import csv_files
from laplaceconfidence.csv_files import guarded, unguarded, unguarded_cells, write_csv
from laplaceconfidence.exceptions import DataFormatError

AWKWARD = [
    "a\rb",
    "\r",
    "a\r\nb",
    "a\nb",
    '"',
    '""\r,',
    "\ttab",
    "",
    "'",
    "=1+1",
    "'=1",
    "''-x",
    "n\0z",
    "-3",
    "NA",
]
CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\ufeff"), max_size=8)


def read(path: Path, separator: str = ",") -> pd.DataFrame:
    frame = pd.read_csv(path, sep=separator, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    return unguarded_cells(frame)


@pytest.mark.parametrize("name", ["table.csv", "table.tsv", "table.csv.gz"])
def test_every_cell_comes_back(tmp_path: Path, name: str) -> None:
    separator = "\t" if ".tsv" in name else ","
    frame = pd.DataFrame({"id": AWKWARD, "=x": AWKWARD[::-1], "row": range(len(AWKWARD))})
    write_csv(tmp_path / name, frame, separator=separator)
    back = read(tmp_path / name, separator)
    assert back["id"].tolist() == AWKWARD
    assert back["=x"].tolist() == AWKWARD[::-1]
    assert back["row"].astype(int).tolist() == list(range(len(AWKWARD)))


@pytest.mark.parametrize("mark", [False, True])
@pytest.mark.parametrize("heading", ["\ufeff", "\ufefftext", "\ufeff\ufeff", "text"])
def test_a_byte_order_mark_in_the_first_heading_or_cell_is_kept(
    tmp_path: Path, heading: str, mark: bool
) -> None:
    frame = pd.DataFrame({heading: ["\ufeffa", "b"], "\ufeffx": [1, 2]})
    write_csv(tmp_path / "table.csv", frame, mark=mark)
    back = read(tmp_path / "table.csv")
    assert back.columns.tolist() == [heading, "\ufeffx"]
    assert back[heading].tolist() == ["\ufeffa", "b"]
    with (tmp_path / "table.csv").open(newline="", encoding="utf-8-sig") as file:
        assert next(csv.reader(file)) == [heading, "\ufeffx"]


def test_a_lone_carriage_return_is_quoted_for_every_reader(tmp_path: Path) -> None:
    write_csv(tmp_path / "table.csv", pd.DataFrame({"text": ["one\rcell", "two"], "x": [0.1, 0.2]}))
    with (tmp_path / "table.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [["text", "x"], ["one\rcell", "0.1"], ["two", "0.2"]]


@given(CELLS)
@example("'")
@example("''=")
@example("'-3")
def test_guards_are_removed_exactly(text: str) -> None:
    assert unguarded(guarded(text)) == text
    assert guarded(unguarded(guarded(text))) == guarded(text)


@pytest.mark.parametrize(
    "text", ["=cmd|'/c calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1"]
)
def test_formulas_are_not_written(tmp_path: Path, text: str) -> None:
    assert write_csv(tmp_path / "table.csv", pd.DataFrame({"text": [text, "x"]})) == 1
    with (tmp_path / "table.csv").open(newline="", encoding="utf-8") as file:
        assert list(csv.reader(file))[1] == ["'" + text]


@pytest.mark.parametrize("text", ["-3", "+4.5", "-1e-5", "-.5", "a=b", "it's", "'quoted'", ""])
def test_numbers_and_other_texts_stay(text: str) -> None:
    assert guarded(text) == text


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[: text.rindex("c")], "2 rows instead of 3"),
        (lambda text: text.replace("b", "B"), "other cells in the column 'id'"),
        (lambda text: text.replace("id", "di"), "other headings"),
        (lambda text: text.replace("b,", "b,,"), "cannot be read"),
        (lambda text: "", "cannot be read"),
    ],
)
def test_what_reads_back_differently_is_never_called_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: object, message: str
) -> None:
    (tmp_path / "table.csv").write_text("the file before")
    to_csv = pd.DataFrame.to_csv

    def damaged(frame: pd.DataFrame, path: Path, **options: object) -> None:
        to_csv(frame, path, **options)
        path.write_text(damage(path.read_text()))  # type: ignore[operator]

    monkeypatch.setattr(pd.DataFrame, "to_csv", damaged)
    with pytest.raises(DataFormatError, match=message):
        write_csv(tmp_path / "table.csv", pd.DataFrame({"id": ["a", "b", "c"], "x": [1, 2, 3]}))
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]
    assert (tmp_path / "table.csv").read_text() == "the file before"


def test_long_tables_are_compared_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_files, "_ROWS_AT_ONCE", 4)
    for n in (0, 1, 3, 4, 8, 9):
        write_csv(
            tmp_path / "table.csv", pd.DataFrame({"id": [f"s{row}" for row in range(n)], "x": range(n)})
        )
        assert len(read(tmp_path / "table.csv")) == n
