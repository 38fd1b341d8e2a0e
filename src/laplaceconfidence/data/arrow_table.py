"""Arrow tables, of Parquet files or Hugging Face data sets, as tables that data sets are made of."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import StrArray
from laplaceconfidence.data.frame_reader import refuse_repeated_columns
from laplaceconfidence.data.tables import ColumnKind
from laplaceconfidence.validation import must_be

if TYPE_CHECKING:
    import pyarrow as pa


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
