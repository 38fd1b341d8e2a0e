"""Tables with labels of several annotators: one row per label, or one column per annotator."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import IntArray, StrArray, to_numpy
from laplaceconfidence.data.annotator_labels import AnnotatorLabels
from laplaceconfidence.data.arrow_table import ArrowTable
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.frame_reader import FrameTable
from laplaceconfidence.data.labels import encode_labels
from laplaceconfidence.data.read_options import Names, ReadOptions, names_column
from laplaceconfidence.data.table_files import open_table
from laplaceconfidence.data.tables import TABLE_OPTIONS, ColumnKind, SourceTable, dataset_of_table
from laplaceconfidence.exceptions import LaplaceConfidenceWarning
from laplaceconfidence.validation import must_be
from laplaceconfidence.wording import counted

_VOTES = "votes of the annotators"  # the name of a column that no table has


def read_annotated(source: Any, options: ReadOptions) -> NoisyDataset:
    """Read a table with labels of several annotators.

    Parameters
    ----------
    source : str, Path, DataFrame, mapping of columns or frame that exports Arrow data
        The table.
    options : ReadOptions
        Options of ``read_dataset``: ``annotator``, with ``samples`` or not, or ``annotators``.

    Returns
    -------
    NoisyDataset
        Its ``labels`` are the votes, its ``annotations`` the single labels.
    """
    options.allow_only(
        "a table with labels of annotators", *TABLE_OPTIONS, "annotator", "annotators", "samples"
    )
    if options.annotators is not None:
        for name in ("annotator", "samples", "label"):
            if (value := getattr(options, name)) is not None:
                raise must_be(name, "left out where 'annotators' names a column per annotator", value)
        with _opened(source, options, "source") as table:
            return _of_columns(table, options)
    if options.annotator is None:
        rule = "given where 'samples' is: the column that says who gave the label of a row"
        raise must_be("annotator", rule, None)
    with _opened(source, options, "source") as table:
        if options.samples is None:
            return _of_long_table(table, table, options)
        with _opened(options.samples, options, "samples") as samples:
            return _of_long_table(table, samples, options)


def _of_columns(table: SourceTable, options: ReadOptions) -> NoisyDataset:
    """The data set of a table with one row per sample and one column of labels per annotator."""
    names = Names(table.column_names, "columns", table.origin)
    columns = _annotator_columns(names, options.annotators)
    labels = np.stack(_cells_of_one_kind(table, columns), axis=1)
    class_names = next((found for name in columns if (found := table.class_names(name)) is not None), None)
    given = AnnotatorLabels.from_columns(labels, names=columns, missing_label=options.missing_label)
    voted = _VotedTable(table, np.arange(table.n_rows), given, set(columns), class_names)
    return dataset_of_table(voted, replace(options, label=_VOTES, labels_only=True))


def _annotator_columns(names: Names, requested: Any) -> list[str]:
    columns = [name for name in names.existing if names_column(requested, name)]
    if not isinstance(requested, str):
        columns += [name for name in requested if name not in columns]
    if not columns or not set(columns) <= set(names.existing):
        rule = f"columns of {names.origin}: names with commas between them, or a pattern such as 'ann_*'"
        raise must_be("annotators", rule, requested, names.listed())
    return columns


def _cells_of_one_kind(table: SourceTable, columns: list[str]) -> list[NDArray[Any]]:
    """The labels of several columns as objects; all as texts where some columns hold numbers, others text."""
    found = [to_numpy(table.labels(name)) for name in columns]
    kinds = {
        values.dtype.kind for values in (encode_labels(one).class_values for one in found) if len(values)
    }
    if len(kinds) > 1:
        found = [np.array([cell or "" for cell in table.texts(name)], dtype=object) for name in columns]
    return [values.astype(object) for values in found]


def _of_long_table(table: SourceTable, samples: SourceTable, options: ReadOptions) -> NoisyDataset:
    """The data set of a table with one row per label; ``samples`` may be the same table."""
    names = Names(table.column_names, "columns", table.origin)
    label, annotator, id = (
        names.require(parameter, getattr(options, parameter)) for parameter in ("label", "annotator", "id")
    )
    of_sample, of_annotator = (
        _filled(table, name, what) for name, what in ((id, "id"), (annotator, "annotator"))
    )
    if samples is table:
        ids, rows = np.unique(of_sample, return_index=True)
        rows = np.sort(rows)  # samples are in the order in which they first occur
        ids = of_sample[rows]
    else:
        place = Names(samples.column_names, "columns", samples.origin).require("id", id)
        ids, rows = _filled(samples, place, "id"), np.arange(samples.n_rows)
        unknown = ~np.isin(of_sample, ids)
        if unknown.any():
            found = f"{of_sample[unknown.argmax()]!r}, in row {int(unknown.argmax())} of {table.origin}"
            advice = (
                f"{counted(int(unknown.sum()), 'label')} of such samples: add them, or remove the labels."
            )
            raise must_be("samples", f"a table with all samples ({samples.origin})", found, advice)
    given = AnnotatorLabels.from_table(
        of_sample,
        of_annotator,
        to_numpy(table.labels(label)),
        sample_ids=ids,
        missing_label=options.missing_label,
    )
    hidden = {label, annotator} if samples is table else set()
    voted = _VotedTable(samples, rows, given, hidden, table.class_names(label))
    dataset = dataset_of_table(voted, replace(options, id=id, label=_VOTES, labels_only=True))
    if samples is table:
        _warn_of_differences(table, dataset, of_sample, ids, rows, options)
    return dataset


def _filled(table: SourceTable, column: str, parameter: str) -> StrArray:
    cells = table.texts(column)
    if None in cells:
        rule = f"a column without empty cells ({table.origin})"
        raise must_be(parameter, rule, f"{column!r}, empty in row {cells.index(None)}")
    return np.array(cells, dtype=object)


def _warn_of_differences(
    table: SourceTable,
    dataset: NoisyDataset,
    of_sample: StrArray,
    ids: StrArray,
    rows: IntArray,
    options: ReadOptions,
) -> None:
    """Say that the text or path of a sample is not the same in all of its rows."""
    names = Names(table.column_names, "columns", table.origin)
    column = names.find_source(options)[1] if dataset.sources is not None else None
    if column is None:
        return
    cells = np.array(table.texts(column), dtype=object)
    first = dict(zip(ids.tolist(), cells[rows].tolist(), strict=True))
    differs = [row for row, id in enumerate(of_sample.tolist()) if cells[row] != first[id]]
    if differs:
        warnings.warn(
            f"The column {column!r} of {table.origin} differs between rows of the same sample, in "
            f"{counted(len(differs), 'row')}; the first is row {differs[0]} of sample "
            f"{of_sample[differs[0]]!r}. The first row of every sample is used.",
            LaplaceConfidenceWarning,
            stacklevel=2,
        )


class _VotedTable:
    """Some rows of a table, with one column of labels in place of those of the annotators."""

    row_names: StrArray | None = None

    def __init__(
        self,
        table: SourceTable,
        rows: IntArray,
        labels: AnnotatorLabels,
        hidden: set[str],
        class_names: list[str] | None,
    ) -> None:
        self._table, self._rows, self._labels, self._class_names = table, rows, labels, class_names
        self.origin, self.folder, self.n_rows = table.origin, table.folder, len(rows)
        self.column_names = [name for name in table.column_names if name not in hidden] + [_VOTES]

    def kind(self, column: str) -> ColumnKind:
        return self._table.kind(column)

    def type_name(self, column: str) -> str:
        return self._table.type_name(column)

    def labels(self, column: str) -> Any:
        return self._labels if column == _VOTES else to_numpy(self._table.labels(column))[self._rows]

    def class_names(self, column: str) -> list[str] | None:
        return self._class_names if column == _VOTES else self._table.class_names(column)

    def texts(self, column: str) -> list[str | None]:
        cells = self._table.texts(column)
        return [cells[row] for row in self._rows.tolist()]

    def numbers(self, columns: list[str]) -> NDArray[Any]:
        return self._table.numbers(columns)[self._rows]

    def lists(self, column: str) -> NDArray[Any]:
        return self._table.lists(column)[self._rows]


@contextmanager
def _opened(source: Any, options: ReadOptions, parameter: str) -> Iterator[SourceTable]:
    """Open a file, a frame or columns as a table."""
    if isinstance(source, (str, Path)):
        with open_table(Path(source), options, parameter) as table:
            yield table
        return
    if isinstance(source, Mapping) and not hasattr(source, "iloc"):
        import pandas as pd

        source = pd.DataFrame(dict(source))
    if hasattr(source, "iloc") and hasattr(source, "columns"):
        yield FrameTable(source, "the frame")
    elif hasattr(source, "__arrow_c_stream__"):
        import pyarrow as pa

        found = pa.table(source)
        yield ArrowTable(found.schema, found.num_rows, found.select, origin="the frame")
    else:
        raise must_be(parameter, "a table: a file, a frame or columns by name", type(source).__name__)
