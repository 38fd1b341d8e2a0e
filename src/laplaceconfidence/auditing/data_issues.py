"""Issues of a data set besides wrong labels: outliers, copies, leaks, odd or empty samples, rare classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray, StrArray
from laplaceconfidence.auditing.closeness import NONE, Closest, find_closest
from laplaceconfidence.auditing.duplicates import conflicting, find_leakage, find_near_duplicates
from laplaceconfidence.auditing.image_issues import can_look_at_images, find_image_issues
from laplaceconfidence.auditing.row_order import RowOrder, measure_row_order, row_closeness
from laplaceconfidence.auditing.table import label_column
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.labels import MISSING, encodable
from laplaceconfidence.data.mixed_columns import MixedColumns
from laplaceconfidence.graph.neighborhood import Neighborhood
from laplaceconfidence.graph.neighbors import SEARCHES
from laplaceconfidence.stages import stage
from laplaceconfidence.validation import must_be

FEWEST_SAMPLES = 20  # with fewer, nothing is flagged as an outlier
RARE = 0.1  # of an even share of the labels
LIMIT = 2.5  # in steps from the median to the ninth decile; about 3.2 standard deviations of a normal
LOCAL_SHARES = (0.0, 0.5, 1.0)  # how much of the neighbors' distances is subtracted from a sample's own
MANY_TIES = np.log(2) / LIMIT  # where nine tenths are equally far, twice as far is unusual


@dataclass(frozen=True, slots=True, eq=False)
class DataIssues:
    """What was found besides wrong labels.

    Parameters
    ----------
    columns : dict of str to array
        Columns of the audit table, in the order of the rows.
    order : RowOrder or None
        Whether the rows are in random order, where that could be tested.
    """

    columns: dict[str, Any]
    order: RowOrder | None = None


def check_test_set(dataset: NoisyDataset, test: Any) -> None:
    """Raise unless a test set can be compared with a data set.

    Parameters
    ----------
    dataset : NoisyDataset
        The audited data set.
    test : NoisyDataset or None
        The test set, if there is one.

    Raises
    ------
    InvalidInputError
        If ``test`` is not a data set, or if their features differ in number or are missing.
    """
    if test is None:
        return
    if not isinstance(test, NoisyDataset):
        raise must_be("test", "a NoisyDataset", type(test).__name__, "read_dataset(...) makes one.")
    if dataset.features is None or test.features is None:
        lacking = "'dataset'" if dataset.features is None else "'test'"
        advice = "Copies are found by comparing the features of both sets."
        raise must_be("test", "left out where a set has no features", f"{lacking} without features", advice)
    if dataset.features.shape[1] != test.features.shape[1]:
        rule = f"described by the same {dataset.features.shape[1]} features as the audited set"
        raise must_be("test", rule, f"{test.features.shape[1]} features")
    columns, of_test = dataset.feature_columns, test.feature_columns
    if columns is not None and of_test is not None and columns != of_test:
        at = next(at for at, pair in enumerate(zip(columns, of_test, strict=True)) if len(set(pair)) > 1)
        rule = f"read from the same columns of features in the same order, {columns[at]!r} at position {at}"
        raise must_be("test", rule, of_test[at])


def data_issues(
    dataset: NoisyDataset,
    neighborhood: Neighborhood | None,
    test: NoisyDataset | None,
    settings: Mapping[str, Any],
    *,
    image_issues: bool | None = None,
) -> DataIssues:
    """Compute the columns of an audit table that are not about single labels.

    Parameters
    ----------
    dataset : NoisyDataset
        The audited data set.
    neighborhood : Neighborhood or None
        The neighbors that the estimator found by the features; if there are enough, none are searched.
    test : NoisyDataset or None
        Another set whose samples should not be in this one.
    settings : mapping
        Settings of the estimator: ``search``, ``n_jobs`` and ``random_state`` apply here, too.
    image_issues : bool or None, default=None
        Whether images are looked at; ``None`` does so unless there are more than 20,000 files.

    Returns
    -------
    DataIssues
        Without columns about outliers, copies and leaks where the data set has no features.
    """
    columns: dict[str, Any] = {"is_rare_class_issue": in_rare_class(dataset)}
    if dataset.source_kind == "text" and dataset.sources is not None:
        columns["is_empty_issue"] = np.array([not str(text).strip() for text in dataset.sources], dtype=bool)
    if dataset.columns is not None:
        columns |= missing_values(dataset.columns)
    if can_look_at_images(dataset, image_issues):
        found = find_image_issues(dataset, n_jobs=settings.get("n_jobs"))
        columns |= {"is_image_issue": found.flagged, "image_issues": found.described}
    if dataset.features is None:
        return DataIssues(columns)
    with stage("data issues"):
        features = dataset.comparable(dataset.features)
        search = settings.get("search")
        closest = find_closest(
            features,
            neighborhood,
            search=search if search in SEARCHES else "auto",
            n_jobs=settings.get("n_jobs"),
            random_state=settings.get("random_state"),
        )
        outliers = find_outliers(closest)
        duplicates = find_near_duplicates(features, closest)
        compared: dict[str, Any] = {
            "outlier_score": outliers.scores,
            "is_outlier_issue": outliers.flagged,
            "near_duplicate_score": duplicates.scores,
            "is_near_duplicate_issue": duplicates.flagged,
            "near_duplicate_of": _values_at(dataset.sample_ids, duplicates.copy_of),
            "near_duplicate_of_row": _with_gaps(duplicates.copy_of),
            "near_duplicate_set": _with_gaps(duplicates.set_of),
            "has_conflicting_duplicate": conflicting(duplicates, dataset.labels),
        }
        if test is not None and test.features is not None:
            tested = dataset.comparable(test.features)
            leakage = find_leakage(features, tested, closest, n_jobs=settings.get("n_jobs"))
            compared |= {
                "leakage_score": leakage.scores,
                "is_leaked": leakage.flagged,
                **_leaked_from(test, leakage.copy_of),
            }
        order = measure_row_order(closest, dataset.labels, random_state=settings.get("random_state"))
        if order is not None:
            score = row_closeness(closest, dataset.labels)
            flagged = score < 0.5 if not order.is_random else np.zeros(len(score), dtype=bool)
            columns |= {"row_order_score": score, "is_row_order_issue": flagged}
        return DataIssues({**compared, **columns}, order)


def missing_values(columns: MixedColumns) -> dict[str, Any]:
    """Return which cells of a table are empty, as columns of an audit table.

    Parameters
    ----------
    columns : MixedColumns
        The columns of the table.

    Returns
    -------
    dict of str to ndarray of shape (n,)
        ``missing_value_score``, the share of the cells of a row that are filled; ``is_missing_value_issue``,
        whether most are empty; ``missing_values``, the names of the columns that are empty.
    """
    empty = np.array([[cell is None for cell in column] for column in columns.cells])
    names: list[str | None] = [
        ", ".join(name for name, is_empty in zip(columns.names, row, strict=True) if is_empty) or None
        for row in empty.T
    ]
    score = 1 - empty.mean(axis=0)
    return {
        "missing_value_score": score,
        "is_missing_value_issue": score < 0.5,
        "missing_values": np.array(names, dtype=object),
    }


def in_rare_class(dataset: NoisyDataset) -> BoolArray:
    """Return which samples are of a class that has less than a tenth of an even share of the labels.

    Parameters
    ----------
    dataset : NoisyDataset
        The data set.

    Returns
    -------
    ndarray of bool of shape (n,)
    """
    labels = dataset.labels
    labeled = labels != MISSING
    counts = np.bincount(labels[labeled], minlength=dataset.n_classes)
    is_rare = counts < RARE * labeled.sum() / dataset.n_classes
    return np.asarray(labeled & is_rare[labels])


@dataclass(frozen=True, slots=True, eq=False)
class Outliers:
    """Which samples are far from all others.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        1 amid others, 0.5 at the limit, toward 0 far from everything.
    flagged : ndarray of shape (n,)
        Whether the score is below 0.5.
    """

    scores: FloatArray
    flagged: BoolArray


def find_outliers(closest: Closest) -> Outliers:
    """Find samples whose nearest others are unusually far away.

    Three numbers are compared with those of all samples: the logarithm of the reach, and the same minus half
    and minus all of the logarithm of the mean reach of the neighbors, as data may be dense in one region and
    sparse in another. Each is scaled such that the median is 0 and the ninth decile is 1, on which up to a
    tenth of outliers has no influence; the largest of the three is used.

    Parameters
    ----------
    closest : Closest
        The nearest other samples of every sample.

    Returns
    -------
    Outliers
    """
    reach = closest.reach
    known = reach > 0  # where it is 0, all of the nearest are copies
    scores = np.ones(len(reach))
    if known.sum() < FEWEST_SAMPLES:
        return Outliers(scores, scores < 0.5)
    own = np.log(reach[known])
    around = np.log(_reach_around(closest)[known])
    unusual = np.max([_standardized(own - share * around) for share in LOCAL_SHARES], axis=0)
    scores[known] = expit(LIMIT - unusual)
    return Outliers(scores, scores < 0.5)


def _reach_around(closest: Closest) -> FloatArray:
    """Mean reach of a sample's neighbors; those with a reach of 0 are left out."""
    theirs = np.where(closest.rows >= 0, closest.reach[closest.rows], 0)
    known = (theirs > 0).sum(axis=1)
    mean = theirs.sum(axis=1) / np.maximum(known, 1)
    return np.where(known > 0, mean, closest.reach)


def _standardized(values: FloatArray) -> FloatArray:
    median, high = np.quantile(values, [0.5, 0.9])
    step = high - median
    return np.asarray((values - median) / (step if step > 1e-6 else MANY_TIES))


def _leaked_from(test: NoisyDataset, rows: IntArray) -> dict[str, Any]:
    """Id, label, and text or path of these rows of the test set, with gaps where there is no row."""
    codes = np.where(rows == NONE, MISSING, test.labels[rows])
    columns: dict[str, Any] = {
        "leaked_from": _values_at(test.sample_ids, rows),
        "leaked_from_row": _with_gaps(rows),
        "leaked_from_label": label_column(test.class_values, codes),
    }
    if test.sources is not None:
        name = "path" if test.source_kind == "image" else "text"
        columns[f"leaked_from_{name}"] = _values_at(test.sources, rows)
    return columns


def _values_at(values: StrArray, rows: IntArray) -> NDArray[Any]:
    found = encodable(values).astype(object)[rows]
    found[rows == NONE] = None
    return found


def _with_gaps(numbers: IntArray) -> Any:
    import pandas as pd

    return pd.arrays.IntegerArray(numbers, numbers == NONE)
