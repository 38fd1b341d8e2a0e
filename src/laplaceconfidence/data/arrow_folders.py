"""Reader of the folders that ``save_to_disk`` of Hugging Face writes.

data-00000-of-00001.arrow    the rows; the schema names classes and columns of images
state.json                   which of the files belong to the data set
dataset_dict.json            in the folder above, where there are several splits: their names
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from laplaceconfidence.data.arrow_reader import (
    arrow_options,
    chosen_split,
    dataset_of_arrow,
)
from laplaceconfidence.data.arrow_table import ArrowTable
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.json_files import load_json
from laplaceconfidence.data.read_options import ReadOptions
from laplaceconfidence.data.source_paths import listed_file
from laplaceconfidence.exceptions import DataFormatError
from laplaceconfidence.validation import must_be

if TYPE_CHECKING:
    import pyarrow as pa

SPLITS_FILE = "dataset_dict.json"
STATE_FILE = "state.json"

_END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"


def is_huggingface_folder(folder: Path) -> bool:
    """Return whether a folder was written by ``save_to_disk`` of Hugging Face's library.

    Parameters
    ----------
    folder : Path
        The folder.

    Returns
    -------
    bool
    """
    has_state = (folder / STATE_FILE).is_file() and (folder / "dataset_info.json").is_file()
    return has_state or (folder / SPLITS_FILE).is_file()


def read_huggingface_folder(folder: Path, options: ReadOptions) -> NoisyDataset:
    """Read a Hugging Face data set from disk; Hugging Face's library is not needed.

    Parameters
    ----------
    folder : Path
        The folder.
    options : ReadOptions
        Options of ``read_dataset``; ``split`` selects a part of a data set that has several.

    Returns
    -------
    NoisyDataset
    """
    table = open_huggingface_folder(folder, options.split)
    options.allow_only("a Hugging Face dataset", "split", *arrow_options(table))
    return dataset_of_arrow(table, options)


def open_huggingface_folder(folder: Path, split: str | None) -> ArrowTable:
    """Open a Hugging Face data set, or one of its splits, as a table.

    Parameters
    ----------
    folder : Path
        The folder.
    split : str or None
        The split.

    Returns
    -------
    ArrowTable
    """
    loaded = read_huggingface_table(folder, split)
    return ArrowTable(
        loaded.schema, loaded.num_rows, loaded.select, origin=str(folder), folder=folder.absolute()
    )


def read_huggingface_table(folder: Path, split: str | None) -> pa.Table:
    """Read the rows of a Hugging Face data set, or of one of its splits; they are mapped, not copied.

    Parameters
    ----------
    folder : Path
        The folder.
    split : str or None
        The split.

    Returns
    -------
    pyarrow.Table
    """
    import pyarrow as pa

    if (folder / SPLITS_FILE).is_file():
        names = load_json(folder / SPLITS_FILE)
        splits = names.get("splits") if isinstance(names, dict) else None
        if not isinstance(splits, list) or not splits or not all(isinstance(name, str) for name in splits):
            raise DataFormatError(f"{folder / SPLITS_FILE} must hold 'splits', a list of names.")
        name = chosen_split(splits, split)
        folder = listed_file(folder, name, f"The split in {folder / SPLITS_FILE}")
    elif split is not None:
        raise must_be("split", "left out for a dataset without splits", split)
    state = load_json(folder / STATE_FILE)
    try:
        names = [entry["filename"] for entry in state["_data_files"]]
    except (KeyError, TypeError) as error:
        raise DataFormatError(
            f"{folder / STATE_FILE} does not list the files of a Hugging Face dataset: save it again."
        ) from error
    if not names:
        raise must_be("source", "a dataset with at least one row", f"{folder} without files")
    parts = [_stream(listed_file(folder, str(name), str(folder / STATE_FILE))) for name in names]
    try:
        return pa.concat_tables(parts)
    except pa.ArrowException as error:
        raise DataFormatError(f"The files of {folder} have different columns: {error}.") from error


def _stream(path: Path) -> Any:
    import pyarrow as pa

    try:
        with path.open("rb") as file:
            file.seek(-len(_END_OF_STREAM), 2)
            is_complete = file.read() == _END_OF_STREAM
        if not is_complete:  # a reader would take what is there for the whole table
            raise DataFormatError(f"{path} is truncated: its end is missing. Copy or save it again.")
        table = pa.ipc.open_stream(pa.memory_map(str(path))).read_all()
        table.validate()
        return table
    except (pa.ArrowException, OSError) as error:
        raise DataFormatError(
            f"{path} cannot be read as an Arrow table: it is missing, truncated or damaged ({error}). "
            "Copy or save it again."
        ) from error
