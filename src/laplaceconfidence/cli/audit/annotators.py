"""The annotators in the summary of an audit."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from laplaceconfidence.auditing.annotation import AnnotationResult
from laplaceconfidence.cli.console import plain_table, shown

MOST_ANNOTATORS = 8
_LONGEST_NAME = 24


def annotator_table(found: AnnotationResult) -> Table:
    """The least accurate annotators: labels, accuracy with its interval, and what they confuse."""
    n = len(found.annotators)
    title = (
        "Annotators" if n <= MOST_ANNOTATORS else f"The {MOST_ANNOTATORS} least accurate of {n:,} annotators"
    )
    table = plain_table(title, "annotator", "labels:", "accuracy:", "95% interval:", "most frequent error")
    for row in found.annotators.head(MOST_ANNOTATORS).to_dict("records"):
        is_known = row["n_labels"] > 0
        table.add_row(
            shown(row["annotator"], _LONGEST_NAME),
            f"{row['n_labels']:,}",
            f"{row['accuracy']:.1%}" if is_known else "",
            f"{row['accuracy_low']:.1%} to {row['accuracy_high']:.1%}" if is_known else "",
            shown(_remark(row), 60),
        )
    return table


def _remark(row: dict[Any, Any]) -> str:
    if isinstance(row["copies"], str):
        return f"same labels as {row['copies']}"
    if row["true_class"] is None or row["true_class"] != row["true_class"]:
        return ""
    return f"{row['true_class']} labeled {row['confused_with']} ({row['confused_share']:.0%} of them)"
