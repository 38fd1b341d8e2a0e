"""The tables about annotators in the folder of an audit.

``labels`` has one row per single label, ``annotators`` one per annotator, ``questions`` the labels to ask for
next; each is stored as CSV for people and as Parquet for reports, reviews and exports.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from laplaceconfidence.auditing.annotation import AnnotationResult, AnnotationSummary
from laplaceconfidence.csv_files import write_csv
from laplaceconfidence.exceptions import RunFolderError
from laplaceconfidence.parquet_files import write_parquet
from laplaceconfidence.records.run_folder import read_table

if TYPE_CHECKING:
    import pandas as pd

TABLES: dict[str, tuple[str, ...]] = {
    "labels": ("row", "id", "annotator", "given_label", "label_score", "consensus", "is_label_issue"),
    "annotators": ("annotator", "n_labels", "accuracy", "accuracy_low", "accuracy_high", "agreement"),
    "questions": ("row", "id", "annotator", "gain"),
}
ANNOTATION_FILES = tuple(f"{name}.{suffix}" for name in TABLES for suffix in ("csv", "parquet"))


def write_annotation(folder: Path, result: AnnotationResult) -> None:
    """Write the tables about annotators.

    Parameters
    ----------
    folder : pathlib.Path
        The folder of the run.
    result : AnnotationResult
        The tables.
    """
    import pyarrow as pa

    for name in TABLES:
        table = getattr(result, name)
        write_csv(folder / f"{name}.csv", table)
        write_parquet(
            folder / f"{name}.parquet", pa.Table.from_pandas(_as_texts(table), preserve_index=False)
        )


@dataclass(frozen=True, eq=False)
class AnnotationTables:
    """The tables about annotators, read when they are first used.

    Parameters
    ----------
    folder : pathlib.Path
        The folder of the run.
    summary : AnnotationSummary
        What its record says about them.
    """

    folder: Path
    summary: AnnotationSummary

    @cached_property
    def labels(self) -> pd.DataFrame:
        """pandas.DataFrame: one row per label, the least trustworthy first."""
        table = self._read("labels")
        if len(table) != self.summary.n_labels:
            raise RunFolderError(
                f"{self.folder / 'labels.parquet'} has {len(table)} rows, but its record states "
                f"{self.summary.n_labels}: the run is damaged. Run the audit again."
            )
        return table

    @cached_property
    def annotators(self) -> pd.DataFrame:
        """pandas.DataFrame: one row per annotator, the least accurate first."""
        return self._read("annotators")

    @cached_property
    def questions(self) -> pd.DataFrame:
        """pandas.DataFrame: labels to ask for, those that are expected to tell most first."""
        return self._read("questions")

    @cached_property
    def _places(self) -> dict[int, Any]:
        rows = self.labels["row"].to_numpy()
        order = np.argsort(rows, kind="stable")
        found, starts = np.unique(rows[order], return_index=True)
        return dict(zip(found.tolist(), np.split(order, starts[1:]), strict=True))

    def of_sample(self, row: int) -> list[dict[str, Any]]:
        """Return who said what about a sample, the most trustworthy label first.

        Parameters
        ----------
        row : int
            Row of the sample.

        Returns
        -------
        list of dict
            ``annotator``, ``label`` and ``confidence``, and the estimated ``accuracy`` of the annotator.
        """
        places = self._places.get(row)
        if places is None:
            return []
        table = self.labels.iloc[places].sort_values("label_score", ascending=False, kind="stable")
        return [
            {
                "annotator": str(one["annotator"]),
                "label": str(one["given_label"]),
                "confidence": float(one["label_score"]),
                "accuracy": self._accuracy.get(str(one["annotator"])),
            }
            for one in table.to_dict("records")
        ]

    @cached_property
    def _accuracy(self) -> dict[str, float]:
        table = self.annotators.dropna(subset=["accuracy"])
        return dict(zip(table["annotator"].astype(str), table["accuracy"].astype(float), strict=True))

    def _read(self, name: str) -> pd.DataFrame:
        path = self.folder / f"{name}.parquet"
        table = read_table(path)
        if lost := [column for column in TABLES[name] if column not in table.columns]:
            raise RunFolderError(
                f"{path} has no column {lost[0]!r}: the run is damaged. Run the audit again."
            )
        return table


def _as_texts(table: pd.DataFrame) -> pd.DataFrame:
    """Parquet has one type per column; classes and names among missing values are texts."""
    texts = table.copy()
    for name in texts.columns:
        if texts[name].dtype == object:
            texts[name] = [None if value is None or value != value else str(value) for value in texts[name]]
            texts[name] = (
                texts[name].astype("str") if texts[name].notna().any() else texts[name].astype("string")
            )
    return texts
