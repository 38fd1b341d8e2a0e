"""Columns of a table of different kinds as features: numbers, dates, categories and texts.

Two rows that differ in one column are about equally far apart whatever kind the column is: independent
standardized numbers have a mean squared distance of 2, as have two different categories and two unrelated
texts.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.data.mixed_columns import CellKind, MixedColumns, days_of, numbers_of
from laplaceconfidence.encoders.samples import RawSamples, SampleKind
from laplaceconfidence.encoders.tfidf import TfidfEncoder
from laplaceconfidence.exceptions import DataFormatError, LaplaceConfidenceWarning
from laplaceconfidence.stages import stage
from laplaceconfidence.validation import must_be
from laplaceconfidence.wording import counted

MOST_CATEGORIES = 50
"""Categories of a column that have a feature of their own; the rarest ones share one."""

MOST_TEXT_COMPONENTS = 64
"""Singular vectors of a column of texts beside other columns."""

_FORMAT = 1


@dataclass(slots=True, eq=False)
class ColumnsEncoder:
    """Standardized numbers and dates, categories one by one, and texts as TF-IDF vectors.

    An empty number or date is replaced by the mean and marked by a further feature; an empty category is a
    category. Of more than 50 categories, the rarest share one.

    Examples
    --------
    >>> from laplaceconfidence.data.mixed_columns import MixedColumns
    >>> from laplaceconfidence.encoders.samples import RawSamples
    >>> from laplaceconfidence.encoders.table_columns import ColumnsEncoder
    >>> columns = MixedColumns.of(["age", "city"], [["31", "44", "26"], ["Rome", "Oslo", "Rome"]])
    >>> ColumnsEncoder().fit_transform(RawSamples("columns", columns)).round(1)
    array([[-0.4,  0. ,  1. ],
           [ 1.4,  1. ,  0. ],
           [-1. ,  0. ,  1. ]], dtype=float32)
    """

    learns: ClassVar[bool] = True
    is_cached: ClassVar[bool] = False

    n_jobs: int | None = None
    name: str = field(default="columns", init=False)
    takes: tuple[SampleKind, ...] = field(default=("columns",), init=False)
    _plan: list[dict[str, Any]] = field(default_factory=list, init=False, repr=False)
    _texts: dict[str, TfidfEncoder] = field(default_factory=dict, init=False, repr=False)

    def fit_transform(self, samples: RawSamples) -> FloatArray:
        columns = samples.columns()
        self._plan, self._texts = [], {}
        with stage("encoding"):
            for name, kind, cells in zip(columns.names, columns.kinds, columns.cells, strict=True):
                self._plan.append(self._planned(name, kind, cells))
            _tell_of_empty_cells(columns)
            return self._encoded(columns)

    def transform(self, samples: RawSamples) -> FloatArray:
        columns = samples.columns()
        if columns.names != self.columns:
            rule = f"the columns {', '.join(self.columns)}, in this order"
            raise must_be("features", rule, columns.names)
        with stage("encoding"):
            return self._encoded(columns)

    def describe(self) -> dict[str, Any]:
        return {"name": self.name, "format": _FORMAT, "versions": {"numpy": np.__version__}}

    def summary(self) -> str:
        of_kind: dict[str, list[str]] = {}
        for step in self._plan:
            of_kind.setdefault(step["kind"], []).append(_in_words(step))
        nouns = {"number": "number", "date": "date", "category": "category", "text": "text"}
        parts = [
            f"{counted(len(of_kind[kind]), noun, 'categories' if kind == 'category' else None)} "
            f"({', '.join(of_kind[kind])})"
            for kind, noun in nouns.items()
            if kind in of_kind
        ]
        return f"columns of a table: {', '.join(parts)}"

    @property
    def columns(self) -> tuple[str, ...]:
        """tuple of str: the columns that were encoded, in order."""
        return tuple(step["column"] for step in self._plan)

    def state(self) -> tuple[dict[str, Any], dict[str, FloatArray]]:
        """Return what was learned, as JSON can hold it and as arrays.

        Returns
        -------
        plan : dict of str to object
            "columns", one entry per column, and "texts", the terms of columns of texts.
        arrays : dict of str to ndarray
            Those of columns of texts, as "column/name".
        """
        terms: dict[str, Any] = {}
        arrays: dict[str, FloatArray] = {}
        for column, encoder in self._texts.items():
            terms[column], own = encoder.state()
            arrays |= {f"{column}/{name}": array for name, array in own.items()}
        return {"columns": self._plan, "texts": terms}, arrays

    @classmethod
    def from_state(cls, plan: dict[str, Any], arrays: dict[str, FloatArray]) -> ColumnsEncoder:
        """Make an encoder of what ``state`` returned.

        Parameters
        ----------
        plan, arrays : dict
            As ``state`` returned them.

        Returns
        -------
        ColumnsEncoder
            Ready to ``transform``.
        """
        steps, texts = plan.get("columns"), plan.get("texts")
        if not isinstance(texts, dict) or not isinstance(steps, list) or not all(map(_is_step, steps)):
            raise DataFormatError("The encoder of columns is damaged: a column is lost or not complete.")
        encoder = cls()
        encoder._plan = steps
        for column in (step["column"] for step in steps if step["kind"] == "text"):
            own = {
                name.rpartition("/")[2]: array
                for name, array in arrays.items()
                if name.rpartition("/")[0] == column
            }
            encoder._texts[column] = TfidfEncoder.from_state(texts.get(column, {}), own)
        return encoder

    def _planned(self, name: str, kind: CellKind, cells: NDArray[np.object_]) -> dict[str, Any]:
        step: dict[str, Any] = {"column": name, "kind": kind}
        if kind in ("number", "date"):
            values = _values(kind, cells)
            deviation = float(np.nanstd(values))
            step |= {
                "mean": float(np.nanmean(values)),
                "deviation": deviation if deviation > 0 else 1.0,
                "marks_empty": bool(np.isnan(values).any()),
            }
        elif kind == "category":
            step |= _categories(name, cells)
        else:
            # Fewer components than for texts alone: a column is one of several.
            width = max(1, min(MOST_TEXT_COMPONENTS, len(cells) // 2))
            self._texts[name] = TfidfEncoder(n_components=width, n_jobs=self.n_jobs)
            self._texts[name].fit_transform(_texts(cells))
        return step

    def _encoded(self, columns: MixedColumns) -> FloatArray:
        blocks = [self._block(step, cells) for step, cells in zip(self._plan, columns.cells, strict=True)]
        return np.ascontiguousarray(np.concatenate(blocks, axis=1), dtype=np.float32)

    def _block(self, step: dict[str, Any], cells: NDArray[np.object_]) -> FloatArray:
        if step["kind"] == "text":
            return self._texts[step["column"]].transform(_texts(cells))
        if step["kind"] == "category":
            return _one_hot(step, cells)
        values = _values(step["kind"], cells)
        is_empty = np.isnan(values)
        _refuse_unreadable(step, cells, is_empty)
        standardized = np.where(is_empty, 0.0, (values - step["mean"]) / step["deviation"])
        return np.stack([standardized, is_empty] if step["marks_empty"] else [standardized], axis=1)


def _values(kind: CellKind, cells: NDArray[np.object_]) -> FloatArray:
    return numbers_of(cells) if kind == "number" else days_of(cells)


def _texts(cells: NDArray[np.object_]) -> RawSamples:
    return RawSamples.of_texts(["" if cell is None else cell for cell in cells])


def _categories(name: str, cells: NDArray[np.object_]) -> dict[str, Any]:
    counts = Counter(str(cell) for cell in cells if cell is not None)
    if len(counts) == len(cells) and len(cells) > MOST_CATEGORIES:
        advice = "A column of ids does not describe the samples: leave it out."
        raise must_be("features", "columns whose values repeat", f"{name!r}, different in every row", advice)
    ordered = sorted(counts, key=lambda value: (-counts[value], value))
    kept = ordered if len(ordered) <= MOST_CATEGORIES else ordered[: MOST_CATEGORIES - 1]
    return {
        "values": sorted(kept),
        "n_values": len(counts),
        "has_others": len(kept) < len(ordered),
        "marks_empty": any(cell is None for cell in cells),
    }


def _one_hot(step: dict[str, Any], cells: NDArray[np.object_]) -> FloatArray:
    """One feature per category, one for the others and one for none; unknown ones have only zeros."""
    position = {value: at for at, value in enumerate(step["values"])}
    n_kept = len(position)
    others = n_kept if step["has_others"] else -1
    empty = n_kept + step["has_others"] if step["marks_empty"] else -1
    found = np.array([empty if cell is None else position.get(str(cell), others) for cell in cells])
    features = np.zeros((len(cells), n_kept + step["has_others"] + step["marks_empty"]), np.float32)
    known = np.flatnonzero(found >= 0)
    features[known, found[known]] = 1.0
    return features


def _refuse_unreadable(step: dict[str, Any], cells: NDArray[np.object_], is_empty: NDArray[np.bool_]) -> None:
    """Raise for a cell that is neither empty nor a number or date, in data the plan was not made for."""
    for row in np.flatnonzero(is_empty):
        if cells[row] is not None:
            rule = f"cells with a {step['kind']} in the column {step['column']!r}"
            raise must_be("features", rule, f"{cells[row]!r} in row {row}")


def _tell_of_empty_cells(columns: MixedColumns) -> None:
    empty = {
        name: n_empty
        for name, cells in zip(columns.names, columns.cells, strict=True)
        if (n_empty := sum(cell is None for cell in cells))
    }
    if empty:
        listed = ", ".join(f"{name!r} in {n_empty:,}" for name, n_empty in empty.items())
        warnings.warn(
            f"Empty cells among the columns of features: {listed} of {len(columns):,} rows. Empty numbers "
            "and dates count as the mean and are marked by a further feature; an empty category is one of "
            "its own.",
            LaplaceConfidenceWarning,
            stacklevel=2,
        )


def _in_words(step: dict[str, Any]) -> str:
    if step["kind"] != "category":
        return str(step["column"])
    n_values, kept = step["n_values"], len(step["values"])
    shared = f", the rarest {n_values - kept:,} together" if step["has_others"] else ""
    return f"{step['column']}: {n_values:,} values{shared}"


def _is_step(step: Any) -> bool:
    """Whether a stored step has all that its kind needs."""
    if not isinstance(step, dict) or not isinstance(step.get("column"), str):
        return False
    if step.get("kind") in ("number", "date"):
        numbers = (step.get("mean"), step.get("deviation"))
        return all(isinstance(number, (int, float)) for number in numbers) and "marks_empty" in step
    if step.get("kind") == "category":
        values = step.get("values")
        return isinstance(values, list) and {"n_values", "has_others", "marks_empty"} <= set(step)
    return bool(step.get("kind") == "text")
