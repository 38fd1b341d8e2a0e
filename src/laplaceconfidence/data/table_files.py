"""Opening of tables in CSV, Parquet, JSON Lines and Excel files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from laplaceconfidence.data.arrow_reader import open_parquet
from laplaceconfidence.data.csv_reader import open_csv
from laplaceconfidence.data.excel_reader import EXCEL_SUFFIXES, open_excel
from laplaceconfidence.data.json_files import JSON_LINES_SUFFIXES
from laplaceconfidence.data.read_options import ReadOptions
from laplaceconfidence.data.record_reader import open_json_lines
from laplaceconfidence.data.tables import SourceTable
from laplaceconfidence.validation import must_be

CSV_SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
PARQUET_SUFFIXES = (".parquet", ".pq")
TABLE_SUFFIXES = (*CSV_SUFFIXES, *PARQUET_SUFFIXES, *JSON_LINES_SUFFIXES, *EXCEL_SUFFIXES)


@contextmanager
def open_table(path: Path, options: ReadOptions, parameter: str) -> Iterator[SourceTable]:
    """Open a file with a table for the duration of a ``with`` block.

    Parameters
    ----------
    path : Path
        The file.
    options : ReadOptions
        Names the columns of a CSV file that are read as text.
    parameter : str
        Name of the parameter in error messages.

    Yields
    ------
    SourceTable
    """
    name = path.name.lower()
    if not path.is_file():
        raise must_be(parameter, "a path to an existing file", str(path))
    if name.endswith(CSV_SUFFIXES):
        yield open_csv(path, options)
    elif name.endswith(PARQUET_SUFFIXES):
        with open_parquet([path]) as table:
            yield table
    elif name.endswith(JSON_LINES_SUFFIXES):
        yield open_json_lines(path)
    elif name.endswith(EXCEL_SUFFIXES):
        yield open_excel(path)
    else:
        raise must_be(parameter, f"a table ({', '.join(TABLE_SUFFIXES)})", str(path))
