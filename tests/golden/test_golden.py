"""The renovation keeps what is computed: results of the code before it, on fixed seeds.

``GOLDEN=write`` stores what the present code computes; otherwise it is compared. Goes when the work is done.
"""

import csv
import hashlib
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import kneighbors_graph

HERE = Path(__file__).parent
# The default estimator's own neighbors are the candidates for outliers and copies: there is no second search.
CHANGED = {"noise-aware outlier_score", "noise-aware near_duplicate_score"}
pytestmark = pytest.mark.filterwarnings("ignore")


def noisy(rate: float, seed: int) -> tuple[Any, Any, Any]:
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    return X, np.where(rng.random(len(y)) < rate, rng.integers(0, 10, len(y)), y), y


def fitted(estimator: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(*args, **kwargs)
    found = {"confidence": estimator.confidence_}
    if estimator.label_distributions_ is not None:
        found["distributions"] = estimator.label_distributions_
    for name in (
        "noise_rate_",
        "cautious_confidence_",
        "label_support_",
        "transition_matrix_",
        "noise_rate_bracket_",
    ):
        if hasattr(estimator, name):
            found[name] = np.asarray(getattr(estimator, name))
    return found


def every_estimator() -> dict[str, Any]:
    from laplaceconfidence.confidence.registry import ESTIMATORS

    X, y, _ = noisy(0.4, 0)
    p = cross_val_predict(LogisticRegression(C=0.1, max_iter=300), X / 16, y, cv=3, method="predict_proba")
    evidence = {"features": X, "probabilities": p, "losses": -np.log(p[np.arange(len(y)), y])}
    return {
        f"{name} {key}": value
        for name, kind in ESTIMATORS.items()
        for key, value in fitted(_seeded(kind), evidence[kind.evidence], y).items()
    }


def _seeded(kind: Any) -> Any:
    estimator = kind()
    return estimator.set_params(random_state=0) if "random_state" in estimator.get_params() else estimator


def noise_aware() -> dict[str, Any]:
    from laplaceconfidence import LaplaceConfidence, NoiseAwareConfidence
    from laplaceconfidence.data import add_noise
    from laplaceconfidence.data import load_digits as digits_set

    X, y, truth = noisy(0.4, 1)
    p = cross_val_predict(LogisticRegression(C=0.1, max_iter=300), X / 16, y, cv=3, method="predict_proba")
    audited = {int(row): int(truth[row]) for row in np.random.default_rng(2).permutation(len(y))[:80]}
    gaps = y.astype(object)
    gaps[::7] = None
    local = add_noise(digits_set(), "instance", 0.4, random_state=3)
    ambiguous = LogisticRegression(C=1e-3, max_iter=50).fit(X[::9] / 16, truth[::9]).predict(X / 16)
    many, classes = make_blobs(1500, 16, centers=60, cluster_std=3.0, random_state=0)
    many_noisy = np.where(
        np.random.default_rng(0).random(1500) < 0.3, np.random.default_rng(1).integers(0, 60, 1500), classes
    )
    graph = kneighbors_graph(X, 15, mode="distance")
    cases: dict[str, Callable[[], dict[str, Any]]] = {
        "symmetric 80": lambda: fitted(NoiseAwareConfidence(random_state=1), X, noisy(0.8, 2)[1]),
        "clean": lambda: fitted(NoiseAwareConfidence(), X, truth),
        "audited": lambda: fitted(NoiseAwareConfidence(), X, y, audited=audited),
        "missing": lambda: fitted(NoiseAwareConfidence(), X, gaps),
        "local": lambda: fitted(NoiseAwareConfidence(), X, local.labels),
        "ambiguous": lambda: fitted(NoiseAwareConfidence(), X, ambiguous),
        "many": lambda: fitted(NoiseAwareConfidence(), many, many_noisy),
        "tiny": lambda: fitted(NoiseAwareConfidence(), X[:40], y[:40]),
        "both": lambda: fitted(NoiseAwareConfidence(), X, y, pred_probs=p),
        "probabilities": lambda: fitted(NoiseAwareConfidence(), None, y, pred_probs=p),
        "graph": lambda: fitted(NoiseAwareConfidence(knn_graph_kind="distance"), None, y, knn_graph=graph),
        "settings": lambda: fitted(
            NoiseAwareConfidence((5, 20), 20, n_rounds=2, n_folds=4, search="ivf"), X, y
        ),
        "laplace auto": lambda: fitted(LaplaceConfidence("auto", "auto", random_state=0), X, y),
        "laplace weights": lambda: fitted(
            LaplaceConfidence(10, 0.9), X, y, sample_weight=np.arange(len(y)) % 3
        ),
        "laplace components": lambda: fitted(
            LaplaceConfidence(20, n_components=10, random_state=0, search="ivf"), X, y
        ),
    }
    return {f"{case} {key}": value for case, run in cases.items() for key, value in run().items()}


def audits() -> dict[str, Any]:
    from laplaceconfidence import audit
    from laplaceconfidence.data import add_noise
    from laplaceconfidence.data import load_digits as digits_set

    dataset = add_noise(digits_set(), "symmetric", 0.2, random_state=0)
    found: dict[str, Any] = {}
    for name, settings in {
        "noise-aware": {},
        "laplace": {"n_neighbors": 20},
        "knn-vote": {},
        "refined-cross-entropy": {},
        "largest-component": {},
    }.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = audit(dataset, estimator=name, random_state=0, **settings)
        for column in result.table.columns:
            values = result.table[column]
            if values.dtype.kind in "fbiu":
                found[f"{name} {column}"] = values.to_numpy()
            else:
                found[f"{name} {column}"] = np.array([str(value) for value in values])
        found[f"{name} row"] = result.table.index.to_numpy()
        found[f"{name} noise_rate"] = np.asarray(result.noise_rate)
        found[f"{name} corrected"] = result.corrected_labels(min_probability=0.9)
    return found


def trained() -> dict[str, Any]:
    from golden_runs import classifiers

    X, y, _ = noisy(0.4, 0)
    rows = np.random.default_rng(5).permutation(len(X))[:400]
    images, labels = (X[rows].reshape(-1, 8, 8) * 15).astype(np.uint8), y[rows]
    found: dict[str, Any] = {}
    for name, (classifier, vectors) in classifiers().items():
        inputs = X[rows].astype(np.float32) if vectors else images
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            classifier.fit(inputs, labels, test=(inputs[:50], labels[:50]))
        found[f"{name} confidence"] = classifier.confidence_
        found[f"{name} refined"] = classifier.refined_labels_
        found[f"{name} predicted"] = classifier.predict_proba(inputs)
        digest = hashlib.sha256()
        for network in classifier.networks_:
            for tensor in network.state_dict().values():
                digest.update(tensor.numpy().tobytes())
        found[f"{name} weights"] = np.array(digest.hexdigest())
    return found


def benched(folder: Path) -> dict[str, Any]:
    common = ["--noise", "symmetric:0.4", "--seeds", "1", "--n-jobs", "1"]
    found = {}
    for name, words in {
        "estimators": ["--estimators", "all"],
        "methods": ["--methods", "all", "--device", "cpu", *golden_set()],
    }.items():
        command = [
            sys.executable,
            "-m",
            "laplaceconfidence",
            "bench",
            "digits",
            *common,
            *words,
            "-o",
            str(folder / name),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        with (folder / name / "tables.csv").open() as file:
            for line in csv.DictReader(file):
                key = " ".join(value for column, value in line.items() if not _is_number(value) and column)
                if "second" not in key:
                    numbers = [
                        float(value)
                        for column, value in line.items()
                        if _is_number(value) and "second" not in column
                    ]
                    found[f"{name} {key}"] = np.array(numbers)
    return found


def golden_set() -> list[str]:
    from golden_runs import BENCH_CHANGES

    return [word for change in BENCH_CHANGES for word in ("--set", change)]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except (TypeError, ValueError):
        return False
    return True


@pytest.mark.parametrize("name", ["every_estimator", "noise_aware", "audits", "trained", "benched"])
def test_results_are_those_of_before(name: str, tmp_path: Path) -> None:
    found = benched(tmp_path) if name == "benched" else globals()[name]()
    path = HERE / f"{name}.npz"
    if os.environ.get("GOLDEN") == "write":
        np.savez_compressed(path, **{key: _stored(np.asarray(value)) for key, value in found.items()})
    with np.load(path, allow_pickle=False) as stored:
        assert sorted(stored.files) == sorted(found)
        worst = {key: _difference(stored[key], np.asarray(found[key])) for key in set(stored.files) - CHANGED}
    limit = 0.0 if name == "trained" else 1.1e-6  # stored in single precision
    assert {key: value for key, value in worst.items() if not value <= limit} == {}


def _stored(values: Any) -> Any:
    return values.astype(np.float32) if values.dtype.kind == "f" else values


def _difference(before: Any, now: Any) -> float:
    if before.shape != now.shape:
        return np.inf
    if before.dtype.kind in "US" or now.dtype.kind in "USO":
        return float((before.astype(str) != now.astype(str)).any())
    before, now = before.astype(np.float64), _stored(now).astype(np.float64)
    if not np.array_equal(np.isnan(before), np.isnan(now)):
        return np.inf
    return float(np.nanmax(np.abs(before - now), initial=0.0))
