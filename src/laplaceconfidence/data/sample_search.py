"""The samples and classes of an earlier audit, found in data that may have changed since."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from laplaceconfidence.arrays import IntArray
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.identity import is_digest, without_number
from laplaceconfidence.data.labels import encodable

ABSENT = -2
"""In place of the row of a sample, or of the code of a class, that a data set does not have."""


def find_classes(dataset: NoisyDataset, names: Sequence[str], values: Sequence[Any]) -> list[int]:
    """Find the classes of an earlier audit among those of a data set.

    Parameters
    ----------
    dataset : NoisyDataset
        The data set.
    names : sequence of str of shape (C,)
        Names of the wanted classes.
    values : sequence of shape (C,)
        The same classes as they are written among the labels.

    Returns
    -------
    list of int
        The code of every class, ``ABSENT`` if the data set does not have it. A class is found by its name,
        or as it is written: names may have been added to numbers since.
    """
    by_name = {name: code for code, name in enumerate(dataset.class_names)}
    by_value = {str(value): code for code, value in enumerate(dataset.class_values.tolist())}
    return [
        by_name.get(name, by_value.get(str(value), ABSENT)) for name, value in zip(names, values, strict=True)
    ]


def find_samples(
    dataset: NoisyDataset,
    ids: Sequence[str],
    *,
    labels: Sequence[int | None] | None = None,
    paths: Sequence[str] | None = None,
) -> IntArray:
    """Find samples in a data set, which may have been reordered, have grown or have lost samples since.

    Parameters
    ----------
    dataset : NoisyDataset
        Where to search.
    ids : sequence of str of shape (m,)
        Ids of the wanted samples.
    labels : sequence of int of shape (m,) or None, default=None
        Codes of the labels that they had, ``None`` where that is not known. Among copies of one content, one
        with the same label is preferred.
    paths : sequence of str of shape (m,) or None, default=None
        Full paths of their images, by which a sample is found if its id is not: a table of relative paths has
        other paths in another folder.

    Returns
    -------
    ndarray of int of shape (m,)
        Rows of the data set, none of them twice for different ids; ``ABSENT`` where there is no such sample.
    """
    known = encodable(dataset.sample_ids).tolist()
    row_of = {id: row for row, id in enumerate(known)}
    rows = np.array([row_of.get(id, ABSENT) for id in ids], dtype=np.int64)
    if paths is not None and dataset.sources is not None and dataset.source_kind == "image":
        taken = set(rows.tolist())
        row_at = _unique_positions(encodable(dataset.sources).tolist())
        wanted_at = _unique_positions(list(paths))
        for path, position in wanted_at.items():
            row = row_at.get(path, ABSENT)
            if path and rows[position] == ABSENT and row not in taken:
                rows[position] = row
    if dataset.ids is None:
        _pair_copies(rows, ids, labels or [None] * len(ids), known, dataset.labels.tolist())
    return rows


def _unique_positions(values: list[str]) -> dict[str, int]:
    counts = Counter(values)
    return {value: position for position, value in enumerate(values) if counts[value] == 1}


def _pair_copies(
    rows: IntArray,
    ids: Sequence[str],
    labels: Sequence[int | None],
    known: list[str],
    known_labels: list[int],
) -> None:
    """Assign wanted copies of one content to those that exist: the order of copies may have changed."""
    wanted: dict[str, list[int]] = defaultdict(list)
    for position, id in enumerate(ids):
        if is_digest(id):
            wanted[without_number(id)].append(position)
    existing: dict[str, list[int]] = defaultdict(list)
    for row, id in enumerate(known):
        if (content := without_number(id)) in wanted:
            existing[content].append(row)
    keys: tuple[Callable[[str, int | None], Any], ...] = (
        lambda id, label: (id, label),
        lambda id, label: label,
        lambda id, label: id,
        lambda id, label: None,
    )
    for content, positions in wanted.items():
        free = existing.get(content, [])
        if len(free) < 2 and len(positions) < 2 and ids[positions[0]] == content:
            continue
        rows[positions] = ABSENT
        for key in keys:
            free_by_key: dict[Any, deque[int]] = defaultdict(deque)
            for row in free:
                free_by_key[key(known[row], known_labels[row])].append(row)
            for position in positions:
                candidates = free_by_key.get(key(ids[position], labels[position]))
                if rows[position] == ABSENT and candidates:
                    rows[position] = candidates.popleft()
            taken = set(rows[positions].tolist())
            free = [row for row in free if row not in taken]
