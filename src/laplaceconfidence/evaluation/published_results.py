"""Figures that papers state, for the cells of a bench that are the same: data, noise, method and metric."""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

_FILE = resources.files("laplaceconfidence.evaluation") / "published_results.toml"
_PERCENT = 100.0


@dataclass(frozen=True, slots=True)
class PublishedResult:
    """A figure that a paper states.

    Attributes
    ----------
    value : float
        The figure; accuracies are shares, not in percent.
    source : str
        Where it stands.
    """

    value: float
    source: str


@cache
def published_results() -> dict[tuple[str, str, str, str], PublishedResult]:
    """All figures.

    Returns
    -------
    dict of (str, str, str, str) to PublishedResult
        By data, noise, row and metric.
    """
    found = {}
    for table in _content()["table"]:
        for metric, rows in table.items():
            if not isinstance(rows, dict):
                continue
            for row, values in rows.items():
                for noise, value in zip(table["noises"], values, strict=True):
                    if not math.isnan(value):
                        key = (table["data"], noise, row, metric)
                        scale = 1.0 if metric.startswith("seconds") else _PERCENT
                        found[key] = PublishedResult(value / scale, table["source"])
    return found


def row_of_method(method: str) -> str | None:
    """The row of a method in the published tables.

    Parameters
    ----------
    method : str
        Name of the method in the registry.

    Returns
    -------
    str or None
        ``None`` where nothing was published for it.
    """
    row: str | None = _content()["methods"].get(method)
    return row


@cache
def _content() -> dict[str, Any]:
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))
