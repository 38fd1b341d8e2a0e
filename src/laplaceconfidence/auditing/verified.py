"""Labels that a person has verified: drawing samples to verify, reading their table, using them in a fit."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.auditing.fit_request import FitRequest
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.label_files import GAPS_AMONG_NUMBERS
from laplaceconfidence.data.labels import MISSING, encodable
from laplaceconfidence.data.read_options import Names, ReadOptions
from laplaceconfidence.data.table_files import open_table
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.validation import check_integer, must_be

ID, VERIFIED_LABEL = "id", "verified_label"

_WHOLE_DECIMAL = re.compile(r"(-?\d+)\.0*")  # as programs write integers in a column with gaps


def labeled_rows_at_random(
    labels: IntArray, *, seed: int | None = None, leave_out: Collection[int] = ()
) -> IntArray:
    """Return the rows with a label in random order.

    Parameters
    ----------
    labels : ndarray of int of shape (n,)
        Codes of the labels.
    seed : int, optional
        Seed of the order; by default it depends on the number of labels only.
    leave_out : collection of int, default=()
        Rows to leave out.

    Returns
    -------
    ndarray of int
    """
    rows = np.flatnonzero(labels != MISSING)
    rows = rows[~np.isin(rows, np.fromiter(leave_out, dtype=np.int64))]
    return np.random.default_rng(len(labels) if seed is None else seed).permutation(rows)


def draw_for_review(labels: IntArray, n: int, *, seed: int, verified: Collection[int] = ()) -> IntArray:
    """Draw labeled rows uniformly at random, flagged or not.

    Parameters
    ----------
    labels : ndarray of int of shape (n,)
        Codes of the labels.
    n : int
        How many to draw.
    seed : int
        Seed of the draw.
    verified : collection of int, default=()
        Rows that are verified already and are left out.

    Returns
    -------
    ndarray of int of shape (n,)

    Raises
    ------
    InvalidInputError
        If fewer than ``n`` labels are left.
    """
    check_integer(n, "sample_for_review", minimum=1)
    order = labeled_rows_at_random(labels, seed=seed, leave_out=verified)
    if n > len(order):
        raise must_be("sample_for_review", f"at most the {len(order)} labels that nobody has verified yet", n)
    return order[:n]


def with_verified(dataset: NoisyDataset, audited: Mapping[int, Any]) -> NoisyDataset:
    """Replace given labels with verified ones.

    Parameters
    ----------
    dataset : NoisyDataset
        The data set.
    audited : mapping of int to label
        Verified labels by row, None where no class fits.

    Returns
    -------
    NoisyDataset
    """
    code_of: dict[Any, int] = {value: code for code, value in enumerate(dataset.class_values.tolist())}
    codes = dataset.labels.copy()
    for row, label in audited.items():
        check_integer(row, "audited", minimum=0, maximum=len(dataset) - 1)
        if label is not None and label not in code_of:
            raise must_be("audited", f"labels among the {len(code_of)} classes of the data", label)
        codes[row] = MISSING if label is None else code_of[label]
    return dataset.with_labels(codes)


def learns_from_verified(estimator: Any) -> bool:
    """Return whether the ``fit`` of an estimator takes verified labels besides the given ones.

    Parameters
    ----------
    estimator : ConfidenceEstimator or type
        An estimator, or its class.

    Returns
    -------
    bool
    """
    return "audited" in inspect.signature(estimator.fit).parameters


def request_with_verified(
    request: FitRequest,
    dataset: NoisyDataset,
    audited: Mapping[int, Any],
    at_random: Collection[int] | None = None,
) -> FitRequest:
    """Add verified labels to the arguments of a fit.

    They are passed to an estimator whose ``fit`` takes ``audited``; for other estimators they replace the
    given labels.

    Parameters
    ----------
    request : FitRequest
        The request without verified labels.
    dataset : NoisyDataset
        The audited data set.
    audited : mapping of int to label
        Verified labels by row, None where no class fits.
    at_random : collection of int, optional
        Rows that were drawn at random, which calibrate the confidences of all others; None means all.

    Returns
    -------
    FitRequest
    """
    verified = with_verified(dataset, audited).label_values()
    if not learns_from_verified(request.estimator):
        return replace(request, y=verified)
    y = request.y.astype(object)
    without_class = [row for row, label in audited.items() if label is None]
    y[without_class] = None
    certain = {int(row): label for row, label in audited.items() if label is not None}
    arguments: dict[str, Any] = {**request.fit_arguments, "audited": certain}
    if at_random is not None:
        arguments["audited_at_random"] = at_random
    return replace(request, y=y if without_class else request.y, fit_arguments=arguments)


def make_certain(
    scores: FloatArray, distributions: FloatArray, codes: IntArray, audited: Mapping[int, Any]
) -> tuple[FloatArray, FloatArray]:
    """Set the probability of every verified label to 1.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Probability that the label is right.
    distributions : ndarray of shape (n, C)
        Probability of every class.
    codes : ndarray of int of shape (n,)
        Codes of the labels, with the verified ones.
    audited : mapping of int to label
        Verified labels by row, None where no class fits.

    Returns
    -------
    scores : ndarray of shape (n,)
        NaN where there is no label.
    distributions : ndarray of shape (n, C)
        1 at the verified labels.
    """
    rows = np.array([row for row, label in audited.items() if label is not None], dtype=np.int64)
    scores, distributions = scores.copy(), distributions.copy()
    scores[codes == MISSING] = np.nan
    scores[rows] = 1.0
    distributions[rows] = 0.0
    distributions[rows, codes[rows]] = 1.0
    return scores, distributions


@dataclass(frozen=True, slots=True)
class VerifiedTable:
    """Verified labels read from a table.

    Parameters
    ----------
    labels : dict of str to label
        By the id of the sample, as they are written in the data.
    n_empty : int
        Rows without a verified label.
    """

    labels: dict[str, Any]
    n_empty: int


def read_verified(path: Path, dataset: NoisyDataset) -> VerifiedTable:
    """Read the columns 'id' and 'verified_label' of a table; all others are ignored.

    Parameters
    ----------
    path : pathlib.Path
        A .csv, .tsv or .parquet file. A label may be written as it is in the data or as the name of its
        class. Rows without one are skipped.
    dataset : NoisyDataset
        The data set that the samples belong to.

    Returns
    -------
    VerifiedTable
    """
    with open_table(path, ReadOptions(id=ID, label=VERIFIED_LABEL), "audited") as table:
        if lost := [name for name in (ID, VERIFIED_LABEL) if name not in table.column_names]:
            rule = f"a table with the columns {ID!r} and {VERIFIED_LABEL!r}"
            names = Names(table.column_names, "columns", table.origin)
            raise must_be("audited", rule, f"{path} without {lost[0]!r}", names.listed())
        ids, written = (table.texts(name) for name in (ID, VERIFIED_LABEL))
    label_of = _Labels(dataset)
    known = set(encodable(dataset.sample_ids).tolist())
    labels: dict[str, Any] = {}
    n_empty = 0
    for number, (id, text) in enumerate(zip(ids, written, strict=True)):
        if label_of.is_gap(text):
            n_empty += 1
            continue
        if id is None or id not in known:
            raise must_be("audited", "about samples of this data", _unknown_ids(path, ids, known, number))
        label = label_of(str(text), path, id)
        if labels.setdefault(id, label) != label:
            raise InvalidInputError(
                f"{path} verifies sample {id!r} twice, as {labels[id]!r} and as {label!r}: "
                "remove one of the two rows."
            )
    if not labels:
        found = f"{path}, empty in all of its {n_empty} rows"
        advice = "Fill in the right label of every sample, the given one where it is right."
        raise must_be("audited", f"a table with labels in the column {VERIFIED_LABEL!r}", found, advice)
    return VerifiedTable(labels, n_empty)


class _Labels:
    """From text to a label of the data."""

    def __init__(self, dataset: NoisyDataset) -> None:
        values = dataset.class_values
        self._values: list[Any] = values.tolist()
        self._numbers = values.dtype.kind == "i"
        self._names = dataset.class_names
        self._code_of = {str(name): code for code, name in enumerate(dataset.class_names)}
        # If the name of one class is the written form of another, the written form takes precedence.
        for code, value in enumerate(encodable(values).tolist()):
            # Spreadsheets turn True into TRUE.
            for text in {str(value), str(value).upper()} if values.dtype.kind == "b" else {str(value)}:
                self._code_of[text] = code

    def is_gap(self, text: str | None) -> bool:
        if text is None or not text.strip():
            return True
        return self._numbers and text in GAPS_AMONG_NUMBERS and text not in self._code_of

    def __call__(self, text: str, path: Path, id: str) -> Any:
        whole = _WHOLE_DECIMAL.fullmatch(text.strip()) if self._numbers else None
        for spelling in (text, text.strip(), whole[1] if whole else ""):
            if spelling in self._code_of:
                return self._values[self._code_of[spelling]]
        shown = ", ".join(repr(name) for name in self._names[:10])
        more = ", ..." if len(self._names) > 10 else ""
        rule = f"labels among the {len(self._names)} classes of the data ({shown}{more})"
        raise must_be("audited", rule, text, f"It is that of the id {id!r} in {path}.")


def _unknown_ids(path: Path, ids: list[str | None], known: set[str], first: int) -> str:
    n_unknown = sum(id not in known for id in ids)
    return f"the id {ids[first]!r} in row {first} of {path} ({n_unknown} of {len(ids)} ids are unknown)"
