"""Reader of .csv and .tsv files, compressed with gzip or not."""

from __future__ import annotations

import csv
import gzip
import warnings
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from laplaceconfidence.csv_files import unguarded, unguarded_cells
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.frame_reader import FrameTable, refuse_repeated_columns
from laplaceconfidence.data.label_files import GAPS_AMONG_NUMBERS, parse_labels
from laplaceconfidence.data.read_options import USUAL_NAMES, ReadOptions, names_column
from laplaceconfidence.data.tables import TABLE_OPTIONS, dataset_of_table
from laplaceconfidence.exceptions import DataFormatError, LaplaceConfidenceWarning
from laplaceconfidence.wording import counted

if TYPE_CHECKING:
    import pandas as pd


def read_csv(path: Path, options: ReadOptions) -> NoisyDataset:
    """Read a .csv or .tsv file.

    Parameters
    ----------
    path : Path
        The file.
    options : ReadOptions
        Options of ``read_dataset``.

    Returns
    -------
    NoisyDataset
    """
    options.allow_only("a CSV file", *TABLE_OPTIONS)
    return dataset_of_table(open_csv([path], options, str(path)), options)


def open_csv(paths: Sequence[Path], options: ReadOptions, origin: str) -> CsvTable:
    """Open .csv or .tsv files with the same columns as one table.

    Parameters
    ----------
    paths : sequence of Path
        The files, in one folder and in the order of their rows.
    options : ReadOptions
        Names the columns that are read as text, without conversion.
    origin : str
        Name of the table in error messages.

    Returns
    -------
    CsvTable
    """
    import pandas as pd

    is_text = partial(_is_read_as_text, options=options)
    frames = [_frame(path, is_text) for path in paths]
    columns = list(frames[0].columns)
    for path, frame in zip(paths, frames, strict=True):
        if list(frame.columns) != columns:
            raise other_columns(path, paths[0], columns, list(frame.columns))
    # Numbers in one file and texts in another are texts in both, as they are in one file.
    kinds = {name: {_cell_kind(frame[name]) for frame in frames} - {None} for name in columns}
    if mixed := {name for name, found in kinds.items() if len(found) > 1}:
        frames = [_frame(path, lambda name: name in mixed or is_text(name)) for path in paths]
    whole = pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0]
    return CsvTable(whole, origin, paths[0].absolute().parent)


def other_columns(path: Path, first: Path, expected: list[str], found: list[str]) -> DataFormatError:
    """Make the error for a part of a table that has other columns than the first part.

    Parameters
    ----------
    path, first : Path
        The part, and the first part.
    expected, found : list of str
        Columns of the first part and of this one.

    Returns
    -------
    DataFormatError
    """
    lost = [name for name in expected if name not in found]
    new = [name for name in found if name not in expected]
    parts = [f"it lacks {_few(lost)}"] * bool(lost) + [f"it also has {_few(new)}"] * bool(new)
    return DataFormatError(
        f"{path} has other columns than {first.name} ({' and '.join(parts) or 'they are in another order'}): "
        "the files of a folder are read as the parts of one table. Correct it, move it away, or give the "
        "path of one file."
    )


class CsvTable(FrameTable):
    """A CSV file as a ``SourceTable``; columns that are not features are read as text."""

    def labels(self, column: str) -> Any:
        return parse_labels([text or "" for text in self.texts(column)])

    def texts(self, column: str) -> list[str | None]:
        return [text or None for text in super().texts(column)]


def _cell_kind(cells: pd.Series) -> str | None:
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    if cells.isna().all():
        return None
    return "number" if is_numeric_dtype(cells.dtype) and not is_bool_dtype(cells.dtype) else str(cells.dtype)


def _few(names: list[str], most: int = 3) -> str:
    return ", ".join(map(repr, names[:most])) + (", ..." if len(names) > most else "")


def _frame(path: Path, is_text: Callable[[str], bool]) -> pd.DataFrame:
    import pandas as pd

    layout: dict[str, Any] = {
        "sep": "\t" if ".tsv" in path.name.lower() else ",",
        "encoding": "utf-8-sig",
        "index_col": False,  # otherwise a row with one cell too many turns the first column into an index
        "keep_default_na": False,
    }
    try:
        with warnings.catch_warnings():
            # Otherwise cells beyond the heading would be dropped.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            heading = pd.read_csv(path, header=None, nrows=1, dtype=str, **layout)
            names = [name for name in heading.iloc[0].tolist() if name]
            text_columns = [name for name in names if is_text(unguarded(name))]
            gaps = {name: ["", *GAPS_AMONG_NUMBERS] for name in names if name not in text_columns}
            frame: pd.DataFrame = pd.read_csv(
                path, dtype=dict.fromkeys(text_columns, str), na_values=gaps, low_memory=False, **layout
            )
    except (ValueError, EOFError, OSError, zlib.error, pd.errors.ParserWarning) as error:
        raise DataFormatError(
            f"{path} cannot be read as a table in UTF-8 with a heading: {error}. "
            "Check that it is complete and that every row has as many cells as the heading."
        ) from error
    refuse_repeated_columns([unguarded(name) for name in names], str(path))
    last = frame.iloc[:, -1]
    if (last.isna() | (last == "")).any():  # as in every row that is too short
        _warn_of_short_rows(path, layout["sep"])
    return unguarded_cells(frame)


def _warn_of_short_rows(path: Path, separator: str) -> None:
    open_text = gzip.open if path.name.lower().endswith(".gz") else open
    limit = csv.field_size_limit(2**31 - 1)  # texts may be long
    try:
        with open_text(path, "rt", encoding="utf-8-sig", newline="") as file:
            rows = (row for row in csv.reader(file, delimiter=separator) if row)
            n_columns = len(next(rows))
            short = [number for number, row in enumerate(rows) if len(row) < n_columns]
    finally:
        csv.field_size_limit(limit)
    if short:
        warnings.warn(
            f"In {counted(len(short), 'row')} of {path} there are fewer cells than in the heading, first in "
            f"row {short[0]}: the cells at the end are taken as empty. Check that no separator is missing.",
            LaplaceConfidenceWarning,
            stacklevel=2,
        )


def _is_read_as_text(name: str, options: ReadOptions) -> bool:
    """Whether a column is read without conversion: '007' is an id, 'None' may be a class."""
    wanted: set[str | None] = set()
    for parameter in ("label", "id", "text", "path", "true_label", "annotator"):
        requested = getattr(options, parameter)
        wanted.update(USUAL_NAMES[parameter] if requested is None else (requested,))
    return name in wanted or (options.annotators is not None and names_column(options.annotators, name))
