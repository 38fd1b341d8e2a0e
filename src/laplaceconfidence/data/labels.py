"""Conversion between labels as users write them (strings, booleans, integers) and codes (0..C-1, -1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import BoolArray, IntArray, to_numpy
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.validation import must_be
from laplaceconfidence.wording import listed

MISSING = -1
"""The code of a label that was not given."""

_LARGEST_WHOLE_FLOAT = 2.0**53  # above, float64 cannot represent all integers


@dataclass(frozen=True, slots=True, eq=False)
class EncodedLabels:
    """Labels as codes, with the information needed to write them the way they were given.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Positions in ``class_values``, ``MISSING`` where no label was given.
    class_values : ndarray of shape (C,)
        The distinct labels, sorted unless the order was given; int64, bool or str.
    given : ndarray of shape (n,)
        The labels exactly as they were given.
    """

    codes: IntArray
    class_values: NDArray[Any]
    given: NDArray[Any]

    @property
    def class_names(self) -> tuple[str, ...]:
        """The class values as strings."""
        return tuple(str(value) for value in self.class_values)

    def decode(self, codes: IntArray) -> NDArray[Any]:
        """Write codes the way the labels were given; unchanged codes become exactly the given values.

        Parameters
        ----------
        codes : ndarray of shape (n,)
            Codes of labels of the same samples.

        Returns
        -------
        ndarray of shape (n,)
        """
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
        """A missing label as it is written elsewhere among the labels, or the usual value if none is."""
        if len(gaps := self.given[self.codes == MISSING]):
            return gaps[0]
        return np.nan if self.given.dtype.kind == "f" else None

    def _needs_objects(self, result: NDArray[Any]) -> bool:
        return self.given.dtype.kind not in "UST" or any(value is None for value in result)

    def _text_type(self) -> Any:
        """The type of the given labels, without a limit on the length of texts."""
        return {"U": str, "S": bytes}.get(self.given.dtype.kind, self.given.dtype)


def encode_labels(
    labels: Any, *, classes: Any = None, missing_label: object = None, parameter: str = "labels"
) -> EncodedLabels:
    """Convert labels to codes.

    Parameters
    ----------
    labels : array-like of shape (n,)
        Strings, booleans or integers. ``None``, NaN, ``pandas.NA`` and empty strings are missing labels.
    classes : array-like of shape (C,) or None, default=None
        The classes in the order of their codes; ``None`` takes the distinct labels, sorted.
    missing_label : object, default=None
        One more value that means "no label".
    parameter : str, default="labels"
        Name of the parameter in error messages.

    Returns
    -------
    EncodedLabels

    Examples
    --------
    >>> from laplaceconfidence.data.labels import encode_labels
    >>> encode_labels(["dog", "", "cat"]).codes.tolist()
    [1, -1, 0]
    """
    given = _as_given(labels, parameter)
    if given.ndim != 1:
        raise must_be(parameter, "one-dimensional, one label per sample", f"shape {given.shape}")
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
    """Return the distinct labels of several columns together, sorted.

    Parameters
    ----------
    *columns : tuple of (str, array-like)
        Name of the parameter, for error messages, and labels of each column.
    missing_label : object, default=None
        One more value that means "no label".

    Returns
    -------
    ndarray of shape (C,)
    """
    present = {
        parameter: encode_labels(labels, missing_label=missing_label, parameter=parameter).class_values
        for parameter, labels in columns
    }
    filled = {parameter: values for parameter, values in present.items() if len(values)}
    if len({values.dtype.kind for values in filled.values()}) > 1:
        kinds = ", ".join(f"{parameter}: {values.dtype}" for parameter, values in filled.items())
        raise must_be(" and ".join(filled), "of the same kind", kinds, "Write both the same way.")
    return np.unique(np.concatenate(list((filled or present).values())))


def encodable(texts: NDArray[Any]) -> NDArray[Any]:
    """Replace what UTF-8 cannot encode by backslash escapes; other arrays are returned as they are.

    Names of files may have bytes that are not valid text, which Python represents as surrogates.

    Parameters
    ----------
    texts : ndarray of shape (n,)
        Strings such as ids, or values of another type.

    Returns
    -------
    ndarray of shape (n,)
    """
    if texts.dtype.kind not in "UO":
        return texts
    try:
        "".join(texts.tolist()).encode()
    except UnicodeEncodeError:
        return np.array([text.encode(errors="backslashreplace").decode() for text in texts], dtype=object)
    return texts


def refuse_nul_at_the_end(labels: Sequence[Any], parameter: str = "labels") -> None:
    """Raise for a text that ends in a NUL character, which arrays drop: two classes could become one.

    Parameters
    ----------
    labels : sequence of object
        Labels, before they are an array of texts.
    parameter : str, default="labels"
        Name of the parameter in error messages.
    """
    for label in labels:
        if isinstance(label, str) and label.endswith("\0"):
            raise must_be(parameter, "texts that do not end in a NUL character", label, "Remove it.")


def _as_given(labels: Any, parameter: str) -> NDArray[Any]:
    """Labels as an array without changing any of them: numpy would turn ['cat', nan] into two strings."""
    if isinstance(labels, (list, tuple)) and len({type(label) for label in labels}) > 1:
        given = np.empty(len(labels), dtype=object)
        given[:] = labels
        return given
    if isinstance(labels, (list, tuple)):
        refuse_nul_at_the_end(labels, parameter)
    if hasattr(labels, "isna") and not isinstance(labels.dtype, np.dtype):
        # Without a dtype, pandas would turn integers beside a gap into floats.
        return np.asarray(labels.to_numpy(dtype=object))
    try:
        return to_numpy(labels)
    except ValueError as error:  # lists of different lengths
        raise must_be(
            parameter, "one-dimensional, one label per sample", "lists of different lengths"
        ) from error


def _split_missing(
    given: NDArray[Any], missing_label: object, parameter: str
) -> tuple[NDArray[Any], BoolArray]:
    """Return the labels that are not missing, as one type, and the mask of the missing ones."""
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
        refuse_nul_at_the_end(present, parameter)
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
    """The same for floats, which must be whole: integers become floats as soon as one label is NaN."""
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
    """Find the numbers equal to ``missing_label``, which is text such as "-1" on the command line."""
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
    except TypeError:  # bool(pandas.NA) raises
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
        rule = f"among the {len(order)} classes ({listed(class_values.tolist())})"
        example = distinct[unknown].tolist()[0]
        raise must_be(parameter, rule, example, f"({int(counts[unknown].sum())} such labels)")
    return known[which]
