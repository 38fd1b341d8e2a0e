"""Labels that a person has verified, in tables or in Label Studio, matched with the samples of a data set."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.json_files import load_json
from laplaceconfidence.data.label_files import GAPS_AMONG_NUMBERS
from laplaceconfidence.data.label_studio import is_label_studio, task_choices, task_id
from laplaceconfidence.data.labels import MISSING, encodable
from laplaceconfidence.data.read_options import Names, ReadOptions
from laplaceconfidence.data.sample_search import ABSENT, find_samples
from laplaceconfidence.data.table_files import open_table
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.validation import must_be

ID, GIVEN_LABEL, VERIFIED_LABEL = "id", "given_label", "verified_label"
CHOSEN, AT_RANDOM, UNCERTAIN = "chosen", "at random", "uncertain"  # how a sample got into the table

_WHOLE_DECIMAL = re.compile(r"(-?\d+)\.0*")  # as programs write integers in a column with gaps


@dataclass(frozen=True, slots=True)
class VerifiedTable:
    """Verified labels read from a table.

    Parameters
    ----------
    labels : dict of str to label
        By the id that the sample has in the data, as they are written in the data.
    ids_before : tuple of str, default=()
        The ids that the same samples had when they were verified, in the same order.
    n_empty : int, default=0
        Rows without a verified label.
    unknown : tuple of str, default=()
        Ids that the data does not have; their labels are left out.
    relabeled : tuple of str, default=()
        Ids of samples whose label in the data is neither the one that was looked at nor the verified one;
        their verified labels are left out.
    at_random : frozenset of str
        Ids in ``labels`` of samples that were drawn at random: all but those that the column 'chosen' says
        were chosen because they are uncertain.
    """

    labels: dict[str, Any]
    ids_before: tuple[str, ...] = ()
    n_empty: int = 0
    unknown: tuple[str, ...] = ()
    relabeled: tuple[str, ...] = ()
    at_random: frozenset[str] = frozenset()


def read_verified(path: Path, dataset: NoisyDataset) -> VerifiedTable:
    """Read the columns 'id' and 'verified_label' of a table; also 'given_label', 'path' and 'chosen', if any.

    Parameters
    ----------
    path : pathlib.Path
        A .csv, .tsv or .parquet file. A label may be written as it is in the data or as the name of its
        class. Rows without one are skipped.
    dataset : NoisyDataset
        The data set that the samples belong to.

    Returns
    -------
    VerifiedTable

    Raises
    ------
    InvalidInputError
        Also if most of the samples are not in the data, or have another label there.
    """
    as_texts = ReadOptions(id=ID, label=VERIFIED_LABEL, true_label=GIVEN_LABEL)
    with open_table(path, as_texts, "audited") as table:
        if lost := [name for name in (ID, VERIFIED_LABEL) if name not in table.column_names]:
            rule = f"a table with the columns {ID!r} and {VERIFIED_LABEL!r}"
            names = Names(table.column_names, "columns", table.origin)
            raise must_be("audited", rule, f"{path} without {lost[0]!r}", names.listed())
        ids, written = (table.texts(name) for name in (ID, VERIFIED_LABEL))
        given, paths, chosen = (
            table.texts(name) if name in table.column_names else [None] * len(ids)
            for name in (GIVEN_LABEL, "path", CHOSEN)
        )
    if not any(text and text.strip() for text in written):
        found = f"{path}, empty in all of its {len(ids)} rows"
        advice = "Fill in the right label of every sample, the given one where it is right."
        raise must_be("audited", f"a table with labels in the column {VERIFIED_LABEL!r}", found, advice)
    matched = _matched(ids, written, given, paths, dataset, path, "audited")
    uncertain = {
        id for id, how in zip(ids, chosen, strict=True) if how is not None and how.strip() == UNCERTAIN
    }
    now = dict(zip(matched.ids_before, matched.labels, strict=True))
    return replace(matched, at_random=frozenset(id for before, id in now.items() if before not in uncertain))


def read_label_studio(path: Path, dataset: NoisyDataset) -> VerifiedTable:
    """Read the choices of people in tasks that Label Studio exports as JSON.

    Parameters
    ----------
    path : pathlib.Path
        The file. The id of a sample is ``id`` in the data of its task, as ``laplaceconfidence export`` writes
        it, else the id of the task. Tasks that nobody has annotated are counted as empty.
    dataset : NoisyDataset
        The data set that the samples belong to.

    Returns
    -------
    VerifiedTable

    Raises
    ------
    InvalidInputError
        Also if most of the samples are not in the data, or have another label there.
    """
    content = load_json(path)
    if not is_label_studio(content):
        raise must_be(
            "decisions", "the folder of a reviewed audit, or tasks of Label Studio (.json)", str(path)
        )
    _, choices = task_choices(content, path, parameter="decisions")
    given = [task["data"].get(GIVEN_LABEL) for task in content]
    return _matched(
        [task_id(task) or None for task in content],
        choices,
        [None if label is None else str(label) for label in given],
        [None] * len(content),
        dataset,
        path,
        "decisions",
    )


def _matched(
    ids: Sequence[str | None],
    written: Sequence[str | None],
    given: Sequence[str | None],
    paths: Sequence[str | None],
    dataset: NoisyDataset,
    path: Path,
    parameter: str,
) -> VerifiedTable:
    """Match the labels of a file with the samples of the data; lists have one entry per row of the file."""
    label_of = _Labels(dataset, parameter)
    labels: dict[str, Any] = {}
    row_of: dict[str, int] = {}
    n_empty = 0
    for number, (id, text) in enumerate(zip(ids, written, strict=True)):
        if label_of.is_gap(text):
            n_empty += 1
            continue
        name = f"(no id in row {number})" if id is None else id
        label = label_of(str(text), path, name)
        row_of.setdefault(name, number)
        if labels.setdefault(name, label) != label:
            raise InvalidInputError(
                f"{path} verifies sample {id!r} twice, as {labels[name]!r} and as {label!r}: "
                "remove one of the two rows."
            )
    if not labels:
        raise must_be(parameter, "a file with verified labels", f"{path}, which has none in {n_empty} rows")
    codes = [label_of.code(given[row]) for row in row_of.values()]
    listed = [paths[row] or "" for row in row_of.values()]
    matched = match_verified(dataset, labels, codes, listed)
    if is_most(len(matched.unknown), len(labels)):
        raise _about_other_data(path, matched.unknown, len(labels), dataset, parameter)
    if is_most(len(matched.relabeled), len(matched.labels) + len(matched.relabeled)):
        raise _about_other_labels(path, matched.relabeled, len(labels), parameter)
    return replace(matched, n_empty=n_empty)


def match_verified(
    dataset: NoisyDataset,
    labels: Mapping[str, Any],
    given: Sequence[int | None],
    paths: Sequence[str] | None = None,
) -> VerifiedTable:
    """Find the samples that labels were verified of, wherever they are in the data now.

    Parameters
    ----------
    dataset : NoisyDataset
        The data set.
    labels : mapping of str to label
        Verified labels by the ids that the samples had when they were verified.
    given : sequence of int or None
        Codes of the labels that they had then, in the same order; ABSENT for a class that the data does not
        have, None where that is not known.
    paths : sequence of str, optional
        Full paths of their images, in the same order.

    Returns
    -------
    VerifiedTable
    """
    rows = find_samples(dataset, list(labels), labels=given, paths=paths)
    ids, values = encodable(dataset.sample_ids), dataset.class_values.tolist()
    found: dict[str, Any] = {}
    before, unknown, relabeled = [], [], []
    for (id, label), row, code in zip(labels.items(), rows.tolist(), given, strict=True):
        if row == ABSENT:
            unknown.append(id)
            continue
        now = int(dataset.labels[row])
        if code is not None and now != code and label != (None if now == MISSING else values[now]):
            relabeled.append(id)
            continue
        found[str(ids[row])] = label
        before.append(id)
    return VerifiedTable(found, ids_before=tuple(before), unknown=tuple(unknown), relabeled=tuple(relabeled))


def is_most(part: int, whole: int) -> bool:
    """Return whether a part is more than half.

    Parameters
    ----------
    part : int
        Size of the part.
    whole : int
        Size of the whole.

    Returns
    -------
    bool
    """
    return 2 * part > whole


class _Labels:
    """From text to a label of the data."""

    def __init__(self, dataset: NoisyDataset, parameter: str) -> None:
        self._parameter = parameter
        values = dataset.class_values
        self._values: list[Any] = values.tolist()
        self._numbers = values.dtype.kind == "i"
        self._names = dataset.class_names
        self._code_of = {str(name): code for code, name in enumerate(dataset.class_names)}
        # If the name of one class is the written form of another, the written form takes precedence.
        for code, value in enumerate(encodable(values).tolist()):
            # Spreadsheets turn True into TRUE.
            for text in {str(value), str(value).upper()} if values.dtype.kind == "b" else {str(value)}:
                self._code_of[text] = code

    def is_gap(self, text: str | None) -> bool:
        if text is None or not text.strip():
            return True
        return self._numbers and text in GAPS_AMONG_NUMBERS and text not in self._code_of

    def code(self, text: str | None) -> int | None:
        """The code of the class; ABSENT where the data does not have it, None where the text is empty."""
        if text is None or self.is_gap(text):
            return None
        whole = _WHOLE_DECIMAL.fullmatch(text.strip()) if self._numbers else None
        spellings = (text, text.strip(), whole[1] if whole else "")
        return next((self._code_of[spelling] for spelling in spellings if spelling in self._code_of), ABSENT)

    def __call__(self, text: str, path: Path, id: str) -> Any:
        code = self.code(text)
        if code is not None and code != ABSENT:
            return self._values[code]
        shown = ", ".join(repr(name) for name in self._names[:10])
        more = ", ..." if len(self._names) > 10 else ""
        rule = f"labels among the {len(self._names)} classes of the data ({shown}{more})"
        raise must_be(self._parameter, rule, text, f"It is that of the id {id!r} in {path}.")


def _about_other_data(
    path: Path, unknown: tuple[str, ...], n_labels: int, dataset: NoisyDataset, parameter: str
) -> InvalidInputError:
    found = f"{path}, of which {len(unknown)} of {n_labels} ids are unknown, such as {unknown[0]!r}"
    advice = "Use the data that the samples were drawn from, read with the same options."
    if dataset.ids is None and all(id.isdecimal() for id in unknown):
        advice = (
            "They are row numbers, which say nothing about the samples once rows are moved or dropped: the "
            "ids of this data are derived from the samples themselves. Name a column of ids with --id, or "
            "draw a new sample with --sample-for-review and copy the verified labels into it."
        )
    return must_be(parameter, "about samples of this data", found, advice)


def _about_other_labels(
    path: Path, relabeled: tuple[str, ...], n_labels: int, parameter: str
) -> InvalidInputError:
    found = (
        f"{path}, of which {len(relabeled)} of {n_labels} rows have another {GIVEN_LABEL!r} than the data, "
        f"such as that of {relabeled[0]!r}"
    )
    advice = (
        "Check that the table belongs to this data. If the labels were changed on purpose, remove "
        f"{GIVEN_LABEL!r}."
    )
    return must_be(parameter, "about the labels of this data", found, advice)
