"""What an audit hands back."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
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
    from matplotlib.axes import Axes


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
    source: dict[str, Any] = field(default_factory=dict)  # file that the data was read from, and the options

    def __repr__(self) -> str:
        return f"AuditResult({self.n_issues} of {len(self.dataset)} labels flagged, by {self.estimator_name})"

    def _repr_html_(self) -> str:
        from laplaceconfidence.auditing.notebook import audit_html

        return audit_html(self)

    @property
    def n_issues(self) -> int:
        """How many labels are flagged."""
        return int(self.table["is_label_issue"].sum())

    def suspects(self, n: int = 10) -> pd.DataFrame:
        """The least trustworthy flagged labels at a glance.

        Parameters
        ----------
        n : int, default=10
            How many at most.

        Returns
        -------
        pandas.DataFrame
            The first columns of ``table`` and the text or path of the sample, if there is one; probability
            and score are rounded to four decimals.
        """
        columns = ["id", "given_label", "predicted_label", "predicted_probability", "label_score"]
        columns += [name for name in ("path", "text") if name in self.table]
        return self.table.loc[self.table["is_label_issue"], columns].head(n).round(4)

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

    def plot_scores(self, ax: Axes | None = None) -> Axes:
        """Draw how many labels have which score, the flagged ones in another color.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from laplaceconfidence.report.audit_figures import ScoreHistogram
        from laplaceconfidence.report.drawing import plot_into

        by_row = self.table.sort_index()
        return plot_into(
            ScoreHistogram(by_row["label_score"].to_numpy(), by_row["is_label_issue"].to_numpy()), ax
        )

    def plot_confusion(self, ax: Axes | None = None) -> Axes:
        """Draw how many flagged labels of every class are predicted to be of which other.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from laplaceconfidence.report.audit_figures import ConfusionMatrix, flagged_counts
        from laplaceconfidence.report.drawing import plot_into

        names = self.dataset.class_names
        flagged = self.table["is_label_issue"].sort_index().to_numpy()
        counts = flagged_counts(self.dataset.labels, self.predicted, flagged, len(names))
        return plot_into(ConfusionMatrix(counts, names), ax)

    def plot_classes(self, ax: Axes | None = None) -> Axes:
        """Draw the share of flagged labels of every class, the largest first.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from laplaceconfidence.report.audit_figures import FlaggedShares
        from laplaceconfidence.report.drawing import plot_into

        classes = self.class_summary
        return plot_into(FlaggedShares(classes["issue_share"].to_numpy(), tuple(classes["name"])), ax)

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Write the run folder that the commands ``report``, ``review`` and ``export`` take.

        Parameters
        ----------
        folder : str or pathlib.Path
            A folder that does not exist yet. It holds a copy of the data, except where ``audit`` read the
            data from a file.
        overwrite : bool, default=False
            Whether to replace an audit that is in the folder.

        Returns
        -------
        pathlib.Path
            The folder.
        """
        from laplaceconfidence.records import write_audit

        run = write_audit(
            self, folder, source=self.source, overwrite=overwrite, keep_data="source" not in self.source
        )
        return run.folder
