"""The table of labels drawn at random, for a person to fill in."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from laplaceconfidence.arrays import IntArray
from laplaceconfidence.auditing.verified import ID, VERIFIED_LABEL, labeled_rows_at_random
from laplaceconfidence.files import replacing

if TYPE_CHECKING:
    import pandas as pd

REVIEW_SAMPLE = "review_sample.csv"


def write_review_sample(folder: Path, issues: pd.DataFrame, rows: IntArray) -> None:
    """Write the drawn rows of the table of issues, in the order in which they were drawn."""
    look_at = [column for column in ("path", "text") if column in issues.columns]
    sample = issues.loc[rows, [ID, *look_at, "given_label"]]
    sample.insert(1, "row", rows)
    sample[VERIFIED_LABEL] = ""
    with replacing(folder / REVIEW_SAMPLE) as path:
        # Without this mark, spreadsheets assume another encoding, and save in it.
        sample.to_csv(path, index=False, encoding="utf-8-sig")


def is_filled_in(path: Path) -> bool:
    """Whether the table has entries of a person; also True where it cannot be read."""
    if not path.is_file():
        return False
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            cells = [row.get(VERIFIED_LABEL) for row in csv.DictReader(file)]
    except (OSError, ValueError, csv.Error):
        return True
    return any(cell is None or cell.strip() for cell in cells)


def sample_first(labels: IntArray, sample: tuple[int, ...]) -> IntArray:
    """Labeled rows in random order, beginning with the sample."""
    drawn = np.array(sample, dtype=np.int64)
    return np.concatenate([drawn, labeled_rows_at_random(labels, leave_out=sample)])
