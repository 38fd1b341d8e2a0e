"""Labels as people write them (words, any integers, gaps) and as the rest computes with them (0..C-1, -1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import IntArray, to_numpy
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.validation import must_be

MISSING = -1
"""The code of a label that was not given."""


@dataclass(frozen=True, slots=True)
class EncodedLabels:
    """Labels as codes, with all that is needed to write them the way they were given."""

    codes: IntArray  # (n,) index into class_values, MISSING where no label was given
    class_values: NDArray[Any]  # (C,) the distinct labels as given, sorted: int64, bool or str
    given: NDArray[Any]  # (n,) the labels exactly as they came

    @property
    def class_names(self) -> tuple[str, ...]:
        return tuple(str(value) for value in self.class_values)

    def decode(self, codes: IntArray) -> NDArray[Any]:
        """Labels for ``codes`` written as they were given; where a code is unchanged, the very same value."""
        if len(codes) != len(self.codes):
            raise InvalidInputError(f"'codes' must have {len(self.codes)} entries. Got {len(codes)}.")
        changed = codes != self.codes
        result = self.given.astype(object) if self.given.dtype.kind in "US" else self.given.copy()
        to_class = changed & (codes != MISSING)
        result[to_class] = self.class_values[codes[to_class]]
        if (erased := changed & (codes == MISSING)).any():
            if result.dtype.kind in "iub":
                result = result.astype(object)
            result[erased] = np.nan if result.dtype.kind == "f" else None
        return result.astype(str) if self._fits_in_str(result) else result

    def _fits_in_str(self, result: NDArray[Any]) -> bool:
        return self.given.dtype.kind == "U" and all(isinstance(value, str) for value in result)


def encode_labels(
    labels: Any, *, classes: Any = None, missing_label: object = None, parameter: str = "labels"
) -> EncodedLabels:
    """Codes of labels that may be strings, booleans or any integers, with gaps.

    ``None``, NaN, ``pandas.NA`` and empty strings are gaps; ``missing_label`` names one more value that is.
    ``classes`` fixes the classes and their order; otherwise they are the distinct labels, sorted.
    """
    given = to_numpy(labels)
    if given.ndim != 1:
        raise must_be(parameter, "one-dimensional, one label a sample", f"shape {given.shape}")
    values, missing = _split_missing(given, missing_label, parameter)
    if classes is None:
        class_values, present = np.unique(values, return_inverse=True)
    else:
        class_values = _split_missing(to_numpy(classes), None, "classes")[0]
        present = _positions(values, class_values, parameter)
    codes = np.full(len(given), MISSING, dtype=np.int64)
    codes[~missing] = present
    return EncodedLabels(codes, class_values, given)


def _split_missing(
    given: NDArray[Any], missing_label: object, parameter: str
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The labels that are there, as one native type, and the mask of those that are not."""
    kind = given.dtype.kind
    if kind in "iub":
        missing = np.zeros(len(given), bool) if missing_label is None else given == missing_label
        return given[~missing].astype(bool if kind == "b" else np.int64), missing
    if kind == "f":
        return _split_missing_floats(given, missing_label, parameter)
    if kind == "S":
        given = np.char.decode(given, "utf-8")
    elif kind not in "UOT":
        raise must_be(parameter, "strings or integers", f"dtype {given.dtype}")
    items = [value.item() if isinstance(value, np.generic) else value for value in given.tolist()]
    missing = np.array(
        [_is_gap(item) or (missing_label is not None and item == missing_label) for item in items], bool
    )
    present = [item for item, gap in zip(items, missing, strict=True) if not gap]
    if all(isinstance(item, bool) for item in present):
        return np.array(present, dtype=bool), missing
    if all(isinstance(item, int) and not isinstance(item, bool) for item in present):
        return np.array(present, dtype=np.int64), missing
    if all(isinstance(item, str) for item in present):
        return np.array(present, dtype=str), missing
    if all(isinstance(item, (int, float)) and not isinstance(item, bool) for item in present):
        floats = np.array([np.nan if gap else item for item, gap in zip(items, missing, strict=True)], float)
        return _split_missing_floats(floats, missing_label, parameter)
    kinds = sorted({type(item).__name__ for item in present})
    raise must_be(
        parameter, "all strings or all integers", f"a mixture of {', '.join(kinds)}", "Convert them to str."
    )


def _split_missing_floats(
    given: NDArray[Any], missing_label: object, parameter: str
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Integers that became floats because a NaN stands among them; any other float is not a label."""
    missing = np.isnan(given)
    if missing_label is not None:
        missing |= given == missing_label
    present = given[~missing]
    whole = present == np.round(present)
    if missing.any() and whole.all():
        return present.astype(np.int64), missing
    example = float(present[0] if whole.all() else present[~whole][0])
    raise must_be(
        parameter,
        "strings or integers (classes, not a continuous target)",
        f"{given.dtype} values such as {example}",
        "Unknown label type: use labels.astype(int) if these are class numbers.",
    )


def _is_gap(item: object) -> bool:
    if item is None or (isinstance(item, str) and not item.strip()):
        return True
    try:
        return bool(item != item)  # NaN and NaT differ from themselves
    except TypeError:  # pandas.NA refuses to be true or false
        return True


def _positions(values: NDArray[Any], class_values: NDArray[Any], parameter: str) -> IntArray:
    order = {value: code for code, value in enumerate(class_values.tolist())}
    if len(order) != len(class_values):
        raise must_be("classes", "distinct", class_values.tolist())
    unknown = [value for value in values.tolist() if value not in order]
    if unknown:
        raise must_be(
            parameter, f"among the {len(order)} classes", unknown[0], f"({len(unknown)} such labels)"
        )
    return np.array([order[value] for value in values.tolist()], dtype=np.int64)
