"""Readers of Arrow tables: Parquet files, Hugging Face data sets in memory, and frames of other libraries."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import StrArray
from laplaceconfidence.data.arrow_images import image_column, images_of
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.frame_reader import refuse_repeated_columns
from laplaceconfidence.data.read_options import ReadOptions
from laplaceconfidence.data.tables import TABLE_OPTIONS, ColumnKind, dataset_of_table, has_features
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


class ArrowTable:
    """An Arrow table as a ``SourceTable``, which describes the methods; columns are loaded on request.

    Parameters
    ----------
    schema : pyarrow.Schema
        Names and types of the columns.
    n_rows : int
        Number of rows.
    load : callable
        Loads the columns of the names it is called with.
    origin : str
        Name of the table in error messages.
    folder : Path or None, default=None
        The folder at which relative paths in the cells start.

    Attributes
    ----------
    image_columns : list of str
        The columns of images, as far as the schema says so in the way of Hugging Face's library.
    """

    row_names: StrArray | None = None

    def __init__(
        self,
        schema: pa.Schema,
        n_rows: int,
        load: Callable[[list[str]], pa.Table],
        *,
        origin: str,
        folder: Path | None = None,
    ) -> None:
        self.origin = origin
        self.folder = folder
        self.n_rows = n_rows
        self.column_names = list(schema.names)
        refuse_repeated_columns(self.column_names, origin)
        self._schema = schema
        self._load = load
        kinds = _stored_kinds(schema)
        self.image_columns = [name for name, kind in kinds.items() if kind.get("_type") == "Image"]
        self._named_classes = {
            name: [str(label) for label in kind["names"]]
            for name, kind in kinds.items()
            if kind.get("_type") == "ClassLabel" and isinstance(kind.get("names"), list)
        }

    def kind(self, column: str) -> ColumnKind:
        if column in self._named_classes:
            return "other"  # codes of named classes
        kind = self._schema.field(column).type
        kind = getattr(kind, "storage_type", kind)  # extension types such as Array2D
        if _is_number(kind):
            return "number"
        while _is_list(kind):
            kind = kind.value_type
            if _is_number(kind):
                return "list"
        return "other"

    def type_name(self, column: str) -> str:
        if column in self._named_classes:
            return "codes of classes"
        if (kind := self.kind(column)) == "list":
            return kind
        name = str(self._schema.field(column).type)
        return "text" if name in ("string", "large_string", "string_view") else name

    def labels(self, column: str) -> Any:
        return self.cells(column)

    def cells(self, column: str) -> list[Any]:
        """Return the cells of a column as Python objects."""
        return list(self._column(column).to_pylist())

    def class_names(self, column: str) -> list[str] | None:
        return self._named_classes.get(column)

    def texts(self, column: str) -> list[str | None]:
        return [None if value in (None, "") else str(value) for value in self._column(column).to_pylist()]

    def numbers(self, columns: list[str]) -> NDArray[Any]:
        loaded = self._load(columns)
        arrays = [_as_numbers(loaded.column(column)) for column in columns]
        matrix = np.empty((self.n_rows, len(arrays)), np.result_type(np.float32, *(a.dtype for a in arrays)))
        for position, array in enumerate(arrays):
            matrix[:, position] = array
        return matrix

    def lists(self, column: str) -> NDArray[Any]:
        values = self._column(column).combine_chunks()
        values = getattr(values, "storage", values)
        while _is_list(values.type):
            self._check_lengths(values, column)
            values = values.flatten()
        return _as_numbers(values, zero_copy_only=False).reshape(self.n_rows, -1)

    def _column(self, column: str) -> pa.ChunkedArray:
        return self._load([column]).column(column)

    def _check_lengths(self, values: pa.Array, column: str) -> None:
        import pyarrow.compute as pc

        lengths = pc.list_value_length(values).to_numpy(zero_copy_only=False)
        unlike = np.flatnonzero(lengths != lengths[0])  # the length of a missing list is NaN
        if np.isnan(lengths[0]) or len(unlike):
            row = 0 if np.isnan(lengths[0]) else int(unlike[0])
            rule = f"a column of lists of the same length ({self.origin})"
            found = "nothing" if np.isnan(lengths[row]) else f"length {lengths[row]:g}"
            raise must_be(
                "features", rule, f"{column!r} with {found} in list {row}, {lengths[0]:g} in list 0"
            )


def _stored_kinds(schema: pa.Schema) -> dict[str, dict[str, Any]]:
    """What Hugging Face's library stores about the columns, by name; empty where it did not write them."""
    try:
        stored = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        return {name: stored[name] for name in schema.names if isinstance(stored.get(name), dict)}
    except (KeyError, TypeError, ValueError, AttributeError):
        return {}


def _as_numbers(values: Any, **how: Any) -> NDArray[Any]:
    """Numbers, decimals or booleans as an array, NaN where values are missing."""
    import pyarrow as pa

    if pa.types.is_boolean(values.type):
        values = values.cast(pa.uint8())
    elif pa.types.is_decimal(values.type):
        values = values.cast(pa.float64())
    return np.asarray(values.to_numpy(**how))


def _is_number(kind: pa.DataType) -> bool:
    import pyarrow as pa

    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    return any(test(kind) for test in tests)


def _is_list(kind: pa.DataType) -> bool:
    import pyarrow as pa

    is_variable = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    return bool(is_variable or pa.types.is_fixed_size_list(kind))


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
