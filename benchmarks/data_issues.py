"""Outliers, near-duplicates and leaks planted into real features: this package and cleanlab's Datalab.

AUROC is that of the scores for separating planted from other samples; "found" is the share of the planted
ones that are flagged, "false alarms" the share of the others. Real sets have outliers and copies of their
own, which count as false alarms here, for both packages alike.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from cleanlab import Datalab

from laplaceconfidence.auditing.closeness import find_closest
from laplaceconfidence.auditing.data_issues import find_outliers
from laplaceconfidence.auditing.duplicates import find_leakage, find_near_duplicates
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.evaluation.metrics import auroc
from laplaceconfidence.features.scale import unit_length
from laplaceconfidence.graph.neighbors import find_neighbors
from measuring import save, timed
from real_features import Absent, quality_sets

SHARE = 0.01  # of the samples, planted
Found = dict[str, tuple[np.ndarray, np.ndarray]]  # kind of issue: scores and flags
Planted = tuple[np.ndarray, np.ndarray]  # features, and which rows are planted


def clusters(seed: int) -> NoisyDataset:
    """Synthetic data: five normal classes in 50 dimensions, with standard deviations from 0.1 to 1."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(5), 600)
    centers = rng.normal(scale=5, size=(5, 50))
    spread = np.array([0.1, 0.2, 0.3, 0.5, 1.0])[labels][:, None]
    features = (centers[labels] + spread * rng.normal(size=(3000, 50))).astype(np.float32)
    return NoisyDataset(labels, tuple("abcde"), features)


def ours(features: np.ndarray) -> Found:
    closest = find_closest(features)
    outliers, copies = find_outliers(closest), find_near_duplicates(features, closest)
    return {
        "outlier": (outliers.scores, outliers.flagged),
        "near_duplicate": (copies.scores, copies.flagged),
    }


def theirs(features: np.ndarray) -> Found:
    lab = Datalab({"labels": np.arange(len(features)) % 2}, label_name="labels", verbosity=0)
    lab.find_issues(features=features, issue_types={"outlier": {}, "near_duplicate": {}})
    issues = lab.get_issues()
    return {
        kind: (issues[f"{kind}_score"].to_numpy(), issues[f"is_{kind}_issue"].to_numpy())
        for kind in ("outlier", "near_duplicate")
    }


def with_shuffled(data: NoisyDataset, rng: np.random.Generator) -> Planted:
    """Samples with every feature from another sample: usual values in an unusual combination."""
    n, width = data.features.shape
    rows = rng.integers(n, size=(int(SHARE * n), width))
    return _appended(data.features, data.features[rows, np.arange(width)])


def with_noise(most: int | None) -> Callable[[NoisyDataset, np.random.Generator], Planted]:
    """Normal noise with the mean and spread of all features together.

    Such samples are similar: if there are more than ten of them, they are each other's neighbors.
    """

    def plant(data: NoisyDataset, rng: np.random.Generator) -> Planted:
        n, width = data.features.shape
        mean, spread = data.features.mean(), data.features.std()
        number = int(SHARE * n) if most is None else min(most, int(SHARE * n))
        return _appended(data.features, rng.normal(mean, spread, size=(number, width)))

    return plant


def with_unseen_class(data: NoisyDataset, rng: np.random.Generator) -> Planted:
    """A few samples of a class that is otherwise left out."""
    unseen = data.labels == rng.integers(data.n_classes)
    some = rng.choice(np.flatnonzero(unseen), int(SHARE * (~unseen).sum()), replace=False)
    return _appended(data.features[~unseen], data.features[some])


def with_copies(size: float) -> Callable[[NoisyDataset, np.random.Generator], Planted]:
    def plant(data: NoisyDataset, rng: np.random.Generator) -> Planted:
        rows = rng.choice(len(data), int(SHARE * len(data)), replace=False)
        features, planted = _appended(data.features, changed(data.features, rows, size, rng))
        planted[rows] = True
        return features, planted

    return plant


def changed(features: np.ndarray, rows: np.ndarray, size: float, rng: np.random.Generator) -> np.ndarray:
    """Copies of rows, each moved by ``size`` times the usual distance to the nearest neighbor."""
    nearest = find_neighbors(unit_length(features), 1).indices[:, 0]
    usual = np.median(np.linalg.norm(features - features[nearest], axis=1))
    noise = rng.normal(size=(len(rows), features.shape[1]))
    return features[rows] + size * usual * noise / np.linalg.norm(noise, axis=1, keepdims=True)


def _appended(features: np.ndarray, planted: np.ndarray) -> Planted:
    both = np.vstack([features, planted]).astype(features.dtype)
    return both, np.arange(len(both)) >= len(features)


CASES = {
    "outlier": {
        "shuffled features": with_shuffled,
        "noise, 8 samples": with_noise(8),
        "noise, 1%": with_noise(None),
        "unseen class": with_unseen_class,
    },
    "near_duplicate": {f"copies, {size:g} off": with_copies(size) for size in (0.0, 0.1, 0.3, 0.5)},
}


def measured(data: NoisyDataset, seeds: int) -> list[dict[str, Any]]:
    rows = []
    for kind, cases in CASES.items():
        for case, plant in cases.items():
            marks: dict[str, list[tuple[float, ...]]] = {"ours": [], "cleanlab": []}
            for seed in range(seeds):
                features, planted = plant(data, np.random.default_rng(seed))
                for name, find in (("ours", ours), ("cleanlab", theirs)):
                    seconds, found = timed(lambda find=find, features=features: find(features))
                    scores, flagged = found[kind]
                    marks[name].append(
                        (
                            auroc(-scores, planted),
                            flagged[planted].mean(),
                            flagged[~planted].mean(),
                            seconds,
                        )
                    )
            for name, values in marks.items():
                area, share, alarms, seconds = (float(value) for value in np.mean(values, axis=0))
                row = {"auroc": area, "found": share, "false_alarms": alarms, "seconds": seconds}
                rows.append({"kind": kind, "case": case, "by": name, **row})
                print(kind, case, name, {key: round(value, 4) for key, value in row.items()}, flush=True)
    return rows


def leaks(data: NoisyDataset, seeds: int) -> dict[str, float]:
    """A fifth of the data as a test set, into which changed copies of training samples are planted."""
    found, alarms = [], []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(data))
        test, train = np.split(data.features[order], [len(data) // 5])
        rows = rng.choice(len(train), len(train) // 50, replace=False)
        test[: len(rows)] = changed(train, rows, 0.3, rng)
        flagged = find_leakage(train, test, find_closest(train)).flagged
        found.append(flagged[rows].mean())
        alarms.append(np.delete(flagged, rows).mean())
    return {"found": float(np.mean(found)), "false_alarms": float(np.mean(alarms))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--n", type=int, default=6_000, help="samples of a set, at most")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    rows: list[dict[str, Any]] = []
    leaked: dict[str, dict[str, float]] = {}
    for name, data in {**quality_sets(), "clusters": clusters(0)}.items():
        if isinstance(data, Absent):
            print(f"skipped {data.name}: {data.advice}")
            continue
        data = data.subset(np.arange(len(data)) < arguments.n)
        print(name)
        rows += [{"set": name, **row} for row in measured(data, arguments.seeds)]
        leaked[name] = leaks(data, arguments.seeds)
        print("leaks", leaked[name])
    save(
        "data_issues",
        {"settings": {"seeds": arguments.seeds, "n": arguments.n}, "rows": rows, "leaks": leaked},
    )


if __name__ == "__main__":
    main()
