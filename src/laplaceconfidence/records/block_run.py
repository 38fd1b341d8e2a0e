"""The run folder of an audit in blocks: tables in parts, in the order of the data.

``issues-00000.parquet`` and so on have the columns of ``issues.parquet`` and ``rank``,
``evidence-00000.parquet`` and so on those of ``evidence.parquet``; ``suspects.csv`` lists the first
10,000 labels to look at. The folder ``index``, if the run keeps one, is what another audit can go on from.
"""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from laplaceconfidence.auditing.block_audit import BlockAuditResult
from laplaceconfidence.blocks.kept_index import copy_index
from laplaceconfidence.csv_files import write_csv
from laplaceconfidence.files import replacing, write_json
from laplaceconfidence.records.audit_run import KIND, AuditRecord, AuditRun, as_json, plain
from laplaceconfidence.records.run_folder import new_run_folder, record_name

SUSPECTS = "suspects.csv"
MOST_SUSPECTS = 10_000  # that are listed there; the tables have all of them, with their ranks


def write_block_audit(
    result: BlockAuditResult,
    folder: str | Path,
    *,
    source: dict[str, Any] | None = None,
    warnings: tuple[str, ...] = (),
    overwrite: bool = False,
    discard_decisions: bool = False,
) -> AuditRun:
    """Write an audit in blocks into a new folder, completely or not at all.

    Parameters
    ----------
    result : BlockAuditResult
        A finished audit.
    folder : str or pathlib.Path
        Where to write it.
    source : dict, optional
        Where the data came from, for the record; by default what the audit itself knows.
    warnings : tuple of str, default=()
        Warnings of the audit, for the record.
    overwrite, discard_decisions : bool, default=False
        As in ``write_audit``.

    Returns
    -------
    AuditRun
    """
    record = _record_of(result, dict(result.data.described) if source is None else source, warnings)
    with new_run_folder(folder, overwrite=overwrite, discard_decisions=discard_decisions) as temporary:
        for path in (*result.issue_parts(), *result.evidence_parts()):
            with replacing(temporary / path.name) as copy:
                shutil.copyfile(path, copy)
        n_listed = min(MOST_SUSPECTS, result.statement.n_listed)
        write_csv(temporary / SUSPECTS, result.suspects(n_listed).reset_index())
        if result.keeps_index:
            copy_index(result.work, temporary)
        write_json(temporary / record_name(KIND), as_json(record))
    return AuditRun(Path(folder), record)


def _record_of(result: BlockAuditResult, source: dict[str, Any], warnings: tuple[str, ...]) -> AuditRecord:
    data, found, statement = result.data, result.diagnostics, result.statement
    files = [path.name for path in (*result.issue_parts(), *result.evidence_parts())]
    return AuditRecord(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        files=(*files, SUSPECTS),
        n_parts=result.n_parts,
        versions=result.versions,
        source=source,
        source_kind=data.source_kind,
        ids_from="data" if data.has_ids else "content",
        class_names=data.class_names,
        class_values=tuple(data.class_values.tolist()),
        estimator=result.estimator_name,
        settings={name: plain(value) for name, value in result.settings.items()},
        n_samples=len(data),
        n_labeled=statement.n_labeled,
        n_classes=data.n_classes,
        n_features=data.features.n_features,
        feature_columns=data.features.columns or None,
        n_issues=result.n_issues,
        noise_rate=result.noise_rate,
        noise_rate_bracket=statement.bracket,
        noise_rate_is_estimated=statement.noise_rate is not None,
        noise_is_identified=statement.identified,
        expected_precision=statement.expected_precision,
        n_rare_class=result.n_rare,
        search=found.search,
        n_neighbors=found.n_neighbors,
        recall=plain(found.recall),
        n_iter=found.n_iter,
        residual=plain(found.residual),
        converged=found.converged,
        energy=found.energy,
        timings={name: round(seconds, 6) for name, seconds in result.timings.items()},
        warnings=warnings,
    )
