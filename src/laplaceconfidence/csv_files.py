"""CSV files as the package writes and reads them: one row per sample whatever the cells hold, no formulas.

Spreadsheets evaluate a cell that begins with ``=``, ``+``, ``-``, ``@``, a tab or a line break, also where it
is text. Such cells are written with an apostrophe in front, and ``unguarded_cells`` removes it again. Numbers
are written as they are.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from laplaceconfidence.exceptions import DataFormatError
from laplaceconfidence.files import not_as_written, replacing

if TYPE_CHECKING:
    import pandas as pd

_FORMULA_STARTS = frozenset("=+-@\t\r\n＝＋－＠")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_ROWS_AT_ONCE = 50_000


def guarded(text: str) -> str:
    """Put an apostrophe before a text that a spreadsheet would evaluate.

    Parameters
    ----------
    text : str
        Content of a cell.

    Returns
    -------
    str
        ``unguarded`` restores the text.

    Examples
    --------
    >>> from laplaceconfidence.csv_files import guarded
    >>> guarded("=1+1"), guarded("-3.5"), guarded("a = b")
    ("'=1+1", '-3.5', 'a = b')
    """
    return f"'{text}" if _looks_like_formula(text) else text


def unguarded(text: str) -> str:
    """Remove the apostrophe that ``guarded`` adds.

    Parameters
    ----------
    text : str
        A cell of a file.

    Returns
    -------
    str
    """
    return text[1:] if text.startswith("'") and _looks_like_formula(text) else text


def unguarded_cells(frame: pd.DataFrame) -> pd.DataFrame:
    """Remove the apostrophes that ``write_csv`` adds, from the headings and from all cells.

    Parameters
    ----------
    frame : pandas.DataFrame
        The content of a CSV file.

    Returns
    -------
    pandas.DataFrame
    """
    return _each_text(frame, unguarded)


def write_csv(path: str | Path, frame: pd.DataFrame, *, separator: str = ",", mark: bool = False) -> int:
    """Write a table as CSV, read it back, and only then give it its name.

    Parameters
    ----------
    path : str or pathlib.Path
        The file to write or replace; compressed if the name ends in ``.gz``.
    frame : pandas.DataFrame
        The table; its index is not written.
    separator : str, default=","
        What separates the cells.
    mark : bool, default=False
        Whether the file begins with a byte order mark, without which spreadsheets assume another encoding
        than UTF-8, and save in it.

    Returns
    -------
    int
        Number of cells that were written with an apostrophe in front.

    Raises
    ------
    DataFormatError
        If the file does not hold the rows, texts and whole numbers of the table.
    """
    cells = _each_text(frame, guarded)
    with replacing(path) as temporary:
        cells.to_csv(
            temporary,
            index=False,
            sep=separator,
            lineterminator=_line_end(cells),
            quoting=_quoting(cells),
            encoding="utf-8-sig" if mark else "utf-8",
        )
        _check_content(temporary, cells, separator, Path(path).name)
    return _count_guarded(frame)


def csv_text(frame: pd.DataFrame) -> str:
    """Return a table as the text of a CSV file.

    Parameters
    ----------
    frame : pandas.DataFrame
        The table; its index is not written.

    Returns
    -------
    str
    """
    cells = _each_text(frame, guarded)
    return str(cells.to_csv(index=False, lineterminator=_line_end(cells), quoting=_quoting(cells)))


def _looks_like_formula(text: str) -> bool:
    # Apostrophes in front do not count, so that a guarded text can be guarded and restored again.
    start = text.lstrip("'")
    return start[:1] in _FORMULA_STARTS and start != "" and not _NUMBER.fullmatch(start)


def _text_positions(frame: pd.DataFrame) -> list[int]:
    from pandas.api.types import is_object_dtype, is_string_dtype

    return [
        position
        for position, dtype in enumerate(frame.dtypes)
        if is_object_dtype(dtype) or is_string_dtype(dtype) or str(dtype) == "category"
    ]


def _each_text(frame: pd.DataFrame, change: Any) -> pd.DataFrame:
    """The table with every text, in headings and cells, replaced by ``change(text)``."""
    changed = frame.copy(deep=False)
    changed.columns = [change(name) if isinstance(name, str) else name for name in frame.columns]
    for position in _text_positions(frame):
        cells = frame.iloc[:, position].tolist()
        texts = [change(cell) if isinstance(cell, str) else cell for cell in cells]
        if any(new is not old for new, old in zip(texts, cells, strict=True)):
            changed.isetitem(position, _objects(texts))
    return changed


def _objects(values: list[Any]) -> Any:
    import numpy as np

    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _count_guarded(frame: pd.DataFrame) -> int:
    return sum(
        isinstance(cell, str) and _looks_like_formula(cell)
        for position in _text_positions(frame)
        for cell in frame.iloc[:, position]
    )


def _line_end(frame: pd.DataFrame) -> str:
    """The line end that makes the writer quote every cell with a line break of any kind.

    The writer quotes the characters of its own line end only: with "\\n", a lone "\\r" in a cell would be
    written without quotes, and end the row for every reader.
    """
    columns = [frame.columns, *(frame.iloc[:, position] for position in _text_positions(frame))]
    has_return = any(isinstance(cell, str) and "\r" in cell for column in columns for cell in column)
    return "\r\n" if has_return else "\n"


def _quoting(frame: pd.DataFrame) -> Literal[0, 1]:
    """Quotes around every cell where the file would begin with a byte order mark that is part of a heading.

    Every reader takes a mark at the beginning of a file for that of the encoding, and removes it.
    """
    begins_with_mark = len(frame.columns) > 0 and str(frame.columns[0]).startswith("\ufeff")
    return csv.QUOTE_ALL if begins_with_mark else csv.QUOTE_MINIMAL


def _check_content(path: Path, cells: pd.DataFrame, separator: str, name: str) -> None:
    """Read a file back and compare it with the table it was written from."""
    import pandas as pd

    checked = [position for position, dtype in enumerate(cells.dtypes) if dtype.kind not in "fcmM"]
    n_read = -1  # the heading is not a row
    try:
        chunks = pd.read_csv(
            path,
            sep=separator,
            header=None,
            dtype=str,
            keep_default_na=False,
            skip_blank_lines=False,
            encoding="utf-8-sig",
            chunksize=_ROWS_AT_ONCE,
        )
        with chunks:
            for chunk in chunks:
                if chunk.shape[1] != cells.shape[1]:
                    raise not_as_written(name, f"{chunk.shape[1]} columns instead of {cells.shape[1]}")
                start = max(n_read, 0)
                read = chunk
                if n_read < 0:
                    if chunk.iloc[0].tolist() != [str(column) for column in cells.columns]:
                        raise not_as_written(name, "other headings")
                    read = chunk.iloc[1:]
                written = cells.iloc[start : start + len(read)]
                n_read = start + len(read)
                for position in checked if len(written) == len(read) else ():
                    if read.iloc[:, position].tolist() != _as_texts(written.iloc[:, position]):
                        heading = str(cells.columns[position])
                        raise not_as_written(name, f"other cells in the column {heading!r}")
    except (ValueError, EOFError) as error:
        if isinstance(error, DataFormatError):
            raise
        raise not_as_written(name, f"a table that cannot be read: {error}") from error
    if n_read != len(cells):
        raise not_as_written(name, f"{n_read} rows instead of {len(cells)}")


def _as_texts(column: pd.Series[Any]) -> list[str]:
    missing = column.isna().tolist()
    return ["" if gap else str(cell) for gap, cell in zip(missing, column.tolist(), strict=True)]
