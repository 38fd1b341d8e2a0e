"""Reader of .json files, which selects the format by their content."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from laplaceconfidence.data.coco import is_coco, read_coco
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.fiftyone import is_fiftyone, read_fiftyone
from laplaceconfidence.data.json_files import load_json
from laplaceconfidence.data.label_studio import is_label_studio, read_label_studio
from laplaceconfidence.data.read_options import ReadOptions
from laplaceconfidence.data.record_reader import RecordTable
from laplaceconfidence.data.tables import TABLE_OPTIONS, dataset_of_table
from laplaceconfidence.exceptions import DataFormatError


def read_json(path: Path, options: ReadOptions) -> NoisyDataset:
    """Read a .json file: tasks of Label Studio, COCO, FiftyOne, or an array of objects.

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
    content: Any = load_json(path)
    if is_label_studio(content):
        return read_label_studio(content, path, options)
    if is_coco(content):
        return read_coco(content, path, options)
    if is_fiftyone(content):
        return read_fiftyone(content, path, options)
    if isinstance(content, list) and content and all(isinstance(record, dict) for record in content):
        options.allow_only("a JSON array of objects", *TABLE_OPTIONS)
        return dataset_of_table(RecordTable(content, str(path), path.absolute().parent), options)
    raise DataFormatError(
        f"{path} is JSON, but in none of the formats that are read: tasks exported from Label Studio (a list "
        "of objects with 'data' and 'annotations'), COCO ('images', 'annotations' and 'categories'), "
        "FiftyOne ('classes' and 'labels', or 'samples'), or an array of objects with one sample each."
    )
