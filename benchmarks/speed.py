"""Time of one estimate at 50,000 x 512, k=50, 10 classes: this package, the paper's way, and the peers.

The reference way is the paper's: exact faiss on all features and one scipy conjugate gradient per class. The
result of this package is also compared with the exact one on the same (reduced) features.

Wall time on two cores or more; on one core, which other processes may use as well, the CPU time of one
thread, recorded apart.
"""

from __future__ import annotations

import argparse
import time
import warnings

import faiss
import numpy as np
from cleanlab import Datalab
from scipy import sparse
from scipy.sparse.linalg import cg
from sklearn.exceptions import ConvergenceWarning
from sklearn.semi_supervised import LabelSpreading

from laplaceconfidence import LaplaceConfidence
from laplaceconfidence.data.noise import add_noise
from laplaceconfidence.evaluation.metrics import spearman
from laplaceconfidence.features.scale import principal_axes, project
from laplaceconfidence.threads import available_cores
from measuring import save, timed
from real_features import Absent, fashion

K, ALPHA, COMPONENTS = 50, 0.99, 64


def reference_way(features: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Exact search, scipy symmetrization, one scipy CG (tolerance 1e-3, 30 iterations) per class."""
    n, n_classes = len(labels), int(labels.max()) + 1
    unit = features.copy()
    faiss.normalize_L2(unit)
    index = faiss.IndexFlatIP(unit.shape[1])
    index.add(unit)
    similarities, neighbors = index.search(unit, K + 1)
    rows = np.repeat(np.arange(n), K + 1)
    others = neighbors.ravel() != rows
    weights = np.maximum(similarities.ravel()[others], 0)
    graph = sparse.csr_matrix((weights, (rows[others], neighbors.ravel()[others])), shape=(n, n))
    graph = graph.maximum(graph.T)
    scale = sparse.diags_array(1 / np.sqrt(np.asarray(graph.sum(axis=1)).ravel()))
    system = sparse.eye_array(n) - ALPHA * (scale @ graph @ scale)
    given = np.eye(n_classes)[labels]
    solution = np.stack([cg(system, given[:, c], rtol=1e-3, maxiter=30)[0] for c in range(n_classes)], axis=1)
    exponent = np.exp(np.maximum(solution, 0))
    return (exponent / exponent.sum(axis=1, keepdims=True))[np.arange(n), labels]


def ours(features: np.ndarray, labels: np.ndarray, **settings: object) -> LaplaceConfidence:
    return LaplaceConfidence(K, ALPHA, random_state=0, **settings).fit(features, labels)


def cleanlab_on_features(features: np.ndarray, labels: np.ndarray) -> np.ndarray:
    lab = Datalab({"label": labels}, label_name="label", verbosity=0)
    lab.find_issues(features=features, issue_types={"label": {}})
    return lab.get_issues("label")["label_score"].to_numpy()


def label_spreading(features: np.ndarray, labels: np.ndarray) -> np.ndarray:
    model = LabelSpreading(kernel="knn", n_neighbors=K, alpha=ALPHA, max_iter=30, n_jobs=available_cores())
    model.fit(features, labels)
    return model.label_distributions_[np.arange(len(labels)), labels]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=50_000)
    parser.add_argument(
        "--no-peers", action="store_true", help="leave out cleanlab and scikit-learn (minutes)"
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    clean = fashion(options.n)
    if isinstance(clean, Absent):
        raise SystemExit(f"{clean.name} was not found: {clean.advice}")
    data = add_noise(clean, "symmetric", 0.5, random_state=0)
    features, labels = data.features, data.labels
    faiss.omp_set_num_threads(available_cores())

    one_core = available_cores() == 1
    clock = time.process_time if one_core else time.perf_counter
    rows: dict[str, dict[str, float]] = {}

    def report(name: str, seconds: float, **more: float) -> None:
        rows[name] = {"seconds": seconds, **more}
        ratio = rows["reference way"]["seconds"] / seconds
        rows[name]["times_faster_than_reference"] = ratio
        print(
            f"{name:28s} {seconds:8.2f} s   {ratio:5.1f}x   "
            + "  ".join(f"{k} {v:.4f}" for k, v in more.items())
        )

    seconds, exact = timed(lambda: reference_way(features, labels), clock=clock)
    report("reference way", seconds)
    seconds, fitted = timed(lambda: ours(features, labels), repeats=3, clock=clock)
    report("ours", seconds, spearman=spearman(fitted.confidence_, exact), recall=fitted.recall_)
    print("   ", {name: round(value, 2) for name, value in fitted.timings_.items()})
    mean, axes, _ = principal_axes(features, COMPONENTS)
    exact_reduced = reference_way(project(features, mean, axes), labels)
    seconds, fitted = timed(lambda: ours(features, labels, n_components=COMPONENTS), repeats=3, clock=clock)
    agreement = spearman(fitted.confidence_, exact_reduced)
    report(f"ours, PCA to {COMPONENTS}", seconds, spearman=agreement, recall=fitted.recall_)
    print("   ", {name: round(value, 2) for name, value in fitted.timings_.items()})
    if not options.no_peers:
        report("cleanlab on features", timed(lambda: cleanlab_on_features(features, labels), clock=clock)[0])
        report("sklearn LabelSpreading", timed(lambda: label_spreading(features, labels), clock=clock)[0])
    settings = {"n": options.n, "d": 512, "k": K, "alpha": ALPHA, "noise": "symmetric 50%", "seed": 0}
    save("speed_one_core" if one_core else "speed", {"settings": settings, "rows": rows})


if __name__ == "__main__":
    main()
