"""Readers of JSON Lines and of arrays of JSON objects: one record per sample."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from laplaceconfidence.data.csv_reader import other_columns
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.frame_reader import FrameTable
from laplaceconfidence.data.json_files import load_json_lines
from laplaceconfidence.data.read_options import ReadOptions
from laplaceconfidence.data.tables import TABLE_OPTIONS, dataset_of_table
from laplaceconfidence.exceptions import DataFormatError


def read_json_lines(path: Path, options: ReadOptions) -> NoisyDataset:
    """Read a file of one JSON object per line.

    Parameters
    ----------
    path : Path
        The file.
    options : ReadOptions
        Options of ``read_dataset``; the names in the objects are the columns.

    Returns
    -------
    NoisyDataset
    """
    options.allow_only("a JSON Lines file", *TABLE_OPTIONS)
    return dataset_of_table(open_json_lines([path], str(path)), options)


def open_json_lines(paths: Sequence[Path], origin: str) -> RecordTable:
    """Open files of one JSON object per line as one table.

    Parameters
    ----------
    paths : sequence of Path
        The files, in one folder and in the order of their rows.
    origin : str
        Name of the table in error messages.

    Returns
    -------
    RecordTable
    """
    parts = [load_json_lines(path) for path in paths]
    for path, part in zip(paths, parts, strict=True):
        _check_same_names(path, part, paths[0], parts[0])
    return RecordTable([record for part in parts for record in part], origin, paths[0].absolute().parent)


def _check_same_names(path: Path, part: list[dict[str, Any]], first: Path, of_first: list[Any]) -> None:
    """Raise if what every record of one part has is in no record of the other; other names may be absent."""
    for one, other in ((of_first, part), (part, of_first)):
        always = set.intersection(*(set(record) for record in one)) if one and other else set()
        if always.difference(*other):
            raise other_columns(path, first, _names(of_first), _names(part))


def _names(records: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for record in records for name in record))


class RecordTable(FrameTable):
    """Records by name as a ``SourceTable``; a name that a record does not have is an empty cell.

    Parameters
    ----------
    records : list of dict
        One per sample.
    origin : str
        Name of the table in error messages.
    folder : Path or None, default=None
        The folder at which relative paths in the cells start.
    """

    def __init__(self, records: list[dict[str, Any]], origin: str, folder: Path | None = None) -> None:
        import pandas as pd

        names = _names(records)
        self._cells = {name: [record.get(name) for record in records] for name in names}
        columns = {name: pd.Series(cells, dtype=_dtype(cells)) for name, cells in self._cells.items()}
        super().__init__(pd.DataFrame(columns, index=pd.RangeIndex(len(records))), origin, folder)

    def labels(self, column: str) -> Any:
        cells = self._cells[column]
        for row, cell in enumerate(cells):
            if isinstance(cell, (dict, list)):
                raise DataFormatError(
                    f"{column!r} must be one label per sample in {self.origin}: a text, a number or a truth "
                    f"value. Got {json.dumps(cell)[:60]} in record {row}."
                )
        labels = np.empty(len(cells), dtype=object)
        labels[:] = cells
        return labels

    def texts(self, column: str) -> list[str | None]:
        return [_as_text(cell) for cell in self._cells[column]]


def _dtype(cells: list[Any]) -> Any:
    """Objects where pandas would change what a cell is, such as a list or whole numbers above 2^63."""
    kinds = {type(cell) for cell in cells if cell is not None}
    return None if kinds and (kinds <= {int, float} or (len(kinds) == 1 and kinds <= {bool, str})) else object


def _as_text(cell: Any) -> str | None:
    if cell is None or cell == "":
        return None
    return cell if isinstance(cell, str) else json.dumps(cell, ensure_ascii=False)
