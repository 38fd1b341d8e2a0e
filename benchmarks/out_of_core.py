"""Time and memory of audits in blocks of rows, against their plans and against the estimate in memory.

Features are those of Fashion-MNIST, shifted, mirrored and scaled to as many images as are asked for, through
a fixed random ReLU layer; they are written to a file in pieces and never whole in memory. Every size runs in
its own process. CPU time is that of all threads, so that other work on the machine does not count. Rows are
added to those of earlier runs.
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

from laplaceconfidence import LaplaceConfidence, audit
from laplaceconfidence.stages import observing
from measuring import in_fresh_process, peak_memory_mib, save, stored_rows
from real_features import Absent, fashion, random_relu_layer

SIZES = (50_000, 200_000, 1_000_000)
FEATURES, K, NOISE, SEED = 128, 20, 0.2, 0
BUDGETS = {50_000: "500MB", 200_000: "1GB", 1_000_000: "2GB"}
COMPARED_UP_TO = 200_000  # samples; the estimate in memory is measured as well


class CpuTimes:
    """CPU seconds per stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._starts: dict[str, float] = {}

    def started(self, name: str, total: int | None) -> None:
        self._starts[name] = time.process_time()

    def advanced(self, name: str, amount: int) -> None:
        pass

    def finished(self, name: str, seconds: float) -> None:
        self.seconds[name] = self.seconds.get(name, 0) + time.process_time() - self._starts[name]


def write_points(n: int, folder: Path) -> None:
    """Write x.npy and y.npy: every image is shifted by up to 2 pixels, mirrored or not, and scaled."""
    data = fashion(60_000, None)
    if isinstance(data, Absent):
        raise SystemExit(f"{data.name} was not found: {data.advice}")
    images = data.images[..., 0]
    rng = np.random.default_rng(SEED)
    out = np.lib.format.open_memmap(folder / "x.npy", mode="w+", dtype=np.float32, shape=(n, FEATURES))
    labels = np.empty(n, dtype=np.int64)
    for start in range(0, n, 20_000):
        rows = rng.integers(0, len(images), min(20_000, n - start))
        some = images[rows].astype(np.float32) / 255
        some[::2] = some[::2, :, ::-1]
        down, right = rng.integers(-2, 3, 2)
        some = np.roll(some, (down, right), axis=(1, 2)) * rng.uniform(0.7, 1.3, (len(rows), 1, 1))
        out[start : start + len(rows)] = random_relu_layer(
            some.reshape(len(rows), -1).astype(np.float32), FEATURES
        )
        labels[start : start + len(rows)] = data.labels[rows]
    out.flush()
    wrong = rng.random(n) < NOISE
    np.save(folder / "y.npy", np.where(wrong, rng.integers(0, 10, n), labels))


def measure(folder: Path, n: int) -> dict[str, Any]:
    """One audit in blocks."""
    settings: dict[str, Any] = {"estimator": "laplace", "n_neighbors": K, "n_jobs": 1, "random_state": SEED}
    before = peak_memory_mib()
    times = CpuTimes()
    start = time.process_time()
    with observing(times):
        result: Any = audit(
            folder / "x.npy",
            labels=str(folder / "y.npy"),
            memory=BUDGETS.get(n, "2GB"),
            work=folder / "work",
            **settings,
        )
    cpu = time.process_time() - start
    disk = sum(path.stat().st_size for path in (folder / "work").rglob("*") if path.is_file())
    return {
        "n": n,
        "budget": BUDGETS.get(n, "2GB"),
        "cpu_seconds": cpu,
        "us_per_sample": 1e6 * cpu / n,
        "peak_mib": peak_memory_mib(),
        "peak_before_mib": before,
        "planned_peak_mib": result.plan.peak / 2**20,
        "planned_seconds": [result.plan.seconds, result.plan.most_seconds or result.plan.seconds],
        "planned_disk_mib": result.plan.disk / 2**20,
        "disk_mib_at_the_end": disk / 2**20,
        "blocks": result.plan.n_blocks,
        "recall": result.diagnostics.recall,
        "stages": {name: round(seconds, 2) for name, seconds in times.seconds.items()},
    }


def measure_in_memory(folder: Path, n: int) -> dict[str, Any]:
    """The estimate in memory, without the tables of an audit."""
    features, labels = np.load(folder / "x.npy"), np.load(folder / "y.npy")
    before = peak_memory_mib()
    start = time.process_time()
    fitted = LaplaceConfidence(K, n_jobs=1, random_state=SEED).fit(features, labels)
    return {
        "n": n,
        "cpu_seconds": time.process_time() - start,
        "peak_mib": peak_memory_mib(),
        "peak_before_mib": before,
        "recall": fitted.recall_,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, default=SIZES)
    parser.add_argument("--one", nargs=3, metavar=("KIND", "FOLDER", "N"), help="measure one input, as JSON")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    if options.one:
        kind, folder, n = options.one
        work = measure if kind == "blocks" else measure_in_memory
        print(json.dumps(work(Path(folder), int(n))))
        return
    settings = {"d": FEATURES, "k": K, "classes": 10, "noise": NOISE, "seed": SEED, "threads": 1}
    kinds = {"blocks": "blocks", "in_memory": "memory"}
    parts = {part: {row["n"]: row for row in stored_rows("out_of_core", part)} for part in kinds}
    for n in options.sizes:
        with tempfile.TemporaryDirectory() as folder:
            write_points(n, Path(folder))
            for part, kind in kinds.items():
                if part == "blocks" or n <= COMPARED_UP_TO:
                    parts[part][n] = in_fresh_process(sys.argv[0], "--one", kind, folder, str(n))
                    print(parts[part][n], flush=True)
        # After every size: a run that is stopped has measured something.
        found = {part: [rows[size] for size in sorted(rows)] for part, rows in parts.items()}
        save("out_of_core", {"settings": settings, **found})


if __name__ == "__main__":
    main()
