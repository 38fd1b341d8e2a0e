"""The result of an audit."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.auditing.annotation import AnnotationResult
from laplaceconfidence.auditing.corrections import Corrections, correct
from laplaceconfidence.auditing.diagnostics import fit_diagnostics, reachable_precision
from laplaceconfidence.auditing.explain import Explanation, explain
from laplaceconfidence.auditing.row_order import RowOrder
from laplaceconfidence.auditing.statement import MAJORITY_LABEL, AuditStatement, rows_to_look_at
from laplaceconfidence.auditing.summary import (
    confusion_counts,
    labels_by_row,
    summarize_classes,
    summarize_pairs,
)
from laplaceconfidence.auditing.table import LABEL_IN_DATA, FlagRule
from laplaceconfidence.confidence.protocol import ConfidenceEstimator
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.graph.neighborhood import Neighborhood

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class AuditResult:
    """A data set with a score for every label.

    Parameters
    ----------
    table : pandas.DataFrame
        One row per sample, worst first, indexed by the sample's row in the data set: ``id``, ``given_label``,
        ``predicted_label``, ``predicted_probability``, ``label_score`` (the probability that the given label
        is right; NaN where there is none), ``is_label_issue``, ``alternative_label`` and
        ``alternative_probability`` (the most probable class other than the given label; where the noise is
        not identified, by evidence that does not include that label), and ``path`` or ``text`` where the data
        set has them. Labels are written as the user wrote them.

        Where there are features: ``outlier_score`` and ``is_outlier_issue``; ``near_duplicate_score``,
        ``is_near_duplicate_issue``, ``near_duplicate_of`` (id of the nearest copy) and
        ``near_duplicate_of_row``, ``near_duplicate_set`` (number of the set of copies) and
        ``has_conflicting_duplicate`` (one of them has another label); and, with a test set,
        ``leakage_score``, ``is_leaked``, ``leaked_from`` (id of the test sample) and ``leaked_from_row``. For
        all of these scores, lower is worse, and samples below 0.5 are flagged.

        With several annotators, where the given label is the most frequent one and the predicted label is the
        consensus: ``n_labels``, ``n_agreeing`` (labels that are the consensus), ``annotator_labels`` (who
        said what), ``ask_annotator`` and ``ask_gain`` (whom to ask next, and the expected gain in nats).

        With verified labels, which take the place of the given ones: ``label_in_data``, the given ones.
    noise_rate : float
        Expected share of wrong labels: as the estimator reports it, or else 1 - the mean score of the given
        labels. The scores of the paper's estimator are too low on data with few wrong labels, so that it
        overstates this share; ``statement`` therefore leaves it out where the estimator does not report it.
    dataset : NoisyDataset
        The audited data set, with verified labels in place of the given ones.
    predicted : ndarray of shape (n,)
        Codes of the predicted labels, by row.
    alternatives : ndarray of shape (n,)
        Codes of the most probable classes other than the given labels, by row.
    distributions : ndarray of shape (n, C)
        Probability of every class, by row.
    estimator : ConfidenceEstimator
        The fitted estimator.
    estimator_name : str
        The name it was requested by, or the name of its class.
    settings : dict
        Settings of the estimator and of the rule that flags labels.
    timings : dict of str to float
        Seconds by stage.
    versions : dict of str to str
        Versions of the packages.
    source : dict
        The file or folder that ``audit`` read the data from ("source") and the "options" it was read with;
        empty for data that it did not read, or that verified labels replaced in part.
    support : ndarray of shape (n,), optional
        Probability of the given labels by evidence that does not include them, by row; only where the
        noise is not identified.
    row_order : RowOrder, optional
        Whether the rows are in random order, where that could be tested.
    annotation : AnnotationResult, optional
        Every single label and every annotator, where several annotators gave the labels.
    """

    table: pd.DataFrame
    noise_rate: float
    dataset: NoisyDataset
    predicted: IntArray
    alternatives: IntArray
    distributions: FloatArray
    estimator: ConfidenceEstimator
    estimator_name: str
    settings: dict[str, Any]
    timings: dict[str, float]
    versions: dict[str, str]
    source: dict[str, Any] = field(default_factory=dict)
    support: FloatArray | None = None
    row_order: RowOrder | None = None
    annotation: AnnotationResult | None = None

    def __repr__(self) -> str:
        return f"AuditResult({self.statement.short}, by {self.estimator_name})"

    def _repr_html_(self) -> str:
        from laplaceconfidence.auditing.notebook import audit_html

        return audit_html(self)

    @property
    def n_issues(self) -> int:
        """int: how many labels are flagged."""
        return int(self.table["is_label_issue"].sum())

    @cached_property
    def statement(self) -> AuditStatement:
        """AuditStatement: expected wrong labels and their bracket, flagged ones, and those to look at first.

        Printing its ``headline`` is the shortest summary of an audit.
        """
        diagnostics = fit_diagnostics(self.estimator)
        rule = FlagRule(self.settings.get("threshold"), self.settings.get("target_precision"))
        n_labeled = int((self.dataset.labels != MISSING).sum())
        flagged = self.table["label_score"][self.table["is_label_issue"]]
        has_none = rule.target_precision is not None and not len(flagged)
        n_corrected = 0
        if LABEL_IN_DATA in self.table:
            both = self.table[[LABEL_IN_DATA, "given_label"]].dropna()
            n_corrected = int((both[LABEL_IN_DATA] != both["given_label"]).sum())
        return AuditStatement(
            n_labeled=n_labeled,
            n_missing=len(self.dataset) - n_labeled,
            noise_rate=diagnostics.noise_rate,
            bracket=diagnostics.noise_rate_bracket,
            identified=diagnostics.identified,
            n_flagged=len(flagged),
            rule=rule,
            expected_precision=float(1 - flagged.mean())
            if len(flagged) and diagnostics.noise_rate is not None
            else None,
            unit="label" if self.annotation is None else MAJORITY_LABEL,
            reachable_precision=reachable_precision(self.estimator) if has_none else None,
            n_corrected=n_corrected,
        )

    @cached_property
    def first_rows(self) -> IntArray:
        """ndarray of int: rows of the labels to look at first: the flagged ones, then the others by rank."""
        labeled = self.table[self.table["label_score"].notna()]
        return rows_to_look_at(
            labeled.index.to_numpy(), labeled["is_label_issue"].to_numpy(), self.statement.n_listed
        )

    def suspects(self, n: int = 10) -> pd.DataFrame:
        """Return the labels to look at first, in few columns: the flagged ones, then the others by rank.

        Parameters
        ----------
        n : int, default=10
            How many at most.

        Returns
        -------
        pandas.DataFrame
            ``id``, ``given_label``, ``predicted_label``, ``predicted_probability`` and ``label_score`` of
            ``table``, ``is_label_issue``, ``alternative_label`` and ``alternative_probability`` if not all of
            them are flagged, and ``text`` or ``path`` if there is one; numbers are rounded to four decimals.
        """
        columns = ["id", "given_label", "predicted_label", "predicted_probability", "label_score"]
        listed = self.table.loc[self.first_rows[:n]]
        if not listed["is_label_issue"].all():
            columns += ["is_label_issue", "alternative_label", "alternative_probability"]
        columns += [name for name in ("path", "text") if name in self.table]
        return listed[columns].round(4)

    def suggestion(self, row: int) -> tuple[int, float]:
        """Return what is suggested in place of a label that is to be looked at.

        Parameters
        ----------
        row : int
            Row of the sample.

        Returns
        -------
        code : int
            The predicted class, or the best other one if that is the given label.
        probability : float
            Its probability; where the noise is not identified, by the evidence without the given label.
        """
        is_predicted = self.support is None and self.predicted[row] != self.dataset.labels[row]
        code = self.predicted[row] if is_predicted else self.alternatives[row]
        column = "predicted_probability" if is_predicted else "alternative_probability"
        return int(code), float(self.table[column][row])

    @cached_property
    def class_summary(self) -> pd.DataFrame:
        """pandas.DataFrame: one row per class, the largest share of flagged labels first."""
        return summarize_classes(self)

    @cached_property
    def confused_pairs(self) -> pd.DataFrame:
        """pandas.DataFrame: given and suggested class of the flagged labels, the most frequent pair first."""
        return summarize_pairs(self)

    @property
    def neighborhood(self) -> Neighborhood | None:
        """Neighborhood or None: the neighbors and weights that the estimator used; None if it used none."""
        return self.estimator.neighborhood_

    def explain(self, sample: int | str) -> Explanation:
        """List the neighbors of a sample, and whether their labels agree with its own.

        Parameters
        ----------
        sample : int or str
            The row of the sample, or its id.

        Returns
        -------
        Explanation

        Raises
        ------
        InvalidInputError
            If there is no such sample, or if the estimator used no neighbors.
        """
        return explain(self, sample)

    def correct(self, *, min_probability: float = 0.0, fill_missing: bool = False) -> Corrections:
        """Replace every flagged label with the suggested one, and keep a trail of the changes.

        Parameters
        ----------
        min_probability : float, default=0.0
            Labels whose suggestion has a lower probability stay as they are.
        fill_missing : bool, default=False
            Whether samples without a label get the suggested one.

        Returns
        -------
        Corrections
        """
        return correct(self, min_probability=min_probability, fill_missing=fill_missing)

    def corrected_labels(self, *, min_probability: float = 0.0, fill_missing: bool = False) -> NDArray[Any]:
        """Return the labels by row, flagged ones replaced with the suggestion, all others as they came.

        Parameters
        ----------
        min_probability : float, default=0.0
            Labels whose suggestion has a lower probability stay as they are.
        fill_missing : bool, default=False
            Whether samples without a label get the suggested one.

        Returns
        -------
        ndarray of shape (n,)
        """
        return self.correct(min_probability=min_probability, fill_missing=fill_missing).labels

    def plot_scores(self, ax: Axes | None = None) -> Axes:
        """Draw a histogram of the scores, with the flagged labels in another color.

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

        _, suggested, scores = labels_by_row(self)
        return plot_into(ScoreHistogram(scores, suggested != MISSING), ax)

    def plot_confusion(self, ax: Axes | None = None) -> Axes:
        """Draw the number of flagged labels per pair of given and predicted class.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from laplaceconfidence.report.audit_figures import ConfusionMatrix
        from laplaceconfidence.report.drawing import plot_into

        given, suggested, _ = labels_by_row(self)
        counts = confusion_counts(given, suggested, self.dataset.n_classes)
        return plot_into(ConfusionMatrix(counts, self.dataset.class_names), ax)

    def plot_classes(self, ax: Axes | None = None) -> Axes:
        """Draw the share of flagged labels per class, the largest first.

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

    def save(self, folder: str | Path, *, overwrite: bool = False, discard_decisions: bool = False) -> Path:
        """Write the run folder that the commands ``report``, ``review`` and ``export`` read.

        The folder also stores the ids, labels, features, images in memory, and texts or image paths of the
        data set, so that ``export`` can write it corrected. They are not stored if ``audit`` itself read the
        data from a file or folder, which ``export`` then reads again. True labels are never stored.

        Parameters
        ----------
        folder : str or pathlib.Path
            A folder that does not exist yet or is empty.
        overwrite : bool, default=False
            Whether to replace an audit that is in the folder.
        discard_decisions : bool, default=False
            Whether to replace it even if it holds decisions of a review.

        Returns
        -------
        pathlib.Path
            The folder.
        """
        from laplaceconfidence.records import write_audit
        from laplaceconfidence.records.run_folder import reserved_place

        with reserved_place(folder, overwrite=overwrite, discard_decisions=discard_decisions):
            run = write_audit(
                self,
                folder,
                source=self.source,
                overwrite=overwrite,
                discard_decisions=discard_decisions,
                keep_data="source" not in self.source,
            )
        return run.folder
