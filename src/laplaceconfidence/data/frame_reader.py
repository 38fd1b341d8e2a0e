"""Readers of pandas data frames and of mappings of columns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import StrArray, to_numpy
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.read_options import ReadOptions
from laplaceconfidence.data.tables import TABLE_OPTIONS, ColumnKind, dataset_of_table, stack_rows
from laplaceconfidence.validation import must_be

if TYPE_CHECKING:
    import pandas as pd

_NUMBERS_AS_OBJECTS = ("decimal", "integer", "floating", "mixed-integer-float", "boolean")


def read_frame(frame: pd.DataFrame, options: ReadOptions) -> NoisyDataset:
    """Make a data set of a pandas data frame.

    Parameters
    ----------
    frame : pandas.DataFrame
        The frame.
    options : ReadOptions
        Options of ``read_dataset``.

    Returns
    -------
    NoisyDataset
    """
    options.allow_only("a pandas frame", *TABLE_OPTIONS)
    return dataset_of_table(FrameTable(frame, "the frame"), options)


def read_columns(columns: Mapping[str, Any], options: ReadOptions) -> NoisyDataset:
    """Make a data set of columns by name, of which one may be a matrix of features.

    Parameters
    ----------
    columns : mapping of str to array-like
        The columns, all of the same length.
    options : ReadOptions
        Options of ``read_dataset``.

    Returns
    -------
    NoisyDataset
    """
    import pandas as pd

    options.allow_only("columns by name", *TABLE_OPTIONS)
    cells = {}
    for name, column in columns.items():
        if np.ndim(column) == 0:
            raise must_be("source", "columns by name, each with one entry per sample", {name: column})
        cells[str(name)] = list(to_numpy(column)) if np.ndim(column) > 1 else column
    lengths = {name: len(column) for name, column in cells.items()}
    if len(set(lengths.values())) > 1:
        raise must_be("source", "columns of one length", lengths)
    return dataset_of_table(FrameTable(pd.DataFrame(cells), "the columns"), options)


class FrameTable:
    """A pandas data frame as a ``SourceTable``, which describes the methods.

    Parameters
    ----------
    frame : pandas.DataFrame
        The frame.
    origin : str
        Name of the table in error messages.
    folder : Path or None, default=None
        The folder at which relative paths in the cells start.
    """

    def __init__(self, frame: pd.DataFrame, origin: str, folder: Path | None = None) -> None:
        self.origin = origin
        self.folder = folder
        self.column_names = [str(name) for name in frame.columns]
        self.n_rows = len(frame)
        refuse_repeated_columns(self.column_names, origin)
        self._frame = frame.set_axis(self.column_names, axis=1)

    @property
    def row_names(self) -> StrArray | None:
        """The index, unless it only numbers the rows or has duplicates."""
        import pandas as pd

        index = self._frame.index
        counts = isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1
        if counts or index.nlevels > 1 or not index.is_unique:
            return None
        return index.to_numpy().astype(str)

    def kind(self, column: str) -> ColumnKind:
        from pandas.api.types import infer_dtype, is_complex_dtype, is_numeric_dtype

        values = self._frame[column]
        if is_numeric_dtype(values.dtype) and not is_complex_dtype(values.dtype):
            return "number"
        if values.dtype.kind == "O" and infer_dtype(values, skipna=True) in _NUMBERS_AS_OBJECTS:
            return "number"
        filled = values.notna().to_numpy()
        cell = values.iloc[int(filled.argmax())] if filled.any() else None
        is_list = isinstance(cell, (list, tuple, np.ndarray)) or hasattr(cell, "detach")
        return "list" if is_list or (isinstance(cell, str) and cell.lstrip().startswith("[")) else "other"

    def type_name(self, column: str) -> str:
        if (kind := self.kind(column)) == "list":
            return kind
        if (dtype := self._frame[column].dtype).kind != "O":
            return "text" if str(dtype) in ("str", "string") else str(dtype).lower()
        return "decimal" if kind == "number" else "text"

    def labels(self, column: str) -> Any:
        return self._frame[column]

    def class_names(self, column: str) -> list[str] | None:
        return None

    def texts(self, column: str) -> list[str | None]:
        values = self._frame[column]
        gaps = values.isna().to_numpy()
        return [None if gap else str(value) for value, gap in zip(values.tolist(), gaps, strict=True)]

    def numbers(self, columns: list[str]) -> NDArray[Any]:
        # pandas' own types have a numpy equivalent; small integers fit in float32; objects are decimals.
        given = [getattr(dtype, "numpy_dtype", dtype) for dtype in self._frame[columns].dtypes]
        plain = [np.dtype(np.float64) if dtype.kind == "O" else dtype for dtype in given]
        return self._frame[columns].to_numpy(dtype=np.result_type(np.float32, *plain), na_value=np.nan)

    def lists(self, column: str) -> NDArray[Any]:
        cells = enumerate(self._frame[column].tolist())
        return stack_rows([self._parsed(cell, row, column) for row, cell in cells], column, self.origin)

    def _parsed(self, cell: Any, row: int, column: str) -> Any:
        if not isinstance(cell, str):
            return to_numpy(cell)
        try:
            return json.loads(cell)
        except json.JSONDecodeError as error:
            rule = f"a column of lists written as JSON, such as [0.5, 1.0] ({self.origin})"
            shown = cell if len(cell) <= 60 else cell[:60] + "..."
            raise must_be("features", rule, f"{column!r} with {shown!r} in row {row}") from error


def refuse_repeated_columns(names: list[str], origin: str) -> None:
    """Raise if two columns have the same name.

    Parameters
    ----------
    names : list of str
        The columns.
    origin : str
        Name of the table in error messages.
    """
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise must_be("source", f"a table whose columns have different names ({origin})", twice)
