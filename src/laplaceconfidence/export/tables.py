"""Corrected data sets as tables: CSV, Parquet and JSON lines."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import compress, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import BoolArray
from laplaceconfidence.csv_files import unguarded_cells, write_csv
from laplaceconfidence.data.arrow_folders import is_huggingface_folder
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.excel_reader import EXCEL_SUFFIXES, load_excel
from laplaceconfidence.data.json_files import load_json_lines
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.data.read_options import Names
from laplaceconfidence.data.table_files import TableKind, table_kind, table_parts
from laplaceconfidence.export.original import Original
from laplaceconfidence.files import not_as_written, replacing
from laplaceconfidence.parquet_files import write_parquet
from laplaceconfidence.records.data_archive import plain_labels

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


def write_csv_table(path: Path, original: Original, corrected: NoisyDataset, is_kept: BoolArray) -> int:
    """Write the table the data came from with its label column corrected, or a new table for other data.

    Parameters
    ----------
    path : pathlib.Path
        The file to write.
    original : Original
        The audited data.
    corrected : NoisyDataset
        The same with the new labels.
    is_kept : ndarray of bool of shape (n,)
        Which samples are written.

    Returns
    -------
    int
        Number of cells that were written with an apostrophe in front, as a spreadsheet would evaluate them.
    """
    separator = "\t" if ".tsv" in path.name.lower() else ","
    name = "" if original.path is None else original.path.name.lower()
    if kind_of_original(original) == "csv":
        frame = _corrected_csv(original, corrected)[is_kept]
    elif name.endswith(EXCEL_SUFFIXES):
        frame = _corrected_sheet(original, corrected)[is_kept]
    else:
        kept = corrected.subset(is_kept)
        frame = _frame(kept)
        if kept.features is not None:
            import pandas as pd

            width = len(str(kept.features.shape[1] - 1))
            numbered = [f"feature_{number:0{width}d}" for number in range(kept.features.shape[1])]
            names = list(kept.feature_columns or ())
            names = names if len(names) == len(numbered) else numbered
            frame = pd.concat([frame, pd.DataFrame(kept.features, columns=names)], axis=1)
    return write_csv(path, frame, separator=separator)


def write_parquet_table(path: Path, original: Original, corrected: NoisyDataset, is_kept: BoolArray) -> None:
    """Write the same as Parquet; in a new table, features are one column of lists.

    Parameters
    ----------
    path : pathlib.Path
        The file to write.
    original : Original
        The audited data.
    corrected : NoisyDataset
        The same with the new labels.
    is_kept : ndarray of bool of shape (n,)
        Which samples are written.
    """
    import pyarrow as pa

    if kind_of_original(original) == "parquet":
        table = _corrected_parquet(original, corrected).filter(pa.array(is_kept))
    else:
        kept = corrected.subset(is_kept)
        table = pa.Table.from_pandas(_frame(kept), preserve_index=False)
        if kept.features is not None:
            width = kept.features.shape[1]
            values = pa.array(np.ascontiguousarray(kept.features).reshape(-1))
            table = table.append_column("features", pa.FixedSizeListArray.from_arrays(values, width))
    write_parquet(path, table)


def kind_of_original(original: Original) -> TableKind | None:
    """Return what kind of table the data came from, a file or a folder of its parts.

    Parameters
    ----------
    original : Original
        The audited data.

    Returns
    -------
    {"csv", "parquet", "jsonl"} or None
        ``None`` for other data.
    """
    path = original.path
    if path is None or (path.is_dir() and is_huggingface_folder(path)):
        return None
    return table_kind(path)


def _parts(original: Original) -> list[Path]:
    assert original.path is not None
    return table_parts(original.path, (original.options or {}).get("split"))


def write_jsonl(path: Path, original: Original, corrected: NoisyDataset, is_kept: BoolArray) -> None:
    """Write one JSON object per line: id, label (null if missing), text or path, and features.

    Where the data came from such a file, every object is as it was there, except for labels that changed.

    Parameters
    ----------
    path : pathlib.Path
        The file to write.
    original : Original
        The audited data.
    corrected : NoisyDataset
        The same with the new labels.
    is_kept : ndarray of bool of shape (n,)
        Which samples are written.
    """
    lines: Callable[[], Iterator[dict[str, Any]]]
    if kind_of_original(original) == "jsonl":
        records = _corrected_objects(original, corrected)
        lines = partial(compress, records, is_kept.tolist())
    else:
        lines = partial(_json_lines, corrected.subset(is_kept))
    # Half of a surrogate pair, which UTF-8 cannot hold, is written as JSON escapes it.
    with replacing(path) as temporary:
        with temporary.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines())
        _check_jsonl(temporary, lines(), path.name)


def _json_lines(dataset: NoisyDataset) -> Iterator[dict[str, Any]]:
    values = dataset.class_values
    for row, code in enumerate(dataset.labels.tolist()):
        line: dict[str, Any] = {
            "id": str(dataset.sample_ids[row]),
            "label": None if code == MISSING else values[code].item(),
        }
        if dataset.sources is not None:
            line[_source_column(dataset)] = dataset.sources[row]
        if dataset.features is not None:
            line["features"] = dataset.features[row].tolist()
        yield line


def _corrected_objects(original: Original, corrected: NoisyDataset) -> list[dict[str, Any]]:
    records = [record for path in _parts(original) for record in load_json_lines(path)]
    label, path = _columns(original, list(dict.fromkeys(name for record in records for name in record)))
    values = corrected.class_values
    for row in np.flatnonzero(corrected.labels != original.dataset.labels).tolist():
        code = int(corrected.labels[row])
        records[row] = {**records[row], label: None if code == MISSING else values[code].item()}
    if path is not None:  # relative paths would not be found from another folder
        assert original.dataset.sources is not None
        sources = original.dataset.sources.tolist()
        records = [{**record, path: source} for record, source in zip(records, sources, strict=True)]
    return records


def _check_jsonl(path: Path, lines: Iterator[dict[str, Any]], name: str) -> None:
    """Read a file back and compare it with the objects it was written from."""
    with path.open(encoding="utf-8", newline="\n") as file:
        for number, (text, line) in enumerate(zip_longest(file, lines), start=1):
            try:
                # Not the values themselves: NaN, which Python writes and reads, is not equal to itself.
                is_same = text is not None and repr(json.loads(text)) == repr(line)
            except ValueError:
                is_same = False
            if not is_same:
                raise not_as_written(name, f"another line {number}")


def _frame(dataset: NoisyDataset) -> pd.DataFrame:
    import pandas as pd

    labels = plain_labels(dataset.class_values, dataset.labels)
    columns: dict[str, Any] = {"id": dataset.sample_ids.astype(str), "label": labels}
    if labels.dtype.kind == "f":  # whole numbers with gaps
        columns["label"] = pd.array(labels, dtype="Int64")
    if dataset.sources is not None:
        columns[_source_column(dataset)] = dataset.sources
    return pd.DataFrame(columns)


def _source_column(dataset: NoisyDataset) -> str:
    return "path" if dataset.source_kind == "image" else "text"


def _corrected_csv(original: Original, corrected: NoisyDataset) -> pd.DataFrame:
    """Every cell as its text in the file, except for the labels that changed."""
    import pandas as pd

    parts = [
        pd.read_csv(
            path,
            sep="\t" if ".tsv" in path.name.lower() else ",",
            header=None,  # pandas would give a name to a column without one
            dtype=str,
            keep_default_na=False,
            encoding="utf-8-sig",
            index_col=False,
        )
        for path in _parts(original)
    ]
    frame = pd.concat([rows.iloc[1:] for rows in parts], ignore_index=True)
    frame.columns = pd.Index(parts[0].iloc[0])
    frame = unguarded_cells(frame)
    label, path = _columns(original, list(frame.columns))
    changed = np.flatnonzero(corrected.labels != original.dataset.labels)
    texts = frame[label].to_numpy(dtype=object)
    written = _classes_as_written(original.dataset, texts)
    texts[changed] = ["" if code == MISSING else written[code] for code in corrected.labels[changed].tolist()]
    frame[label] = texts
    if path is not None:  # relative paths would not be found from another folder
        frame[path] = original.dataset.sources
    return frame


def _corrected_sheet(original: Original, corrected: NoisyDataset) -> pd.DataFrame:
    """Every cell of the first sheet of an Excel file, except for the labels that changed."""
    assert original.path is not None
    frame = load_excel(original.path)
    frame.columns = [str(name) for name in frame.columns]
    label, path = _columns(original, list(frame.columns))
    labels = frame[label].to_numpy(dtype=object)
    for row in np.flatnonzero(corrected.labels != original.dataset.labels).tolist():
        code = int(corrected.labels[row])
        labels[row] = None if code == MISSING else corrected.class_values[code].item()
    frame[label] = labels
    if path is not None:
        frame[path] = original.dataset.sources
    return frame


def _classes_as_written(dataset: NoisyDataset, texts: NDArray[Any]) -> list[str]:
    """Every class as most of its labels are written in the file, such as "2.0" for 2."""
    writings: list[Counter[str]] = [Counter() for _ in dataset.class_names]
    for code, text in zip(dataset.labels.tolist(), texts.tolist(), strict=True):
        if code != MISSING:
            writings[code][text] += 1
    is_decimal = dataset.given is not None and dataset.given.given.dtype.kind == "f"
    return [
        counts.most_common(1)[0][0] if counts else str(float(value) if is_decimal else value)
        for counts, value in zip(writings, dataset.class_values.tolist(), strict=True)
    ]


def _corrected_parquet(original: Original, corrected: NoisyDataset) -> pa.Table:
    """Every column as it is, except for the labels that changed, which keep their type."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    parts = [pq.read_table(path) for path in _parts(original)]
    return corrected_arrow(pa.concat_tables(parts), original, corrected)


def corrected_arrow(table: pa.Table, original: Original, corrected: NoisyDataset) -> pa.Table:
    """Replace the labels that changed in the table that data was read from; they keep their type.

    Parameters
    ----------
    table : pyarrow.Table
        All rows and columns of the data.
    original : Original
        The audited data.
    corrected : NoisyDataset
        The same with the new labels.

    Returns
    -------
    pyarrow.Table
    """
    import pyarrow as pa

    label, path = _columns(original, table.column_names)
    changed = np.flatnonzero(corrected.labels != original.dataset.labels)
    values = corrected.class_values
    column = table.column(label)
    plain = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    labels = plain.to_pylist()
    for row in changed.tolist():
        code = int(corrected.labels[row])
        labels[row] = None if code == MISSING else values[code].item()
    replaced = pa.array(labels, type=plain.type)
    if pa.types.is_dictionary(column.type):
        replaced = replaced.dictionary_encode()
    position = table.column_names.index(label)
    field = table.schema.field(position).with_type(replaced.type).with_nullable(True)
    table = table.set_column(position, field, replaced)
    if path is not None:
        position = table.column_names.index(path)
        table = table.set_column(position, path, pa.array(original.dataset.sources.tolist()))  # type: ignore[union-attr]
    return table


def _columns(original: Original, names: list[str]) -> tuple[str, str | None]:
    """The column of the labels and, for images, that of their paths."""
    options = original.options or {}
    known = Names(names, "columns", str(original.path))
    label = known.require("label", options.get("label"))
    is_image = original.dataset.source_kind == "image"
    return label, known.find("path", options.get("path")) if is_image else None
