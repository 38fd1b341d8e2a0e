"""Time and memory of audits in blocks by number of samples, features and classes: numbers to plan with.

    python benchmarks/planning.py [--estimators laplace noise-aware] [--sizes 50000 200000]
                                  [--widths 64 512 2048] [--classes 10 1000] [--memory 4GB] [--directions 32]

Every class is a Gaussian around its own center; centers and samples vary in 32 directions of the feature
space, and a little in all. With as many directions as features, there is no structure inside a class. A fifth
of the labels is drawn at random. Whole audits with their tables, one thread; every audit runs in its own
process. CPU time, so that other work on the machine disturbs less. Rows are added to those of earlier runs.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from laplaceconfidence.arrays import row_blocks
from laplaceconfidence.auditing.block_audit import audit_in_blocks
from laplaceconfidence.data.read_options import ReadOptions
from laplaceconfidence.exceptions import LaplaceConfidenceWarning
from laplaceconfidence.stages import observing
from measuring import in_fresh_process, peak_memory_mib, save, stored_rows
from out_of_core import CpuTimes

K, DIRECTIONS, SPREAD, NOISE, SEED = 20, 32, 0.05, 0.2, 0
KEYS = ("estimator", "n", "d", "classes", "directions")


def write_data(folder: Path, n: int, d: int, n_classes: int, n_directions: int) -> None:
    """Write x.npy and y.npy in pieces."""
    rng = np.random.default_rng(SEED)
    directions = rng.standard_normal((n_directions, d), dtype=np.float32) / np.sqrt(
        n_directions, dtype=np.float32
    )
    centers = 2 * rng.standard_normal((n_classes, n_directions), dtype=np.float32)
    truth = rng.integers(0, n_classes, n)
    out = np.lib.format.open_memmap(folder / "x.npy", mode="w+", dtype=np.float32, shape=(n, d))
    for rows in row_blocks(n, 20_000):
        own = truth[rows]
        within = centers[own] + rng.standard_normal((len(own), n_directions), dtype=np.float32)
        out[rows] = within @ directions + SPREAD * rng.standard_normal((len(own), d), dtype=np.float32)
    out.flush()
    drawn = rng.random(n) < NOISE
    np.save(folder / "y.npy", np.where(drawn, rng.integers(0, n_classes, n), truth))


def measure(estimator: str, folder: str, memory: str) -> dict[str, Any]:
    """One audit."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", LaplaceConfidenceWarning)
    settings: dict[str, Any] = {"n_neighbors": K} if estimator == "laplace" else {}
    before, times, start = peak_memory_mib(), CpuTimes(), time.process_time()
    stated: list[tuple[float, str]] = []  # seconds after the start, and a sentence
    with observing(times):
        result = audit_in_blocks(
            Path(folder, "x.npy"),
            ReadOptions(labels=str(Path(folder, "y.npy"))),
            estimator=estimator,
            settings={**settings, "n_jobs": 1},
            memory=memory,
            work=Path(folder, "work"),
            random_state=SEED,
            stating=lambda sentence: stated.append((time.process_time() - start, sentence)),
        )
    cpu = time.process_time() - start
    return {
        "cpu_seconds": cpu,
        "us_per_sample": 1e6 * cpu / len(result.data),
        "memory": memory,
        "peak_mib": peak_memory_mib(),
        "peak_before_mib": before,
        "planned_peak_mib": result.plan.peak / 2**20,
        "planned_seconds": [result.plan.seconds, result.plan.most_seconds or result.plan.seconds],
        "stated": stated,
        "disk_mib": sum(path.stat().st_size for path in Path(folder, "work").rglob("*.npy")) / 2**20,
        "recall": result.diagnostics.recall,
        "stages": {name: round(seconds, 2) for name, seconds in times.seconds.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--estimators", nargs="+", default=["laplace", "noise-aware"])
    parser.add_argument("--sizes", nargs="+", type=int, default=[50_000, 200_000])
    parser.add_argument("--widths", nargs="+", type=int, default=[64, 512])
    parser.add_argument("--classes", nargs="+", type=int, default=[10, 1_000])
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--directions", type=int, default=DIRECTIONS)
    parser.add_argument("--one", nargs=3, metavar=("ESTIMATOR", "FOLDER", "MEMORY"))
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(*options.one)))
        return
    settings = {"k": K, "noise": NOISE, "seed": SEED, "threads": 1}
    for n_classes in options.classes:
        for d in options.widths:
            for n in options.sizes:
                with tempfile.TemporaryDirectory() as folder:
                    write_data(Path(folder), n, d, n_classes, options.directions)
                    for estimator in options.estimators:
                        found = in_fresh_process(sys.argv[0], "--one", estimator, folder, options.memory)
                        about = (estimator, n, d, n_classes, options.directions)
                        row = dict(zip(KEYS, about, strict=True)) | found
                        print(json.dumps(row), flush=True)
                        every = [{"directions": DIRECTIONS} | one for one in (*stored_rows("planning"), row)]
                        rows = {tuple(one[key] for key in KEYS): one for one in every}
                        save("planning", {"settings": settings, "rows": [rows[key] for key in sorted(rows)]})


if __name__ == "__main__":
    main()
