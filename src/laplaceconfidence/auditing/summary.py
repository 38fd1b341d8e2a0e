"""An audit by class and by pair of classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.data.labels import MISSING

if TYPE_CHECKING:
    import pandas as pd

    from laplaceconfidence.auditing.result import AuditResult


def summarize_classes(result: AuditResult) -> pd.DataFrame:
    """One row a class, the largest share of flagged labels first.

    ``label`` as the user writes it and ``name``; ``n_given`` labels, ``n_issues`` flagged and their share
    ``issue_share``; ``mean_score``; ``usual_suggestion``, the label most often suggested instead; and
    ``n_suggested``, how many flagged labels of other classes are suggested to be of this one.
    """
    import pandas as pd

    given, suggested, scores = _by_row(result)
    n_classes = result.dataset.n_classes
    values = result.dataset.class_values
    labeled = given != MISSING
    flagged = suggested != MISSING
    n_given = np.bincount(given[labeled], minlength=n_classes)
    n_issues = np.bincount(given[flagged], minlength=n_classes)
    total = np.bincount(given[labeled], weights=scores[labeled], minlength=n_classes)
    with np.errstate(invalid="ignore"):
        share, mean = n_issues / n_given, total / n_given  # NaN for a class without labels
    moved = flagged & (suggested != given)
    usual = np.full(n_classes, None, dtype=object)
    for pair, _ in reversed(_counted_pairs(given[moved], suggested[moved], n_classes)):
        usual[pair[0]] = values[pair[1]].item()
    summary = pd.DataFrame(
        {
            "label": values,
            "name": list(result.dataset.class_names),
            "n_given": n_given,
            "n_issues": n_issues,
            "issue_share": share,
            "mean_score": mean,
            "usual_suggestion": usual,
            "n_suggested": np.bincount(suggested[moved], minlength=n_classes),
        }
    )
    return summary.sort_values("issue_share", ascending=False, kind="stable", ignore_index=True)


def summarize_pairs(result: AuditResult) -> pd.DataFrame:
    """One row a pair of given and suggested label among the flagged ones, the most frequent first.

    ``n_issues`` of the pair, their share ``issue_share`` of the labels of the given class, and the mean
    probability of the suggestion.
    """
    import pandas as pd

    given, suggested, _ = _by_row(result)
    n_classes = result.dataset.n_classes
    names, values = result.dataset.class_names, result.dataset.class_values
    n_given = np.bincount(given[given != MISSING], minlength=n_classes)
    moved = (suggested != MISSING) & (suggested != given)
    cells = given[moved] * n_classes + suggested[moved]
    probabilities = result.distributions[moved, suggested[moved]]
    pairs = _counted_pairs(given[moved], suggested[moved], n_classes)
    sums = dict(zip(*_summed(cells, probabilities), strict=True))
    return pd.DataFrame(
        [
            {
                "given_label": values[old].item(),
                "suggested_label": values[new].item(),
                "given_name": names[old],
                "suggested_name": names[new],
                "n_issues": count,
                "issue_share": count / n_given[old],
                "mean_probability": sums[old * n_classes + new] / count,
            }
            for (old, new), count in pairs
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


def _by_row(result: AuditResult) -> tuple[IntArray, IntArray, FloatArray]:
    """Given codes, suggested codes (MISSING where a label is not flagged) and scores, in the data's order."""
    by_row = result.table.sort_index()
    flagged = by_row["is_label_issue"].to_numpy()
    suggested = np.where(flagged, result.predicted, MISSING)
    return result.dataset.labels, suggested, by_row["label_score"].to_numpy()


def _counted_pairs(given: IntArray, suggested: IntArray, n_classes: int) -> list[tuple[tuple[int, int], int]]:
    """(given, suggested) and how often, the most frequent first."""
    cells, counts = np.unique(given * n_classes + suggested, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return [
        ((int(cell) // n_classes, int(cell) % n_classes), int(n))
        for cell, n in zip(cells[order], counts[order], strict=True)
    ]


def _summed(cells: IntArray, amounts: FloatArray) -> tuple[list[int], list[float]]:
    distinct, which = np.unique(cells, return_inverse=True)
    return distinct.tolist(), np.bincount(which, weights=amounts, minlength=len(distinct)).tolist()
