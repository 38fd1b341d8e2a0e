"""Columns of a table that are not all numbers, as they are, until an encoder turns them into features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import FloatArray, IntArray

CellKind = Literal["number", "date", "category", "text"]

WORDS_OF_TEXT = 4
"""Columns whose cells have at least as many words on average, most of them different, are texts."""

_SECONDS_PER_DAY = 86_400


@dataclass(frozen=True, slots=True, eq=False)
class MixedColumns:
    """Columns of numbers, dates, categories and texts; every cell as text, ``None`` where it is empty.

    Parameters
    ----------
    names : tuple of str
        The columns.
    kinds : tuple of {"number", "date", "category", "text"}
        What they hold.
    cells : tuple of ndarray of shape (n,)
        Their cells.
    """

    names: tuple[str, ...]
    kinds: tuple[CellKind, ...]
    cells: tuple[NDArray[np.object_], ...]

    @classmethod
    def of(cls, names: Sequence[str], cells: Sequence[Sequence[str | None]]) -> MixedColumns:
        """Make columns of their cells, whose kinds are found out.

        Parameters
        ----------
        names : sequence of str
            The columns.
        cells : sequence of sequences of str or None
            The cells of every column.

        Returns
        -------
        MixedColumns
        """
        arrays = []
        for column in cells:
            array = np.empty(len(column), dtype=object)
            array[:] = column
            arrays.append(array)
        return cls(tuple(names), tuple(kind_of(array) for array in arrays), tuple(arrays))

    def __len__(self) -> int:
        return len(self.cells[0])

    def take(self, rows: IntArray) -> MixedColumns:
        """Return some of the rows.

        Parameters
        ----------
        rows : ndarray of int
            The rows.

        Returns
        -------
        MixedColumns
        """
        return MixedColumns(self.names, self.kinds, tuple(column[rows] for column in self.cells))

    def n_empty(self) -> dict[str, int]:
        """Count the empty cells of every column.

        Returns
        -------
        dict of str to int
        """
        return {
            name: sum(cell is None for cell in column)
            for name, column in zip(self.names, self.cells, strict=True)
        }

    def row_texts(self) -> list[str]:
        """Return every row as one text, which identifies it.

        Returns
        -------
        list of str
        """
        return [
            "\x1f".join("" if cell is None else str(cell) for cell in row)
            for row in zip(*self.cells, strict=True)
        ]


def kind_of(cells: NDArray[np.object_]) -> CellKind:
    """Find out what the cells of a column are.

    Parameters
    ----------
    cells : ndarray of shape (n,)
        Texts, ``None`` where empty.

    Returns
    -------
    {"number", "date", "category", "text"}
    """
    filled = [str(cell) for cell in cells if cell is not None]
    if not filled:
        return "category"
    if np.isfinite(numbers_of(np.array(filled, dtype=object))).all():
        return "number"
    if np.isfinite(days_of(np.array(filled, dtype=object))).all():
        return "date"
    n_words = np.mean([len(cell.split()) for cell in filled])
    return "text" if n_words >= WORDS_OF_TEXT and len(set(filled)) > len(filled) / 2 else "category"


def numbers_of(cells: NDArray[np.object_]) -> FloatArray:
    """Read cells as numbers.

    Parameters
    ----------
    cells : ndarray of shape (n,)
        Texts, ``None`` where empty.

    Returns
    -------
    ndarray of shape (n,)
        NaN where a cell is empty or not a finite number; true and false are 1 and 0.
    """
    return np.array([_number(cell) for cell in cells], dtype=np.float64)


def days_of(cells: NDArray[np.object_]) -> FloatArray:
    """Read cells as dates, with or without a time, as ISO 8601 writes them.

    Parameters
    ----------
    cells : ndarray of shape (n,)
        Texts, ``None`` where empty.

    Returns
    -------
    ndarray of shape (n,)
        Days since 1970, NaN where a cell is empty or not a date.
    """
    return np.array([_days(cell) for cell in cells], dtype=np.float64)


def _number(cell: object) -> float:
    if cell in ("True", "False", "true", "false"):
        return float(str(cell).lower() == "true")
    try:
        number = float(str(cell)) if cell is not None else np.nan
    except ValueError:
        return np.nan
    return number if np.isfinite(number) else np.nan


def _days(cell: object) -> float:
    if cell is None or "-" not in (text := str(cell).strip()):
        return np.nan
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return np.nan
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() / _SECONDS_PER_DAY
