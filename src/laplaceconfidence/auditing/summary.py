"""What an audit found, per class and per pair of classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.data.labels import MISSING

if TYPE_CHECKING:
    import pandas as pd

    from laplaceconfidence.auditing.result import AuditResult


def confusion_counts(given: IntArray, other: IntArray, n_classes: int) -> IntArray:
    """Count samples by two labels.

    Parameters
    ----------
    given, other : ndarray of int of shape (m,)
        Codes of the labels; samples for which one of them is MISSING are left out.
    n_classes : int
        Number of classes.

    Returns
    -------
    ndarray of int of shape (C, C)
        One row per class of ``given``, one column per class of ``other``.
    """
    known = (given != MISSING) & (other != MISSING)
    cells = given[known] * n_classes + other[known]
    return np.bincount(cells, minlength=n_classes**2).reshape(n_classes, n_classes)


def count_pairs(given: IntArray, suggested: IntArray, n_classes: int) -> list[tuple[int, int, int]]:
    """Count labels by given and suggested class, where these differ.

    Parameters
    ----------
    given, suggested : ndarray of int of shape (m,)
        Codes of the labels; missing ones are left out.
    n_classes : int
        Number of classes.

    Returns
    -------
    list of tuple of int
        (given, suggested, count), the most frequent first.
    """
    differ = (given != suggested) & (given != MISSING) & (suggested != MISSING)
    cells, counts = np.unique(given[differ] * n_classes + suggested[differ], return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return [
        (int(cell) // n_classes, int(cell) % n_classes, int(n))
        for cell, n in zip(cells[order], counts[order], strict=True)
    ]


@dataclass(frozen=True, slots=True, eq=False)
class ClassCounts:
    """Labels and flagged labels per class; all arrays have the shape (C,).

    Parameters
    ----------
    n_given : ndarray of int
        Labels of the class.
    n_issues : ndarray of int
        Flagged labels of the class.
    issue_share : ndarray
        Share of the flagged ones, NaN for a class without labels.
    mean_score : ndarray
        Mean score of the labels, NaN for a class without labels.
    usual : ndarray of int
        Code of the class most often suggested instead, MISSING if none is.
    n_suggested : ndarray of int
        Flagged labels of other classes for which this class is suggested.
    """

    n_given: IntArray
    n_issues: IntArray
    issue_share: FloatArray
    mean_score: FloatArray
    usual: IntArray
    n_suggested: IntArray


def count_classes(given: IntArray, suggested: IntArray, scores: FloatArray, n_classes: int) -> ClassCounts:
    """Count labels and flagged labels per class.

    Parameters
    ----------
    given : ndarray of int of shape (n,)
        Codes of the given labels, MISSING where there is none.
    suggested : ndarray of int of shape (n,)
        Codes of the suggested labels, MISSING where the given one is not flagged.
    scores : ndarray of shape (n,)
        Probability that the given label is right.
    n_classes : int
        Number of classes.

    Returns
    -------
    ClassCounts
    """
    labeled, flagged = given != MISSING, suggested != MISSING
    n_given = np.bincount(given[labeled], minlength=n_classes)
    n_issues = np.bincount(given[flagged], minlength=n_classes)
    total = np.bincount(given[labeled], weights=scores[labeled], minlength=n_classes)
    usual = np.full(n_classes, MISSING)
    for old, new, _ in reversed(count_pairs(given, suggested, n_classes)):
        usual[old] = new
    with np.errstate(invalid="ignore"):
        return ClassCounts(
            n_given,
            n_issues,
            n_issues / n_given,
            total / n_given,
            usual,
            np.bincount(suggested[flagged & (suggested != given)], minlength=n_classes),
        )


def summarize_classes(result: AuditResult) -> pd.DataFrame:
    """Summarize an audit per class.

    Parameters
    ----------
    result : AuditResult
        A finished audit.

    Returns
    -------
    pandas.DataFrame
        One row per class, the largest share of flagged labels first: ``label`` as the user writes it and
        ``name``; ``n_given`` labels, ``n_issues`` flagged ones and their share ``issue_share``;
        ``mean_score``; ``usual_suggestion``, the label most often suggested instead; and ``n_suggested``, how
        many flagged labels of other classes are suggested to be of this one.
    """
    import pandas as pd

    given, suggested, scores = labels_by_row(result)
    counts = count_classes(given, suggested, scores, result.dataset.n_classes)
    values = result.dataset.class_values
    summary = pd.DataFrame(
        {
            "label": values,
            "name": list(result.dataset.class_names),
            "n_given": counts.n_given,
            "n_issues": counts.n_issues,
            "issue_share": counts.issue_share,
            "mean_score": counts.mean_score,
            "usual_suggestion": [None if code == MISSING else values[code].item() for code in counts.usual],
            "n_suggested": counts.n_suggested,
        }
    )
    return summary.sort_values("issue_share", ascending=False, kind="stable", ignore_index=True)


def summarize_pairs(result: AuditResult) -> pd.DataFrame:
    """Summarize the flagged labels of an audit per pair of given and suggested label.

    Parameters
    ----------
    result : AuditResult
        A finished audit.

    Returns
    -------
    pandas.DataFrame
        One row per pair, the most frequent first: ``given_label``, ``suggested_label`` and their names;
        ``n_issues`` of the pair, their share ``issue_share`` of the labels of the given class, and the
        ``mean_probability`` of the suggestion.
    """
    import pandas as pd

    given, suggested, _ = labels_by_row(result)
    n_classes = result.dataset.n_classes
    names, values = result.dataset.class_names, result.dataset.class_values
    n_given = np.bincount(given[given != MISSING], minlength=n_classes)
    moved = (suggested != MISSING) & (suggested != given)
    cells, which = np.unique(given[moved] * n_classes + suggested[moved], return_inverse=True)
    sums = np.bincount(which, weights=result.distributions[moved, suggested[moved]], minlength=len(cells))
    sum_of = dict(zip(cells.tolist(), sums.tolist(), strict=True))
    return pd.DataFrame(
        [
            {
                "given_label": values[old].item(),
                "suggested_label": values[new].item(),
                "given_name": names[old],
                "suggested_name": names[new],
                "n_issues": count,
                "issue_share": count / n_given[old],
                "mean_probability": sum_of[old * n_classes + new] / count,
            }
            for old, new, count in count_pairs(given, suggested, n_classes)
        ],
        columns=[
            "given_label",
            "suggested_label",
            "given_name",
            "suggested_name",
            "n_issues",
            "issue_share",
            "mean_probability",
        ],
    )


def labels_by_row(result: AuditResult) -> tuple[IntArray, IntArray, FloatArray]:
    """Labels and scores in the order of the data.

    Parameters
    ----------
    result : AuditResult
        A finished audit.

    Returns
    -------
    given : ndarray of int of shape (n,)
        Codes of the given labels, MISSING where there is none.
    suggested : ndarray of int of shape (n,)
        Codes of the suggested labels, MISSING where the given one is not flagged.
    scores : ndarray of shape (n,)
        Probability that the given label is right, NaN where there is none.
    """
    by_row = result.table.sort_index()
    flagged = by_row["is_label_issue"].to_numpy()
    suggested = np.where(flagged, result.predicted, MISSING)
    return result.dataset.labels, suggested, by_row["label_score"].to_numpy()
