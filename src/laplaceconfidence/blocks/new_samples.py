"""Samples that come to a finished audit: which of them it knows already, and their features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.blocks.executor import Executor
from laplaceconfidence.blocks.ids import derive_ids, ids_of
from laplaceconfidence.blocks.inputs import BlockData
from laplaceconfidence.blocks.preparation import PREPARED, prepare_pieces
from laplaceconfidence.blocks.work_folder import WorkFolder
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.validation import must_be

ROWS_PER_BATCH = 16_384


@dataclass(frozen=True, slots=True, eq=False)
class NewSamples:
    """Data that comes to a run, in the classes of the run.

    Attributes
    ----------
    data : BlockData
        The data.
    work : WorkFolder
        Where its unit vectors are.
    ids : list of str
        Ids of its samples.
    added : ndarray of int64
        Its rows that the run does not know.
    known : ndarray of int64
        Its rows that the run knows.
    places : ndarray of int64
        The rows of the run in which these are.
    """

    data: BlockData
    work: WorkFolder
    ids: list[str]
    added: IntArray
    known: IntArray
    places: IntArray

    def labels_of_run(self, before: IntArray) -> IntArray:
        """Return the labels of all samples: those of the run as they are now, then those of new samples.

        Parameters
        ----------
        before : ndarray of int32, shape (n,)
            The labels of the run.

        Returns
        -------
        ndarray of int32, shape (n + n_added,)
        """
        labels = before.copy()
        labels[self.places] = self.data.labels[self.known]
        return np.concatenate([labels, self.data.labels[self.added]]).astype(np.int32)

    def vectors(self, rows: IntArray) -> FloatArray:
        """Read the unit vectors of some rows.

        Parameters
        ----------
        rows : ndarray of int64, shape (m,)
            The rows, sorted.

        Returns
        -------
        ndarray of float32, shape (m, d)
        """
        pieces = self.data.features.pieces
        parts = []
        for part, piece in enumerate(pieces):
            some = slice(*np.searchsorted(rows, (piece.start, piece.stop)))
            parts.append(self.work.load(PREPARED, part, "vectors")[rows[some] - piece.start])
        return np.concatenate(parts)

    def features(self, rows: IntArray) -> Iterator[tuple[IntArray, FloatArray]]:
        """Read the features of some rows, in batches.

        Parameters
        ----------
        rows : ndarray of int64
            The rows, sorted.

        Yields
        ------
        rows : ndarray of int64, shape (m,)
            Some of the rows.
        features : ndarray of shape (m, d)
            Their features.
        """
        source = self.data.features
        for piece in source.pieces:
            if np.diff(np.searchsorted(rows, (piece.start, piece.stop)))[0] == 0:
                continue
            for start, features in source.batches(piece, ROWS_PER_BATCH):
                some = rows[slice(*np.searchsorted(rows, (start, start + len(features))))]
                if len(some):
                    yield some, features[some - start]


def match_samples(
    executor: Executor,
    data: BlockData,
    work: WorkFolder,
    axes: tuple[FloatArray, FloatArray] | None,
    ids_of_run: Any,
    run: Path,
) -> NewSamples:
    """Find out which samples a run knows.

    Parameters
    ----------
    executor : Executor
        Where tasks run.
    data : BlockData
        The data, in the classes of the run.
    work : WorkFolder
        Where its parts are written.
    axes : tuple of ndarray or None
        Mean and axes of the principal components, if these are searched.
    ids_of_run : pyarrow.ChunkedArray of str
        Ids of the samples of the run, by row.
    run : Path
        The run, for messages.

    Returns
    -------
    NewSamples

    Raises
    ------
    InvalidInputError
        If an id occurs twice.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    prepare_pieces(executor, work, data.features, axes, ROWS_PER_BATCH, with_digests=not data.has_ids)
    if not data.has_ids:
        derive_ids(executor, replace(data, labels=data.labels[:0]), work, PREPARED)
    ids = ids_of(work, data, list(data.features.pieces))
    _refuse_repeated(ids)
    found = pc.index_in(pa.array(ids, pa.string()), value_set=ids_of_run.cast(pa.string()).combine_chunks())
    places = found.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    known = np.flatnonzero(places >= 0)
    return NewSamples(data, work, ids, np.flatnonzero(places < 0), known, places[known])


def in_classes_of(data: BlockData, names: Sequence[str], values: Any, run: Path) -> BlockData:
    """Express labels in the classes of a run.

    Parameters
    ----------
    data : BlockData
        The data.
    names : sequence of str
        Names of the classes of the run.
    values : ndarray of shape (C,)
        The classes as they are written among the labels.
    run : Path
        The run, for messages.

    Returns
    -------
    BlockData

    Raises
    ------
    InvalidInputError
        If there is another class.
    """
    code_of = {name: code for code, name in enumerate(names)}
    if unknown := [name for name in data.class_names if name not in code_of]:
        shown = ", ".join(repr(name) for name in unknown[:5])
        raise must_be(
            "labels",
            f"of the {len(names)} classes of {run} where an audit goes on from it",
            f"the new class{'es' if len(unknown) > 1 else ''} {shown}",
            "Classes are fixed in a run: audit all data together instead.",
        )
    codes = np.array([*(code_of[name] for name in data.class_names), MISSING], dtype=np.int32)
    return replace(data, labels=codes[data.labels], class_names=tuple(names), class_values=values)


def _refuse_repeated(ids: list[str]) -> None:
    if len(set(ids)) == len(ids):
        return
    seen: set[str] = set()
    repeated = next(id for id in ids if id in seen or seen.add(id))  # type: ignore[func-returns-value]
    raise InvalidInputError(
        f"The id {repeated!r} occurs more than once among the new samples. Every sample must have an id of "
        "its own; leave one of them out, or name another column with 'id'."
    )
