"""Many classes: this package and cleanlab on a 5-fold logistic regression, 77 to 1,000 classes.

"banking 77" are 10,003 real questions with 77 intents (Casanueva et al. 2020), as TF-IDF and 256 singular
vectors; its own labels, some of which are known to be wrong, are taken as the true ones. "mixture" is
synthetic: heavy-tailed classes, in groups of ten that resemble each other, between which the best linear rule
classifies 86-88% of the samples correctly. "parts" are real features with made-up classes: every class of the
CIFAR-10 embeddings, divided into ten by k-means. The peer is what cleanlab's tutorial does:
``cross_val_predict(LogisticRegression(), ...)`` with scikit-learn's defaults. Each run is a separate process
with the same number of threads; times are those of the processor. Run ``python benchmarks/many_classes.py
[--threads 1] [--seeds 0 1 2] [--sizes ...]``; stored results are kept.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import time
import warnings
from typing import Any

import numpy as np
from cleanlab.rank import get_label_quality_scores
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.preprocessing import normalize

from laplaceconfidence.confidence.noise_aware import NoiseAwareConfidence
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.noise import add_noise
from laplaceconfidence.evaluation.metrics import score_confidence
from laplaceconfidence.threads import limited_threads
from measuring import in_fresh_process, peak_memory_mib, save, stored_rows
from real_features import EMBEDDINGS, Absent, cifar10_embeddings

SIZES = ("banking 77", "mixture 100 x 100", "parts 100 x 100", "mixture 1000 x 20")
NOISE = (("symmetric", 0.1), ("symmetric", 0.4), ("symmetric", 0.8), ("pair", 0.3), ("instance", 0.3))
BANKING = EMBEDDINGS.with_name("banking77_train.csv")
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


def banking() -> tuple[np.ndarray, np.ndarray] | Absent:
    """Questions as TF-IDF and 256 singular vectors, rows of length 1."""
    if not BANKING.exists():
        return Absent("Banking77", f"put its training part at {BANKING}")
    with BANKING.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    words = TfidfVectorizer(sublinear_tf=True, min_df=2).fit_transform([row["text"] for row in rows])
    features = normalize(TruncatedSVD(WIDTH, random_state=0).fit_transform(words))
    return features.astype(np.float32), np.unique([row["category"] for row in rows], return_inverse=True)[1]


def features_of(size: str, seed: int) -> tuple[np.ndarray, np.ndarray] | Absent:
    if size.startswith("banking"):
        return banking()
    if size.startswith("parts"):
        return parts_of_cifar10()
    n_classes, class_size = map(int, size.removeprefix("mixture ").split(" x "))
    return mixture(n_classes, class_size, seed)


def with_noise(features: np.ndarray, truth: np.ndarray, kind: str, rate: float, seed: int) -> np.ndarray:
    names = tuple(map(str, range(int(truth.max()) + 1)))
    clean = NoisyDataset(labels=truth, class_names=names, features=features)
    return add_noise(clean, kind, rate, random_state=seed + 1).labels


def measure(size: str, kind: str, rate: float, method: str, seed: int, threads: int) -> dict[str, Any]:
    made = features_of(size, seed)
    if isinstance(made, Absent):
        return {"absent": f"{made.name} was not found: {made.advice}"}
    features, truth = made
    labels = with_noise(features, truth, kind, rate, seed)
    before = peak_memory_mib()
    start, start_cpu = time.perf_counter(), time.process_time()
    found: dict[str, Any] = {}
    if method == METHODS[0]:
        model = NoiseAwareConfidence(n_jobs=threads, random_state=seed).fit(features, labels)
        confidence = model.confidence_
        found = {"estimated_noise": model.noise_rate_, "identifiable": bool(model.identifiable_)}
    else:
        with limited_threads(threads):
            p = cross_val_predict(LogisticRegression(), features, labels, cv=5, method="predict_proba")
        confidence = np.asarray(get_label_quality_scores(labels, p))
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - start_cpu
    scores = score_confidence(confidence, labels == truth)
    return {
        "auroc": scores.auroc,
        "average_precision": scores.average_precision,
        "calibration_error": scores.calibration_error,
        "noise": float((labels != truth).mean()),
        **found,
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "peak_mib": peak_memory_mib(),
        "peak_mib_before": before,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument(
        "--one",
        nargs=5,
        metavar=("SIZE", "KIND", "RATE", "METHOD", "SEED"),
        help="measure one cell; used by this script itself",
    )
    parser.add_argument("--out", default="many_classes")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.one:
        size, kind, rate, method, seed = options.one
        print(json.dumps(measure(size, kind, float(rate), method, int(seed), options.threads)))
        return
    rows = stored_rows(options.out)
    for size, seed, (kind, rate) in itertools.product(options.sizes, options.seeds, NOISE):
        cell = {"size": size, "noise_kind": kind, "rate": rate, "seed": seed}
        if any(cell.items() <= row.items() for row in rows):
            continue
        measured = [
            in_fresh_process(
                __file__, "--one", size, kind, str(rate), method, str(seed), "--threads", str(options.threads)
            )
            for method in METHODS
        ]
        if absent := measured[0].get("absent"):
            print(absent)
            break
        rows.extend(cell | {"method": method} | row for method, row in zip(METHODS, measured, strict=True))
        save(options.out, {"settings": {"threads": options.threads, "features": WIDTH}, "rows": rows})
        for method, row in zip(METHODS, measured, strict=True):
            print(
                f"{size:18s} {kind:9s} {rate:g} seed {seed}  {method:37s} AUROC {row['auroc']:.4f}  "
                f"AP {row['average_precision']:.4f}  ECE {row['calibration_error']:.3f}  "
                f"noise {row['noise']:.3f} found {row.get('estimated_noise', np.nan):.3f}  "
                f"{row['cpu_seconds']:.1f} s CPU  {row['peak_mib']:6.0f} MiB",
                flush=True,
            )


if __name__ == "__main__":
    main()
