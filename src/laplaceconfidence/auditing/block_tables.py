"""The tables of an audit in blocks: written in parts, in the order of the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray
from laplaceconfidence.auditing.table import FlagRule, label_column
from laplaceconfidence.blocks.executor import Executor, run_parts
from laplaceconfidence.blocks.ids import derive_ids, ids_of
from laplaceconfidence.blocks.inputs import BlockData, cells
from laplaceconfidence.blocks.results import results_of_rows, scores_by_row
from laplaceconfidence.blocks.sources import Piece
from laplaceconfidence.blocks.work_folder import Facts, WorkFolder
from laplaceconfidence.confidence.decisions import threshold_for_precision
from laplaceconfidence.data.labels import MISSING, encodable
from laplaceconfidence.parquet_files import write_parquet
from laplaceconfidence.stages import stage

if TYPE_CHECKING:
    import pyarrow as pa

TABLES = "tables"  # stage
RANKS = "ranks"
RARE = 0.1  # of an even share of the labels, as for audits in memory
ROWS_PER_PART = 100_000
_EVIDENCE_PAGE = 2_000  # rows that a review reads at a time
_REPEATED = ("given_label", "predicted_label", "alternative_label")  # columns of few different cells
NAMING = ("id", "text", "path")  # columns that say which sample a row is


@dataclass(frozen=True, slots=True, eq=False)
class BlockTables:
    """Tables that have been written, and what they were written from.

    Attributes
    ----------
    spans : list of tuple of int
        For every part, its first row, and the one after its last.
    n_rare : int
        Samples of classes with less than a tenth of an even share of the labels.
    scores : ndarray of shape (n,)
        Probability that the given label is right, by row; NaN where there is none.
    flagged : ndarray of bool, shape (n,)
        Which labels are flagged, by row.
    order : ndarray of int, shape (n,)
        Rows, the least trustworthy label first.
    """

    spans: list[tuple[int, int]]
    n_rare: int
    scores: FloatArray
    flagged: BoolArray
    order: IntArray

    @property
    def n_parts(self) -> int:
        """int: number of parts."""
        return len(self.spans)


@dataclass(frozen=True, slots=True, eq=False)
class NamedRows:
    """Consecutive rows whose ids, texts and paths come from the data itself.

    Attributes
    ----------
    data : BlockData
        The data, without labels.
    pieces : list of Piece
        The pieces of it.
    """

    data: BlockData
    pieces: list[Piece]

    @property
    def span(self) -> tuple[int, int]:
        """tuple of int: the first row, and the one after the last."""
        return self.pieces[0].start, self.pieces[-1].stop

    def columns(self, work: WorkFolder) -> dict[str, Any]:
        """Read the naming columns.

        Parameters
        ----------
        work : WorkFolder
            Where ids were derived.

        Returns
        -------
        dict of str to ndarray
        """
        found = {"id": encodable(np.array(ids_of(work, self.data, self.pieces), dtype=object))}
        for role in ("text", "path"):
            if role in self.data.columns:
                texts = [cell or "" for cell in cells(self.data, role, self.pieces)]
                found[role] = encodable(np.array(texts, dtype=object))
        return found


@dataclass(frozen=True, slots=True, eq=False)
class NamedTable:
    """Consecutive rows whose ids, texts and paths are in a Parquet file.

    Attributes
    ----------
    span : tuple of int
        The first row, and the one after the last.
    path : Path
        The file.
    """

    span: tuple[int, int]
    path: Path

    def columns(self, work: WorkFolder) -> dict[str, Any]:
        """Read the naming columns, as ``NamedRows`` does."""
        import pyarrow.parquet as pq

        names = [name for name in NAMING if name in pq.read_schema(self.path).names]
        table = pq.read_table(self.path, columns=names, page_checksum_verification=True)
        return {name: table.column(name) for name in names}


def rows_of_data(data: BlockData) -> list[NamedRows]:
    """Divide data into parts of the tables: consecutive pieces of about as many rows as a part should have.

    Parameters
    ----------
    data : BlockData
        The data.

    Returns
    -------
    list of NamedRows
    """
    parts: list[list[Piece]] = [[]]
    for piece in data.features.pieces:
        if parts[-1] and piece.stop - parts[-1][0].start > ROWS_PER_PART:
            parts.append([])
        parts[-1].append(piece)
    without_labels = replace(data, labels=data.labels[:0])  # tasks are given their own labels only
    return [NamedRows(without_labels, pieces) for pieces in parts]


def derive_row_ids(executor: Executor, data: BlockData, work: WorkFolder, digests: str) -> None:
    """Derive the ids of data that has none, for ``NamedRows``.

    Parameters
    ----------
    executor : Executor
        Where tasks run.
    data : BlockData
        The data.
    work : WorkFolder
        Where the parts are.
    digests : str
        The stage that kept digests of the features.
    """
    if not data.has_ids:
        derive_ids(executor, replace(data, labels=data.labels[:0]), work, digests)


def write_tables(
    executor: Executor,
    work: WorkFolder,
    data: BlockData,
    rule: FlagRule,
    n_result_parts: int,
    parts: Sequence[NamedRows | NamedTable],
) -> BlockTables:
    """Rank the labels, and write the tables in parts.

    Parameters
    ----------
    executor : Executor
        Where tasks run.
    work : WorkFolder
        Where the parts are, those of the results among them.
    data : BlockData
        Labels and classes.
    rule : FlagRule
        Which labels are flagged.
    n_result_parts : int
        Number of parts of the results.
    parts : sequence of NamedRows or NamedTable
        The parts to write, which cover all rows in order.

    Returns
    -------
    BlockTables
    """
    with stage("ranking"):
        scores, predicted = scores_by_row(work, n_result_parts, len(data))
        missing = data.labels == MISSING
        order = np.argsort(np.where(missing, np.inf, scores), kind="stable")
        if rule.target_precision is not None:
            suspected = scores < threshold_for_precision(scores, rule.target_precision)
        else:
            suspected = predicted != data.labels if rule.threshold is None else scores < rule.threshold
        flagged = suspected & ~missing
        if not work.is_done(RANKS, 0):
            rank = np.empty(len(order), dtype=np.int64)
            rank[order] = np.arange(len(order))
            work.save(RANKS, 0, {"rank": rank, "flagged": flagged}, {})
            del rank
    counts = np.bincount(data.labels[~missing], minlength=data.n_classes)
    rare = counts < RARE * (~missing).sum() / data.n_classes
    arguments = [
        (part, data.class_values, data.labels[slice(*part.span)], rare, n_result_parts) for part in parts
    ]
    run_parts(executor, work, TABLES, _write_part, arguments)
    return BlockTables([part.span for part in parts], int(counts[rare].sum()), scores, flagged, order)


def _write_part(
    work: WorkFolder,
    part: int,
    rows: NamedRows | NamedTable,
    class_values: Any,
    labels: IntArray,
    rare: BoolArray,
    n_result_parts: int,
) -> Facts:
    import pyarrow as pa

    start, stop = rows.span
    found = results_of_rows(work, n_result_parts, start, stop)
    given, named = labels.astype(np.int64), rows.columns(work)
    columns: dict[str, Any] = {
        "row": np.arange(start, stop),
        "id": named.pop("id"),
        "given_label": label_column(class_values, given),
        "predicted_label": label_column(class_values, found["predicted"].astype(np.int64)),
        "predicted_probability": found["predicted_probability"],
        "label_score": found["scores"],
        "is_label_issue": np.asarray(work.load(RANKS, 0, "flagged")[start:stop]),
        "alternative_label": label_column(class_values, found["alternative"].astype(np.int64)),
        "alternative_probability": found["alternative_probability"],
        "is_rare_class_issue": (given != MISSING) & rare[given],
        "rank": np.asarray(work.load(RANKS, 0, "rank")[start:stop]),
        **named,
    }
    (work.path / TABLES).mkdir(exist_ok=True)
    arrays = {
        name: values if isinstance(values, pa.ChunkedArray) else pa.array(values, from_pandas=True)
        for name, values in columns.items()
    }
    write_parquet(issues_path(work, part), pa.table(arrays), dictionaries=_REPEATED)
    write_parquet(
        evidence_path(work, part),
        _evidence(found),
        rows_per_group=_EVIDENCE_PAGE,
        dictionaries=False,
        compressed=False,
    )
    return work.save(TABLES, part, {}, {"start": start, "stop": stop})


def issues_path(work: WorkFolder, part: int) -> Path:
    """Return the file of a part of the table.

    Parameters
    ----------
    work : WorkFolder
        Where the parts are.
    part : int
        Number of the part.

    Returns
    -------
    pathlib.Path
    """
    return work.path / TABLES / f"issues-{part:05d}.parquet"


def evidence_path(work: WorkFolder, part: int) -> Path:
    """Return the file of a part of the evidence.

    Parameters
    ----------
    work : WorkFolder
        Where the parts are.
    part : int
        Number of the part.

    Returns
    -------
    pathlib.Path
    """
    return work.path / TABLES / f"evidence-{part:05d}.parquet"


def _evidence(found: Mapping[str, Any]) -> pa.Table:
    import pyarrow as pa

    def lists(values: Any, kept: Any) -> Any:
        ends = np.concatenate([[0], np.cumsum(kept.sum(axis=1))]).astype(np.int32)
        return pa.ListArray.from_arrays(
            pa.array(ends), pa.array(values.ravel() if kept.all() else values[kept])
        )

    classes = np.ones(found["top_classes"].shape, dtype=bool)
    columns = {name: lists(found[name], classes) for name in ("top_classes", "top_probabilities")}
    if "neighbors" in found:
        known = found["neighbors"] >= 0
        columns |= {name: lists(found[name], known) for name in ("neighbors", "similarities", "weights")}
        columns["n_neighbors"] = found["n_neighbors"]
    return pa.table(columns)
