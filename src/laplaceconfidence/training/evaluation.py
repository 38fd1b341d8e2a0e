"""How good predictions are on labeled data: accuracy, classes, confusion, calibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.confidence.calibration import calibration_bins
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.notebook_html import bar, panel, section, table
from laplaceconfidence.wording import counted

if TYPE_CHECKING:
    import pandas as pd

TOP = 5
N_BINS = 15
_MOST_SHOWN = 20  # classes and confusions in a notebook


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Predictions compared with labels, as ``RobustClassifier.evaluate`` returns it.

    Attributes
    ----------
    n_samples : int
        Number of samples that have a label; the others are left out.
    accuracy : float
        Share of the samples whose most probable class is their label.
    top_5_accuracy : float or None
        Share whose label is among the five most probable classes; ``None`` for at most five classes.
    expected_calibration_error : float
        Mean distance between the probability of the predicted class and the share of right predictions, over
        15 equal bins of the probability.
    class_names : tuple of str
        Names of the classes.
    confusion : ndarray of shape (n_classes, n_classes)
        How many samples with the label of the row were predicted as the class of the column.
    """

    n_samples: int
    accuracy: float
    top_5_accuracy: float | None
    expected_calibration_error: float
    class_names: tuple[str, ...]
    confusion: IntArray
    _bins: tuple[IntArray, FloatArray, FloatArray]

    @property
    def per_class(self) -> pd.DataFrame:
        """pandas.DataFrame: ``support``, ``recall``, ``precision`` and ``f1`` by class.

        Recall is NaN for a class without samples, precision for a class that is never predicted.
        """
        import pandas as pd

        right = np.diag(self.confusion).astype(float)
        support, predicted = self.confusion.sum(axis=1), self.confusion.sum(axis=0)
        with np.errstate(invalid="ignore"):
            columns = {
                "support": support,
                "recall": right / support,
                "precision": right / predicted,
                "f1": 2 * right / (support + predicted),
            }
        return pd.DataFrame(columns, index=pd.Index(self.class_names, name="class"))

    @property
    def confused(self) -> pd.DataFrame:
        """pandas.DataFrame: ``label``, ``predicted`` and ``count`` of all wrong predictions, most first."""
        import pandas as pd

        wrong = self.confusion.copy()
        np.fill_diagonal(wrong, 0)
        order = np.argsort(-wrong, axis=None, kind="stable")[: int((wrong > 0).sum())]
        labels, predicted = np.unravel_index(order, wrong.shape)
        names = np.array(self.class_names, dtype=object)
        return pd.DataFrame(
            {"label": names[labels], "predicted": names[predicted], "count": wrong[labels, predicted]}
        )

    @property
    def calibration(self) -> pd.DataFrame:
        """pandas.DataFrame: ``count``, mean ``probability`` and ``accuracy`` of every bin with samples."""
        import pandas as pd

        counts, probability, accuracy = self._bins
        filled = counts > 0
        edges = np.arange(N_BINS)[filled] / N_BINS
        return pd.DataFrame(
            {
                "from": edges,
                "to": edges + 1 / N_BINS,
                "count": counts[filled],
                "probability": probability[filled],
                "accuracy": accuracy[filled],
            }
        )

    def as_dict(self) -> dict[str, Any]:
        """All results as text and numbers, for JSON.

        Returns
        -------
        dict
        """
        per_class = self.per_class.astype(object)
        return {
            "n_samples": self.n_samples,
            "accuracy": self.accuracy,
            "top_5_accuracy": self.top_5_accuracy,
            "expected_calibration_error": self.expected_calibration_error,
            "per_class": per_class.where(per_class.notna(), None).to_dict(orient="index"),
            "confusion": self.confusion.tolist(),
            "calibration": self.calibration.to_dict(orient="records"),
        }

    def __repr__(self) -> str:
        return f"Evaluation({counted(self.n_samples, 'sample')}: {', '.join(self._facts())})"

    def _facts(self) -> list[str]:
        facts = [f"accuracy {self.accuracy:.1%}"]
        if self.top_5_accuracy is not None:
            facts.append(f"top-5 accuracy {self.top_5_accuracy:.1%}")
        return [*facts, f"calibration error {self.expected_calibration_error:.3f}"]

    def _repr_html_(self) -> str:
        per_class = self.per_class.sort_values("recall", kind="stable")
        recalls, precisions = per_class["recall"].tolist(), per_class["precision"].tolist()
        classes = [
            (name, f"{support:,}", _percent(recall), bar(np.nan_to_num(recall)), _percent(precision))
            for name, support, recall, precision in zip(
                per_class.index, per_class["support"], recalls, precisions, strict=True
            )
        ]
        headings = ("class", "samples", "recall", "", "precision")
        parts = [
            section(
                _heading("Classes, lowest recall first", len(classes)),
                table(headings, classes[:_MOST_SHOWN], numbers=("samples", "recall", "precision")),
            )
        ]
        if len(confused := self.confused):
            rows = confused.head(_MOST_SHOWN).itertuples(index=False)
            pairs = [[row[0], row[1], f"{row[2]:,}"] for row in rows]
            shown = table(("label", "predicted as", "samples"), pairs, numbers=("samples",))
            parts.append(section(_heading("Most frequent confusions", len(confused)), shown))
        title = f"{counted(self.n_samples, 'sample')} with a label"
        return panel(title, *parts, note="; ".join(self._facts()))


def evaluate_predictions(
    probabilities: FloatArray, labels: IntArray, class_names: tuple[str, ...]
) -> Evaluation:
    """Compare predictions with labels.

    Parameters
    ----------
    probabilities : ndarray of shape (n, n_classes)
        Class probabilities.
    labels : ndarray of shape (n,)
        Codes of the labels, -1 where there is none.
    class_names : tuple of str
        Names of the classes.

    Returns
    -------
    Evaluation
    """
    labeled = labels != MISSING
    if not labeled.any():
        raise InvalidInputError("'y' must hold at least one label to compare with. Got missing labels only.")
    probabilities, labels = probabilities[labeled].astype(np.float64), labels[labeled]
    n_classes = len(class_names)
    predicted = probabilities.argmax(axis=1)
    right = predicted == labels
    confusion = np.zeros((n_classes, n_classes), dtype=np.int64)
    np.add.at(confusion, (labels, predicted), 1)
    counts, confidence, accuracy = calibration_bins(probabilities.max(axis=1), right, N_BINS)
    return Evaluation(
        n_samples=len(labels),
        accuracy=float(right.mean()),
        top_5_accuracy=top_5_accuracy(probabilities, labels),
        expected_calibration_error=float((counts * np.abs(confidence - accuracy)).sum() / len(labels)),
        class_names=class_names,
        confusion=confusion,
        _bins=(counts, confidence, accuracy),
    )


def top_5_accuracy(probabilities: FloatArray, labels: IntArray) -> float | None:
    """Share of the samples whose label is among their five most probable classes.

    Parameters
    ----------
    probabilities : ndarray of shape (n, C)
        Class probabilities.
    labels : ndarray of shape (n,)
        Codes of the labels; samples without one (-1) are left out.

    Returns
    -------
    float or None
        ``None`` for at most five classes, or if no sample has a label.
    """
    labeled = labels != MISSING
    if probabilities.shape[1] <= TOP or not labeled.any():
        return None
    best = np.argpartition(-probabilities[labeled], TOP - 1, axis=1)[:, :TOP]
    return float((best == labels[labeled][:, None]).any(axis=1).mean())


def _heading(text: str, n: int) -> str:
    return f"{text} ({_MOST_SHOWN} of {n:,})" if n > _MOST_SHOWN else text


def _percent(share: float) -> str:
    return "" if np.isnan(share) else f"{share:.1%}"
