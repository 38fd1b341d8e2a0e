"""Warnings about classes that are probably not meant: placeholders for "no label", and one class twice."""

from __future__ import annotations

import unicodedata
import warnings
from collections import defaultdict

import numpy as np

from laplaceconfidence.data.labels import MISSING, EncodedLabels
from laplaceconfidence.exceptions import LaplaceConfidenceWarning
from laplaceconfidence.wording import counted

_PLACEHOLDERS = frozenset(
    ("-1", "?", "-", "na", "n/a", "#n/a", "nan", "none", "null", "<na>", "unknown", "unlabeled", "unlabelled")
)
_MOST_SHOWN = 3


def warn_about_placeholders(labels: EncodedLabels) -> None:
    """Warn if a class looks like a missing label.

    Parameters
    ----------
    labels : EncodedLabels
        Labels whose classes were taken from the labels themselves.
    """
    for code in _placeholders(labels):
        name, count = labels.class_names[code], int((labels.codes == code).sum())
        warnings.warn(
            f"{name!r} is a class of its own ({counted(count, 'label')}). If it means 'no label', name it as "
            f"the missing label: --missing-label {_quoted(name)}, or in Python missing_label="
            f"{labels.class_values[code].item()!r}.",
            LaplaceConfidenceWarning,
            stacklevel=3,
        )


def warn_about_similar_names(class_names: tuple[str, ...]) -> None:
    """Warn if classes differ only in blanks or in upper and lower case.

    Parameters
    ----------
    class_names : tuple of str
        Names of the classes.
    """
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for name in class_names:
        groups[" ".join(unicodedata.normalize("NFKC", name).split()).casefold()].append(name)
    if alike := [group for group in groups.values() if len(group) > 1]:
        listed = "; ".join(" and ".join(map(repr, names)) for names in alike[:_MOST_SHOWN])
        more = f"; and {len(alike) - _MOST_SHOWN} more" if len(alike) > _MOST_SHOWN else ""
        warnings.warn(
            f"Classes that differ only in blanks or in upper and lower case are different classes: {listed}"
            f"{more}. If they are one class, write them the same way.",
            LaplaceConfidenceWarning,
            stacklevel=3,
        )


def _placeholders(labels: EncodedLabels) -> list[int]:
    values = labels.class_values
    if values.dtype.kind == "i":
        # With one other class, -1 and 1 are the usual names of two classes.
        is_alone = len(values) > 2 and values.min() == MISSING
        return [int(np.argmin(values))] if is_alone else []
    return [code for code, name in enumerate(labels.class_names) if name.strip().casefold() in _PLACEHOLDERS]


def _quoted(name: str) -> str:
    return name if name.replace("-", "").isalnum() else "'" + name.replace("'", "'\\''") + "'"
