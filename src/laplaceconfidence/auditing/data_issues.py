"""What else is wrong with a data set: samples of no class, copies, and copies of test samples."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from laplaceconfidence.arrays import IntArray, StrArray
from laplaceconfidence.auditing.closeness import N_CLOSEST, Closest, find_closest, heaviest_neighbors
from laplaceconfidence.auditing.copies import NONE
from laplaceconfidence.auditing.leakage import find_leakage
from laplaceconfidence.auditing.near_duplicates import conflicting, find_near_duplicates
from laplaceconfidence.auditing.outliers import find_outliers
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.graph.neighbors import SEARCHES
from laplaceconfidence.stages import stage
from laplaceconfidence.validation import must_be


def check_test_set(dataset: NoisyDataset, test: Any) -> None:
    """Raise unless the samples of ``test`` can be compared with those of ``dataset``."""
    if test is None:
        return
    if not isinstance(test, NoisyDataset):
        raise must_be("test", "a NoisyDataset", type(test).__name__, "read_dataset(...) makes one.")
    if dataset.features is None or test.features is None:
        lacking = "'dataset'" if dataset.features is None else "'test'"
        advice = "Copies are found by the features of both sets."
        raise must_be("test", "left out where a set has no features", f"{lacking} without features", advice)
    if dataset.features.shape[1] != test.features.shape[1]:
        rule = f"described by the same {dataset.features.shape[1]} features as the audited set"
        raise must_be("test", rule, f"{test.features.shape[1]} features")


def data_issues(dataset: NoisyDataset, judge: Any, test: NoisyDataset | None) -> dict[str, Any]:
    """Columns of an audit table, by row; none where there are no features.

    ``judge`` is the fitted estimator, whose neighbors are used again where it kept them.
    """
    if dataset.features is None:
        return {}
    with stage("beyond labels"):
        settings = judge.get_params() if hasattr(judge, "get_params") else {}
        n_jobs = settings.get("n_jobs")
        closest = _closest(dataset, judge, settings)
        outliers = find_outliers(closest)
        duplicates = find_near_duplicates(dataset.features, closest)
        columns: dict[str, Any] = {
            "outlier_score": outliers.scores,
            "is_outlier_issue": outliers.flagged,
            "near_duplicate_score": duplicates.scores,
            "is_near_duplicate_issue": duplicates.flagged,
            "near_duplicate_of": _ids_at(dataset.sample_ids, duplicates.copy_of),
            "near_duplicate_set": _gaps_left(duplicates.set_of),
            "has_conflicting_duplicate": conflicting(duplicates, dataset.labels),
        }
        if test is not None and test.features is not None:
            leakage = find_leakage(dataset.features, test.features, closest, n_jobs=n_jobs)
            columns |= {
                "leakage_score": leakage.scores,
                "is_leaked": leakage.flagged,
                "leaked_from": _ids_at(test.sample_ids, leakage.copy_of),
            }
        return columns


def _closest(dataset: NoisyDataset, judge: Any, settings: dict[str, Any]) -> Closest:
    assert dataset.features is not None
    search = settings.get("search")
    return find_closest(
        dataset.features,
        neighbors_of(judge),
        search=search if search in SEARCHES else "auto",
        n_jobs=settings.get("n_jobs"),
        random_state=settings.get("random_state"),
    )


def neighbors_of(judge: Any) -> IntArray | None:
    """(n, k) the neighbors that an estimator searched for, if it kept enough of them to be of use.

    Either as ``neighbors_``, or in the graph ``affinity_`` that it made of ``n_neighbors_`` of them.
    """
    judge = getattr(judge, "laplace_", judge)
    # Estimators may look at principal components: the nearest there are among the nearer ones here.
    if (found := getattr(judge, "neighbors_", None)) is not None:
        return found.indices[:, : 2 * N_CLOSEST] if found.indices.shape[1] >= N_CLOSEST else None
    n_neighbors = getattr(judge, "n_neighbors_", None)  # None for a graph that the user brought
    if n_neighbors is None or n_neighbors < N_CLOSEST or not hasattr(judge, "affinity_"):
        return None
    n_candidates = N_CLOSEST if judge.n_components is None else min(2 * N_CLOSEST, n_neighbors)
    return heaviest_neighbors(judge.affinity_, n_candidates)


def _ids_at(ids: StrArray, rows: IntArray) -> NDArray[Any]:
    found = ids.astype(object)[rows]
    found[rows == NONE] = None
    return found


def _gaps_left(numbers: IntArray) -> Any:
    import pandas as pd

    return pd.arrays.IntegerArray(numbers, numbers == NONE)
