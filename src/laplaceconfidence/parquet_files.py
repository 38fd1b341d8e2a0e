"""Parquet files as the package writes them: read back and compared before they get their name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from laplaceconfidence.files import is_disk_full, not_as_written, replacing

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS_AT_ONCE = 20_000


def write_parquet(
    path: str | Path,
    table: pa.Table,
    *,
    rows_per_group: int | None = None,
    dictionaries: bool | Sequence[str] = True,
    compressed: bool = True,
) -> None:
    """Write a table as Parquet, read it back, and only then give it its name.

    Parameters
    ----------
    path : str or pathlib.Path
        The file to write or replace.
    table : pyarrow.Table
        The table.
    rows_per_group : int or None, default=None
        Most rows that are read together; ``None`` leaves it to Arrow.
    dictionaries : bool or sequence of str, default=True
        Whether, or in which columns, repeated cells are stored once; for cells that hardly repeat this only
        takes time.
    compressed : bool, default=True
        Whether pages are compressed, and have statistics; for numbers that hardly repeat this only takes
        time.

    Raises
    ------
    DataFormatError
        If the file does not hold the columns and cells of the table.
    """
    import pyarrow.parquet as pq

    with replacing(path) as temporary:
        pq.write_table(
            table,
            temporary,
            row_group_size=rows_per_group,
            use_dictionary=dictionaries if isinstance(dictionaries, bool) else list(dictionaries),
            compression="snappy" if compressed else "none",
            write_statistics=compressed,
            write_page_checksum=True,
        )
        _check_content(temporary, table, Path(path).name)


def _check_content(path: Path, table: pa.Table, name: str) -> None:
    """Read a file back in parts and compare it with the table it was written from."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    n_read = 0
    try:
        with pq.ParquetFile(path) as file:
            if file.schema_arrow.names != table.schema.names:
                raise not_as_written(name, "other columns")
            for batch in file.iter_batches(_ROWS_AT_ONCE):
                written = table.slice(n_read, batch.num_rows)
                n_read += batch.num_rows
                for position, heading in enumerate(table.column_names):
                    if not _equal(pa.chunked_array([batch.column(position)]), written.column(position)):
                        raise not_as_written(name, f"other cells in the column {heading!r}")
    except (OSError, pa.ArrowException) as error:
        if is_disk_full(error):
            raise
        raise not_as_written(name, f"a table that cannot be read: {error}") from error
    if n_read != table.num_rows:
        raise not_as_written(name, f"{n_read} rows instead of {table.num_rows}")


def _equal(read: pa.ChunkedArray, written: pa.ChunkedArray) -> bool:
    # Arrow finds NaN different from NaN, and times in seconds from the same times in milliseconds.
    return read.equals(written) or repr(read.to_pylist()) == repr(written.to_pylist())
