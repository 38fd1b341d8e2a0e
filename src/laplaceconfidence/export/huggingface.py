"""A corrected data set as ``datasets.load_from_disk`` reads it; Hugging Face's library is not needed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from laplaceconfidence.arrays import BoolArray, row_blocks
from laplaceconfidence.data.arrow_folders import (
    STATE_FILE,
    is_huggingface_folder,
    read_huggingface_table,
)
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.labels import MISSING, encodable
from laplaceconfidence.export.export_folder import ImageCopies, WrittenImages, new_export_folder
from laplaceconfidence.export.original import Original
from laplaceconfidence.export.tables import corrected_arrow
from laplaceconfidence.files import not_as_written, write_json

if TYPE_CHECKING:
    import pyarrow as pa

_DATA_FILE = "data-00000-of-00001.arrow"
_ROWS_AT_ONCE = 256  # limits the memory of images


def write_huggingface(
    folder: Path,
    original: Original,
    corrected: NoisyDataset,
    is_kept: BoolArray,
    *,
    data_folder: Path | None = None,
) -> WrittenImages:
    """Write the data set the data came from with its labels corrected, or a new one for other data.

    A new one has the columns ``id``, ``label`` (with the names of the classes), ``text`` or ``image`` (with
    the bytes of the files), and ``features``.

    Parameters
    ----------
    folder : pathlib.Path
        Where to write it; an earlier export there is replaced.
    original : Original
        The audited data.
    corrected : NoisyDataset
        The same with the new labels.
    is_kept : ndarray of bool of shape (n,)
        Which samples are written.
    data_folder : pathlib.Path, optional
        The folder of the data: images that are links out of it are left out.

    Returns
    -------
    WrittenImages
    """
    import pyarrow as pa

    written = WrittenImages()
    with new_export_folder(folder) as temporary:
        if original.path is not None and original.path.is_dir() and is_huggingface_folder(original.path):
            split = (original.options or {}).get("split")
            table = corrected_arrow(read_huggingface_table(original.path, split), original, corrected)
            table = table.filter(pa.array(is_kept))
            _write(temporary, table.schema, iter(table.to_batches()))
        else:
            kept = corrected.subset(is_kept)
            copies = None
            if kept.images is not None or kept.source_kind == "image":
                copies = ImageCopies(kept, "huggingface", copy=True, data_folder=data_folder)
            schema = _schema(kept)
            _write(temporary, schema, _batches(kept, copies, schema))
            written = WrittenImages() if copies is None else copies.written
        n_expected = int(is_kept.sum()) - written.n_lost - written.n_outside
        n_read = read_huggingface_table(temporary, None).num_rows
        if n_read != n_expected:
            raise not_as_written(folder.name, f"{n_read} rows instead of {n_expected}")
    return written


def _schema(dataset: NoisyDataset) -> pa.Schema:
    """Names and types of the columns, also in the way that Hugging Face's library stores them."""
    import pyarrow as pa

    text = {"dtype": "string", "_type": "Value"}
    kinds: dict[str, tuple[Any, dict[str, Any]]] = {
        "id": (pa.string(), text),
        "label": (pa.int64(), {"names": list(dataset.class_names), "_type": "ClassLabel"}),
    }
    if dataset.source_kind == "text":
        kinds["text"] = (pa.string(), text)
    elif dataset.images is not None or dataset.source_kind == "image":
        image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
        kinds["image"] = (image, {"_type": "Image"})
    if dataset.features is not None:
        name = "float32" if dataset.features.dtype == np.float32 else "float64"
        kind = pa.float32() if name == "float32" else pa.float64()
        stored = {"feature": {"dtype": name, "_type": "Value"}, "_type": "Sequence"}
        kinds["features"] = (pa.list_(kind), stored)
    info = {"info": {"features": {name: stored for name, (_, stored) in kinds.items()}}}
    fields = [(name, kind) for name, (kind, _) in kinds.items()]
    return pa.schema(fields, metadata={"huggingface": json.dumps(info)})


def _batches(
    dataset: NoisyDataset, copies: ImageCopies | None, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    ids = encodable(dataset.sample_ids)
    texts = None if dataset.source_kind != "text" else encodable(np.asarray(dataset.sources))
    for block in row_blocks(len(dataset), _ROWS_AT_ONCE):
        rows = range(len(dataset))[block]
        if copies is not None:
            rows = [row for row in rows if copies.is_there(row)]  # type: ignore[assignment]
        columns: dict[str, list[Any]] = {
            "id": [str(ids[row]) for row in rows],
            "label": [None if code == MISSING else code for code in dataset.labels[rows].tolist()],
        }
        if texts is not None:
            columns["text"] = [str(texts[row]) for row in rows]
        elif copies is not None:
            columns["image"] = [{"bytes": copies.content(row), "path": _name(dataset, row)} for row in rows]
        if dataset.features is not None:
            columns["features"] = list(dataset.features[rows])
        yield pa.RecordBatch.from_pydict(columns, schema=schema)


def _name(dataset: NoisyDataset, row: int) -> str | None:
    return None if dataset.sources is None else Path(str(dataset.sources[row])).name


def _write(folder: Path, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
    import pyarrow as pa

    with pa.OSFile(str(folder / _DATA_FILE), "wb") as file, pa.ipc.new_stream(file, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    stored = json.loads((schema.metadata or {}).get(b"huggingface", b"{}")).get("info", {}).get("features")
    information = {"citation": "", "description": "", "homepage": "", "license": ""}
    write_json(folder / "dataset_info.json", {**information, "features": stored})
    state: dict[str, Any] = {
        "_data_files": [{"filename": _DATA_FILE}],
        "_fingerprint": folder.name.rpartition(".")[2],  # random, as the library requires any
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": None,
    }
    write_json(folder / STATE_FILE, state)
