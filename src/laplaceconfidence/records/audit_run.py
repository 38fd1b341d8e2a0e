"""An audit on disk: ``audit.json``, ``issues.csv``, ``issues.parquet`` and ``evidence.parquet``.

``issues`` is the ranked table, one row per sample. ``evidence`` holds, in the order of the data, the most
probable classes of every sample and its neighbors of largest weight, which reports and reviews show. Images
that exist in memory only are stored in ``pictures.npy`` and ``picture_rows.npy``; the data itself, if
requested, in ``data.npz``; labels of several annotators as ``annotation_tables`` says; a sample to be
verified, if one was drawn, in ``review_sample.csv``.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.auditing.annotation import AnnotationSummary
from laplaceconfidence.auditing.diagnostics import fit_diagnostics
from laplaceconfidence.auditing.result import AuditResult
from laplaceconfidence.auditing.review_sample import ReviewSample
from laplaceconfidence.auditing.row_order import RowOrder
from laplaceconfidence.auditing.statement import MAJORITY_LABEL, AuditStatement
from laplaceconfidence.auditing.table import FlagRule
from laplaceconfidence.csv_files import write_csv
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.exceptions import RunFolderError
from laplaceconfidence.files import replacing, write_json
from laplaceconfidence.parquet_files import write_parquet
from laplaceconfidence.records.annotation_tables import ANNOTATION_FILES, AnnotationTables, write_annotation
from laplaceconfidence.records.data_archive import write_archive
from laplaceconfidence.records.evidence_pages import EvidencePages
from laplaceconfidence.records.evidence_table import evidence_table
from laplaceconfidence.records.pictures import (
    PICTURE_ROWS,
    PICTURES,
    StoredPictures,
    needs_pictures,
    rows_by_interest,
    write_pictures,
)
from laplaceconfidence.records.review_sample import sample_first, write_review_sample
from laplaceconfidence.records.run_folder import (
    FORMAT_VERSION,
    new_run_folder,
    read_record,
    read_table,
    record_name,
)

if TYPE_CHECKING:
    import pandas as pd

KIND: Literal["audit"] = "audit"
FILES = ("issues.csv", "issues.parquet", "evidence.parquet")
DATA = "data.npz"
LEARNED_FEATURES = "learned_features.npy"
ISSUE_COLUMNS = (
    "row",
    "id",
    "given_label",
    "predicted_label",
    "predicted_probability",
    "label_score",
    "is_label_issue",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """The content of ``audit.json``: what is needed to understand an audit and to repeat it.

    Parameters
    ----------
    created : str
        Time in UTC, ISO 8601.
    versions : dict of str to str
        Versions of the packages.
    source : dict
        Where the data came from, and the options it was read with.
    source_kind : {"image", "text"} or None
        What the column ``path`` or ``text`` of the issues holds.
    ids_from : {"data", "content", "rows"} or None
        What the ids are, as in ``NoisyDataset``; None in a run of version 0.1, which had row numbers for data
        without ids.
    class_names : tuple of str
        Names of the classes.
    class_values : tuple of bool, int or str
        The classes as they are written among the labels.
    estimator : str
        Name of the estimator.
    settings : dict
        Settings of the estimator and of the rule that flags labels.
    n_samples, n_labeled, n_classes, n_issues : int
        Samples, labels, classes and flagged labels.
    n_features : int or None
        None where there were no features.
    feature_columns : tuple of str, optional
        Columns of the table that the features were read from.
    features_standardized : bool
        Whether these columns were standardized before samples were compared, because their scales differ.
    noise_rate : float
        Expected share of wrong labels.
    noise_rate_bracket : tuple of float, optional
        Optimistic and pessimistic noise rate, where the estimator reports them.
    noise_rate_is_estimated : bool, optional
        Whether the estimator reports the noise rate; otherwise it is 1 - the mean score.
    noise_is_identified : bool, optional
        Whether wrong labels can be told from overlapping classes, where the estimator says so.
    expected_precision : float, optional
        Share of the flagged labels that is expected to be wrong, where the scores are probabilities.
    reachable_precision : float, optional
        The largest target precision that flags any label, where the requested one flagged none.
    n_corrected : int
        Wrong labels that verified ones have replaced.
    n_outliers, n_near_duplicates, n_conflicting_duplicates : int, optional
        None where there were no features.
    n_leaked : int, optional
        None where there was no test set.
    n_image_issues, n_empty, n_missing_values, n_rare_class, n_group_issues, n_row_order : int, optional
        Samples with odd images, empty texts, most values missing, of rare classes, in groups with many wrong
        labels, and near similar ones in the order of the rows; None where these were not looked for.
    missing_values : dict of str to int, optional
        How many cells of every column of a table are empty; None where the data is no table of columns.
    order_closeness, order_p_value : float, optional
        Whether the rows are in random order, as in ``RowOrder``; None where that could not be tested.
    search, n_neighbors, recall, n_iter, residual, converged, energy, view_weights : optional
        What the estimator reports about its fit, as in ``FitDiagnostics``.
    timings : dict of str to float
        Seconds per stage.
    warnings : tuple of str
        Warnings of the audit.
    review_sample : tuple of int
        Rows drawn at random for a person to verify, in that order.
    review_uncertain : tuple of int
        Further rows to verify, whose answer is least certain.
    annotation : AnnotationSummary, optional
        What was found about several annotators; their tables are ``labels``, ``annotators`` and
        ``questions``.
    n_parts : int, optional
        Number of parts that the tables are in, of an audit in blocks; None where they are single files.
    kind, format_version, files :
        Kind of the run, version of its format, and the files that belong to it.
    """

    kind: Literal["audit"] = KIND
    format_version: int = FORMAT_VERSION
    created: str
    files: tuple[str, ...] = FILES
    versions: dict[str, str]
    source: dict[str, Any]
    source_kind: Literal["image", "text"] | None
    ids_from: Literal["data", "content", "rows"] | None = None
    class_names: tuple[str, ...]
    class_values: tuple[bool | int | str, ...]
    estimator: str
    settings: dict[str, Any]
    n_samples: int
    n_labeled: int
    n_classes: int
    n_features: int | None
    feature_columns: tuple[str, ...] | None = None
    features_standardized: bool = False
    n_issues: int
    noise_rate: float
    noise_rate_bracket: tuple[float, float] | None = None
    noise_rate_is_estimated: bool | None = None
    noise_is_identified: bool | None = None
    expected_precision: float | None = None
    reachable_precision: float | None = None
    n_corrected: int = 0
    n_outliers: int | None = None
    n_near_duplicates: int | None = None
    n_conflicting_duplicates: int | None = None
    n_leaked: int | None = None
    n_image_issues: int | None = None
    n_empty: int | None = None
    n_missing_values: int | None = None
    missing_values: dict[str, int] | None = None
    n_rare_class: int | None = None
    n_group_issues: int | None = None
    n_row_order: int | None = None
    order_closeness: float | None = None
    order_p_value: float | None = None
    search: str | None = None
    n_neighbors: int | None = None
    recall: float | None = None
    n_iter: int | None = None
    residual: float | None = None
    converged: bool | None = None
    energy: tuple[float, float] | None = None
    view_weights: dict[str, float] | None = None
    timings: dict[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    review_sample: tuple[int, ...] = ()
    review_uncertain: tuple[int, ...] = ()
    annotation: AnnotationSummary | None = None
    n_parts: int | None = None

    @property
    def row_order(self) -> RowOrder | None:
        """RowOrder or None: whether the rows are in random order, where that could be tested."""
        if self.order_closeness is None or self.order_p_value is None:
            return None
        return RowOrder(self.order_closeness, self.order_p_value)

    @property
    def statement(self) -> AuditStatement:
        """AuditStatement: expected, flagged and listed labels, as every place that shows them says it."""
        is_estimated = self.noise_rate_is_estimated
        if is_estimated is None:  # a run of an earlier version
            is_estimated = self.noise_rate_bracket is not None
        return AuditStatement(
            n_labeled=self.n_labeled,
            n_missing=self.n_samples - self.n_labeled,
            noise_rate=self.noise_rate if is_estimated else None,
            bracket=self.noise_rate_bracket,
            identified=self.noise_is_identified,
            n_flagged=self.n_issues,
            rule=FlagRule(self.settings.get("threshold"), self.settings.get("target_precision")),
            expected_precision=self.expected_precision,
            reachable_precision=self.reachable_precision,
            unit="label" if self.annotation is None else MAJORITY_LABEL,
            n_corrected=self.n_corrected,
        )

    @property
    def suggests_by_evidence_alone(self) -> bool:
        """bool: whether probabilities of suggestions leave the given label out; those in blocks never do."""
        return self.statement.is_unidentified and self.n_parts is None


@dataclass(frozen=True, eq=False)
class AuditRun:
    """An audit read from its folder; the tables are loaded when they are first used.

    Parameters
    ----------
    folder : pathlib.Path
        Where the audit is.
    record : AuditRecord
        The content of ``audit.json``.
    """

    folder: Path
    record: AuditRecord

    @cached_property
    def issues(self) -> pd.DataFrame:
        """pandas.DataFrame: the ranked table, indexed by row as it was in memory."""
        if self.record.n_parts is not None:
            return _ranked_parts(self.folder, self.record)
        table = _checked_table(self.folder / "issues.parquet", ISSUE_COLUMNS, self.record.n_samples)
        return table.set_index("row")

    @cached_property
    def evidence(self) -> pd.DataFrame:
        """pandas.DataFrame: top classes and main neighbors of every sample, in the order of the data."""
        return _checked_table(self.folder / "evidence.parquet", ("top_classes",), self.record.n_samples)

    def evidence_of(self, row: int) -> dict[str, Any]:
        """Return the top classes and main neighbors of one sample.

        Parameters
        ----------
        row : int
            Row of the sample.

        Returns
        -------
        dict of str to object
            The cells of ``evidence``; those of an audit in blocks are read page by page.
        """
        if self.record.n_parts is None:
            return {str(name): self.evidence[name].iloc[row] for name in self.evidence.columns}
        return self._evidence_pages.of(row)

    @cached_property
    def _evidence_pages(self) -> EvidencePages:
        names = [f"evidence-{part:05d}.parquet" for part in range(self.record.n_parts or 0)]
        return EvidencePages([self.folder / name for name in names], self.record.n_samples)

    @cached_property
    def annotation(self) -> AnnotationTables | None:
        """AnnotationTables or None: single labels and annotators, where there are several."""
        summary = self.record.annotation
        return None if summary is None else AnnotationTables(self.folder, summary)

    @cached_property
    def pictures(self) -> StoredPictures:
        """StoredPictures: pictures of samples that are not files themselves."""
        return StoredPictures(self.folder)


def write_audit(
    result: AuditResult,
    folder: str | Path,
    *,
    source: dict[str, Any] | None = None,
    warnings: tuple[str, ...] = (),
    overwrite: bool = False,
    discard_decisions: bool = False,
    keep_data: bool = False,
    review_sample: ReviewSample | None = None,
    learned_features: FloatArray | None = None,
) -> AuditRun:
    """Write an audit into a new folder, completely or not at all.

    Parameters
    ----------
    result : AuditResult
        A finished audit.
    folder : str or pathlib.Path
        Where to write it.
    source : dict, optional
        Where the data came from, for the record.
    warnings : tuple of str, default=()
        Warnings of the audit, for the record.
    overwrite : bool, default=False
        Whether a run that is there may be replaced.
    discard_decisions : bool, default=False
        Whether it may be replaced even if it holds decisions of a review.
    keep_data : bool, default=False
        Whether the data itself is stored in the folder, for data that cannot be read from anywhere else.
    review_sample : ReviewSample, optional
        Labels to verify, which are written as a table to be filled in.
    learned_features : ndarray of shape (n, d), optional
        Features that a network learned for this audit, to be stored in the folder.

    Returns
    -------
    AuditRun
    """
    import pyarrow as pa

    encoding = result.dataset.encoding
    described = {**(source or {}), **({} if encoding is None else {"encoder": dict(encoding)})}
    record = record_of(result, source=described, warnings=warnings)
    if review_sample is not None:
        # Not among the files that belong to a run, as people fill it in, move it and send it.
        record = replace(
            record,
            review_sample=tuple(review_sample.at_random.tolist()),
            review_uncertain=tuple(review_sample.uncertain.tolist()),
        )
    if keep_data:
        record = replace(record, files=(*record.files, DATA), source={**record.source, "source": DATA})
    if result.annotation is not None:
        record = replace(record, files=(*record.files, *ANNOTATION_FILES))
    if learned_features is not None:
        record = replace(record, files=(*record.files, LEARNED_FEATURES))
    if has_pictures := needs_pictures(result.dataset):
        record = replace(record, files=(*record.files, PICTURES, PICTURE_ROWS))
    with new_run_folder(folder, overwrite=overwrite, discard_decisions=discard_decisions) as temporary:
        table = result.table.reset_index()
        write_csv(temporary / "issues.csv", table)
        write_parquet(temporary / "issues.parquet", pa.Table.from_pandas(table, preserve_index=False))
        evidence = pa.Table.from_pandas(evidence_table(result), preserve_index=False)
        write_parquet(temporary / "evidence.parquet", evidence)
        if has_pictures:
            write_pictures(temporary, result.dataset, _by_interest(result, record.review_sample))
        if result.annotation is not None:
            write_annotation(temporary, result.annotation)
        if review_sample is not None:
            write_review_sample(temporary, result.table, review_sample)
        if keep_data:
            write_archive(temporary / DATA, result.dataset)
        if learned_features is not None:
            with replacing(temporary / LEARNED_FEATURES) as path:
                np.save(path, learned_features, allow_pickle=False)
        write_json(temporary / record_name(KIND), as_json(record))
    return AuditRun(Path(folder), record)


def read_audit(folder: str | Path) -> AuditRun:
    """Read the audit in a folder.

    Parameters
    ----------
    folder : str or pathlib.Path
        A folder that ``write_audit`` wrote.

    Returns
    -------
    AuditRun

    Raises
    ------
    RunFolderError
        If there is no audit, or an incomplete or damaged one.
    """
    from pydantic import TypeAdapter, ValidationError

    content = read_record(folder, KIND)
    try:
        record = TypeAdapter(AuditRecord).validate_python(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise RunFolderError(
            f"{Path(folder) / record_name(KIND)} is damaged: {where!r}: {first['msg']}. Run the audit again."
        ) from error
    return AuditRun(Path(folder), record)


def record_of(result: AuditResult, *, source: dict[str, Any], warnings: tuple[str, ...]) -> AuditRecord:
    """Build the record of an audit.

    Parameters
    ----------
    result : AuditResult
        A finished audit.
    source : dict
        Where the data came from.
    warnings : tuple of str
        Warnings of the audit.

    Returns
    -------
    AuditRecord
    """
    dataset, diagnostics = result.dataset, fit_diagnostics(result.estimator)
    statement = result.statement
    return AuditRecord(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=result.versions,
        source=source,
        source_kind=dataset.source_kind,
        ids_from=dataset.ids_from,
        class_names=dataset.class_names,
        class_values=tuple(dataset.class_values.tolist()),
        estimator=result.estimator_name,
        settings={name: plain(value) for name, value in result.settings.items()},
        n_samples=len(dataset),
        n_labeled=int((dataset.labels != MISSING).sum()),
        n_classes=dataset.n_classes,
        n_features=None if dataset.features is None else dataset.features.shape[1],
        feature_columns=dataset.feature_columns,
        features_standardized=dataset.feature_scaling is not None,
        n_issues=result.n_issues,
        noise_rate=result.noise_rate,
        n_outliers=_n_flagged(result, "is_outlier_issue"),
        n_near_duplicates=_n_flagged(result, "is_near_duplicate_issue"),
        n_conflicting_duplicates=_n_flagged(result, "has_conflicting_duplicate"),
        n_leaked=_n_flagged(result, "is_leaked"),
        n_image_issues=_n_flagged(result, "is_image_issue"),
        n_empty=_n_flagged(result, "is_empty_issue"),
        n_missing_values=_n_flagged(result, "is_missing_value_issue"),
        missing_values=None if dataset.columns is None else dataset.columns.n_empty(),
        n_rare_class=_n_flagged(result, "is_rare_class_issue"),
        n_group_issues=_n_flagged(result, "is_group_issue"),
        n_row_order=_n_flagged(result, "is_row_order_issue"),
        order_closeness=None if result.row_order is None else result.row_order.closeness,
        order_p_value=None if result.row_order is None else result.row_order.p_value,
        noise_rate_bracket=diagnostics.noise_rate_bracket,
        noise_rate_is_estimated=statement.noise_rate is not None,
        noise_is_identified=statement.identified,
        expected_precision=statement.expected_precision,
        reachable_precision=statement.reachable_precision,
        n_corrected=statement.n_corrected,
        search=diagnostics.search,
        n_neighbors=diagnostics.n_neighbors,
        recall=plain(diagnostics.recall),
        n_iter=diagnostics.n_iter,
        residual=plain(diagnostics.residual),
        converged=diagnostics.converged,
        energy=diagnostics.energy,
        view_weights=diagnostics.view_weights,
        timings={name: round(seconds, 6) for name, seconds in result.timings.items()},
        warnings=warnings,
        annotation=None if result.annotation is None else result.annotation.summary,
    )


def _by_interest(result: AuditResult, sample: tuple[int, ...]) -> IntArray:
    """Rows in the order in which pictures of them are worth keeping."""
    table, labels = result.table, result.dataset.labels
    columns = ("is_near_duplicate_issue", "is_leaked", "is_outlier_issue", "is_image_issue")
    others = [table.index[table[column].astype(bool)].to_numpy() for column in columns if column in table]
    worst_first = np.concatenate([result.first_rows, *others])
    return rows_by_interest(worst_first, sample_first(labels, sample), len(labels), len(sample))


def as_json(record: AuditRecord) -> dict[str, Any]:
    """Return the content of ``audit.json``: the record, and below it the sentences that say what it means.

    Parameters
    ----------
    record : AuditRecord
        The record.

    Returns
    -------
    dict of str to object
    """
    statement = record.statement
    sentences = {"headline": statement.headline, **dict(statement.facts)}
    return {**asdict(record), "statement": sentences}


def _n_flagged(result: AuditResult, column: str) -> int | None:
    return int(result.table[column].sum()) if column in result.table else None


def plain(value: Any) -> Any:
    """Return a value as JSON stores it; what JSON cannot store, such as another estimator, as its ``repr``.

    Parameters
    ----------
    value : object
        The value.

    Returns
    -------
    bool, int, float, str or None
        ``None`` for a number that is not finite.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)


def _ranked_parts(folder: Path, record: AuditRecord) -> pd.DataFrame:
    import pandas as pd

    paths = [folder / f"issues-{part:05d}.parquet" for part in range(record.n_parts or 0)]
    parts = [_checked_table(path, (*ISSUE_COLUMNS, "rank"), None) for path in paths]
    table = pd.concat(parts, ignore_index=True)
    _check_length(folder, len(table), record.n_samples)
    return table.sort_values("rank", kind="stable").drop(columns="rank").set_index("row")


def _checked_table(path: Path, columns: tuple[str, ...], n_rows: int | None) -> pd.DataFrame:
    table = read_table(path)
    if lost := [name for name in columns if name not in table.columns]:
        raise RunFolderError(f"{path} has no column {lost[0]!r}: the run is damaged. Run the audit again.")
    if n_rows is not None:
        _check_length(path, len(table), n_rows)
    return table


def _check_length(path: Path, n_found: int, n_rows: int) -> None:
    if n_found != n_rows:
        raise RunFolderError(
            f"{path} has {n_found} rows, but its record states {n_rows}: the run is damaged. "
            "Run the audit again."
        )
