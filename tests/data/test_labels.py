"""Labels come in any writing, and go out the way they came."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laplaceconfidence.data.labels import MISSING, distinct_labels, encodable, encode_labels
from laplaceconfidence.exceptions import InvalidInputError

NAN = float("nan")
WORDS = st.text(alphabet="abcß猫 -", min_size=1, max_size=5).filter(lambda word: bool(word.strip()))
INTEGERS = st.integers(min_value=-(2**63), max_value=2**63 - 1)
GAPS: list[object] = [None, NAN, "", "  ", pd.NA, pd.NaT]


def same(left: object, right: object) -> bool:
    return left is right or bool(pd.isna(left) and pd.isna(right)) or left == right  # type: ignore[call-overload]


@st.composite
def labels_with_gaps(draw: st.DrawFn) -> tuple[list[Any], list[bool]]:
    values = draw(st.sampled_from([WORDS, INTEGERS, st.booleans()]))
    labels = draw(st.lists(values, min_size=1, max_size=20))
    gaps = draw(st.lists(st.booleans(), min_size=len(labels), max_size=len(labels)))
    fillers = draw(st.lists(st.sampled_from(GAPS), min_size=len(labels), max_size=len(labels)))
    mixed = [filler if gap else label for label, gap, filler in zip(labels, gaps, fillers, strict=True)]
    return mixed, gaps


@given(labels_with_gaps())
@settings(max_examples=150, deadline=None)
def test_labels_return_as_they_were_given(drawn: tuple[list[Any], list[bool]]) -> None:
    labels, gaps = drawn
    encoded = encode_labels(labels)
    assert (encoded.codes == MISSING).tolist() == gaps
    present = {label for label, gap in zip(labels, gaps, strict=True) if not gap}
    assert encoded.class_values.tolist() == sorted(present)
    assert all(same(a, b) for a, b in zip(encoded.decode(encoded.codes), labels, strict=True))


@given(labels_with_gaps(), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_changed_labels_are_written_like_their_class(
    drawn: tuple[list[Any], list[bool]], random: Any
) -> None:
    labels, _ = drawn
    encoded = encode_labels(labels)
    codes = np.array([random.randrange(-1, len(encoded.class_values)) for _ in labels])
    for before, after, code, old in zip(labels, encoded.decode(codes), codes, encoded.codes, strict=True):
        if code == old:
            assert same(before, after)
        elif code == MISSING:
            assert after is None or pd.isna(after) or not str(after).strip()
        else:
            assert after == encoded.class_values[code]


@pytest.mark.parametrize(
    ("labels", "codes", "names"),
    [
        (["b", "a", "b"], [1, 0, 1], ("a", "b")),
        ([30, -5, 10**12], [1, 0, 2], ("-5", "30", "1000000000000")),
        (np.array([3, 200], dtype=np.uint8), [0, 1], ("3", "200")),
        (np.array([2.0, NAN, 1.0]), [1, -1, 0], ("1", "2")),
        ([1, NAN, 0], [1, -1, 0], ("0", "1")),
        ([1.0, 0.0], [1, 0], ("0", "1")),
        ([True, False, None], [1, 0, -1], ("False", "True")),
        (["cat", NAN, "dog"], [0, -1, 1], ("cat", "dog")),
        (np.array([b"cat", b"", b"dog"]), [0, -1, 1], ("cat", "dog")),
        (np.array(["cat", "", "dog"], dtype=np.dtypes.StringDType()), [0, -1, 1], ("cat", "dog")),
        (pd.Series([1, pd.NA, 0], dtype="Int64"), [1, -1, 0], ("0", "1")),
        (pd.Series(["x", None], dtype="category"), [0, -1], ("x",)),
        ([None, None], [-1, -1], ()),
    ],
)
def test_codes(labels: Any, codes: list[int], names: tuple[str, ...]) -> None:
    encoded = encode_labels(labels)
    assert encoded.codes.tolist() == codes
    assert encoded.class_names == names


def test_torch_tensors_are_labels_too() -> None:
    torch = pytest.importorskip("torch")
    assert encode_labels(torch.tensor([5, 3, 5])).codes.tolist() == [1, 0, 1]


@pytest.mark.parametrize("missing_label", [-1, "-1"])
def test_one_more_value_may_stand_for_a_gap(missing_label: object) -> None:
    for labels in ([3, -1, 4], np.array([3.0, -1.0, 4.0]), ["3", "-1", "4"]):
        encoded = encode_labels(labels, missing_label=missing_label)
        assert encoded.codes.tolist() == [0, -1, 1]
        assert list(encoded.decode(encoded.codes)) == list(labels)


def test_a_missing_label_of_another_kind_matches_nothing() -> None:
    assert encode_labels([3, 4], missing_label="unknown").codes.tolist() == [0, 1]


def test_an_erased_label_is_written_like_the_gaps_that_were_there() -> None:
    assert encode_labels(["a", "", "b"]).decode(np.array([-1, -1, 1])).tolist() == ["", "", "b"]
    assert encode_labels([4, -1, 5], missing_label=-1).decode(np.array([-1, -1, 1])).tolist() == [-1, -1, 5]
    assert encode_labels([4, 5]).decode(np.array([-1, 1])).tolist() == [None, 5]
    assert encode_labels(["a", "b"]).decode(np.array([-1, 1])).tolist() == [None, "b"]
    assert encode_labels([True, False]).decode(np.array([-1, 0])).tolist() == [None, False]
    assert np.isnan(encode_labels(np.array([4.0, NAN])).decode(np.array([-1, -1]))[0])


def test_the_type_of_an_array_is_kept() -> None:
    swapped = np.array([1, 0])
    for labels in (
        np.array(["a", "long"]),
        np.array([b"a", b"long"]),
        np.array(["a", "long"], dtype=np.dtypes.StringDType()),
        np.array([7, 9], dtype=np.uint8),
        np.array([False, True]),
    ):
        written = encode_labels(labels).decode(swapped)
        assert written.dtype.kind == labels.dtype.kind
        assert written.tolist() == labels.tolist()[::-1]


def test_classes_fix_the_order() -> None:
    encoded = encode_labels(["b", "a"], classes=["c", "b", "a"])
    assert encoded.codes.tolist() == [1, 2]
    assert encoded.class_names == ("c", "b", "a")


def test_columns_share_their_classes() -> None:
    shared = distinct_labels(("labels", ["a", None]), ("true_labels", ["c", "b"]))
    assert shared.tolist() == ["a", "b", "c"]
    with pytest.raises(
        InvalidInputError, match="'labels and true_labels' parameter must be of the same kind"
    ):
        distinct_labels(("labels", ["a"]), ("true_labels", [1]))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0.5, 1.0], "'labels' parameter must be strings or integers .* values such as 0.5"),
        ([0.0, 1.5], "'labels' parameter must be strings or integers .* values such as 1.5"),
        ([0.5, NAN], "'labels' parameter must be strings or integers .* values such as 0.5"),
        ([np.inf, NAN], "'labels' parameter must be strings or integers .* values such as inf"),
        ([1e300, NAN], "'labels' parameter must be strings or integers .* values such as 1e.300"),
        ([1, "a"], "'labels' parameter must be all strings or all integers. Got 'values of type int, str'"),
        ([True, 2], "'labels' parameter must be all strings or all integers. Got 'values of type bool, int'"),
        ([2**70, 1], "'labels' parameter must be integers of at most 64 bits. Got 1180591620717411303424"),
        (np.array([2**63], dtype=np.uint64), "integers of at most 64 bits. Got 9223372036854775808"),
        ([[1], [2]], r"'labels' parameter must be one-dimensional.*shape \(2, 1\)"),
        ([], "'labels' parameter must be at least one label"),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), "strings or integers. Got 'dtype datetime64"),
        (np.array([1j]), "strings or integers. Got 'dtype complex128'"),
        (np.array([b"\xff"]), "text in UTF-8"),
        ([("a",), ("b",)], "one-dimensional"),
        ([[1], [1, 2]], "'labels' parameter must be one-dimensional.*lists of different lengths"),
    ],
)
def test_what_is_no_label_is_refused(labels: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        encode_labels(labels)


def test_labels_outside_the_classes_are_counted() -> None:
    with pytest.raises(
        InvalidInputError, match=r"among the 2 classes \('a', 'b'\). Got 'x' .*\(3 such labels\)"
    ):
        encode_labels(["x", "a", "x", "y"], classes=["a", "b"])


@pytest.mark.parametrize("classes", [["a", "a"], ["a", None]])
def test_classes_are_distinct_and_present(classes: list[str | None]) -> None:
    with pytest.raises(InvalidInputError, match="'classes' parameter must be distinct, none of them missing"):
        encode_labels(["a"], classes=classes)


def test_what_utf8_cannot_encode_is_escaped() -> None:
    assert encodable(np.array(["a", "b\udcff"])).tolist() == ["a", "b\\udcff"]
    for unchanged in (np.array(["a", "é"]), np.array([1, 2])):
        assert encodable(unchanged) is unchanged


def test_decoding_needs_one_code_per_label() -> None:
    with pytest.raises(InvalidInputError, match=r"'codes' must have 2 entries. Got 1"):
        encode_labels(["a", "b"]).decode(np.array([0]))


@pytest.mark.parametrize("kind", [list, tuple, lambda labels: np.array(labels, dtype=object), pd.Series])
def test_a_nul_at_the_end_is_refused_and_does_not_merge_classes(kind: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"'labels' parameter must be texts.*NUL.*'a\\x00'"):
        encode_labels(kind(["a", "a\0", "b"]))
    assert encode_labels(kind(["a", "a\0b"])).codes.tolist() == [0, 1]
