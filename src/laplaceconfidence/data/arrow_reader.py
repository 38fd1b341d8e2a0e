"""Readers of Arrow tables: Parquet files, Hugging Face data sets in memory, and frames of other libraries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from laplaceconfidence.data.arrow_images import image_column, images_of
from laplaceconfidence.data.arrow_table import ArrowTable
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.read_options import ReadOptions
from laplaceconfidence.data.tables import TABLE_OPTIONS, dataset_of_table, has_features
from laplaceconfidence.exceptions import DataFormatError
from laplaceconfidence.validation import must_be

if TYPE_CHECKING:
    import pyarrow as pa


def read_parquet(path: Path, options: ReadOptions) -> NoisyDataset:
    """Read a Parquet file; columns that are not used are not loaded.

    Names of classes and columns of images are known where Hugging Face's library wrote the file.

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
    with open_parquet([path]) as table:
        options.allow_only("a Parquet file", *arrow_options(table))
        return dataset_of_arrow(table, options)


@contextmanager
def open_parquet(paths: Sequence[Path], origin: str | None = None) -> Iterator[ArrowTable]:
    """Open Parquet files with the same columns as one table, for the duration of a ``with`` block.

    Parameters
    ----------
    paths : sequence of Path
        The files, in one folder and in the order of their rows.
    origin : str or None, default=None
        Name of the table in error messages; the first file if not set.

    Yields
    ------
    ArrowTable
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    origin = origin or str(paths[0])

    def load(columns: list[str]) -> pa.Table:
        parts = []
        for path in paths:
            with _parquet_errors(str(path)):
                parts.append(pq.read_table(path, columns=columns, page_checksum_verification=True))
        return pa.concat_tables(parts) if len(parts) > 1 else parts[0]

    stored = []
    for path in paths:
        with _parquet_errors(str(path)):
            stored.append(pq.read_metadata(path))
    with _parquet_errors(origin):
        schemas = [part.schema.to_arrow_schema() for part in stored]
        for path, schema in zip(paths, schemas, strict=True):
            if schema.remove_metadata() != schemas[0].remove_metadata():
                raise DataFormatError(
                    f"{path} has other columns, or columns of other types, than {paths[0].name}: the files "
                    "of one table must have the same. Write them again, or audit them one by one."
                )
        n_rows = sum(part.num_rows for part in stored)
        yield ArrowTable(schemas[0], n_rows, load, origin=origin, folder=paths[0].absolute().parent)


@contextmanager
def _parquet_errors(origin: str) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataFormatError(
            f"{origin} cannot be read as Parquet: it is truncated, damaged or of another format ({error}). "
            "Copy or write it again."
        ) from error


def dataset_of_arrow(table: ArrowTable, options: ReadOptions) -> NoisyDataset:
    """Make a data set of an Arrow table, with the images of its column of images, if it has one.

    Parameters
    ----------
    table : ArrowTable
        The table.
    options : ReadOptions
        Options of ``read_dataset``.

    Returns
    -------
    NoisyDataset
    """
    column = image_column(table.image_columns, options, table.origin)
    images = None
    if column is not None:
        is_asked_for = options.images is not None or options.image_size is not None
        images = images_of(
            table.cells(column),
            column,
            options.image_size,
            required=is_asked_for or not has_features(table, options),
        )
    return dataset_of_table(table, options, images)


def arrow_options(table: ArrowTable) -> tuple[str, ...]:
    """Return the options of ``read_dataset`` that apply to an Arrow table.

    Parameters
    ----------
    table : ArrowTable
        The table.

    Returns
    -------
    tuple of str
        Those about images where it has columns of images.
    """
    return (*TABLE_OPTIONS, "images", "image_size") if table.image_columns else TABLE_OPTIONS


def read_huggingface(dataset: Any, options: ReadOptions) -> NoisyDataset:
    """Read a Hugging Face ``Dataset``, or one split of a ``DatasetDict``.

    Parameters
    ----------
    dataset : Dataset or DatasetDict
        The data set.
    options : ReadOptions
        Options of ``read_dataset``.

    Returns
    -------
    NoisyDataset
    """
    options.allow_only("a Hugging Face dataset", *TABLE_OPTIONS, "split", "images", "image_size")
    if isinstance(dataset, dict):
        dataset = dataset[chosen_split(list(dataset), options.split)]
    elif options.split is not None:
        raise must_be("split", "left out for a dataset without splits", options.split)
    if not hasattr(dataset, "__len__"):
        raise must_be(
            "source", "a dataset that is not streamed", type(dataset).__name__, "Load it whole first."
        )
    table = ArrowTable(
        dataset.features.arrow_schema,
        len(dataset),
        lambda columns: dataset.select_columns(columns).with_format("arrow")[:],
        origin="the dataset",
    )
    return dataset_of_arrow(table, options)


def is_huggingface(source: Any) -> bool:
    """Return whether a source is a Hugging Face ``Dataset`` or ``DatasetDict``.

    Parameters
    ----------
    source : object
        Anything.

    Returns
    -------
    bool
    """
    one = next(iter(source.values()), None) if isinstance(source, dict) else source
    return hasattr(one, "select_columns") and hasattr(one, "with_format")


def read_arrow(source: Any, options: ReadOptions) -> NoisyDataset:
    """Read a polars data frame, a ``pyarrow.Table`` or another object that exports Arrow data.

    Parameters
    ----------
    source : object
        Has ``__arrow_c_stream__``.
    options : ReadOptions
        Options of ``read_dataset``.

    Returns
    -------
    NoisyDataset
    """
    import pyarrow as pa

    options.allow_only("a frame", *TABLE_OPTIONS)
    table = pa.table(source)
    return dataset_of_table(
        ArrowTable(table.schema, table.num_rows, table.select, origin="the frame"), options
    )


def chosen_split(splits: Sequence[str], requested: str | None) -> str:
    """Return the requested split, or the only one.

    Parameters
    ----------
    splits : sequence of str
        The splits of a data set.
    requested : str or None
        The option ``split``.

    Returns
    -------
    str
    """
    if requested is None and len(splits) == 1:
        return splits[0]
    if requested not in splits:
        raise must_be("split", f"one of the dataset's splits, {', '.join(map(repr, splits))}", requested)
    return str(requested)
