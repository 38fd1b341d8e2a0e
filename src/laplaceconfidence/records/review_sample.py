"""The table of labels for a person to verify, with an empty column to fill in."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from laplaceconfidence.arrays import IntArray
from laplaceconfidence.auditing.review_sample import ReviewSample
from laplaceconfidence.auditing.verified import labeled_rows_at_random
from laplaceconfidence.auditing.verified_tables import (
    AT_RANDOM,
    CHOSEN,
    GIVEN_LABEL,
    ID,
    UNCERTAIN,
    VERIFIED_LABEL,
)
from laplaceconfidence.csv_files import write_csv

if TYPE_CHECKING:
    import pandas as pd

REVIEW_SAMPLE = "review_sample.csv"


def write_review_sample(folder: Path, issues: pd.DataFrame, chosen: ReviewSample) -> None:
    """Write the rows chosen for review as a table with an empty column to fill in.

    Parameters
    ----------
    folder : pathlib.Path
        The folder of the run.
    issues : pandas.DataFrame
        The table of an audit.
    chosen : ReviewSample
        The rows; those drawn at random come first, in the order in which they were drawn.
    """
    rows = np.concatenate([chosen.at_random, chosen.uncertain])
    look_at = [column for column in ("path", "text") if column in issues.columns]
    sample = issues.loc[rows, [ID, *look_at, GIVEN_LABEL]]
    sample.insert(1, "row", rows)
    sample[CHOSEN] = [AT_RANDOM] * len(chosen.at_random) + [UNCERTAIN] * len(chosen.uncertain)
    sample[VERIFIED_LABEL] = ""
    write_csv(folder / REVIEW_SAMPLE, sample, mark=True)


def is_filled_in(path: Path) -> bool:
    """Return whether a person has filled in part of the table.

    Parameters
    ----------
    path : pathlib.Path
        The table.

    Returns
    -------
    bool
        True also where the table cannot be read.
    """
    if not path.is_file():
        return False
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            cells = [row.get(VERIFIED_LABEL) for row in csv.DictReader(file)]
    except (OSError, ValueError, csv.Error):
        return True
    return any(cell is None or cell.strip() for cell in cells)


def sample_first(labels: IntArray, sample: tuple[int, ...]) -> IntArray:
    """Return the labeled rows in random order, beginning with a sample.

    Parameters
    ----------
    labels : ndarray of int of shape (n,)
        Codes of the labels.
    sample : tuple of int
        Rows that come first.

    Returns
    -------
    ndarray of int
    """
    drawn = np.array(sample, dtype=np.int64)
    return np.concatenate([drawn, labeled_rows_at_random(labels, leave_out=sample)])
