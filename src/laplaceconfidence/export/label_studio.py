"""Samples to look at as tasks of Label Studio, with suggestions and probabilities as pre-annotations."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal
from urllib.parse import quote
from xml.etree import ElementTree

import numpy as np

from laplaceconfidence.arrays import IntArray
from laplaceconfidence.data.labels import MISSING, encodable
from laplaceconfidence.data.picture_encoding import encode_picture
from laplaceconfidence.data.sample_search import ABSENT
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.export.correction import Correction
from laplaceconfidence.export.plan import ExportPlan
from laplaceconfidence.files import replacing, write_json
from laplaceconfidence.records.listed_files import data_folder
from laplaceconfidence.review.store import read_decisions

Tasks = Literal["first", "all"]

CONTROL = "label"
_LONGEST_SIDE = 512  # pixels of pictures that are part of a task


def write_label_studio(
    path: Path, config: Path, plan: ExportPlan, correction: Correction, tasks: Tasks = "first"
) -> int:
    """Write tasks for Label Studio, the least trustworthy label first, and the configuration of its page.

    A task has the sample, its id, the given label and its score, and a prediction: the label of the plan
    where it differs from the given one, else what a reviewer is offered, with its probability as the score.

    Parameters
    ----------
    path : pathlib.Path
        The .json file of the tasks.
    config : pathlib.Path
        The .xml file of the configuration.
    plan : ExportPlan
        The new labels.
    correction : Correction
        The plan, applied to the data as it is now.
    tasks : {"first", "all"}, default="first"
        "first" writes the labels to look at first and the samples without a label, without those that a
        person has decided on; "all" writes all samples.

    Returns
    -------
    int
        Number of tasks.
    """
    samples, record = plan.samples, plan.samples.run.record
    shown = _Shown(plan, correction)
    names = encodable(np.array(samples.class_names, dtype=object))
    if unfit := [name for name in names if not str(name).isprintable()]:
        raise InvalidInputError(
            f"Label Studio cannot show the class {unfit[0]!r}, which has control characters: rename it first."
        )
    version = record.versions.get("laplaceconfidence", "")
    written = []
    for row in _rows(plan, correction, tasks).tolist():
        code, probability = int(plan.codes[row]), 1.0
        if code == samples.in_data[row]:
            code, probability = int(samples.offered[row]), float(samples.offered_probability[row])
        given, score = int(samples.in_data[row]), float(samples.confidence[row])
        written.append(
            {
                "data": {
                    "id": str(encodable(samples.ids[[row]])[0]),
                    "row": int(row),
                    shown.key: shown.value(row),
                    "given_label": None if given == MISSING else str(names[given]),
                    "label_score": None if np.isnan(score) else round(score, 6),
                },
                "predictions": [
                    {
                        "model_version": f"laplaceconfidence {version} {record.estimator}",
                        "score": round(probability, 6),
                        "result": [
                            {
                                "id": f"suggestion-{row}",
                                "from_name": CONTROL,
                                "to_name": shown.key,
                                "type": "choices",
                                "value": {"choices": [str(names[code])]},
                            }
                        ],
                    }
                ],
            }
        )
    if not written:
        raise InvalidInputError(
            "There is no label to look at that nobody has decided on: use --tasks all to write all samples."
        )
    write_json(path, written)
    with replacing(config) as temporary:
        temporary.write_bytes(_configuration(shown.key, [str(name) for name in names]))
    return len(written)


class _Shown:
    """What Label Studio shows of a sample: its text, or the address of its image."""

    def __init__(self, plan: ExportPlan, correction: Correction) -> None:
        self._samples, self._original = plan.samples, correction.original
        self._root = data_folder(plan.samples.run)
        is_text = plan.samples.run.record.source_kind == "text"
        self._images = None if is_text else correction.dataset.images
        if self._images is None and plan.samples.sources is None:
            raise InvalidInputError(
                "The 'format' parameter must not be 'label-studio' for data without texts or images, which "
                "Label Studio shows. Name a column with --text or --path in the audit."
            )
        self.key = "text" if is_text else "image"

    def value(self, row: int) -> str:
        if self._samples.sources is not None:
            source = str(self._samples.sources[row])
            return source if self.key == "text" or "://" in source else self._address(source)
        assert self._images is not None
        return encode_picture(self._images[self._original.rows[row]], _LONGEST_SIDE).data_uri

    def _address(self, path: str) -> str:
        """Where Label Studio serves a local file, below the folder of the data if it is there."""
        root = (
            Path(path).anchor
            if self._root is None or not Path(path).is_relative_to(self._root)
            else self._root
        )
        relative = os.path.relpath(path, root).replace(os.sep, "/")
        return f"/data/local-files/?d={quote(relative)}"


def _rows(plan: ExportPlan, correction: Correction, tasks: Tasks) -> IntArray:
    samples = plan.samples
    rows: IntArray = samples.order
    is_there = (correction.original.rows != ABSENT) & plan.is_kept
    if tasks == "first":
        unlabeled = rows[~samples.is_labeled[rows]]
        rows = np.concatenate([samples.first_rows, unlabeled])
        decided = [decision.row for decision in read_decisions(samples.run.folder, samples.run.record)]
        is_there[decided] = False
    found: IntArray = rows[is_there[rows]]
    return found


def _configuration(key: str, class_names: list[str]) -> bytes:
    view = ElementTree.Element("View")
    ElementTree.SubElement(view, key.capitalize(), name=key, value=f"${key}")
    ElementTree.SubElement(view, "Header", value="Given label: $given_label")
    choices = ElementTree.SubElement(view, "Choices", name=CONTROL, toName=key, choice="single")
    for name in class_names:
        ElementTree.SubElement(choices, "Choice", value=name)
    ElementTree.indent(view)
    return bytes(ElementTree.tostring(view, encoding="utf-8"))
