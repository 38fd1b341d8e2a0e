"""Tables in CSV, Parquet, JSON Lines and Excel files, and in folders of files that are parts of one table."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from laplaceconfidence.data.arrow_reader import arrow_options, dataset_of_arrow, open_parquet
from laplaceconfidence.data.arrow_table import ArrowTable
from laplaceconfidence.data.csv_reader import open_csv
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.excel_reader import EXCEL_SUFFIXES, open_excel
from laplaceconfidence.data.image_folder import IMAGE_SUFFIXES, SPLIT_NAMES
from laplaceconfidence.data.json_files import JSON_LINES_SUFFIXES
from laplaceconfidence.data.read_options import ReadOptions
from laplaceconfidence.data.record_reader import open_json_lines
from laplaceconfidence.data.source_paths import in_order
from laplaceconfidence.data.tables import TABLE_OPTIONS, SourceTable, dataset_of_table
from laplaceconfidence.exceptions import DataFormatError
from laplaceconfidence.validation import must_be

CSV_SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
PARQUET_SUFFIXES = (".parquet", ".pq")
TABLE_SUFFIXES = (*CSV_SUFFIXES, *PARQUET_SUFFIXES, *JSON_LINES_SUFFIXES, *EXCEL_SUFFIXES)

TableKind = Literal["csv", "parquet", "jsonl"]
_SUFFIXES_OF_PARTS: dict[TableKind, tuple[str, ...]] = {
    "csv": CSV_SUFFIXES,
    "parquet": PARQUET_SUFFIXES,
    "jsonl": JSON_LINES_SUFFIXES,
}
_SHARD = re.compile(r"(.+)-\d+-of-\d+")  # how the files of a split are named, without the suffix


def table_kind(path: Path) -> TableKind | None:
    """Return the kind of a table that may be in several files.

    Parameters
    ----------
    path : Path
        A file, or a folder.

    Returns
    -------
    {"csv", "parquet", "jsonl"} or None
        ``None`` for any other file, and for a folder that is not a folder of tables.
    """
    if path.is_dir():
        files = table_files(path)
        return _kind_of(files[0]) if files else None
    return _kind_of(path)


def table_files(folder: Path) -> list[Path]:
    """Return the tables in a folder, or in its subfolder ``data``, by name.

    Parameters
    ----------
    folder : Path
        The folder.

    Returns
    -------
    list of Path
        Numbers in names are in numeric order. Empty where CSV files or JSON Lines lie beside images, or
        beside further folders, as a table about classes of images does.

    Raises
    ------
    DataFormatError
        If there are tables of different kinds, or one both compressed and not.
    """
    for place in (folder, folder / "data"):
        if not place.is_dir():
            continue
        visible = [entry for entry in place.iterdir() if entry.name[0] not in "._"]
        tables = in_order(entry for entry in visible if _kind_of(entry) is not None and entry.is_file())
        has_parquet = any(_kind_of(path) == "parquet" for path in tables)
        is_of_images = any(entry.is_dir() or entry.suffix.lower() in IMAGE_SUFFIXES for entry in visible)
        if tables and (has_parquet or not is_of_images):
            _check_parts(tables)
            return tables
    return []


def table_parts(path: Path, split: str | None = None) -> list[Path]:
    """Return the files of a table: the file itself, or those of a folder that belong to a split.

    Parameters
    ----------
    path : Path
        A file, or a folder of tables.
    split : str or None, default=None
        The split; ``None`` is allowed where the names of the files do not name several.

    Returns
    -------
    list of Path
        In the order of their rows.
    """
    if not path.is_dir():
        return [path]
    by_split: defaultdict[str | None, list[Path]] = defaultdict(list)
    for file in table_files(path):
        by_split[_split_of(file)].append(file)
    if split is None and len(by_split) == 1:
        return next(iter(by_split.values()))
    named = [name for name in by_split if name is not None]
    if split not in named:
        others = f" {by_split[None][0].name} names none." if None in by_split else ""
        rule = f"one of the splits that the files of {path} name, {', '.join(map(repr, named)) or 'none'}"
        raise must_be("split", rule, split, f"Or give the path of one file.{others}")
    return by_split[split]


def read_table_folder(folder: Path, options: ReadOptions) -> NoisyDataset:
    """Read the tables of a folder as one table.

    Parameters
    ----------
    folder : Path
        The folder.
    options : ReadOptions
        Options of ``read_dataset``. ``split`` selects files by name, such as ``train-00000-of-00002.parquet``
        or ``train.csv.gz``.

    Returns
    -------
    NoisyDataset
    """
    with open_table(folder, options, "source") as table:
        if isinstance(table, ArrowTable):
            options.allow_only("a folder of Parquet files", "split", *arrow_options(table))
            return dataset_of_arrow(table, options)
        options.allow_only("a folder of tables", "split", *TABLE_OPTIONS)
        return dataset_of_table(table, options)


@contextmanager
def open_table(path: Path, options: ReadOptions, parameter: str) -> Iterator[SourceTable]:
    """Open a table for the duration of a ``with`` block.

    Parameters
    ----------
    path : Path
        A file with a table, or a folder of files with its parts.
    options : ReadOptions
        Names the columns of a CSV file that are read as text, and the split of a folder.
    parameter : str
        Name of the parameter in error messages.

    Yields
    ------
    SourceTable
    """
    kind = table_kind(path)
    if not path.is_file() and not (path.is_dir() and kind is not None):
        raise must_be(parameter, "a path to an existing file", str(path))
    parts = table_parts(path, options.split)
    if kind == "csv":
        yield open_csv(parts, options, str(path))
    elif kind == "parquet":
        with open_parquet(parts, str(path)) as table:
            yield table
    elif kind == "jsonl":
        yield open_json_lines(parts, str(path))
    elif path.name.lower().endswith(EXCEL_SUFFIXES):
        yield open_excel(path)
    else:
        raise must_be(parameter, f"a table ({', '.join(TABLE_SUFFIXES)})", str(path))


def _kind_of(file: Path) -> TableKind | None:
    name = file.name.lower()
    return next((kind for kind, ends in _SUFFIXES_OF_PARTS.items() if name.endswith(ends)), None)


def _stem(file: Path) -> str:
    """The name without the suffixes of its kind."""
    name = file.name.lower().removesuffix(".gz")
    return name[: name.rindex(".")]


def _split_of(file: Path) -> str | None:
    stem = file.name[: len(_stem(file))]
    if (shard := _SHARD.fullmatch(stem)) is not None:
        return shard[1]
    return stem if stem.lower() in SPLIT_NAMES else None


def _check_parts(tables: list[Path]) -> None:
    folder = tables[0].parent
    kinds = [_kind_of(path) for path in tables]
    odd = min(set(kinds), key=kinds.count)
    if len(set(kinds)) > 1:
        found = next(path for path, kind in zip(tables, kinds, strict=True) if kind == odd)
        other = next(path for path, kind in zip(tables, kinds, strict=True) if kind != odd)
        raise DataFormatError(
            f"{folder} holds tables of different kinds, such as {found.name} and {other.name}: the parts of "
            "one table must be of one kind. Move the others away, or give the path of one file."
        )
    known: dict[str, Path] = {}
    for path in tables:
        if (other := known.setdefault(_stem(path), path)) is not path:
            raise DataFormatError(
                f"{folder} holds both {other.name} and {path.name}, whose rows would count twice. Remove one."
            )
