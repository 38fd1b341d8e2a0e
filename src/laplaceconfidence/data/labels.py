"""Labels as people write them (words, any integers, gaps) and as the rest computes with them (0..C-1, -1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import BoolArray, IntArray, to_numpy
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.validation import must_be

MISSING = -1
"""The code of a label that was not given."""

_LARGEST_WHOLE_FLOAT = 2.0**53  # beyond it neighboring integers share one float


@dataclass(frozen=True, slots=True, eq=False)
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
        result = self.given.astype(object) if self.given.dtype.kind in "UST" else self.given.copy()
        to_class = changed & (codes != MISSING)
        class_values = self.class_values
        if self.given.dtype.kind == "S":
            class_values = np.char.encode(class_values, "utf-8")
        result[to_class] = class_values[codes[to_class]]
        if (erased := changed & (codes == MISSING)).any():
            gap = self._written_gap()
            if result.dtype.kind in "iub" and gap is None:
                result = result.astype(object)
            result[erased] = gap
        return result if self._needs_objects(result) else result.astype(self._text_type())

    def _written_gap(self) -> Any:
        """A gap as it was written elsewhere among the labels, or what is usual where there is none."""
        if len(gaps := self.given[self.codes == MISSING]):
            return gaps[0]
        return np.nan if self.given.dtype.kind == "f" else None

    def _needs_objects(self, result: NDArray[Any]) -> bool:
        return self.given.dtype.kind not in "UST" or any(value is None for value in result)

    def _text_type(self) -> Any:
        """The given type, with room for the longest text."""
        return {"U": str, "S": bytes}.get(self.given.dtype.kind, self.given.dtype)


def encode_labels(
    labels: Any, *, classes: Any = None, missing_label: object = None, parameter: str = "labels"
) -> EncodedLabels:
    """Codes of labels that may be strings, booleans or any integers, with gaps.

    ``None``, NaN, ``pandas.NA`` and empty strings are gaps; ``missing_label`` names one more value that is.
    ``classes`` fixes the classes and their order; otherwise they are the distinct labels, sorted.
    """
    given = _as_given(labels, parameter)
    if given.ndim != 1:
        raise must_be(parameter, "one-dimensional, one label a sample", f"shape {given.shape}")
    if len(given) == 0:
        raise must_be(parameter, "at least one label", "no labels")
    values, missing = _split_missing(given, missing_label, parameter)
    if classes is None:
        class_values, present = np.unique(values, return_inverse=True)
    else:
        class_values = _fixed_classes(classes)
        present = _positions(values, class_values, parameter)
    codes = np.full(len(given), MISSING, dtype=np.int64)
    codes[~missing] = present
    return EncodedLabels(codes, class_values, given)


def distinct_labels(*columns: tuple[str, Any], missing_label: object = None) -> NDArray[Any]:
    """The classes that several columns of labels, given as (parameter, labels), share."""
    present = {
        parameter: encode_labels(labels, missing_label=missing_label, parameter=parameter).class_values
        for parameter, labels in columns
    }
    filled = {parameter: values for parameter, values in present.items() if len(values)}
    if len({values.dtype.kind for values in filled.values()}) > 1:
        kinds = ", ".join(f"{parameter}: {values.dtype}" for parameter, values in filled.items())
        raise must_be(" and ".join(filled), "of the same kind", kinds, "Write both the same way.")
    return np.unique(np.concatenate(list((filled or present).values())))


def _as_given(labels: Any, parameter: str) -> NDArray[Any]:
    """Labels as an array that turns none of them into another: numpy would read ['cat', nan] as two words."""
    if isinstance(labels, (list, tuple)) and len({type(label) for label in labels}) > 1:
        given = np.empty(len(labels), dtype=object)
        given[:] = labels
        return given
    if hasattr(labels, "isna") and not isinstance(labels.dtype, np.dtype):
        return np.asarray(labels.to_numpy(dtype=object))  # pandas would write integers beside a gap as floats
    try:
        return to_numpy(labels)
    except ValueError as error:  # lists of different lengths
        raise must_be(
            parameter, "one-dimensional, one label a sample", "lists of different lengths"
        ) from error


def _split_missing(
    given: NDArray[Any], missing_label: object, parameter: str
) -> tuple[NDArray[Any], BoolArray]:
    """The labels that are there, as one native type, and the mask of those that are not."""
    kind = given.dtype.kind
    if kind in "iub":
        missing = _equal_to(given, missing_label)
        return _as_integers(given[~missing], parameter) if kind != "b" else given[~missing], missing
    if kind == "f":
        return _split_missing_floats(given, missing_label, parameter)
    if kind == "S":
        given = _decoded(given, parameter)
    elif kind not in "UOT":
        raise must_be(parameter, "strings or integers", f"dtype {given.dtype}")
    items = [value.item() if isinstance(value, np.generic) else value for value in given.tolist()]
    missing = np.array(
        [_is_gap(item) or (missing_label is not None and str(item) == str(missing_label)) for item in items],
        dtype=bool,
    )
    present = [item for item, gap in zip(items, missing, strict=True) if not gap]
    if all(isinstance(item, bool) for item in present):
        return np.array(present, dtype=bool), missing
    if all(isinstance(item, int) and not isinstance(item, bool) for item in present):
        return _as_integers(np.array(present, dtype=object), parameter), missing
    if all(isinstance(item, str) for item in present):
        return np.array(present, dtype=str), missing
    if all(isinstance(item, (int, float)) and not isinstance(item, bool) for item in present):
        floats = np.array([np.nan if gap else item for item, gap in zip(items, missing, strict=True)], float)
        return _split_missing_floats(floats, missing_label, parameter)
    kinds = sorted({type(item).__name__ for item in present})
    raise must_be(
        parameter, "all strings or all integers", f"values of type {', '.join(kinds)}", "Convert them to str."
    )


def _split_missing_floats(
    given: NDArray[Any], missing_label: object, parameter: str
) -> tuple[NDArray[Any], BoolArray]:
    """Whole numbers only: integers become floats as soon as a NaN stands among them."""
    missing = np.isnan(given) | _equal_to(given, missing_label)
    present = given[~missing]
    whole = (present == np.round(present)) & (np.abs(present) <= _LARGEST_WHOLE_FLOAT)
    if whole.all():
        return present.astype(np.int64), missing
    raise must_be(
        parameter,
        "strings or integers (classes, not a continuous target)",
        f"{given.dtype} values such as {float(present[~whole][0])}",
        "Unknown label type: continuous targets have no classes.",
    )


def _equal_to(given: NDArray[Any], missing_label: object) -> BoolArray:
    """Which numbers equal ``missing_label``, which may be text such as "-1" when it comes from a shell."""
    if isinstance(missing_label, str):
        try:
            missing_label = float(missing_label)
        except ValueError:
            missing_label = None
    if missing_label is None:
        return np.zeros(len(given), dtype=bool)
    return np.asarray(given == missing_label, dtype=bool)


def _as_integers(values: NDArray[Any], parameter: str) -> IntArray:
    if len(values) and not (int(values.min()) >= -(2**63) and int(values.max()) < 2**63):
        too_large = next(value for value in values.tolist() if not -(2**63) <= value < 2**63)
        raise must_be(parameter, "integers of at most 64 bits", too_large, "Convert them to str.")
    return values.astype(np.int64)


def _decoded(given: NDArray[Any], parameter: str) -> NDArray[Any]:
    try:
        return np.char.decode(given, "utf-8")
    except UnicodeDecodeError as error:
        raise must_be(parameter, "text in UTF-8", error.object, "Decode the bytes first.") from error


def _is_gap(item: object) -> bool:
    if item is None or (isinstance(item, str) and not item.strip()):
        return True
    try:
        return bool(item != item)  # NaN and NaT differ from themselves
    except TypeError:  # pandas.NA refuses to be true or false
        return True


def _fixed_classes(classes: Any) -> NDArray[Any]:
    values, missing = _split_missing(_as_given(classes, "classes"), None, "classes")
    if missing.any() or len(np.unique(values)) != len(values):
        raise must_be("classes", "distinct, none of them missing", list(classes))
    return values


def _positions(values: NDArray[Any], class_values: NDArray[Any], parameter: str) -> IntArray:
    order = {value: code for code, value in enumerate(class_values.tolist())}
    distinct, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    known = np.array([order.get(value, MISSING) for value in distinct.tolist()], dtype=np.int64)
    if (unknown := known == MISSING).any():
        rule = f"among the {len(order)} classes {_shown(class_values)}"
        example = distinct[unknown].tolist()[0]
        raise must_be(parameter, rule, example, f"({int(counts[unknown].sum())} such labels)")
    return known[which]


def _shown(values: NDArray[Any], most: int = 10) -> str:
    listed = ", ".join(repr(value) for value in values[:most].tolist())
    return f"({listed}{', ...' if len(values) > most else ''})"
