"""What an audit hands back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.auditing.explain import Explanation, Voices, explain, listen
from laplaceconfidence.auditing.fixes import Corrections, correct
from laplaceconfidence.auditing.summary import summarize_classes, summarize_pairs
from laplaceconfidence.confidence.protocol import ConfidenceEstimator
from laplaceconfidence.data.dataset import NoisyDataset

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class AuditResult:
    """The labels of a data set, judged.

    ``table`` has one row a sample, worst first, and is indexed by the sample's row in the data set:
    ``id``, ``given_label``, ``predicted_label``, ``predicted_probability``, ``label_score`` (the probability
    that the given label is right; NaN where there is none), ``is_label_issue``, and ``path`` or ``text``
    where the data set knows them. Labels are written as the user wrote them.

    Where there are features: ``outlier_score`` and ``is_outlier_issue``; ``near_duplicate_score``,
    ``is_near_duplicate_issue``, ``near_duplicate_of`` (id of the nearest copy), ``near_duplicate_set``
    (number of the set of copies) and ``has_conflicting_duplicate`` (one of them has another label); and,
    beside a test set, ``leakage_score``, ``is_leaked`` and ``leaked_from`` (id of the test sample). Of all
    these scores the lower is the worse, and below 0.5 is flagged. docs/guides/data-issues.md says how.

    ``noise_rate`` is 1 - the mean score of the given labels: the share of wrong labels if scores are taken at
    their word. The estimator of the paper errs on the side of doubt, so that on mostly right labels it
    overstates this share; the number of flagged labels is then the better guide.
    """

    table: pd.DataFrame
    noise_rate: float
    dataset: NoisyDataset
    predicted: IntArray  # (n,) codes of the predicted labels, by row
    distributions: FloatArray  # (n, C) probability of every class, by row
    estimator: ConfidenceEstimator  # fitted
    estimator_name: str
    settings: dict[str, Any]
    timings: dict[str, float]  # seconds by stage
    versions: dict[str, str]

    def __repr__(self) -> str:
        return f"AuditResult({self.n_issues} of {len(self.dataset)} labels flagged, by {self.estimator_name})"

    @property
    def n_issues(self) -> int:
        """How many labels are flagged."""
        return int(self.table["is_label_issue"].sum())

    @cached_property
    def class_summary(self) -> pd.DataFrame:
        """Every class, the one with the largest share of flagged labels first."""
        return summarize_classes(self)

    @cached_property
    def confused_pairs(self) -> pd.DataFrame:
        """Given and suggested class of the flagged labels, the most frequent pair first."""
        return summarize_pairs(self)

    @cached_property
    def voices(self) -> Voices:
        """The graph on which neighbors spoke; an error where the estimator asked no neighbors."""
        return listen(self.estimator, self.estimator_name, self.dataset)

    def explain(self, sample: int | str) -> Explanation:
        """The neighbors that speak for and against a label. ``sample`` is a row (int) or an id (str)."""
        return explain(self, sample)

    def correct(self, *, min_probability: float = 0.0, fill_missing: bool = False) -> Corrections:
        """The suggestions taken, with a trail of what changed; see ``fixes.correct``."""
        return correct(self, min_probability=min_probability, fill_missing=fill_missing)

    def corrected_labels(self, *, min_probability: float = 0.0, fill_missing: bool = False) -> NDArray[Any]:
        """The labels by row, with the suggestions taken where one is flagged; all others as they came."""
        return self.correct(min_probability=min_probability, fill_missing=fill_missing).labels
