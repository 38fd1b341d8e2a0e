"""Reader of .csv and .tsv files, compressed with gzip or not."""

from __future__ import annotations

import csv
import gzip
import warnings
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from laplaceconfidence.csv_files import unguarded, unguarded_cells
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.frame_reader import FrameTable, refuse_repeated_columns
from laplaceconfidence.data.label_files import GAPS_AMONG_NUMBERS, parse_labels
from laplaceconfidence.data.read_options import USUAL_NAMES, ReadOptions
from laplaceconfidence.data.tables import TABLE_OPTIONS, dataset_of_table
from laplaceconfidence.exceptions import DataFormatError, LaplaceConfidenceWarning

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
    return dataset_of_table(open_csv(path, options), options)


def open_csv(path: Path, options: ReadOptions) -> CsvTable:
    """Open a .csv or .tsv file as a table.

    Parameters
    ----------
    path : Path
        The file.
    options : ReadOptions
        Names the columns that are read as text, without conversion.

    Returns
    -------
    CsvTable
    """
    return CsvTable(_frame(path, options), str(path), path.absolute().parent)


class CsvTable(FrameTable):
    """A CSV file as a ``SourceTable``; columns that are not features are read as text."""

    def labels(self, column: str) -> Any:
        return parse_labels([text or "" for text in self.texts(column)])

    def texts(self, column: str) -> list[str | None]:
        return [text or None for text in super().texts(column)]


def _frame(path: Path, options: ReadOptions) -> pd.DataFrame:
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
            text_columns = [name for name in names if unguarded(name) in _text_column_names(options)]
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
            f"{len(short):,} rows of {path} have fewer cells than the heading, the first is row {short[0]}: "
            "the cells at their end are taken as empty. Check that no separator is lost in them.",
            LaplaceConfidenceWarning,
            stacklevel=2,
        )


def _text_column_names(options: ReadOptions) -> set[str | None]:
    """Names of the columns to read as text, without conversion: '007' is an id, 'None' may be a class."""
    wanted: set[str | None] = set()
    for parameter in ("label", "id", "text", "path", "true_label"):
        requested = getattr(options, parameter)
        wanted.update(USUAL_NAMES[parameter] if requested is None else (requested,))
    return wanted
