"""CPU time per sample and peak memory from 50,000 samples to a million, in memory.

    python benchmarks/scale.py [--kinds images mixture] [--estimators laplace noise-aware]
                               [--sizes 50000 200000] [--pool 1000000] [--folder SCRATCH]

Every fit runs in its own process on features in a memory-mapped file (see ``large_features.py``); all sizes
of a kind are first parts of the same pool. CPU time is that of the process, so that other processes on the
machine disturb it less than wall time. Rows are added to those of earlier runs.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from laplaceconfidence import LaplaceConfidence, NoiseAwareConfidence
from laplaceconfidence.exceptions import LaplaceConfidenceWarning
from large_features import prepared
from measuring import RESULTS, in_fresh_process, peak_memory_mib, save

K, ALPHA, N_CLASSES = 20, 0.99, 10
WIDTHS = {"laplace": 128, "noise-aware": 64}
KEYS = ("estimator", "kind", "n", "d")


def measure(estimator: str, features_file: str, labels_file: str, n: int) -> dict[str, float | str]:
    """One fit; memory is that beyond the features that are fitted."""
    features = np.load(features_file, mmap_mode="r")[:n]
    labels = np.load(labels_file)[:n]
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", LaplaceConfidenceWarning)
    fit = {
        "laplace": LaplaceConfidence(K, ALPHA, random_state=0),
        "noise-aware": NoiseAwareConfidence(random_state=0),
    }[estimator]
    wall, cpu = time.perf_counter(), time.process_time()
    fit.fit(features, labels)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    recall = fit.recall_ if estimator == "laplace" else None
    return {
        "seconds": wall,
        "cpu_seconds": cpu,
        "cpu_microseconds_per_sample": cpu / n * 1e6,
        "peak_beyond_input_mib": peak_memory_mib() - features.nbytes / 2**20,
        **({} if recall is None else {"recall": recall, "iterations": fit.n_iter_}),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kinds", nargs="+", default=["images", "mixture"])
    parser.add_argument("--estimators", nargs="+", default=["laplace"], choices=sorted(WIDTHS))
    parser.add_argument("--sizes", nargs="+", type=int, default=[50_000, 200_000])
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()) / "laplaceconfidence-scale"
    )
    parser.add_argument("--pool", type=int, default=1_000_000, help="samples that are prepared per kind")
    parser.add_argument("--one", nargs=4, help="measure one fit, as JSON")
    options = parser.parse_args()
    if options.one:
        estimator, features_file, labels_file, n = options.one
        print(json.dumps(measure(estimator, features_file, labels_file, int(n))))
        return
    own: dict[tuple[object, ...], dict[str, object]] = {}
    for estimator in options.estimators:
        for kind in options.kinds:
            d = WIDTHS[estimator]
            files = prepared(kind, options.folder, options.pool, d)
            for n in options.sizes:
                row = in_fresh_process(sys.argv[0], "--one", estimator, *map(str, files), str(n))
                own[estimator, kind, n, d] = dict(zip(KEYS, (estimator, kind, n, d), strict=True)) | row
                print("  ".join(f"{name} {value}" for name, value in own[estimator, kind, n, d].items()))
                rows = stored_rows() | own
                settings = {"k": K, "alpha": ALPHA, "classes": N_CLASSES, "noise": "half drawn", "seed": 0}
                save("scale", {"settings": settings, "rows": [rows[key] for key in sorted(rows)]})


def stored_rows() -> dict[tuple[object, ...], dict[str, object]]:
    """The rows of earlier runs, and of those that run at the same time."""
    stored = RESULTS / "scale.json"
    rows = json.loads(stored.read_text(encoding="utf-8"))["rows"] if stored.exists() else []
    return {tuple(row[key] for key in KEYS): row for row in rows}


if __name__ == "__main__":
    main()
