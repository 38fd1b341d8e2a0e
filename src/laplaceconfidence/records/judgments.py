"""An audit as arrays by row: what reports, reviews and exports compute with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.exceptions import RunFolderError
from laplaceconfidence.records.audit_run import AuditRun
from laplaceconfidence.records.review_sample import sample_first

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Neighbor:
    """A sample that was asked about another one."""

    row: int
    similarity: float
    weight: float  # its share of all that was said


@dataclass(frozen=True, eq=False)
class Judgments:
    """The judged samples of an audit in the order of the data; labels as codes into ``class_names``."""

    run: AuditRun
    ids: NDArray[Any]  # (n,) texts
    given: IntArray  # (n,) MISSING where no label was given
    suggested: IntArray  # (n,)
    probability: FloatArray  # (n,) of the suggested label
    confidence: FloatArray  # (n,) that the given label is right, NaN where none was given
    flagged: BoolArray  # (n,)
    order: IntArray  # (n,) rows, the least trustworthy label first
    sources: NDArray[Any] | None  # (n,) texts or image paths

    @classmethod
    def of(cls, run: AuditRun) -> Judgments:
        table = run.issues
        order = table.index.to_numpy().astype(np.int64)
        if not np.array_equal(np.sort(order), np.arange(len(order))):
            raise RunFolderError(
                f"{run.folder / 'issues.parquet'} does not list every row once: it is damaged."
            )
        by_row = table.sort_index()
        column = {"image": "path", "text": "text"}.get(run.record.source_kind or "")
        sources = None
        if column is not None and column in by_row.columns:
            sources = by_row[column].fillna("").astype(object).to_numpy()
        return cls(
            run=run,
            ids=by_row["id"].astype(object).to_numpy(),
            given=_codes(by_row["given_label"], run),
            suggested=_codes(by_row["predicted_label"], run),
            probability=by_row["predicted_probability"].to_numpy(dtype=np.float64),
            confidence=by_row["label_score"].to_numpy(dtype=np.float64),
            flagged=by_row["is_label_issue"].to_numpy(dtype=bool),
            order=order,
            sources=sources,
        )

    def __len__(self) -> int:
        return len(self.given)

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.run.record.class_names

    @property
    def is_labeled(self) -> BoolArray:
        labeled: BoolArray = self.given != MISSING
        return labeled

    @cached_property
    def suspects(self) -> IntArray:
        """Rows of the flagged labels, worst first."""
        return self.order[self.flagged[self.order]]

    @cached_property
    def expected_precision(self) -> float:
        """Share of the flagged labels that are wrong if confidences are taken at their word."""
        doubts = 1 - self.confidence[self.flagged]
        return float(doubts.mean()) if len(doubts) else float("nan")

    @cached_property
    def random_order(self) -> IntArray:
        """Labeled rows in an order drawn at random, the same for every reading of a run.

        Where the audit drew a sample for review, it comes first.
        """
        sample = self.run.record.review_sample
        labeled = set(np.flatnonzero(self.is_labeled).tolist())
        if len(set(sample)) < len(sample) or not labeled.issuperset(sample):
            raise RunFolderError(
                f"{self.run.folder}: 'review_sample' of audit.json must list different rows with a label: "
                "the run is damaged, make it again."
            )
        return sample_first(self.given, sample)

    def name(self, code: int) -> str | None:
        """Name of a class, ``None`` for no label."""
        return None if code == MISSING else self.class_names[code]

    def top_classes(self, row: int) -> list[tuple[int, float]]:
        """The most probable classes with their probabilities, best first."""
        seen = self.run.evidence
        codes, probabilities = seen["top_classes"].iloc[row], seen["top_probabilities"].iloc[row]
        return [(int(code), float(p)) for code, p in zip(codes, probabilities, strict=True)]

    def neighbors(self, row: int, most: int) -> list[Neighbor]:
        """The neighbors heard most, the loudest first; none where the estimator asks no neighbors."""
        seen = self.run.evidence
        if "neighbors" not in seen.columns:
            return []
        columns = (seen[name].iloc[row][:most] for name in ("neighbors", "similarities", "weights"))
        return [Neighbor(int(r), float(s), float(w)) for r, s, w in zip(*columns, strict=True)]


def _codes(labels: pd.Series[Any], run: AuditRun) -> IntArray:
    code_of = {value: code for code, value in enumerate(run.record.class_values)}
    codes = labels.map(code_of)
    unknown = codes.isna() & labels.notna()
    if unknown.any():
        raise RunFolderError(
            f"{run.folder}: the label {labels[unknown].iloc[0]!r} of issues.parquet is not among the classes "
            "of audit.json: the run is damaged, make it again."
        )
    result: IntArray = codes.fillna(MISSING).to_numpy().astype(np.int64)
    return result
