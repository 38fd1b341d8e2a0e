"""Audits that go on from a run: new samples are added to it, and changed labels are judged again."""

from __future__ import annotations

import shutil
import tempfile
import warnings
import weakref
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from laplaceconfidence.arrays import row_blocks
from laplaceconfidence.auditing.block_audit import BlockAuditResult, audit_in_blocks
from laplaceconfidence.auditing.block_fits import FITS
from laplaceconfidence.auditing.block_tables import ROWS_PER_PART, NamedTable, write_tables
from laplaceconfidence.auditing.diagnostics import installed_versions
from laplaceconfidence.auditing.table import FlagRule
from laplaceconfidence.blocks.executor import LocalExecutor
from laplaceconfidence.blocks.inputs import BlockData, cells, open_data
from laplaceconfidence.blocks.kept_index import KEPT, KeptIndex, open_index
from laplaceconfidence.blocks.new_samples import NewSamples, in_classes_of, match_samples
from laplaceconfidence.blocks.plan import BlockPlan, check_disk
from laplaceconfidence.blocks.preparation import load_axes
from laplaceconfidence.blocks.work_folder import WorkFolder
from laplaceconfidence.data.read_options import ReadOptions
from laplaceconfidence.exceptions import LaplaceConfidenceWarning, RunFolderError
from laplaceconfidence.parquet_files import write_parquet
from laplaceconfidence.stages import StageTimer, observing, stage
from laplaceconfidence.validation import must_be

ADVISED_FROM = 0.2  # of the samples of the last full audit: from here on, another one is advised


def audit_since(
    source: Any,
    options: ReadOptions,
    since: str | Path,
    *,
    rule: FlagRule | None = None,
    n_jobs: int | None = None,
    work: Path | None = None,
) -> BlockAuditResult:
    """Go on from a run that keeps its index.

    Parameters
    ----------
    source : object
        Samples that are new, or whose labels changed, as for ``blocks.inputs.open_data``.
    options : ReadOptions
        How to read them.
    since : str or Path
        The folder of the run.
    rule : FlagRule, optional
        Which labels are flagged; by default that of the run.
    n_jobs : int or None, default=None
        Number of threads; ``None`` and -1 use all cores.
    work : Path, optional
        Folder for parts, which is emptied first; by default a temporary one beside the run.

    Returns
    -------
    BlockAuditResult
        It covers the samples of the run and the new ones, and keeps its index.
    """
    if options.true_label is not None:
        rule_text = "left out where an audit goes on from a run, whose samples are in other files"
        raise must_be("true_label", rule_text, options.true_label)
    run = Path(since).absolute()
    index = open_index(run)
    place = work or Path(tempfile.mkdtemp(prefix=f".{run.name}-", dir=run.parent))
    try:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        result = _grown(source, options, run, index, rule, n_jobs, place)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    weakref.finalize(result, shutil.rmtree, place, ignore_errors=True)
    return result


def refuse_settings(given: Mapping[str, Any]) -> None:
    """Raise for what an audit that goes on from a run cannot change.

    Parameters
    ----------
    given : mapping of str to object
        Settings by name, ``None`` where they were not given.
    """
    for name, value in given.items():
        if value is not None:
            rule = "left out where an audit goes on from a run ('since'), which fixes it"
            raise must_be(name, rule, value, "Audit all data together to change it.")


def _grown(
    source: Any,
    options: ReadOptions,
    run: Path,
    index: KeptIndex,
    rule: FlagRule | None,
    n_jobs: int | None,
    place: Path,
) -> BlockAuditResult:
    timer, about = StageTimer(), index.facts["audit"]
    name, settings = index.facts["estimator"], about["settings"]
    rule = rule or FlagRule(**about["rule"])
    rule.check(FITS[name].unfitted({}), name)
    plan = BlockPlan(**about["plan"])
    with observing(timer), stage("total"), LocalExecutor(n_jobs) as executor:
        with stage("checking"):
            if (damage := index.damage()) is not None:
                index = _rebuilt(index, run, damage, place)
        with stage("reading"):
            data = open_data(source, options, place / "input", fewest_classes=1)
            data = _fitting(data, about, run)
        check_disk(place, plan)
        executor.prepare(plan.cache)
        parts_of_new = WorkFolder(place / "new")
        parts_of_new.path.mkdir()
        ids = _ids_of(run, len(about["table_parts"]))
        new = match_samples(executor, data, parts_of_new, load_axes(index.work), ids, run)
        before = index.labels
        labels = new.labels_of_run(before)
        _advise(len(labels), about["n_first"], run)
        folder = WorkFolder(place / "work")
        folder.path.mkdir()
        fit = FITS[name](plan, settings)
        diagnostics = fit.grow(executor, index, folder, new, labels)
        sources = [*about["sources"], data.described or None]
        whole = replace(data, labels=labels, described=_described(sources, run))
        parts = [
            NamedTable((start, stop), run / f"issues-{part:05d}.parquet")
            for part, (start, stop) in enumerate(about["table_parts"])
        ]
        parts += _new_tables(new, len(before), place)
        tables = write_tables(executor, folder, whole, rule, fit.n_result_parts, parts)
    result = BlockAuditResult(
        data=whole,
        work=folder,
        plan=replace(plan, n_blocks=fit.n_result_parts),
        diagnostics=diagnostics,
        rule=rule,
        settings={**about["recorded"], **asdict(rule)},
        timings=timer.seconds,
        versions=installed_versions(),
        estimator_name=name,
        tables=tables,
    )
    result.keep(settings, fit.kept, sources=sources, n_first=about["n_first"])
    return result


def _fitting(data: BlockData, about: dict[str, Any], run: Path) -> BlockData:
    """The data in the classes of the run, if samples can be compared with those of the run."""
    if data.features.n_features != about["n_features"]:
        rule = f"{about['n_features']} per sample, as in {run}"
        raise must_be("features", rule, f"{data.features.n_features} per sample")
    columns = list(data.features.columns)
    if columns and about["feature_columns"] and columns != about["feature_columns"]:
        rule = f"the columns of {run}, {', '.join(about['feature_columns'][:5])}"
        raise must_be("features", rule, ", ".join(columns[:5]))
    if sorted(data.columns) != about["roles"]:
        described = {True: "has", False: "has no"}
        role = next(
            role for role in ("id", "path", "text") if (role in data.columns) != (role in about["roles"])
        )
        raise must_be(
            role,
            f"as in {run}, whose data {described[role in about['roles']]} such a column",
            data.columns.get(role),
            "Samples are recognized by their ids, paths, texts or features, in this order.",
        )
    return in_classes_of(data, about["class_names"], np.array(about["class_values"]), run)


def _rebuilt(index: KeptIndex, run: Path, damage: str, place: Path) -> KeptIndex:
    """Audit the data of a run again, where what it keeps was damaged."""
    about = index.facts["audit"]
    source = about["sources"][0]
    if len(about["sources"]) > 1 or not source:
        raise RunFolderError(
            f"The index in {run} is damaged: {damage}. It cannot be rebuilt, since the data of the run is "
            "not in files of one audit: audit all data together again with --keep-index."
        )
    warnings.warn(
        f"The index in {run} is damaged: {damage}. It is rebuilt from {source['source']}, which takes as "
        "long as the audit did.",
        LaplaceConfidenceWarning,
        stacklevel=3,
    )
    recorded = {name: value for name, value in about["recorded"].items() if name not in about["rule"]}
    result = audit_in_blocks(
        source["source"],
        ReadOptions(**source["options"]),
        estimator=index.facts["estimator"],
        settings={name: value for name, value in recorded.items() if name != "random_state"},
        random_state=recorded["random_state"],
        memory=about["plan"]["memory"],
        work=place / "rebuilt",
        keep_index=True,
    )
    n = about["table_parts"][-1][1]
    if len(result.data) != n:
        raise RunFolderError(
            f"The index in {run} is damaged: {damage}. It cannot be rebuilt, since {source['source']} has "
            f"{len(result.data):,} samples now, and had {n:,}: audit all data together again."
        )
    return KeptIndex(result.work, result.work.facts(KEPT, 0))


def _ids_of(run: Path, n_parts: int) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    paths = [run / f"issues-{part:05d}.parquet" for part in range(n_parts)]
    try:
        columns = [pq.read_table(path, columns=["id"]).column("id") for path in paths]
    except (OSError, pa.ArrowException, KeyError) as error:
        raise RunFolderError(f"The tables of {run} cannot be read ({error}): the run is damaged.") from error
    return pa.chunked_array([chunk for column in columns for chunk in column.chunks])


def _new_tables(new: NewSamples, n_before: int, place: Path) -> list[NamedTable]:
    """Ids, texts and paths of the new samples, in files as those of a run."""
    import pyarrow as pa

    shown = {"id": np.array(new.ids, dtype=object)[new.added]}
    for role in ("text", "path"):
        if role in new.data.columns:
            texts = [cell or "" for cell in cells(new.data, role, list(new.data.features.pieces))]
            shown[role] = np.array(texts, dtype=object)[new.added]
    tables = []
    for number, rows in enumerate(row_blocks(len(new.added), ROWS_PER_PART)):
        path = place / f"new-{number:05d}.parquet"
        write_parquet(path, pa.table({name: pa.array(values[rows]) for name, values in shown.items()}))
        tables.append(NamedTable((n_before + rows.start, n_before + rows.stop), path))
    return tables


def _described(sources: list[Any], run: Path) -> dict[str, Any]:
    """Where all samples came from; there is no single place to read them from again."""
    known = [source["source"] for source in sources if source]
    return {"since": str(run), **({"source": known} if len(known) == len(sources) else {})}


def _advise(n: int, n_first: int, run: Path) -> None:
    if n > (1 + ADVISED_FROM) * n_first:
        warnings.warn(
            f"{n - n_first:,} of {n:,} samples came after the last full audit, whose lists of neighbors, "
            "principal axes and noise model are still used. Audit all data together again.",
            LaplaceConfidenceWarning,
            stacklevel=4,
        )
