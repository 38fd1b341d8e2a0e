"""Conversion of tables to data sets: finds the columns of labels, features, ids and sources."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import StrArray
from laplaceconfidence.data.array_files import load_features
from laplaceconfidence.data.arrow_images import ColumnImages
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.feature_columns import (
    advice_to_name,
    is_embedding,
    recognized_columns,
    requested_columns,
    scaling_of,
)
from laplaceconfidence.data.identity import ContentIds
from laplaceconfidence.data.mixed_columns import MixedColumns, numbers_of
from laplaceconfidence.data.read_options import USUAL_NAMES, Names, ReadOptions
from laplaceconfidence.exceptions import LaplaceConfidenceWarning
from laplaceconfidence.validation import must_be

ColumnKind = Literal["number", "list", "other"]

TABLE_OPTIONS = ("label", "features", "id", "text", "path", "true_label", "missing_label")


class SourceTable(Protocol):
    """A table that a data set is read from, whatever library it comes from.

    Attributes
    ----------
    origin : str
        Name of the table in error messages.
    column_names : list of str
        The columns.
    n_rows : int
        Number of rows.
    folder : Path or None
        The folder at which relative paths in the cells start.
    """

    origin: str
    column_names: list[str]
    n_rows: int
    folder: Path | None

    @property
    def row_names(self) -> StrArray | None:
        """Ids of the rows, if they are stored outside of the columns."""

    def kind(self, column: str) -> ColumnKind:
        """Return whether a column holds numbers, lists of numbers, or something else.

        Parameters
        ----------
        column : str
            Name of the column.

        Returns
        -------
        {"number", "list", "other"}
        """

    def type_name(self, column: str) -> str:
        """Return the type of a column as it is shown to people, such as "float64", "list" or "text".

        Parameters
        ----------
        column : str
            Name of the column.

        Returns
        -------
        str
        """

    def labels(self, column: str) -> Any:
        """Return the labels exactly as they were given.

        Parameters
        ----------
        column : str
            Name of the column.

        Returns
        -------
        array-like of shape (n_rows,)
        """

    def class_names(self, column: str) -> list[str] | None:
        """Return the names of the classes, if the column holds codes of named classes.

        Parameters
        ----------
        column : str
            Name of the column.

        Returns
        -------
        list of str or None
        """

    def texts(self, column: str) -> list[str | None]:
        """Return the cells as text.

        Parameters
        ----------
        column : str
            Name of the column.

        Returns
        -------
        list of str or None
            ``None`` where a cell is empty.
        """

    def numbers(self, columns: list[str]) -> NDArray[Any]:
        """Return columns of numbers as a matrix.

        Parameters
        ----------
        columns : list of str
            Names of the columns.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
            NaN where a cell is empty.
        """

    def lists(self, column: str) -> NDArray[Any]:
        """Return a column of lists of equal length as a matrix.

        Parameters
        ----------
        column : str
            Name of the column.

        Returns
        -------
        ndarray of shape (n_rows, d)
        """


def dataset_of_table(
    table: SourceTable, options: ReadOptions, pictures: ColumnImages | None = None
) -> NoisyDataset:
    """Make a data set of a table.

    Parameters
    ----------
    table : SourceTable
        The table.
    options : ReadOptions
        Options of ``read_dataset``.
    pictures : ColumnImages or None, default=None
        The images of one of the columns, which become the images of the data set.

    Returns
    -------
    NoisyDataset
    """
    if table.n_rows == 0:
        raise must_be("source", "a table with at least one row", f"{table.origin} without rows")
    names = Names(table.column_names, "columns", table.origin)
    label = names.require("label", options.label) if options.classes is None else None
    true_label = names.find("true_label", options.true_label)
    kind, source = names.find_source(options) if pictures is None else (None, None)
    taken = {label, true_label, source, names.find("id", options.id), *USUAL_NAMES["label"][:2]}
    free = _free_columns(table, taken)
    columns, features, scaling, advice, mixed = None, None, None, None, None
    if names.is_not_a_name(options.features):
        features = load_features(options.features)
    elif options.features is not None:
        columns = requested_columns(names, options.features)
        if unfit := [name for name in columns if name in taken]:
            raise must_be("features", "columns that are not used for something else", unfit[0])
    else:
        columns = recognized_columns(free)
        advice = None if columns else advice_to_name(free)
    if columns is not None and options.features is not None and not is_embedding(columns, free):
        mixed = _mixed_columns(table, columns, even_numbers=options.keeps_cells)
    if columns is not None and mixed is None:
        features = _features(table, columns)
        scaling = scaling_of(columns, free, features) if options.classes is None else None
    has_content = any(part is not None for part in (features, mixed, source, pictures))
    if not has_content and not options.labels_only:
        raise names.no_inputs_error(advice)
    sources: list[str] | None = None if source is None else _sources(table, source, kind == "image")
    if pictures is not None and pictures.paths is not None:
        kind, sources = "image", pictures.paths
    dataset = NoisyDataset.from_arrays(
        [None] * table.n_rows if label is None else table.labels(label),
        features,
        classes=options.classes,
        class_names=None if label is None else table.class_names(label),
        missing_label=options.missing_label,
        ids=_ids(table, names, options),
        images=None if pictures is None else pictures.images,
        sources=sources,
        source_kind=kind,
        true_labels=None if true_label is None or label is None else table.labels(true_label),
    )
    used = None if columns is None else tuple(columns)
    dataset = replace(
        dataset,
        feature_columns=used if mixed is None else None,
        feature_scaling=scaling,
        feature_advice=advice,
        columns=mixed,
        content_ids=None,
    )
    if source is None or kind != "image" or dataset.ids is not None:
        return dataset
    cells = [cell or "" for cell in table.texts(source)]  # still the same if the whole folder is moved
    found = ContentIds.of(len(dataset), paths=cells, features=dataset.features)
    return replace(dataset, content_ids=found)


def has_features(table: SourceTable, options: ReadOptions) -> bool:
    """Return whether a table is read with features.

    Parameters
    ----------
    table : SourceTable
        The table.
    options : ReadOptions
        Options of ``read_dataset``.

    Returns
    -------
    bool
    """
    if options.features is not None:
        return True
    names = Names(table.column_names, "columns", table.origin)
    found = (
        names.find(parameter, getattr(options, parameter)) for parameter in ("label", "true_label", "id")
    )
    return recognized_columns(_free_columns(table, {*found, *USUAL_NAMES["label"][:2]})) is not None


def _free_columns(table: SourceTable, taken: set[str | None]) -> dict[str, str]:
    """The columns that have no other use, with their types."""
    return {name: table.type_name(name) for name in table.column_names if name not in taken}


def _mixed_columns(table: SourceTable, columns: list[str], *, even_numbers: bool) -> MixedColumns | None:
    """The columns as they are, if they are not all numbers or have empty cells; else ``None``."""
    if even_numbers:
        return MixedColumns.of(columns, [table.texts(name) for name in columns])
    kinds = {name: table.kind(name) for name in columns}
    if "list" in kinds.values():
        return None
    numbers = [name for name in columns if kinds[name] == "number"]
    matrix = table.numbers(numbers) if numbers else np.empty((table.n_rows, 0))
    if np.isinf(matrix).any() or (len(numbers) == len(columns) and not np.isnan(matrix).any()):
        return None
    found = MixedColumns.of(columns, [table.texts(name) for name in columns])
    for name, kind, cells in zip(found.names, found.kinds, found.cells, strict=True):
        n_filled = sum(cell is not None for cell in cells)
        if n_filled == 0:
            raise must_be("features", "columns that are not empty", name, "Leave it out.")
        # Mostly numbers: the other cells are more likely mistakes than categories.
        if kind in ("category", "text") and 2 * np.isfinite(numbers_of(cells)).sum() > n_filled:
            rule = "columns of numbers, dates, categories or texts"
            raise must_be("features", rule, name, _unreadable(table, name))
    return found


def _features(table: SourceTable, columns: list[str]) -> Any:
    kinds = {name: table.kind(name) for name in columns}
    if len(columns) == 1 and kinds[columns[0]] == "list":
        return table.lists(columns[0])
    for name, kind in kinds.items():
        if kind != "number":
            rule = "columns of numbers, or one column of lists of numbers"
            raise must_be("features", rule, name, _unreadable(table, name))
    matrix = table.numbers(columns)
    if not (finite := np.isfinite(matrix)).all():
        column = int(np.flatnonzero(~finite.all(axis=0))[0])
        rows = np.flatnonzero(~finite[:, column])
        advice = (
            f"It is empty or infinite in {len(rows)} of {table.n_rows} rows; the first is row {rows[0]}. "
            "Drop those rows or fill them in."
        )
        raise must_be("features", "columns with a finite number in every row", columns[column], advice)
    return matrix


def _unreadable(table: SourceTable, column: str) -> str:
    """Count the cells of a column that are not numbers, in a sentence."""
    cells = [(row, cell) for row, cell in enumerate(table.texts(column)) if not _is_number(cell)]
    if not cells:
        return f"Its type is {table.type_name(column)}: convert it to numbers."
    row, cell = cells[0]
    shown = "empty" if cell is None else repr(cell if len(cell) <= 60 else cell[:60] + "...")
    return (
        f"{len(cells)} of its {table.n_rows} cells are not numbers; the first, in row {row}, is {shown}. "
        "Correct them, drop their rows, or leave the column out."
    )


def _is_number(cell: str | None) -> bool:
    try:
        return np.isfinite(float(cell)) if cell is not None else False
    except ValueError:
        return False


def _ids(table: SourceTable, names: Names, options: ReadOptions) -> list[str | None] | StrArray | None:
    column = names.find("id", options.id)
    if column is None:
        return table.row_names
    ids = table.texts(column)
    n_without = ids.count(None)
    n_repeated = len(ids) - n_without - len(set(ids) - {None})
    if options.id is None and (n_without or n_repeated):
        warnings.warn(
            f"The column {column!r} of {table.origin} does not identify the samples ({n_repeated:,} of its "
            f"{len(ids):,} cells repeat an earlier one, {n_without:,} are empty) and is not used as the id. "
            "Name another column with --id, or make these different.",
            LaplaceConfidenceWarning,
            stacklevel=2,
        )
        return table.row_names
    if None in ids:
        raise must_be("id", "a column with an id in every row", f"{column!r}, empty in row {ids.index(None)}")
    return ids


def _sources(table: SourceTable, column: str, are_paths: bool) -> list[str]:
    cells = [cell or "" for cell in table.texts(column)]
    if not are_paths or table.folder is None:
        return cells
    folder = table.folder
    return [str(folder / cell) if cell and "://" not in cell else cell for cell in cells]


def stack_rows(rows: list[Any], column: str, origin: str) -> NDArray[Any]:
    """Stack lists of numbers, one per row, to a matrix; nested lists are flattened.

    Parameters
    ----------
    rows : list of array-like
        The lists.
    column : str
        Name of the column in error messages.
    origin : str
        Name of the table in error messages.

    Returns
    -------
    ndarray of shape (n, d)
    """
    arrays = [np.asarray(row) for row in rows]
    for number, array in enumerate(arrays):
        if array.dtype.kind not in "fiub" or array.ndim == 0:
            rule = f"a column of lists of numbers ({origin})"
            raise must_be("features", rule, f"{column!r} with {rows[number]!r} in row {number}")
        if array.shape != arrays[0].shape:
            rule = f"a column of lists of the same length ({origin})"
            raise must_be(
                "features",
                rule,
                f"{column!r} with shape {array.shape} in row {number} and {arrays[0].shape} in row 0",
            )
    return np.stack(arrays).reshape(len(arrays), -1)
