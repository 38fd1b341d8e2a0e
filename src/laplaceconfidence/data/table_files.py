"""Opening of tables in CSV and Parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from laplaceconfidence.data.arrow_reader import open_parquet
from laplaceconfidence.data.csv_reader import open_csv
from laplaceconfidence.data.read_options import ReadOptions
from laplaceconfidence.data.tables import SourceTable
from laplaceconfidence.validation import must_be

CSV_SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
PARQUET_SUFFIXES = (".parquet", ".pq")


@contextmanager
def open_table(path: Path, options: ReadOptions, parameter: str) -> Iterator[SourceTable]:
    """Open a CSV or Parquet file for the duration of a ``with`` block.

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
        with open_parquet(path) as table:
            yield table
    else:
        kinds = ", ".join((*CSV_SUFFIXES, *PARQUET_SUFFIXES))
        raise must_be(parameter, f"a table ({kinds})", str(path))
