"""The samples of an audit as arrays in the order of the data: what reports, reviews and exports use."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray
from laplaceconfidence.auditing.explain import Position, neighbor_positions
from laplaceconfidence.auditing.statement import rows_to_look_at
from laplaceconfidence.auditing.table import LABEL_IN_DATA
from laplaceconfidence.auditing.telling_words import TellingWords
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.exceptions import RunFolderError
from laplaceconfidence.records.audit_run import AuditRun
from laplaceconfidence.records.review_sample import sample_first

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Neighbor:
    """A neighbor that the estimator used for a sample.

    Parameters
    ----------
    row : int
        Its row.
    similarity : float
        Its similarity to the sample.
    weight : float
        Its share of the weights of all neighbors of the sample.
    position : {"agrees", "disagrees", "no label"}
        Whether its label is that of the sample (the suggested one, where the sample has none).
    """

    row: int
    similarity: float
    weight: float
    position: Position


@dataclass(frozen=True, eq=False)
class SampleArrays:
    """The samples of an audit in the order of the data; labels are codes, indices into ``class_names``.

    Parameters
    ----------
    run : AuditRun
        The audit.
    ids : ndarray of str of shape (n,)
        Ids of the samples.
    given : ndarray of int of shape (n,)
        Given labels, or the verified ones that the audit took in their place; MISSING where there is none.
    in_data : ndarray of int of shape (n,)
        The labels that the data had, MISSING where there was none.
    suggested : ndarray of int of shape (n,)
        The most probable labels.
    probability : ndarray of shape (n,)
        Probability of the suggested labels.
    alternative : ndarray of int of shape (n,)
        The most probable labels other than the given ones.
    alternative_probability : ndarray of shape (n,)
        Probability of these.
    confidence : ndarray of shape (n,)
        Probability that the given label is right, NaN where there is none.
    flagged : ndarray of bool of shape (n,)
        Which labels the audit flagged.
    order : ndarray of int of shape (n,)
        Rows, the least trustworthy label first.
    sources : ndarray of str of shape (n,) or None
        Texts or image paths.
    """

    run: AuditRun
    ids: NDArray[Any]
    given: IntArray
    in_data: IntArray
    suggested: IntArray
    probability: FloatArray
    alternative: IntArray
    alternative_probability: FloatArray
    confidence: FloatArray
    flagged: BoolArray
    order: IntArray
    sources: NDArray[Any] | None

    @classmethod
    def of(cls, run: AuditRun) -> Self:
        """Build the arrays from the tables of a run.

        Parameters
        ----------
        run : AuditRun
            The audit.

        Returns
        -------
        SampleArrays

        Raises
        ------
        RunFolderError
            If the tables are damaged.
        """
        table = run.issues
        order = table.index.to_numpy().astype(np.int64)
        if not np.array_equal(np.sort(order), np.arange(len(order))):
            raise RunFolderError(
                f"{run.folder / 'issues.parquet'} does not list every row once: the run is damaged. "
                "Run the audit again."
            )
        by_row = table.sort_index()
        column = {"image": "path", "text": "text"}.get(run.record.source_kind or "")
        sources = None
        if column is not None and column in by_row.columns:
            sources = by_row[column].fillna("").astype(object).to_numpy()
        given = _codes(by_row["given_label"], run)
        suggested = _codes(by_row["predicted_label"], run)
        probability = by_row["predicted_probability"].to_numpy(dtype=np.float64)
        alternative, alternative_probability = suggested, probability
        if {"alternative_label", "alternative_probability"} <= set(by_row.columns):  # not in earlier versions
            alternative = _codes(by_row["alternative_label"], run)
            alternative_probability = by_row["alternative_probability"].to_numpy(dtype=np.float64)
        return cls(
            run=run,
            ids=by_row["id"].astype(object).to_numpy(),
            given=given,
            in_data=_codes(by_row[LABEL_IN_DATA], run) if LABEL_IN_DATA in by_row.columns else given,
            suggested=suggested,
            probability=probability,
            alternative=alternative,
            alternative_probability=alternative_probability,
            confidence=by_row["label_score"].to_numpy(dtype=np.float64),
            flagged=by_row["is_label_issue"].to_numpy(dtype=bool),
            order=order,
            sources=sources,
        )

    def __len__(self) -> int:
        return len(self.given)

    @property
    def class_names(self) -> tuple[str, ...]:
        """tuple of str: names of the classes, in the order of their codes."""
        return self.run.record.class_names

    @property
    def is_labeled(self) -> BoolArray:
        """ndarray of bool of shape (n,): whether the sample has a given label."""
        labeled: BoolArray = self.given != MISSING
        return labeled

    @cached_property
    def suspects(self) -> IntArray:
        """ndarray of int: rows of the flagged labels, worst first."""
        return self.order[self.flagged[self.order]]

    @cached_property
    def first_rows(self) -> IntArray:
        """ndarray of int: rows of the labels to look at first: the flagged ones, then the others by rank."""
        labeled = self.order[self.is_labeled[self.order]]
        return rows_to_look_at(labeled, self.flagged[labeled], self.run.record.statement.n_listed)

    @cached_property
    def disputed(self) -> IntArray:
        """ndarray of int: rows that annotators labeled differently, the least certain consensus first.

        Empty for an audit without several annotators.
        """
        table = self.run.issues
        if self.run.annotation is None or "n_agreeing" not in table.columns:
            return np.empty(0, dtype=np.int64)
        by_row = table.sort_index()
        differ = by_row["n_agreeing"].to_numpy() < by_row["n_labels"].to_numpy()
        rows = np.flatnonzero(differ & (by_row["n_labels"].to_numpy() > 1))
        return rows[np.argsort(self.probability[rows], kind="stable")]

    @cached_property
    def _takes_alternative(self) -> BoolArray:
        """Labels to look at whose most probable label is the given one, which is no suggestion.

        All labels to look at where suggestions leave the given label out.
        """
        listed = np.zeros(len(self), dtype=bool)
        listed[self.first_rows] = True
        if self.run.record.suggests_by_evidence_alone:
            return listed
        return np.asarray(listed & (self.suggested == self.given))

    @cached_property
    def offered(self) -> IntArray:
        """ndarray of int of shape (n,): what a reviewer is offered in place of the given label.

        It is the suggested label, but for labels to look at never the given one: then it is the alternative,
        which nothing accepts without a person.
        """
        return np.where(self._takes_alternative, self.alternative, self.suggested)

    @cached_property
    def offered_probability(self) -> FloatArray:
        """ndarray of shape (n,): probability of the offered labels."""
        return np.where(self._takes_alternative, self.alternative_probability, self.probability)

    @cached_property
    def uncertain(self) -> IntArray:
        """ndarray of int: rows to verify because their answer is least certain, if the audit chose some."""
        rows = self.run.record.review_uncertain
        if any(not 0 <= row < len(self) for row in rows):
            raise RunFolderError(
                f"{self.run.folder}: 'review_uncertain' of audit.json lists rows that do not exist: the run "
                "is damaged. Run the audit again."
            )
        return np.array(rows, dtype=np.int64)

    @cached_property
    def random_order(self) -> IntArray:
        """ndarray of int: labeled rows in random order, the same every time a run is read.

        Where the audit drew a sample for review, it comes first.
        """
        sample = self.run.record.review_sample
        labeled = set(np.flatnonzero(self.is_labeled).tolist())
        if len(set(sample)) < len(sample) or not labeled.issuperset(sample):
            raise RunFolderError(
                f"{self.run.folder}: 'review_sample' of audit.json must list different rows with a label: "
                "the run is damaged. Run the audit again."
            )
        return sample_first(self.given, sample)

    def name(self, code: int) -> str | None:
        """Return the name of a class.

        Parameters
        ----------
        code : int
            Code of the class.

        Returns
        -------
        str or None
            None for MISSING.
        """
        return None if code == MISSING else self.class_names[code]

    def top_classes(self, row: int) -> list[tuple[int, float]]:
        """Return the most probable classes of a sample.

        Parameters
        ----------
        row : int
            Row of the sample.

        Returns
        -------
        list of (int, float)
            Codes and probabilities, the most probable first.
        """
        evidence = self.run.evidence_of(row)
        codes, probabilities = evidence["top_classes"], evidence["top_probabilities"]
        return [(int(code), float(p)) for code, p in zip(codes, probabilities, strict=True)]

    def probability_of(self, rows: IntArray, codes: IntArray) -> FloatArray:
        """Return how probable labels of samples are.

        Parameters
        ----------
        rows : ndarray of int of shape (m,)
            Rows of the samples.
        codes : ndarray of int of shape (m,)
            Codes of the labels.

        Returns
        -------
        ndarray of shape (m,)
            The confidence of given labels; 0 for a class that is not among the most probable ones; NaN for
            MISSING.
        """
        result = np.where(codes == self.given[rows], self.confidence[rows], np.nan)
        for at in np.flatnonzero((codes != self.given[rows]) & (codes != MISSING)).tolist():
            result[at] = dict(self.top_classes(int(rows[at]))).get(int(codes[at]), 0.0)
        return result

    @cached_property
    def _telling_words(self) -> TellingWords | None:
        if self.sources is None or self.run.record.source_kind != "text":
            return None
        credible = np.where(self.flagged | ~self.is_labeled, self.suggested, self.given)
        return TellingWords([str(text) for text in self.sources], credible, len(self.class_names))

    def words(self, row: int) -> tuple[list[str], list[str]]:
        """Return the words of a text that speak for the offered class, and those for the given one.

        Parameters
        ----------
        row : int
            Row of the sample.

        Returns
        -------
        for_offered, for_given : list of str
            The clearest first; empty where there are none, or where samples are not texts.
        """
        words = self._telling_words
        if words is None:
            return [], []
        offered, given = int(self.offered[row]), int(self.given[row])
        return words.between(row, offered, given), words.between(row, given, offered)

    def neighbors(self, row: int, most: int) -> list[Neighbor]:
        """Return the neighbors of a sample.

        Parameters
        ----------
        row : int
            Row of the sample.
        most : int
            How many at most.

        Returns
        -------
        list of Neighbor
            The largest weight first; empty where the estimator used no neighbors.
        """
        evidence = self.run.evidence_of(row)
        if "neighbors" not in evidence:
            return []
        rows, similarities, weights = (
            evidence[name][:most] for name in ("neighbors", "similarities", "weights")
        )
        positions = neighbor_positions(
            self.given[rows], given=int(self.given[row]), suggested=int(self.suggested[row])
        )
        found = zip(rows, similarities, weights, positions, strict=True)
        return [Neighbor(int(r), float(s), float(w), position) for r, s, w, position in found]


def _codes(labels: pd.Series[Any], run: AuditRun) -> IntArray:
    code_of = {value: code for code, value in enumerate(run.record.class_values)}
    codes = labels.map(code_of)
    unknown = codes.isna() & labels.notna()
    if unknown.any():
        raise RunFolderError(
            f"{run.folder}: the label {labels[unknown].iloc[0]!r} of issues.parquet is not among the classes "
            "of audit.json: the run is damaged. Run the audit again."
        )
    result: IntArray = codes.fillna(MISSING).to_numpy().astype(np.int64)
    return result
