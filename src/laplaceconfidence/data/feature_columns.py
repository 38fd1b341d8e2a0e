"""Which columns of a table are features: those the user names, or those that are clearly an embedding.

Columns of numbers are not used unless they are named: they are as often ids, dates, groups or the truth.
"""

from __future__ import annotations

import re
import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.data.read_options import USUAL_NAMES, Names
from laplaceconfidence.exceptions import LaplaceConfidenceWarning
from laplaceconfidence.validation import must_be

FEWEST_EMBEDDING_COLUMNS = 8
LARGEST_SCALE_RATIO = 10.0

_NUMBERED = re.compile(r"(.*?)(\d+)")
_FLOATS = ("float", "double", "halffloat", "decimal")
# Row numbers that pandas writes by default.
_ROW_NUMBERS = re.compile(r"|index|level_0|Unnamed: \d+|__index_level_\d+__")


def recognized_columns(kinds: Mapping[str, str]) -> list[str] | None:
    """Return the columns that can only be an embedding.

    These are a column of lists, first under one of the usual names, or eight or more columns of floats of
    one type whose names are a prefix and consecutive numbers from 0 or 1, such as ``emb_0`` to ``emb_63``.

    Parameters
    ----------
    kinds : mapping of str to str
        The columns that have no other use, with their types; types of lists begin with "list".

    Returns
    -------
    list of str or None
        ``None`` if no columns, or several sets of columns, could be meant.
    """
    lists = [name for name, kind in kinds.items() if kind.startswith("list")]
    usual = next((name for name in USUAL_NAMES["features"] if name in lists), None)
    if usual is not None:
        return [usual]
    candidates = [[name] for name in lists] + _embeddings(kinds)
    return candidates[0] if len(candidates) == 1 else None


def requested_columns(names: Names, requested: Any) -> list[str]:
    """Return the columns that match a name, names with commas, a pattern like ``emb_*`` or a list of names.

    Parameters
    ----------
    names : Names
        The columns of the table.
    requested : str or list of str
        The option ``features``.

    Returns
    -------
    list of str
    """
    if isinstance(requested, str):
        if requested in names.existing:
            return [requested]
        matching = [name for name in names.existing if fnmatchcase(name, requested)]
        if not matching and "," in requested:
            parts = [part.strip() for part in requested.split(",")]
            matching = [name for part in parts if part for name in requested_columns(names, part)]
            if len(set(matching)) != len(matching):
                raise must_be("features", "a list of different columns", requested, names.listed())
        if not matching:
            rule = (
                f"a column of {names.origin}, several with commas between them, a pattern such as 'emb_*', "
                "or a path to an .npy file"
            )
            raise must_be("features", rule, requested, names.listed())
        return matching
    if not requested or len(set(requested)) != len(requested):
        raise must_be("features", "a list of different columns", requested, names.listed())
    return [names.require("features", name) for name in requested]


def advice_to_name(kinds: Mapping[str, str], most: int = 30) -> str | None:
    """List the columns that could be named as features, with their types, and lines to copy.

    Parameters
    ----------
    kinds : mapping of str to str
        The columns that have no other use, with their types.
    most : int, default=30
        Largest number of columns to list.

    Returns
    -------
    str or None
        ``None`` if no column holds numbers.
    """
    if not (example := _example(kinds)):
        return None
    listed = ", ".join(f"{name} ({kind})" for name, kind in list(kinds.items())[:most])
    more = f", ... ({len(kinds)} in all)" if len(kinds) > most else ""
    on_command_line = " ".join(f"--features {_quoted(name)}" for name in example)
    in_python = repr(example[0]) if len(example) == 1 else repr(example)
    return (
        "Columns of numbers are not used unless they are named, as they may be ids, dates or the truth. Name "
        f"those that describe the samples, such as\n  {on_command_line}\n"
        f"or, in Python, features={in_python}. Columns: {listed}{more}."
    )


def scaling_of(columns: Sequence[str], kinds: Mapping[str, str], features: FloatArray) -> FloatArray | None:
    """Return means and standard deviations where separate columns are on very different scales.

    The largest columns alone would decide which samples are neighbors. Refusing such columns would refuse
    most tables of measurements, such as age and income; columns of one embedding stay as they are, because
    their scales carry meaning.

    Parameters
    ----------
    columns : sequence of str
        The columns of features.
    kinds : mapping of str to str
        Their types.
    features : ndarray of shape (n, d)
        Their values.

    Returns
    -------
    ndarray of shape (2, d) or None
        ``None`` if the features should be compared as they are.
    """
    if len(columns) == 1 or is_embedding(columns, kinds):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        means, deviations = features.mean(axis=0, dtype=np.float64), features.std(axis=0, dtype=np.float64)
    varying = deviations > 0
    if not varying.any() or not np.isfinite(deviations).all():
        return None
    sizes = np.sqrt(means**2 + deviations**2)
    if sizes[varying].max() <= LARGEST_SCALE_RATIO * sizes[varying].min():
        return None
    largest, smallest = int(np.argmax(sizes)), int(np.argmin(np.where(varying, sizes, np.inf)))
    warnings.warn(
        f"The columns of features are on very different scales ({columns[largest]!r} is about "
        f"{sizes[largest] / sizes[smallest]:,.0f} times as large as {columns[smallest]!r}): an audit centers "
        "each and divides it by its standard deviation before it compares samples; networks are trained on "
        "the columns as they are. Leave out columns that do not describe the samples, such as ids.",
        LaplaceConfidenceWarning,
        stacklevel=2,
    )
    return np.stack([means, np.where(varying, deviations, 1.0)])


def is_embedding(columns: Sequence[str], kinds: Mapping[str, str]) -> bool:
    """Return whether columns are one numbered run of floats, such as ``emb_0`` to ``emb_63``.

    Parameters
    ----------
    columns : sequence of str
        The columns.
    kinds : mapping of str to str
        Their types.

    Returns
    -------
    bool
    """
    of_columns = {name: kinds[name] for name in columns}
    return any(len(run) == len(columns) for run in _embeddings(of_columns))


def _embeddings(kinds: Mapping[str, str]) -> list[list[str]]:
    """Sets of columns of one float type that share a prefix and are numbered from 0 or 1."""
    return [
        list(numbered.values())
        for numbered in _numbered(kinds).values()
        if len(numbered) >= FEWEST_EMBEDDING_COLUMNS
        and min(numbered) in (0, 1)
        and max(numbered) - min(numbered) == len(numbered) - 1
        and len({kinds[name] for name in numbered.values()}) == 1
        and kinds[next(iter(numbered.values()))].startswith(_FLOATS)
    ]


def _numbered(kinds: Mapping[str, str]) -> dict[str, dict[int, str]]:
    found: defaultdict[str, dict[int, str]] = defaultdict(dict)
    for name in kinds:
        if match := _NUMBERED.fullmatch(name):
            found[match[1]][int(match[2])] = name
    return found


def _example(kinds: Mapping[str, str]) -> list[str]:
    """Columns to show as an example: numbered ones as a pattern, else floats, else any numbers."""
    lists = [name for name, kind in kinds.items() if kind.startswith("list")]
    if lists:
        return lists[:1]
    numbered = [
        prefix
        for prefix, names in _numbered(kinds).items()
        if prefix and sum(_is_number(kinds[name]) for name in names.values()) > 1
    ]
    if numbered:
        return [f"{numbered[0]}*"]
    numbers = [name for name, kind in kinds.items() if _is_number(kind) and not _ROW_NUMBERS.fullmatch(name)]
    return [name for name in numbers if kinds[name].startswith(_FLOATS)][:3] or numbers[:3]


def _is_number(kind: str) -> bool:
    return kind.startswith(_FLOATS) or re.match(r"u?int\d|bool", kind) is not None


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[\w.-]+", name) else "'" + name.replace("'", "'\\''") + "'"
