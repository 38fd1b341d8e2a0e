"""Labels as text: in a column of a CSV file, or in a separate file with one label per line."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.data.array_files import load_array
from laplaceconfidence.data.labels import refuse_nul_at_the_end
from laplaceconfidence.data.read_options import USUAL_NAMES
from laplaceconfidence.exceptions import DataFormatError
from laplaceconfidence.validation import must_be

# How programs write a missing number. Among strings only an empty cell is missing: "None" may be a class.
GAPS_AMONG_NUMBERS = frozenset({"NA", "N/A", "#N/A", "NaN", "nan", "None", "null", "NULL", "<NA>"})

_INTEGER = re.compile(r"0|-?[1-9]\d*")  # as Python writes them: "007" is a string
_DECIMAL = re.compile(r"-?\d+\.\d*")


def parse_labels(texts: Sequence[str]) -> NDArray[Any]:
    """Convert texts to labels: integers if all that are not missing are integers, strings otherwise.

    Parameters
    ----------
    texts : sequence of str
        The labels as text.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> from laplaceconfidence.data.label_files import parse_labels
    >>> parse_labels(["3", "12", ""]).tolist()
    [3, 12, '']
    >>> parse_labels(["3", "cat", "007"]).tolist()
    ['3', 'cat', '007']
    """
    present = [text for text in texts if text.strip() and text not in GAPS_AMONG_NUMBERS]
    if not present or not all(_INTEGER.fullmatch(text) or _DECIMAL.fullmatch(text) for text in present):
        refuse_nul_at_the_end(texts)
        return np.array(texts, dtype=str)
    if any(_DECIMAL.fullmatch(text) for text in present):
        is_gap = [not text.strip() or text in GAPS_AMONG_NUMBERS for text in texts]
        return np.array([np.nan if gap else float(text) for gap, text in zip(is_gap, texts, strict=True)])
    labels = np.empty(len(texts), dtype=object)
    labels[:] = [int(text) if _INTEGER.fullmatch(text) else _gap(text) for text in texts]
    return labels


def given_labels(labels: Any) -> Any:
    """Load labels from an .npy or text file, or return those that were passed.

    Parameters
    ----------
    labels : str, Path or array-like of shape (n,)
        A path, or the labels.

    Returns
    -------
    array-like of shape (n,)
    """
    if not isinstance(labels, (str, Path)):
        return labels
    path = Path(labels)
    if not path.is_file():
        raise must_be("labels", "a path to an existing file, or the labels themselves", str(labels))
    if path.suffix.lower() == ".npy":
        return load_array(path, "labels")
    return parse_labels(_lines(path))


def _gap(text: str) -> object:
    return np.nan if text in GAPS_AMONG_NUMBERS else text


def _lines(path: Path) -> list[str]:
    """Read one label per line: an empty line is a missing label, a first line 'label' is a heading."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            if path.suffix.lower() == ".csv":
                lines = [_only_cell(row, path, number) for number, row in enumerate(csv.reader(file), 1)]
            else:
                lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataFormatError(
            f"{path} cannot be read as labels ({error}): write UTF-8 text with one label per line."
        ) from error
    return lines[1:] if lines and lines[0] in USUAL_NAMES["label"] else lines


def _only_cell(row: list[str], path: Path, number: int) -> str:
    if len(row) > 1:
        raise DataFormatError(
            f"{path} must hold one label per line; line {number} has {len(row)} cells. To take labels from a "
            "table, give the table as the source and the .npy file as 'features'."
        )
    return row[0] if row else ""
