"""What an audit found about the labels of several annotators, besides the table of the samples."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray
from laplaceconfidence.auditing.table import FlagRule, label_column
from laplaceconfidence.confidence.annotators.votes import VoteConfidence
from laplaceconfidence.confidence.decisions import threshold_for_precision
from laplaceconfidence.data.annotator_labels import AnnotatorLabels
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.labels import encodable, encode_labels
from laplaceconfidence.wording import counted, percent

if TYPE_CHECKING:
    import pandas as pd

MOST_QUESTIONS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationSummary:
    """The labels of several annotators in numbers and sentences.

    Parameters
    ----------
    n_annotators, n_labels, n_samples : int
        Annotators, their labels, and samples with at least one.
    n_disputed : int
        Samples whose labels differ.
    n_tied : int
        Samples with several most frequent labels, of which the one that was given first is the given label.
    n_changed : int
        Samples whose consensus is none of the most frequent labels.
    noise_rate : float
        Expected share of wrong labels among all single ones.
    n_flagged : int
        Single labels that are flagged.
    n_copying : int
        Annotators whose labels are copies of another one's.
    n_alone : int
        Annotators who labeled no sample that somebody else labeled.
    """

    n_annotators: int
    n_labels: int
    n_samples: int
    n_disputed: int
    n_tied: int
    n_changed: int
    noise_rate: float
    n_flagged: int
    n_copying: int
    n_alone: int

    @property
    def sentences(self) -> list[str]:
        """list of str: who labeled how much, how often they differ, and what is expected to be wrong."""
        are = "is" if round(self.noise_rate * self.n_labels) == 1 else "are"
        said = [
            f"{counted(self.n_annotators, 'annotator')} gave {counted(self.n_labels, 'label')} to "
            f"{counted(self.n_samples, 'sample')}, {self.n_labels / max(1, self.n_samples):.1f} each; "
            f"about {percent(self.noise_rate)} of the single labels {are} expected to be wrong, "
            f"{self.n_flagged:,} flagged.",
            f"Annotators differ about {counted(self.n_disputed, 'sample')}, {self.n_tied:,} of them without "
            f"a majority; the consensus is none of the most frequent labels for {self.n_changed:,}.",
        ]
        if self.n_copying:
            verb = "gives" if self.n_copying == 1 else "give"
            said.append(
                f"{counted(self.n_copying, 'annotator')} {verb} the same labels as another one, more often "
                "than chance allows; they are counted once."
            )
        if self.n_alone and self.n_annotators > 1:
            said.append(
                f"{counted(self.n_alone, 'annotator')} labeled no sample that somebody else labeled: only "
                "features can tell how accurate they are."
            )
        return said


@dataclass(frozen=True, eq=False)
class AnnotationResult:
    """Every single label, every annotator, and whom to ask next.

    Parameters
    ----------
    labels : pandas.DataFrame
        One row per label, the least trustworthy first: ``row`` and ``id`` of the sample, ``annotator``,
        ``given_label``, ``label_score`` (the probability that it is right), ``consensus`` and
        ``is_label_issue``.
    annotators : pandas.DataFrame
        One row per annotator, as ``AnnotatorConfidence.annotators_``, the least accurate first.
    questions : pandas.DataFrame
        Up to 1,000 labels to ask for, those that are expected to tell most first: ``row`` and ``id`` of the
        sample, the ``annotator`` to ask and the expected ``gain`` in nats.
    summary : AnnotationSummary
        The same in a few numbers.
    """

    labels: pd.DataFrame
    annotators: pd.DataFrame
    questions: pd.DataFrame
    summary: AnnotationSummary


class AnnotationTables:
    """Builds the tables about annotators of a fitted audit.

    Parameters
    ----------
    dataset : NoisyDataset
        The audited data set.
    estimator : VoteConfidence
        Fitted.
    predicted : ndarray of int of shape (n,)
        Codes of the consensus.
    rule : FlagRule
        Which labels are flagged.
    """

    def __init__(
        self, dataset: NoisyDataset, estimator: VoteConfidence, predicted: IntArray, rule: FlagRule
    ) -> None:
        assert dataset.annotations is not None
        self._dataset, self._estimator, self._predicted, self._rule = dataset, estimator, predicted, rule
        self._given: AnnotatorLabels = dataset.annotations
        self._codes = encode_labels(self._given.labels, classes=dataset.class_values).codes
        self._names = encodable(self._given.annotator_names.astype(str).astype(object))

    @cached_property
    def _questions(self) -> tuple[IntArray, FloatArray]:
        return self._estimator.best_questions_

    def columns(self) -> dict[str, Any]:
        """Return the columns of the table of samples.

        Returns
        -------
        dict of str to array of shape (n,)
            ``n_labels``, ``n_agreeing`` (labels that are the consensus), ``annotator_labels`` (who said
            what), ``ask_annotator`` and ``ask_gain``.
        """
        given, n = self._given, len(self._dataset)
        agrees = self._codes == self._predicted[given.samples]
        names, classes = self._names[given.annotators], np.array(self._dataset.class_names, dtype=object)
        said: list[list[str]] = [[] for _ in range(n)]
        for row, who, what in zip(given.samples.tolist(), names, classes[self._codes], strict=True):
            said[row].append(f"{who}: {what}")
        annotators, gains = self._questions
        asked = np.array([*self._names, None], dtype=object)[annotators]
        return {
            "n_labels": np.bincount(given.samples, minlength=n),
            "n_agreeing": np.bincount(given.samples, weights=agrees, minlength=n).astype(np.int64),
            "annotator_labels": encodable(np.array(["; ".join(parts) for parts in said], dtype=object)),
            "ask_annotator": asked,
            "ask_gain": gains,
        }

    def result(self) -> AnnotationResult:
        """Return the tables.

        Returns
        -------
        AnnotationResult
        """
        import pandas as pd

        given, dataset = self._given, self._dataset
        scores = self._estimator.single_confidence_
        flagged = self._flagged(scores)
        ids = encodable(dataset.sample_ids)
        values = dataset.class_values
        order = np.lexsort((given.samples, scores))
        labels = pd.DataFrame(
            {
                "row": given.samples,
                "id": ids[given.samples],
                "annotator": self._names[given.annotators],
                "given_label": label_column(values, self._codes),
                "label_score": scores,
                "consensus": label_column(values, self._predicted[given.samples]),
                "is_label_issue": flagged,
            }
        ).take(order)
        annotators = self._estimator.annotators_.copy()
        annotators["annotator"] = self._names
        copied = annotators["copies"].notna()
        annotators.loc[copied, "copies"] = encodable(annotators.loc[copied, "copies"].astype(str).to_numpy())
        rows = np.argsort(-self._questions[1], kind="stable")[:MOST_QUESTIONS]
        rows = rows[self._questions[1][rows] > 0]
        questions = pd.DataFrame(
            {
                "row": rows,
                "id": ids[rows],
                "annotator": self._names[self._questions[0][rows]],
                "gain": self._questions[1][rows],
            }
        )
        annotators = annotators.sort_values("accuracy", kind="stable", na_position="last")
        return AnnotationResult(
            labels.reset_index(drop=True),
            annotators.reset_index(drop=True),
            questions,
            self._summary(flagged),
        )

    def _flagged(self, scores: FloatArray) -> BoolArray:
        if self._rule.target_precision is not None:
            return np.asarray(scores < threshold_for_precision(scores, self._rule.target_precision))
        if self._rule.threshold is not None:
            return np.asarray(scores < self._rule.threshold)
        return np.asarray(self._codes != self._predicted[self._given.samples])

    def _summary(self, flagged: BoolArray) -> AnnotationSummary:
        given, n = self._given, len(self._dataset)
        n_labels = np.bincount(given.samples, minlength=n)
        counts = sparse.csr_array(
            (np.ones(len(self._codes)), (given.samples, self._codes)), shape=(n, self._dataset.n_classes)
        )
        most = counts.max(axis=1).toarray().ravel()
        is_most = counts.data == np.repeat(most, np.diff(counts.indptr))
        n_most = np.bincount(np.repeat(np.arange(n), np.diff(counts.indptr)), weights=is_most, minlength=n)
        agreeing = np.bincount(
            given.samples, weights=self._codes == self._predicted[given.samples], minlength=n
        )
        shared = np.zeros(len(self._names), dtype=bool)
        shared[given.annotators[n_labels[given.samples] > 1]] = True
        has_labels = np.bincount(given.annotators, minlength=len(self._names)) > 0
        return AnnotationSummary(
            n_annotators=len(self._names),
            n_labels=len(given.samples),
            n_samples=int((n_labels > 0).sum()),
            n_disputed=int((most < n_labels).sum()),
            n_tied=int((n_most > 1).sum()),
            n_changed=int((agreeing < most).sum()),
            noise_rate=float(1 - self._estimator.single_confidence_.mean()),
            n_flagged=int(flagged.sum()),
            n_copying=int(self._estimator.annotators_["copies"].notna().sum()),
            n_alone=int((has_labels & ~shared).sum()),
        )
