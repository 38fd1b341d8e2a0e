"""Reader of tasks that Label Studio exports as JSON, with one choice per task.

[{"id": 1, "data": {"text": "..."},
  "annotations": [{"was_cancelled": false, "result": [
      {"from_name": "mood", "to_name": "text", "type": "choices", "value": {"choices": ["good"]}}]}]}]
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.image_folder import IMAGE_SUFFIXES
from laplaceconfidence.data.read_options import USUAL_NAMES, ReadOptions
from laplaceconfidence.data.record_reader import RecordTable
from laplaceconfidence.data.source_paths import listed_file
from laplaceconfidence.data.tables import TABLE_OPTIONS, dataset_of_table
from laplaceconfidence.exceptions import DataFormatError, LaplaceConfidenceWarning
from laplaceconfidence.validation import must_be

_UPLOADS, _LOCAL_FILES = "/data/upload/", "/data/local-files/"


def is_label_studio(content: Any) -> bool:
    """Return whether a JSON document is a list of tasks of Label Studio.

    Parameters
    ----------
    content : object
        The document.

    Returns
    -------
    bool
    """
    return (
        isinstance(content, list)
        and len(content) > 0
        and all(isinstance(task, dict) and isinstance(task.get("data"), dict) for task in content)
        and any("annotations" in task or "predictions" in task for task in content)
    )


def read_label_studio(content: list[dict[str, Any]], path: Path, options: ReadOptions) -> NoisyDataset:
    """Read tasks with their texts or images, and the choice that was made in each.

    Parameters
    ----------
    content : list of dict
        The tasks.
    path : Path
        Their file.
    options : ReadOptions
        ``label`` is the name of the control, where there are several; ``text`` or ``path`` the key in
        ``data``. Options of a table apply to the keys in ``data``.

    Returns
    -------
    NoisyDataset
        The id is ``id`` in ``data``, else that of the task. Tasks that nobody has annotated have no label.
    """
    options.allow_only("tasks of Label Studio", *TABLE_OPTIONS)
    control, choices = task_choices(content, path, options.label)
    keys = list(dict.fromkeys(key for task in content for key in task["data"]))
    records = [
        {**task["data"], control: choice, "id": task_id(task)}
        for task, choice in zip(content, choices, strict=True)
    ]
    text, image = _source_keys(content, keys, control, options)
    options = replace(options, label=control, text=text, path=image)
    if options.path is not None:
        folder = path.absolute().parent
        for record in records:
            record[options.path] = _local_path(record.get(options.path), folder, str(path))
    return dataset_of_table(RecordTable(records, str(path), path.absolute().parent), options)


def task_choices(
    content: list[dict[str, Any]], path: Path, control: str | None = None, *, parameter: str = "label"
) -> tuple[str, list[str | None]]:
    """Return the choice that was made in every task.

    Several annotators count equally; where they are tied, the annotation that comes last decides. A warning
    has the number of tasks in which they disagree. Skipped annotations do not count.

    Parameters
    ----------
    content : list of dict
        The tasks.
    path : Path
        Their file, for error messages.
    control : str or None, default=None
        Name of the control; ``None`` takes the only one, or that called "label".
    parameter : str, default="label"
        Name of the parameter in error messages.

    Returns
    -------
    control : str
        Name of the control.
    choices : list of str or None
        One per task; ``None`` where nothing was chosen.
    """
    made = [_choices_in(task, path) for task in content]
    controls = list(dict.fromkeys(name for annotations in made for chosen in annotations for name in chosen))
    if not controls:
        raise must_be(parameter, "about tasks in which somebody has made a choice", f"{path} without any")
    if control is None:
        if len(controls) > 1 and USUAL_NAMES["label"][0] not in controls:
            listed = ", ".join(map(repr, controls))
            rule = f"the name of one of the controls with choices in {path} ({listed})"
            raise must_be(parameter, rule, None)
        control = controls[0] if len(controls) == 1 else USUAL_NAMES["label"][0]
    elif control not in controls:
        raise must_be(parameter, f"a control with choices in {path}", control, f"There are: {controls}.")
    chosen = [[one[control] for one in annotations if control in one] for annotations in made]
    if n_disagree := sum(len(set(one)) > 1 for one in chosen):
        warnings.warn(
            f"{n_disagree:,} tasks of {path} have different choices by different annotators: the most "
            "frequent one is used, and the last one of those that are as frequent.",
            LaplaceConfidenceWarning,
            stacklevel=2,
        )
    return control, [_most_frequent(one) for one in chosen]


def task_id(task: dict[str, Any]) -> str:
    """Return the id of the sample that a task is about.

    Parameters
    ----------
    task : dict
        The task.

    Returns
    -------
    str
        ``id`` in its data, which Label Studio keeps, else the id of the task.
    """
    id = task["data"].get("id", task.get("id"))
    return "" if id is None else str(id)


def _choices_in(task: dict[str, Any], path: Path) -> list[dict[str, str]]:
    """The choices of every annotation of a task that was not skipped, by control."""
    annotations = []
    try:
        for annotation in task.get("annotations") or ():
            if annotation.get("was_cancelled"):
                continue
            made: dict[str, str] = {}
            for result in annotation.get("result") or ():
                if result.get("type") != "choices":
                    continue
                choices = result["value"]["choices"]
                if len(choices) != 1:
                    raise DataFormatError(
                        f"Task {task_id(task)!r} of {path} has {len(choices)} choices ({choices}) at once. "
                        "Only one class per sample is read: export a control with choice='single'."
                    )
                made[str(result["from_name"])] = str(choices[0])
            annotations.append(made)
    except (KeyError, TypeError, AttributeError) as error:
        raise DataFormatError(
            f"Task {task_id(task)!r} of {path} is not as Label Studio exports it ({type(error).__name__}: "
            f"{error}): export the tasks again as JSON."
        ) from error
    return annotations


def _most_frequent(choices: list[str]) -> str | None:
    counts = Counter(choices)
    return max(reversed(choices), key=lambda choice: counts[choice], default=None)


def _source_keys(
    tasks: list[dict[str, Any]], keys: list[str], control: str, options: ReadOptions
) -> tuple[str | None, str | None]:
    """The key of the texts and that of the images, where they are named or it is clear which they are."""
    if (
        options.text is not None
        or options.path is not None
        or any(key in keys for key in USUAL_NAMES["text"])
    ):
        return options.text, options.path
    texts = [
        key
        for key in keys
        if key not in (control, "id", "given_label")
        and all(isinstance(task["data"].get(key), (str, type(None))) for task in tasks)
    ]
    images = [key for key in texts if all(_is_image(task["data"].get(key) or ".png") for task in tasks)]
    if len(images) == 1:
        return None, images[0]
    return (texts[0] if len(texts) == 1 else None), None


def _is_image(address: str) -> bool:
    parts = urlsplit(address)
    names = (parts.path, *parse_qs(parts.query).get("d", ()))
    return any(name.lower().endswith(tuple(IMAGE_SUFFIXES)) for name in names)


def _local_path(address: Any, folder: Path, origin: str) -> str:
    """Where an image of Label Studio is on this machine; an address elsewhere stays as it is."""
    if not isinstance(address, str) or not address:
        return ""
    parts = urlsplit(address)
    if parts.path.startswith(_LOCAL_FILES):
        return str(listed_file(folder, parse_qs(parts.query).get("d", [""])[0], origin))
    if parts.path.startswith(_UPLOADS):
        # Project and file: "/data/upload/3/1a2b3c4d-photo.jpg". The files are copied by hand.
        name = unquote(parts.path.removeprefix(_UPLOADS))
        places = [listed_file(folder, part, origin) for part in (name, Path(name).name)]
        places += [folder / "images" / Path(name).name, folder / "upload" / name]
        return str(next((place for place in places if place.is_file()), places[0]))
    if parts.scheme or Path(address).is_absolute():
        return address
    return str(listed_file(folder, address, origin))
