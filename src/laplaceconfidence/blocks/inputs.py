"""Labels, features and ids of data that is read in blocks: Parquet files, or .npy files with labels apart."""

from __future__ import annotations

import json
import os
import warnings
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import IntArray, row_blocks, to_numpy
from laplaceconfidence.blocks.sources import (
    NPY,
    FeatureSource,
    Piece,
    files_of,
    open_features,
    open_parquet_file,
)
from laplaceconfidence.data.arrow_table import ArrowTable
from laplaceconfidence.data.dataset import NoisyDataset, SourceKind
from laplaceconfidence.data.feature_columns import advice_to_name, recognized_columns, requested_columns
from laplaceconfidence.data.label_files import given_labels
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.data.read_options import Names, ReadOptions
from laplaceconfidence.data.tables import TABLE_OPTIONS
from laplaceconfidence.exceptions import LaplaceConfidenceWarning
from laplaceconfidence.files import replacing, write_json
from laplaceconfidence.validation import check_same_length, must_be

if TYPE_CHECKING:
    import pyarrow as pa

_SPILLED_ROWS = 65_536


@dataclass(frozen=True, slots=True, eq=False)
class BlockData:
    """Data that is read in blocks; only the codes of the labels are in memory.

    Attributes
    ----------
    features : FeatureSource
        The features.
    labels : ndarray of int32, shape (n,)
        Codes of the given labels, MISSING where there is none.
    class_names : tuple of str
        Names of the classes.
    class_values : ndarray of shape (C,)
        The classes as they are written among the labels.
    columns : mapping of str to str
        Columns of Parquet files that hold the "id", "text" or "path" of samples.
    described : mapping of str to object
        Source and options, for the record of a run.
    is_wrong : ndarray of int8, shape (n,), or None
        Where true labels are known, for comparisons only: 1 if the given label is another one, 0 if not,
        MISSING where one of the two is missing.
    """

    features: FeatureSource
    labels: NDArray[Any]
    class_names: tuple[str, ...]
    class_values: NDArray[Any]
    columns: Mapping[str, str] = field(default_factory=dict)
    described: Mapping[str, Any] = field(default_factory=dict)
    is_wrong: NDArray[np.int8] | None = None

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def n_classes(self) -> int:
        """int: number of classes."""
        return len(self.class_names)

    @property
    def source_kind(self) -> SourceKind | None:
        """{"text", "image"} or None: what the samples can be shown by."""
        return "text" if "text" in self.columns else "image" if "path" in self.columns else None

    @property
    def has_ids(self) -> bool:
        """bool: whether the data itself has ids."""
        return "id" in self.columns


def open_data(source: Any, options: ReadOptions, folder: Path, *, fewest_classes: int = 2) -> BlockData:
    """Open data that is to be read in blocks.

    Parameters
    ----------
    source : path, list of paths, pair of arrays, NoisyDataset, dask array or data frame
        Parquet or .npy files, as for ``open_features``; or arrays, which are written to the folder first.
    options : ReadOptions
        How to read it.
    folder : Path
        Where what is not in files yet is written.
    fewest_classes : int, default=2
        Number of classes that the labels must have at least.

    Returns
    -------
    BlockData
    """
    data = _opened(source, options, folder)
    if data.n_classes < fewest_classes:
        found = f"1 class: {data.class_values.tolist()}"
        raise must_be(
            "labels", "of at least two classes", found, "A label can only be wrong where others exist."
        )
    return data


def _opened(source: Any, options: ReadOptions, folder: Path) -> BlockData:
    if isinstance(source, NoisyDataset):
        options.allow_only("a NoisyDataset")
        return _of_dataset(source, folder)
    if isinstance(source, tuple) and len(source) == 2:
        options.allow_only("a pair of features and labels", "missing_label")
        features, labels = source
        return _with_labels(_spilled(features, folder), to_numpy(_computed(labels)), options)
    if hasattr(source, "to_parquet") and hasattr(source, "npartitions"):  # a dask data frame
        folder.mkdir(parents=True, exist_ok=True)
        source.to_parquet(folder / "frame", write_index=False)
        source = folder / "frame"
    elif not isinstance(source, (str, os.PathLike, list)):
        rule = "a path, a list of paths, a pair (features, labels), a NoisyDataset or a dask data frame"
        raise must_be("source", f"{rule} where an audit runs in blocks", type(source).__name__)
    files = files_of(source)
    described = {"source": _full(source), "options": options.given}
    if files[0].lower().endswith(NPY):
        options.allow_only(".npy files, which hold the features", "labels", "missing_label")
        if options.labels is None:
            rule = (
                "a path to an .npy file or to a text file with one label per line, or the labels themselves"
            )
            raise must_be("labels", rule, None, f"{source} holds the features only.")
        data = _with_labels(open_features(files), given_labels(options.labels), options)
        return replace(data, described=described)
    options.allow_only("Parquet files that are read in blocks", *TABLE_OPTIONS)
    return replace(_of_parquet(files, options), described=described)


def cells(data: BlockData, role: str, pieces: Sequence[Piece]) -> list[str | None]:
    """Read the ids, texts or paths of some pieces.

    Parameters
    ----------
    data : BlockData
        The data.
    role : {"id", "text", "path"}
        What to read; one of ``data.columns``.
    pieces : sequence of Piece
        The pieces.

    Returns
    -------
    list of str or None
        ``None`` where a cell is empty.
    """
    column = data.columns[role]
    found: list[str | None] = []
    for piece in pieces:
        with open_parquet_file(piece.path) as file:
            part = file.read_row_group(piece.row_group, columns=[column])
        table = ArrowTable(part.schema, part.num_rows, part.select, origin=piece.path)
        found += table.texts(column)
    return found


def _of_parquet(files: list[str], options: ReadOptions) -> BlockData:
    with open_parquet_file(files[0]) as file:
        schema = file.schema_arrow
    table = ArrowTable(schema, 0, lambda names: schema.empty_table().select(names), origin=files[0])
    names = Names(table.column_names, "columns", files[0])
    label = names.require("label", options.label)
    kind, shown = names.find_source(options)
    id_column = names.find("id", options.id)
    true_label = names.find("true_label", options.true_label)
    taken = {label, true_label, shown, id_column}
    free = {name: table.type_name(name) for name in table.column_names if name not in taken}
    if names.is_not_a_name(options.features):
        raise must_be("features", "columns of the Parquet files that are read in blocks", options.features)
    if options.features is not None:
        columns = requested_columns(names, options.features)
    else:
        recognized = recognized_columns(free)
        if recognized is None:
            raise names.no_inputs_error(advice_to_name(free))
        columns = recognized
    for column in columns:
        if table.kind(column) == "other":
            rule = "columns of numbers where an audit runs in blocks"
            raise must_be("features", rule, column, "Encode other columns first.")
    features = open_features(files, columns)
    codes, distinct = _column_codes(files, label)
    roles = {"id": id_column, "text" if kind == "text" else "path": shown}
    return _coded(
        features,
        codes,
        distinct,
        class_names=table.class_names(label),
        missing_label=options.missing_label,
        columns={role: name for role, name in roles.items() if name is not None},
        truth=None if true_label is None else _column_codes(files, true_label),
    )


def _column_codes(files: list[str], column: str) -> tuple[IntArray, list[Any]]:
    """A column as positions in the list of its distinct cells; the cells themselves are not kept."""
    known: dict[Any, int] = {}
    codes = []
    for path in files:
        with open_parquet_file(path) as file:
            for batch in file.iter_batches(_SPILLED_ROWS, columns=[column]):
                encoded: pa.DictionaryArray = batch.column(0).dictionary_encode(null_encoding="encode")
                cells = [_label(cell) for cell in encoded.dictionary.to_pylist()]
                numbers = np.array([known.setdefault(cell, len(known)) for cell in cells], dtype=np.int32)
                codes.append(numbers[encoded.indices.to_numpy()])
    return np.concatenate(codes), list(known)


def _label(cell: Any) -> Any:
    return None if isinstance(cell, float) and np.isnan(cell) else cell


def _with_labels(features: FeatureSource, labels: Any, options: ReadOptions) -> BlockData:
    given = to_numpy(labels)
    if given.ndim != 1:
        raise must_be("labels", "one-dimensional, one label per sample", f"shape {given.shape}")
    check_same_length("features", features.n_rows, "labels", len(given))
    if given.dtype.kind == "O":
        known: dict[Any, int] = {}
        codes = np.array([known.setdefault(_label(cell), len(known)) for cell in given.tolist()])
        distinct = list(known)
    else:
        values, codes = np.unique(given, return_inverse=True)
        distinct = values.tolist()
    return _coded(features, codes, distinct, missing_label=options.missing_label)


def _coded(
    features: FeatureSource,
    codes: IntArray,
    distinct: list[Any],
    *,
    missing_label: object,
    class_names: list[str] | None = None,
    columns: Mapping[str, str] | None = None,
    truth: tuple[IntArray, list[Any]] | None = None,
) -> BlockData:
    check_same_length("features", features.n_rows, "labels", len(codes))
    # The distinct cells are read as the labels of a small data set are: one way of reading labels.
    reading: Any = {"class_names": class_names, "missing_label": missing_label}
    small = NoisyDataset.from_arrays(distinct, **reading)
    labels = small.labels.astype(np.int32)[codes]
    is_wrong = None
    if truth is not None:
        true_codes, true_distinct = truth
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LaplaceConfidenceWarning)  # the given labels were warned about
            both = NoisyDataset.from_arrays(
                distinct + [distinct[0]] * len(true_distinct),
                true_labels=[true_distinct[0]] * len(distinct) + true_distinct,
                **reading,
            )
        assert both.true_labels is not None
        is_wrong = _comparison(both.labels[codes], both.true_labels[len(distinct) :][true_codes])
    return BlockData(
        features, labels, small.class_names, small.class_values, columns or {}, is_wrong=is_wrong
    )


def _comparison(given: IntArray, truth: IntArray) -> NDArray[np.int8]:
    is_known = (given != MISSING) & (truth != MISSING)
    return np.where(is_known, given != truth, MISSING).astype(np.int8)


def _of_dataset(dataset: NoisyDataset, folder: Path) -> BlockData:
    if dataset.features is None:
        raise must_be("dataset", "one with features where an audit runs in blocks", repr(dataset))
    if len(dataset.views or ()) > 1:
        raise must_be("dataset", "one with a single view where an audit runs in blocks", repr(dataset))
    features = _spilled(dataset.comparable(dataset.features), folder)
    truth = dataset.true_labels
    return BlockData(
        features,
        dataset.labels.astype(np.int32),
        dataset.class_names,
        dataset.class_values,
        is_wrong=None if truth is None else _comparison(dataset.labels, truth),
    )


def _spilled(features: Any, folder: Path) -> FeatureSource:
    """Write an array in parts, so that workers can read it; the parts of a dask array are not gathered."""
    folder.mkdir(parents=True, exist_ok=True)
    if len(getattr(features, "shape", ())) != 2:
        raise must_be("features", "a matrix with one row per sample", type(features).__name__)
    if hasattr(features, "dask"):
        import dask

        blocks = features.rechunk({1: -1}).to_delayed().ravel()
        paths = [folder / f"features-{number:05d}-of-{len(blocks):05d}.npy" for number in range(len(blocks))]
        dask.compute(*(dask.delayed(_save)(block, path) for block, path in zip(blocks, paths, strict=True)))
        return open_features([str(path) for path in paths])
    path, about = folder / "features.npy", folder / "features.json"
    dtype = features.dtype if features.dtype in (np.float16, np.float32, np.float64) else np.dtype(np.float32)
    content = 0
    for rows in row_blocks(len(features), _SPILLED_ROWS):
        content = zlib.crc32(np.ascontiguousarray(features[rows], dtype=dtype).tobytes(), content)
    described = {"shape": list(features.shape), "dtype": str(dtype), "content": content}
    # A file that is there already stays as it is: an audit that goes on must not find it changed.
    if path.is_file() and about.is_file() and json.loads(about.read_text(encoding="utf-8")) == described:
        return open_features(path)
    with replacing(path) as temporary:
        out = np.lib.format.open_memmap(temporary, mode="w+", dtype=dtype, shape=tuple(features.shape))
        for rows in row_blocks(len(features), _SPILLED_ROWS):
            out[rows] = features[rows]
        out.flush()
    write_json(about, described)
    return open_features(path)


def _save(block: Any, path: Path) -> None:
    with replacing(path) as temporary:
        np.save(temporary, np.ascontiguousarray(block), allow_pickle=False)


def _computed(labels: Any) -> Any:
    return labels.compute() if hasattr(labels, "dask") else labels


def _full(source: Any) -> Any:
    if isinstance(source, list):
        return [_full(one) for one in source]
    text = os.fspath(source)
    return text if "://" in text else str(Path(text).absolute())
