"""Verified labels in a table that a person has filled in."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.label_files import GAPS_AMONG_NUMBERS
from laplaceconfidence.data.labels import encodable
from laplaceconfidence.data.read_options import Names, ReadOptions
from laplaceconfidence.data.table_files import open_table
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.validation import must_be

ID, VERIFIED_LABEL = "id", "verified_label"

_WHOLE_DECIMAL = re.compile(r"(-?\d+)\.0*")  # as programs write whole numbers beside gaps


@dataclass(frozen=True, slots=True)
class VerifiedTable:
    """What stands in the table."""

    labels: dict[str, Any]  # by the id of the sample, as they are written in the data
    n_empty: int  # rows without a verified label


def read_verified(path: Path, dataset: NoisyDataset) -> VerifiedTable:
    """The columns 'id' and 'verified_label' of a .csv, .tsv or .parquet file; all others are ignored.

    A label may be written as it is in the data or as the name of its class. Rows without one are skipped.
    """
    with open_table(path, ReadOptions(id=ID, label=VERIFIED_LABEL), "audited") as table:
        if lost := [name for name in (ID, VERIFIED_LABEL) if name not in table.column_names]:
            rule = f"a table with the columns {ID!r} and {VERIFIED_LABEL!r}"
            names = Names(table.column_names, "columns", table.origin)
            raise must_be("audited", rule, f"{path} without {lost[0]!r}", names.listed())
        ids, written = (table.texts(name) for name in (ID, VERIFIED_LABEL))
    label_of = _Labels(dataset)
    known = set(encodable(dataset.sample_ids).tolist())
    labels: dict[str, Any] = {}
    n_empty = 0
    for number, (id, text) in enumerate(zip(ids, written, strict=True)):
        if label_of.is_gap(text):
            n_empty += 1
            continue
        if id is None or id not in known:
            raise must_be("audited", "about samples of this data", _unknown_ids(path, ids, known, number))
        label = label_of(str(text), path, id)
        if labels.setdefault(id, label) != label:
            raise InvalidInputError(
                f"{path} verifies sample {id!r} twice, as {labels[id]!r} and as {label!r}: "
                "remove one of the two rows."
            )
    if not labels:
        found = f"{path}, empty in all of its {n_empty} rows"
        advice = "Fill in what you find, the given label where it is right."
        raise must_be("audited", f"a table with labels in the column {VERIFIED_LABEL!r}", found, advice)
    return VerifiedTable(labels, n_empty)


class _Labels:
    """From text to a label of the data."""

    def __init__(self, dataset: NoisyDataset) -> None:
        values = dataset.class_values
        self._values: list[Any] = values.tolist()
        self._numbers = values.dtype.kind == "i"
        self._names = dataset.class_names
        self._code_of = {str(name): code for code, name in enumerate(dataset.class_names)}
        # Where a name of one class is how another one is written, what is written in the data counts.
        for code, value in enumerate(encodable(values).tolist()):
            # Spreadsheets turn True into TRUE.
            for text in {str(value), str(value).upper()} if values.dtype.kind == "b" else {str(value)}:
                self._code_of[text] = code

    def is_gap(self, text: str | None) -> bool:
        if text is None or not text.strip():
            return True
        return self._numbers and text in GAPS_AMONG_NUMBERS and text not in self._code_of

    def __call__(self, text: str, path: Path, id: str) -> Any:
        whole = _WHOLE_DECIMAL.fullmatch(text.strip()) if self._numbers else None
        for spelling in (text, text.strip(), whole[1] if whole else ""):
            if spelling in self._code_of:
                return self._values[self._code_of[spelling]]
        shown = ", ".join(repr(name) for name in self._names[:10])
        more = ", ..." if len(self._names) > 10 else ""
        rule = f"labels among the {len(self._names)} classes of the data ({shown}{more})"
        raise must_be("audited", rule, text, f"It stands at the id {id!r} of {path}.")


def _unknown_ids(path: Path, ids: list[str | None], known: set[str], first: int) -> str:
    n_unknown = sum(id not in known for id in ids)
    return f"the id {ids[first]!r} in row {first} of {path} ({n_unknown} of {len(ids)} ids are unknown)"
