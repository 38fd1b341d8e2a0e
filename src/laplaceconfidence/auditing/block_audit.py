"""Audits in blocks of rows: for more data than fits in memory, and on a Dask cluster.

The table of such an audit is written in parts, in the order of the data; a column ``rank`` has the place of
every label in the order of trust.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import weakref
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray
from laplaceconfidence.auditing.block_fits import FITS, NOISE_AWARE, Stating
from laplaceconfidence.auditing.block_tables import (
    BlockTables,
    derive_row_ids,
    evidence_path,
    issues_path,
    rows_of_data,
    write_tables,
)
from laplaceconfidence.auditing.diagnostics import FitDiagnostics, installed_versions
from laplaceconfidence.auditing.statement import AuditStatement, rows_to_look_at
from laplaceconfidence.auditing.table import FlagRule
from laplaceconfidence.blocks.executor import LocalExecutor
from laplaceconfidence.blocks.inputs import BlockData, open_data
from laplaceconfidence.blocks.kept_index import KEPT, keep_index
from laplaceconfidence.blocks.plan import BlockPlan, check_disk, default_memory, parse_memory
from laplaceconfidence.blocks.work_folder import WorkFolder
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.data.read_options import ReadOptions
from laplaceconfidence.stages import StageTimer, observing, stage
from laplaceconfidence.validation import check_integer, must_be

if TYPE_CHECKING:
    import pandas as pd

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
    tables : BlockTables
        The tables, with the scores and flags of all labels.
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
    tables: BlockTables
    rule: FlagRule
    settings: dict[str, Any]
    timings: dict[str, float]
    versions: dict[str, str]
    estimator_name: str

    def __repr__(self) -> str:
        return f"BlockAuditResult({self.statement.short}, by {self.estimator_name})"

    @property
    def n_parts(self) -> int:
        """int: number of parts of the tables."""
        return self.tables.n_parts

    @property
    def n_rare(self) -> int:
        """int: samples of classes with less than a tenth of an even share of the labels."""
        return self.tables.n_rare

    @property
    def scores(self) -> FloatArray:
        """ndarray of shape (n,): probability that the given label is right, by row; NaN without one."""
        return self.tables.scores

    @property
    def flagged(self) -> BoolArray:
        """ndarray of bool, shape (n,): which labels are flagged, by row."""
        return self.tables.flagged

    @property
    def order(self) -> IntArray:
        """ndarray of int, shape (n,): rows, the least trustworthy label first."""
        return self.tables.order

    @property
    def keeps_index(self) -> bool:
        """bool: whether ``save`` stores what another audit can go on from."""
        return self.work.is_done(KEPT, 0)

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
        import pyarrow as pa
        import pyarrow.parquet as pq

        wanted = self.first_rows[:n]
        found: list[pd.DataFrame] = []
        for path in self.issue_parts():
            part = pq.read_table(path)
            some = np.isin(part.column("row").to_numpy(), wanted)
            found.append(part.filter(pa.array(some)).to_pandas())
        return pd.concat(found).set_index("row").loc[wanted]

    def keep(
        self,
        settings: Mapping[str, Any],
        fit: Mapping[str, Any],
        *,
        sources: list[dict[str, Any] | None],
        n_first: int,
    ) -> None:
        """Mark the parts that another audit needs to go on from this one.

        Parameters
        ----------
        settings : mapping of str to object
            Settings that the parts depend on.
        fit : mapping of str to object
            What the estimator needs to go on.
        sources : list of dict or None
            Where the data came from.
        n_first : int
            Number of samples of the last full audit.
        """
        data = self.data
        about = {
            "n_classes": data.n_classes,
            "class_names": list(data.class_names),
            "class_values": data.class_values.tolist(),
            "n_features": data.features.n_features,
            "feature_columns": list(data.features.columns),
            "roles": sorted(data.columns),
            "settings": dict(settings),
            "recorded": self.settings,
            "rule": asdict(self.rule),
            "plan": asdict(self.plan),
            "table_parts": self.tables.spans,
            "sources": sources,
            "n_first": n_first,
        }
        facts = {"estimator": self.estimator_name, "fit": dict(fit), "audit": about}
        keep_index(self.work, data.labels, fit["stages"], facts)

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
    keep_index: bool = False,
    stating: Stating | None = None,
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
    keep_index : bool, default=False
        Whether ``save`` stores what another audit can go on from.
    stating : callable, optional
        Called with the plan before anything is computed, and with the time that is left once the search is
        chosen; each is a sentence.

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
    asked = (source, options, unfitted, name, rule, seed, memory, client, keep_index)
    if work is not None:
        return _audited(*asked, Path(work), stating)
    place = Path(tempfile.mkdtemp(prefix="laplaceconfidence-"))
    try:
        result = _audited(*asked, place, stating)
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
    keep: bool,
    work: Path,
    stating: Stating | None,
) -> BlockAuditResult:
    place, timer = work.absolute(), StageTimer()
    with observing(timer), stage("total"), _executor_for(client, unfitted.n_jobs) as executor:
        with stage("reading"):
            data = open_data(source, options, place.with_name(f"{place.name}-{_INPUT}"))
        budget = _budget(memory, executor)
        fit = FITS[name].planned(unfitted, data, seed, budget, executor)
        described = {**_described(data, name, fit.settings, rule), "keep_index": keep}
        folder = WorkFolder.opened(place, described)
        check_disk(place, fit.plan, sum(path.stat().st_size for path in place.rglob("*") if path.is_file()))
        if stating is not None:
            stating(fit.plan.statement)
        executor.prepare(fit.plan.cache)
        diagnostics = fit.run(executor, folder, data, keep=keep, stating=stating)
        derive_row_ids(executor, data, folder, fit.digests)
        tables = write_tables(executor, folder, data, rule, fit.n_result_parts, rows_of_data(data))
    recorded = {**unfitted.get_params(), "random_state": seed, **asdict(rule)}
    recorded.pop("missing_label", None)
    result = BlockAuditResult(
        data=data,
        work=folder,
        plan=fit.plan,
        diagnostics=diagnostics,
        rule=rule,
        settings=recorded,
        timings=timer.seconds,
        versions=installed_versions(),
        estimator_name=name,
        tables=tables,
    )
    if keep:
        result.keep(fit.settings, fit.kept, sources=[_plain_source(data.described)], n_first=len(data))
    return result


def _plain_source(described: Mapping[str, Any]) -> dict[str, Any] | None:
    """Source and options as JSON stores them; ``None`` where the data cannot be read again with them."""
    try:
        found: dict[str, Any] = json.loads(json.dumps(dict(described)))
    except TypeError:  # labels that were passed as an array
        return None
    return found or None


def _described(data: BlockData, name: str, settings: Mapping[str, Any], rule: FlagRule) -> dict[str, Any]:
    """All that the parts of a run depend on."""
    return {
        "format": 2,  # 1 had neighbors that were found without codes
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
