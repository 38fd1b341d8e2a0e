"""Many classes: this package and cleanlab on a 5-fold logistic regression, 100 x 100 and 1,000 x 20 samples.

No data set with so many real classes is available offline. "mixture" is synthetic: heavy-tailed classes, in
groups of ten that resemble each other, between which the best linear rule classifies 86-88% of the samples
correctly. Such a mixture favors our probe for many classes, which assumes Gaussian ones. "parts" are real
features with made-up classes: every class of the CIFAR-10 embeddings, divided into ten by k-means. The peer
is what cleanlab's tutorial does: ``cross_val_predict(LogisticRegression(), ...)`` with scikit-learn's
defaults. Each run is a separate process with the same number of threads. Run ``python
benchmarks/many_classes.py [--threads 1]``.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from typing import Any

import numpy as np
from cleanlab.rank import get_label_quality_scores
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from laplaceconfidence.confidence.noise_aware import NoiseAwareConfidence
from laplaceconfidence.evaluation.metrics import score_confidence
from laplaceconfidence.threads import limited_threads
from measuring import in_fresh_process, peak_memory_mib, save
from real_features import Absent, cifar10_embeddings

SIZES = {"mixture 100 x 100": (100, 100), "mixture 1000 x 20": (1_000, 20), "parts 100 x 100": (100, 100)}
NOISE = (("symmetric", 0.4), ("pair", 0.3))
METHODS = ("noise-aware", "cleanlab, 5-fold logistic regression")
WIDTH, INFORMATIVE = 256, 48


def mixture(n_classes: int, class_size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Features (n, 256) and classes; the axes' deviations fall with the root of their number."""
    rng = np.random.default_rng(seed)
    n_groups = max(2, n_classes // 10)
    groups = rng.standard_normal((n_groups, INFORMATIVE))
    centers = np.zeros((n_classes, WIDTH))
    own = rng.standard_normal((n_classes, INFORMATIVE))
    centers[:, :INFORMATIVE] = 0.8 * (groups[np.arange(n_classes) % n_groups] + 0.6 * own)
    truth = rng.permutation(np.repeat(np.arange(n_classes), class_size))
    widths = np.sqrt(4 / rng.chisquare(5, len(truth)))
    samples = centers[truth] + rng.standard_normal((len(truth), WIDTH)) * widths[:, None]
    rotation = np.linalg.qr(rng.standard_normal((WIDTH, WIDTH)))[0]
    return ((samples / np.sqrt(np.arange(1, WIDTH + 1))) @ rotation).astype(np.float32), truth


def parts_of_cifar10() -> tuple[np.ndarray, np.ndarray] | Absent:
    """The embeddings, every class divided into ten: 100 classes of about 100 samples, of unequal size."""
    data = cifar10_embeddings()
    if isinstance(data, Absent):
        return data
    features, classes = data.features, data.true_labels
    few = PCA(50, random_state=0).fit_transform(features)
    truth = np.empty(len(classes), dtype=np.int64)
    for code in range(10):
        members = np.flatnonzero(classes == code)
        truth[members] = 10 * code + KMeans(10, n_init=1, random_state=0).fit_predict(few[members])
    return features, truth


def with_noise(truth: np.ndarray, kind: str, rate: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed + 1)
    n_classes = int(truth.max()) + 1
    other = rng.integers(n_classes, size=len(truth)) if kind == "symmetric" else (truth + 1) % n_classes
    return np.where(rng.random(len(truth)) < rate, other, truth)


def confidence_of(method: str, features: np.ndarray, labels: np.ndarray, threads: int) -> np.ndarray:
    if method == "noise-aware":
        return NoiseAwareConfidence(n_jobs=threads, random_state=0).fit(features, labels).confidence_
    with limited_threads(threads):
        p = cross_val_predict(LogisticRegression(), features, labels, cv=5, method="predict_proba")
    return np.asarray(get_label_quality_scores(labels, p))


def measure(size: str, kind: str, rate: float, method: str, seed: int, threads: int) -> dict[str, Any]:
    made = parts_of_cifar10() if size.startswith("parts") else mixture(*SIZES[size], seed)
    if isinstance(made, Absent):
        return {"absent": f"{made.name} was not found: {made.advice}"}
    features, truth = made
    labels = with_noise(truth, kind, rate, seed)
    before = peak_memory_mib()
    start, start_cpu = time.perf_counter(), time.process_time()
    confidence = confidence_of(method, features, labels, threads)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - start_cpu
    scores = score_confidence(confidence, labels == truth)
    return {
        "auroc": scores.auroc,
        "average_precision": scores.average_precision,
        "calibration_error": scores.calibration_error,
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "peak_mib": peak_memory_mib(),
        "peak_mib_before": before,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument(
        "--one",
        nargs=4,
        metavar=("SIZE", "KIND", "RATE", "METHOD"),
        help="measure one cell; used by this script itself",
    )
    parser.add_argument("--out", default="many_classes")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.one:
        size, kind, rate, method = options.one
        print(json.dumps(measure(size, kind, float(rate), method, options.seed, options.threads)))
        return
    rows: list[dict[str, Any]] = []
    settings = {"threads": options.threads, "seed": options.seed, "features": WIDTH}
    common = ("--seed", str(options.seed), "--threads", str(options.threads))
    for size in options.sizes:
        for kind, rate in NOISE:
            cell = {"size": size, "noise": kind, "rate": rate}
            found = []
            for method in METHODS:
                row = in_fresh_process(__file__, "--one", size, kind, str(rate), method, *common)
                if "absent" in row:
                    print(row["absent"])
                    break
                found.append(cell | {"method": method} | row)
                print(
                    f"{size:18s} {kind:9s} {rate:g}  {method:37s} AUROC {row['auroc']:.4f}  "
                    f"AP {row['average_precision']:.4f}  {row['seconds']:7.1f} s "
                    f"({row['cpu_seconds']:.1f} s CPU)  {row['peak_mib']:6.0f} MiB",
                    flush=True,
                )
            if len(found) == len(METHODS):
                ours, peer = found
                ours["times_faster_than_peer"] = peer["seconds"] / ours["seconds"]
                ours["times_less_cpu_than_peer"] = peer["cpu_seconds"] / ours["cpu_seconds"]
                print(
                    f"{'':18s} {ours['times_faster_than_peer']:.2f} times faster, "
                    f"{ours['times_less_cpu_than_peer']:.2f} times less CPU",
                    flush=True,
                )
                rows.extend(found)
                save(options.out, {"settings": settings, "rows": rows})


if __name__ == "__main__":
    main()
