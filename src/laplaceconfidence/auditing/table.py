"""The table of an audit: which label is suggested, which labels are flagged, and the order of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray, sized_row_blocks
from laplaceconfidence.auditing.diagnostics import EstimatesPrecision
from laplaceconfidence.confidence.protocol import ConfidenceEstimator
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.labels import MISSING, encodable
from laplaceconfidence.validation import check_real, must_be
from laplaceconfidence.wording import percent

if TYPE_CHECKING:
    import pandas as pd

LABEL_IN_DATA = "label_in_data"


def most_probable(distributions: FloatArray, given: IntArray) -> IntArray:
    """Return the most probable class of every sample.

    Parameters
    ----------
    distributions : ndarray of shape (n, C)
        Probability of every class.
    given : ndarray of int of shape (n,)
        Codes of the given labels, MISSING where there is none.

    Returns
    -------
    ndarray of int of shape (n,)
        Among equally probable classes the given one, if it is among them, else the first.
    """
    rows = np.arange(len(given))
    best = distributions.argmax(axis=1)
    is_best = distributions[rows, np.maximum(given, 0)] >= distributions[rows, best]
    return np.where((given != MISSING) & is_best, given, best)


def with_support(distributions: FloatArray, given: IntArray, support: FloatArray) -> FloatArray:
    """Replace the probability of every given label, and scale the other classes such that rows sum to 1.

    Parameters
    ----------
    distributions : ndarray of shape (m, C)
        Probability of every class.
    given : ndarray of int of shape (m,)
        Codes of the given labels, MISSING where there is none.
    support : ndarray of shape (m,)
        The new probabilities; rows with NaN or without a label stay as they are.

    Returns
    -------
    ndarray of shape (m, C)
    """
    result = np.array(distributions, dtype=np.float64)
    rows = np.flatnonzero((given != MISSING) & ~np.isnan(support))
    others = result[rows]
    others[np.arange(len(rows)), given[rows]] = 0
    rest = others.sum(axis=1)
    others *= ((1 - support[rows]) / np.where(rest > 0, rest, 1))[:, None]
    others[np.arange(len(rows)), given[rows]] = np.where(rest > 0, support[rows], 1)
    result[rows] = others
    return result


def best_alternatives(
    distributions: FloatArray, given: IntArray, support: FloatArray | None = None
) -> tuple[IntArray, FloatArray]:
    """Find the most probable class of every sample other than its given label.

    Parameters
    ----------
    distributions : ndarray of shape (n, C)
        Probability of every class.
    given : ndarray of int of shape (n,)
        Codes of the given labels, MISSING where there is none.
    support : ndarray of shape (n,), optional
        Probabilities of the given labels by evidence that does not include them, to be used in place of those
        of ``distributions``.

    Returns
    -------
    codes : ndarray of int of shape (n,)
    probabilities : ndarray of shape (n,)
    """
    codes = np.empty(len(given), dtype=np.int64)
    probabilities = np.empty(len(given), dtype=np.float64)
    for block in sized_row_blocks(*distributions.shape):
        part, own = distributions[block], given[block]
        part = part.astype(np.float64) if support is None else with_support(part, own, support[block])
        rows = np.arange(len(own))
        others = part.copy()
        others[rows[own != MISSING], own[own != MISSING]] = -1
        codes[block] = others.argmax(axis=1)
        probabilities[block] = part[rows, codes[block]]
    return codes, probabilities


@dataclass(frozen=True, slots=True)
class FlagRule:
    """Which labels an audit flags; by default those for which another class is more probable.

    Parameters
    ----------
    threshold : float, optional
        Flag labels with a score below it.
    target_precision : float, optional
        Flag as many labels as possible such that this share of them is expected to be wrong.
    """

    threshold: float | None = None
    target_precision: float | None = None

    @property
    def words(self) -> str:
        """str: which labels are flagged: "where another class is more probable than the given one"."""
        if self.target_precision is not None:
            return f"such that {percent(self.target_precision)} of them are expected to be wrong"
        if self.threshold is not None:
            return f"where the score is below {self.threshold:g}"
        return "where another class is more probable than the given one"

    def check(self, estimator: ConfidenceEstimator, name: str) -> None:
        """Raise if the rule cannot be applied to the scores of an estimator.

        Parameters
        ----------
        estimator : ConfidenceEstimator
            Fitted or not.
        name : str
            How the caller names it.

        Raises
        ------
        InvalidInputError
            If the values are invalid, or the scores are not calibrated and ``target_precision`` is set.
        """
        if self.threshold is not None:
            check_real(self.threshold, "threshold", at_least=0, at_most=1)
        if self.target_precision is None:
            return
        check_real(self.target_precision, "target_precision", above=0, below=1)
        if self.threshold is not None:
            raise must_be("target_precision", "left out where 'threshold' is given", self.target_precision)
        if not isinstance(estimator, EstimatesPrecision):
            rule = f"left out for {name!r}, whose scores are not calibrated probabilities"
            raise must_be("target_precision", rule, self.target_precision, "Those of 'noise-aware' are.")

    def flagged(
        self, estimator: ConfidenceEstimator, scores: FloatArray, predicted: IntArray, given: IntArray
    ) -> BoolArray:
        """Select the labels that are flagged.

        Parameters
        ----------
        estimator : ConfidenceEstimator
            Fitted.
        scores : ndarray of shape (n,)
            Probability that the given label is right.
        predicted : ndarray of int of shape (n,)
            Codes of the most probable classes.
        given : ndarray of int of shape (n,)
            Codes of the given labels.

        Returns
        -------
        ndarray of bool of shape (n,)
        """
        if self.target_precision is not None:
            assert isinstance(estimator, EstimatesPrecision)  # by ``check``
            suspected = scores < estimator.threshold_for(precision=self.target_precision)
        else:
            suspected = predicted != given if self.threshold is None else scores < self.threshold
        flags: BoolArray = suspected & (given != MISSING)
        return flags


def ranked_table(
    dataset: NoisyDataset,
    distributions: FloatArray,
    scores: FloatArray,
    predicted: IntArray,
    alternatives: tuple[IntArray, FloatArray],
    flagged: BoolArray,
    more: dict[str, Any],
    in_data: IntArray | None = None,
) -> pd.DataFrame:
    """Build the table of an audit, the least trustworthy label first.

    Equal scores are ranked by the probability of the given label, then by row; samples without a label come
    last.

    Parameters
    ----------
    dataset : NoisyDataset
        The audited data set.
    distributions : ndarray of shape (n, C)
        Probability of every class.
    scores : ndarray of shape (n,)
        Probability that the given label is right.
    predicted : ndarray of shape (n,)
        Codes of the most probable classes.
    alternatives : tuple of ndarray of shape (n,)
        Codes and probabilities of the most probable classes other than the given ones.
    flagged : ndarray of shape (n,)
        Which labels are flagged.
    more : dict of str to array
        Further columns, in the order of the rows.
    in_data : ndarray of int of shape (n,), optional
        Codes of the labels in the data, where verified ones took their place. They become one more column.

    Returns
    -------
    pandas.DataFrame
        One row per sample, indexed by its row in the data set.
    """
    import pandas as pd

    rows = np.arange(len(dataset))
    values = dataset.class_values
    columns: dict[str, Any] = {
        "id": encodable(dataset.sample_ids),
        "given_label": label_column(values, dataset.labels),
        "predicted_label": label_column(values, predicted),
        "predicted_probability": distributions[rows, predicted].astype(np.float64),
        "label_score": scores,
        "is_label_issue": flagged,
        "alternative_label": label_column(values, alternatives[0]),
        "alternative_probability": alternatives[1],
        **more,
    }
    if in_data is not None:
        columns[LABEL_IN_DATA] = label_column(values, in_data)
    if dataset.sources is not None:
        columns["path" if dataset.source_kind == "image" else "text"] = encodable(dataset.sources)
    missing = dataset.labels == MISSING
    own = distributions[rows, np.maximum(dataset.labels, 0)]
    order = np.lexsort((rows, own, np.where(missing, np.inf, scores)))
    return pd.DataFrame(columns, index=pd.RangeIndex(len(rows), name="row")).take(order)


def label_column(values: NDArray[Any], codes: IntArray) -> Any:
    """Write labels as the user does.

    Parameters
    ----------
    values : ndarray of shape (C,)
        The classes as they are written among the labels.
    codes : ndarray of int of shape (n,)
        Codes of the labels, MISSING where there is none.

    Returns
    -------
    ndarray or pandas array of shape (n,)
        A gap is a missing value of pandas, and integers stay integers.
    """
    import pandas as pd

    missing = codes == MISSING
    labels = encodable(values)[codes]
    if not missing.any():
        return labels
    column = labels.astype(object)
    column[missing] = None
    kind = {"i": "Int64", "b": "boolean"}.get(values.dtype.kind, "str")
    return pd.Series(column, dtype=kind).array
