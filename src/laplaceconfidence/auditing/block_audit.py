"""Audits in blocks of rows: for more data than fits in memory, and on a Dask cluster.

The table of such an audit is written in parts, in the order of the data; a column ``rank`` has the place of
every label in the order of trust.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray
from laplaceconfidence.auditing.block_fits import FITS, NOISE_AWARE, BlockFit
from laplaceconfidence.auditing.diagnostics import FitDiagnostics, installed_versions
from laplaceconfidence.auditing.statement import AuditStatement, rows_to_look_at
from laplaceconfidence.auditing.table import FlagRule, label_column
from laplaceconfidence.blocks.executor import Executor, LocalExecutor, run_parts
from laplaceconfidence.blocks.ids import derive_ids, ids_of
from laplaceconfidence.blocks.inputs import BlockData, cells, open_data
from laplaceconfidence.blocks.plan import BlockPlan, check_disk, default_memory, parse_memory
from laplaceconfidence.blocks.results import results_of_rows, scores_by_row
from laplaceconfidence.blocks.sources import Piece
from laplaceconfidence.blocks.work_folder import Facts, WorkFolder
from laplaceconfidence.confidence.decisions import threshold_for_precision
from laplaceconfidence.data.labels import MISSING, encodable
from laplaceconfidence.data.read_options import ReadOptions
from laplaceconfidence.parquet_files import write_parquet
from laplaceconfidence.stages import StageTimer, observing, stage
from laplaceconfidence.validation import check_integer, must_be

if TYPE_CHECKING:
    import pandas as pd

TABLES = "tables"  # stage
RANKS = "ranks"
RARE = 0.1  # of an even share of the labels, as for audits in memory
ROWS_PER_PART = 100_000
_EVIDENCE_PAGE = 2_000  # rows that a review reads at a time
_INPUT = "input"  # folder of arrays that were not in files


@dataclass(frozen=True, eq=False)
class BlockAuditResult:
    """An audit in blocks; its tables are Parquet files in a work folder until ``save`` writes a run folder.

    Parameters
    ----------
    data : BlockData
        The audited data.
    work : WorkFolder
        Where the parts are.
    diagnostics : FitDiagnostics
        What the estimator reports about its fit.
    plan : BlockPlan
        The sizes that were used.
    n_parts : int
        Number of parts of the tables.
    n_rare : int
        Samples of classes with less than a tenth of an even share of the labels.
    scores : ndarray of shape (n,)
        Probability that the given label is right, by row; NaN where there is none.
    flagged : ndarray of bool, shape (n,)
        Which labels are flagged, by row.
    order : ndarray of int, shape (n,)
        Rows, the least trustworthy label first.
    rule : FlagRule
        Which labels are flagged.
    settings : dict
        Settings of the estimator and of the rule.
    timings : dict of str to float
        Seconds by stage.
    versions : dict of str to str
        Versions of the packages.
    estimator_name : {"noise-aware", "laplace"}
        The estimator.
    """

    data: BlockData
    work: WorkFolder
    diagnostics: FitDiagnostics
    plan: BlockPlan
    n_parts: int
    n_rare: int
    scores: FloatArray
    flagged: BoolArray
    order: IntArray
    rule: FlagRule
    settings: dict[str, Any]
    timings: dict[str, float]
    versions: dict[str, str]
    estimator_name: str

    def __repr__(self) -> str:
        return f"BlockAuditResult({self.statement.short}, by {self.estimator_name})"

    @property
    def n_issues(self) -> int:
        """int: how many labels are flagged."""
        return int(self.flagged.sum())

    @property
    def noise_rate(self) -> float:
        """float: 1 - the mean score, the expected share of wrong labels where scores are probabilities.

        The scores of the paper's estimator are too low on data with few wrong labels.
        """
        return float(1 - np.nanmean(self.scores))

    @cached_property
    def statement(self) -> AuditStatement:
        """AuditStatement: expected wrong labels, flagged ones, and those to look at first."""
        n_labeled = int((self.data.labels != MISSING).sum())
        is_estimated = self.diagnostics.noise_rate_bracket is not None
        low, high = self.diagnostics.noise_rate_bracket or (0.0, 0.0)
        return AuditStatement(
            n_labeled=n_labeled,
            n_missing=len(self.data) - n_labeled,
            noise_rate=self.noise_rate if is_estimated else None,
            bracket=(min(low, self.noise_rate), max(high, self.noise_rate)) if is_estimated else None,
            identified=self.diagnostics.identified,
            n_flagged=self.n_issues,
            rule=self.rule,
            expected_precision=float(1 - self.scores[self.flagged].mean())
            if is_estimated and self.n_issues
            else None,
        )

    @cached_property
    def first_rows(self) -> IntArray:
        """ndarray of int: rows of the labels to look at first: the flagged ones, then the others by rank."""
        labeled = self.order[: self.statement.n_labeled]
        return rows_to_look_at(labeled, self.flagged[labeled], self.statement.n_listed)

    def issue_parts(self) -> list[Path]:
        """Return the files of the table, in the order of the data.

        Returns
        -------
        list of pathlib.Path
        """
        return [issues_path(self.work, part) for part in range(self.n_parts)]

    def evidence_parts(self) -> list[Path]:
        """Return the files with the top classes and neighbors of the samples, in the order of the data.

        Returns
        -------
        list of pathlib.Path
        """
        return [evidence_path(self.work, part) for part in range(self.n_parts)]

    @property
    def table(self) -> pd.DataFrame:
        """pandas.DataFrame: the whole table, worst first, indexed by row; it is read from the parts."""
        import pandas as pd

        whole = pd.concat([pd.read_parquet(path) for path in self.issue_parts()])
        return whole.sort_values("rank").set_index("row")

    def suspects(self, n: int = 10) -> pd.DataFrame:
        """Return the labels to look at first, the flagged ones, then the others by rank.

        Parameters
        ----------
        n : int, default=10
            How many at most.

        Returns
        -------
        pandas.DataFrame
            The columns of ``table``.
        """
        import pandas as pd

        wanted = self.first_rows[:n]
        found = [
            part[part["row"].isin(wanted)] for part in (pd.read_parquet(path) for path in self.issue_parts())
        ]
        return pd.concat(found).set_index("row").loc[wanted]

    def save(self, folder: str | Path, *, overwrite: bool = False, discard_decisions: bool = False) -> Path:
        """Write the run folder that the commands ``report``, ``review`` and ``export`` read.

        Parameters
        ----------
        folder : str or pathlib.Path
            A folder that does not exist yet or is empty.
        overwrite : bool, default=False
            Whether to replace an audit that is in the folder.
        discard_decisions : bool, default=False
            Whether to replace it even if it holds decisions of a review.

        Returns
        -------
        pathlib.Path
            The folder.
        """
        from laplaceconfidence.records.block_run import write_block_audit
        from laplaceconfidence.records.run_folder import reserved_place

        with reserved_place(folder, overwrite=overwrite, discard_decisions=discard_decisions):
            run = write_block_audit(self, folder, overwrite=overwrite, discard_decisions=discard_decisions)
        return run.folder


def audit_in_blocks(
    source: Any,
    options: ReadOptions,
    *,
    estimator: Any = None,
    settings: Mapping[str, Any],
    rule: FlagRule | None = None,
    random_state: Any = None,
    memory: Any = None,
    client: Any = None,
    work: str | Path | None = None,
    stating: Callable[[BlockPlan], None] | None = None,
) -> BlockAuditResult:
    """Audit data in blocks of rows.

    Parameters
    ----------
    source : object
        As for ``blocks.inputs.open_data``.
    options : ReadOptions
        How to read it.
    estimator : {"noise-aware", "laplace"}, optional
        "noise-aware" is the default.
    settings : mapping of str to object
        Settings of the estimator.
    rule : FlagRule, optional
        Which labels are flagged.
    random_state : int, optional
        Seed; 0 by default.
    memory : str or int, optional
        Memory that this process, or every worker, may use; by default a half of what is free, and of what
        the smallest worker has.
    client : distributed.Client, optional
        A Dask cluster on which to run.
    work : path, optional
        Folder for parts, which an audit that is started again goes on from; by default a temporary one, which
        is removed with the result.
    stating : callable, optional
        Called with the plan before anything is computed.

    Returns
    -------
    BlockAuditResult
    """
    rule, name = rule or FlagRule(), estimator or NOISE_AWARE
    if name not in FITS:
        rule_text = f"one of {', '.join(map(repr, FITS))} where an audit runs in blocks"
        raise must_be("estimator", rule_text, estimator, "Others need all data in memory.")
    unfitted = FITS[name].unfitted(settings)
    rule.check(unfitted, name)
    if client is not None and work is None:
        rule_text = "a folder that all workers see under the same path, where a 'client' is given"
        raise must_be("work", rule_text, None)
    # Fixed where none is given: parts of another seed would be of no use to an audit that goes on.
    seed = 0 if random_state is None else check_integer(random_state, "random_state", minimum=0)
    if work is not None:
        return _audited(source, options, unfitted, name, rule, seed, memory, client, Path(work), stating)
    place = Path(tempfile.mkdtemp(prefix="laplaceconfidence-"))
    try:
        result = _audited(source, options, unfitted, name, rule, seed, memory, client, place, stating)
    except BaseException:
        _remove(place)
        raise
    weakref.finalize(result, _remove, place)
    return result


def _audited(
    source: Any,
    options: ReadOptions,
    unfitted: Any,
    name: str,
    rule: FlagRule,
    seed: int,
    memory: Any,
    client: Any,
    work: Path,
    stating: Callable[[BlockPlan], None] | None,
) -> BlockAuditResult:
    place, timer = work.absolute(), StageTimer()
    with observing(timer), stage("total"), _executor_for(client, unfitted.n_jobs) as executor:
        with stage("reading"):
            data = open_data(source, options, place.with_name(f"{place.name}-{_INPUT}"))
        budget = _budget(memory, executor)
        fit = FITS[name].planned(unfitted, data, seed, budget, executor)
        folder = WorkFolder.opened(place, _described(data, name, fit.settings, rule))
        check_disk(place, fit.plan, sum(path.stat().st_size for path in place.rglob("*") if path.is_file()))
        if stating is not None:
            stating(fit.plan)
        executor.prepare(fit.plan.cache)
        diagnostics = fit.run(executor, folder, data)
        tables = _write_tables(executor, folder, data, rule, fit)
    recorded = {**unfitted.get_params(), "random_state": seed, **asdict(rule)}
    recorded.pop("missing_label", None)
    return BlockAuditResult(
        data=data,
        work=folder,
        plan=fit.plan,
        diagnostics=diagnostics,
        rule=rule,
        settings=recorded,
        timings=timer.seconds,
        versions=installed_versions(),
        estimator_name=name,
        **tables,
    )


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


def _described(data: BlockData, name: str, settings: Mapping[str, Any], rule: FlagRule) -> dict[str, Any]:
    """All that the parts of a run depend on."""
    return {
        "format": 1,
        "features": data.features.described(),
        "labels": [len(data), zlib.crc32(np.ascontiguousarray(data.labels).tobytes())],
        "classes": [str(value) for value in data.class_values],
        "columns": dict(data.columns),
        "estimator": name,
        "settings": dict(settings),
        "rule": asdict(rule),
        "version": installed_versions()["laplaceconfidence"],
    }


@contextmanager
def _executor_for(client: Any, n_jobs: int | None) -> Iterator[Any]:
    if client is None:
        with LocalExecutor(n_jobs) as executor:
            yield executor
        return
    from laplaceconfidence.blocks.cluster import ClusterExecutor

    with ClusterExecutor(client) as executor:
        yield executor


def _budget(memory: Any, executor: Any) -> int:
    own = executor.memory_per_worker
    if memory is None:
        return default_memory() if own is None else own
    asked = parse_memory(memory)
    if own is not None and asked > own:
        raise must_be("memory", f"at most what the smallest worker has, {own / 1e9:.1f} GB", memory)
    return asked


def _write_tables(
    executor: Executor, work: WorkFolder, data: BlockData, rule: FlagRule, fit: BlockFit
) -> dict[str, Any]:
    """Rank the labels, and write the tables in parts."""
    with stage("ranking"):
        scores, predicted = scores_by_row(work, fit.n_result_parts, len(data))
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
    if not data.has_ids:
        derive_ids(executor, _without_labels(data), work, fit.digests)
    counts = np.bincount(data.labels[~missing], minlength=data.n_classes)
    rare = counts < RARE * (~missing).sum() / data.n_classes
    parts = _parts_of(data)
    arguments = [
        (
            _without_labels(data),
            pieces,
            data.labels[pieces[0].start : pieces[-1].stop],
            rare,
            fit.n_result_parts,
        )
        for pieces in parts
    ]
    run_parts(executor, work, TABLES, _write_part, arguments)
    n_rare = int(counts[rare].sum())
    return {"n_parts": len(parts), "n_rare": n_rare, "scores": scores, "flagged": flagged, "order": order}


def _without_labels(data: BlockData) -> BlockData:
    """The data as tasks get it, which are given their own labels only."""
    return replace(data, labels=data.labels[:0])


def _parts_of(data: BlockData) -> list[list[Piece]]:
    """Consecutive pieces of the source, about as many rows each as a part of the table should have."""
    parts: list[list[Piece]] = [[]]
    for piece in data.features.pieces:
        if parts[-1] and piece.stop - parts[-1][0].start > ROWS_PER_PART:
            parts.append([])
        parts[-1].append(piece)
    return parts


def _write_part(
    work: WorkFolder,
    part: int,
    data: BlockData,
    pieces: list[Piece],
    labels: IntArray,
    rare: BoolArray,
    n_blocks: int,
) -> Facts:
    import pandas as pd
    import pyarrow as pa

    start, stop = pieces[0].start, pieces[-1].stop
    found = results_of_rows(work, n_blocks, start, stop)
    given = labels.astype(np.int64)
    columns: dict[str, Any] = {
        "row": np.arange(start, stop),
        "id": encodable(np.array(ids_of(work, data, pieces), dtype=object)),
        "given_label": label_column(data.class_values, given),
        "predicted_label": label_column(data.class_values, found["predicted"].astype(np.int64)),
        "predicted_probability": found["predicted_probability"],
        "label_score": found["scores"],
        "is_label_issue": np.asarray(work.load(RANKS, 0, "flagged")[start:stop]),
        "alternative_label": label_column(data.class_values, found["alternative"].astype(np.int64)),
        "alternative_probability": found["alternative_probability"],
        "is_rare_class_issue": (given != MISSING) & rare[given],
        "rank": np.asarray(work.load(RANKS, 0, "rank")[start:stop]),
    }
    for role in ("text", "path"):
        if role in data.columns:
            texts = [cell or "" for cell in cells(data, role, pieces)]
            columns[role] = encodable(np.array(texts, dtype=object))
    (work.path / TABLES).mkdir(exist_ok=True)
    write_parquet(issues_path(work, part), pa.Table.from_pandas(pd.DataFrame(columns), preserve_index=False))
    write_parquet(evidence_path(work, part), _evidence(found), rows_per_group=_EVIDENCE_PAGE)
    return work.save(TABLES, part, {}, {"start": start, "stop": stop})


def _evidence(found: Mapping[str, Any]) -> Any:
    import pyarrow as pa

    def lists(values: Any, kept: Any) -> Any:
        ends = np.concatenate([[0], np.cumsum(kept.sum(axis=1))]).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(ends), pa.array(values[kept]))

    classes = np.ones(found["top_classes"].shape, dtype=bool)
    columns = {name: lists(found[name], classes) for name in ("top_classes", "top_probabilities")}
    if "neighbors" in found:
        known = found["neighbors"] >= 0
        columns |= {name: lists(found[name], known) for name in ("neighbors", "similarities", "weights")}
        columns["n_neighbors"] = found["n_neighbors"]
    return pa.table(columns)


def remove_work(result: BlockAuditResult) -> None:
    """Remove the work folder of an audit that has been saved.

    Parameters
    ----------
    result : BlockAuditResult
        The audit, whose tables cannot be read any more afterwards.
    """
    _remove(result.work.path)


def _remove(place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    shutil.rmtree(place.with_name(f"{place.name}-{_INPUT}"), ignore_errors=True)
