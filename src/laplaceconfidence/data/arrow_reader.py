"""Readers of Arrow tables: Parquet files and Hugging Face data sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
from laplaceconfidence.data.tables import TABLE_OPTIONS, ColumnKind, dataset_of_table
from laplaceconfidence.exceptions import DataFormatError
from laplaceconfidence.validation import must_be

if TYPE_CHECKING:
    import pyarrow as pa


def read_parquet(path: Path, options: ReadOptions) -> NoisyDataset:
    """Read a Parquet file; columns that are not used are not loaded.

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
    options.allow_only("a Parquet file", *TABLE_OPTIONS)
    with open_parquet(path) as table:
        return dataset_of_table(table, options)


@contextmanager
def open_parquet(path: Path) -> Iterator[ArrowTable]:
    """Open a Parquet file for the duration of a ``with`` block.

    Parameters
    ----------
    path : Path
        The file.

    Yields
    ------
    ArrowTable
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        stored = pq.read_metadata(path)
        yield ArrowTable(
            stored.schema.to_arrow_schema(),
            stored.num_rows,
            lambda columns: pq.read_table(path, columns=columns, page_checksum_verification=True),
            origin=str(path),
            folder=path.absolute().parent,
        )
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataFormatError(
            f"{path} cannot be read as Parquet: it is truncated, damaged or of another format ({error}). "
            "Copy or write it again."
        ) from error


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
        dataset = _chosen_split(dataset, options.split)
    elif options.split is not None:
        raise must_be("split", "left out for a dataset without splits", options.split)
    if not hasattr(dataset, "__len__"):
        raise must_be(
            "source", "a dataset that is not streamed", type(dataset).__name__, "Load it whole first."
        )
    named = {name: feature.names for name, feature in dataset.features.items() if hasattr(feature, "names")}

    table = ArrowTable(
        dataset.features.arrow_schema,
        len(dataset),
        lambda columns: dataset.select_columns(columns).with_format("arrow")[:],
        origin="the dataset",
        named_classes=named,
    )
    column = image_column(dataset.features, options)
    images = None if column is None else images_of(table.cells(column), column, options.image_size)
    return dataset_of_table(table, options, images)


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
    named_classes : dict of str to list of str or None, default=None
        Names of the classes of the columns that hold codes of named classes.
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
        named_classes: dict[str, list[str]] | None = None,
    ) -> None:
        self.origin = origin
        self.folder = folder
        self.n_rows = n_rows
        self.column_names = list(schema.names)
        refuse_repeated_columns(self.column_names, origin)
        self._schema = schema
        self._load = load
        self._named_classes = named_classes or {}

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


def _chosen_split(splits: dict[str, Any], requested: str | None) -> Any:
    if requested is None and len(splits) == 1:
        return next(iter(splits.values()))
    if requested not in splits:
        raise must_be("split", f"one of the dataset's splits, {', '.join(map(repr, splits))}", requested)
    return splits[requested]
