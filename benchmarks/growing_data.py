"""Cost of an audit that goes on from a run, against an audit of all data, for one percent of change.

    python benchmarks/growing_data.py [--n 200000] [--estimators laplace noise-aware]

Features are those of Fashion-MNIST, shifted, mirrored and scaled (``out_of_core.py``). Three changes of one
percent: new samples, labels drawn again at random, and the labels that the audit suggests for its worst
suspects, as after a review. CPU time of the whole audit with its tables and its run folder; every audit runs
in its own process. Rows are added to those of earlier runs.
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

from laplaceconfidence import audit
from laplaceconfidence.evaluation.metrics import spearman
from laplaceconfidence.exceptions import LaplaceConfidenceWarning
from laplaceconfidence.stages import observing
from measuring import in_fresh_process, peak_memory_mib, save, stored_rows
from out_of_core import SEED, CpuTimes, K, write_points

SHARE = 0.01
CHANGES = ("random labels", "reviewed labels", "new samples")  # the second needs the run of the first
SETTINGS: dict[str, dict[str, Any]] = {
    "laplace": {"estimator": "laplace", "n_neighbors": K, "random_state": SEED},
    "noise-aware": {"estimator": "noise-aware", "random_state": SEED},
}


def write_table(features: np.ndarray, labels: np.ndarray, rows: np.ndarray, path: Path) -> None:
    """Samples as a Parquet file with ids."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    flat = pa.array(np.ascontiguousarray(features[rows]).ravel())
    vectors = pa.FixedSizeListArray.from_arrays(flat, features.shape[1])
    ids = [f"sample-{row}" for row in rows.tolist()]
    pq.write_table(pa.table({"id": ids, "label": labels[rows], "emb": vectors}), path, row_group_size=65_536)


def measure(estimator: str, source: str, run: str, since: str) -> dict[str, Any]:
    """One audit, saved as a run; from another run if there is one."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", LaplaceConfidenceWarning)
    times, start = CpuTimes(), time.process_time()
    with observing(times):
        settings: dict[str, Any] = {"since": since} if since else {"keep_index": True, **SETTINGS[estimator]}
        result: Any = audit(source, n_jobs=1, **settings)
        result.save(run)
    np.save(Path(run).with_suffix(".npy"), result.scores)
    return {
        "cpu_seconds": time.process_time() - start,
        "peak_mib": peak_memory_mib(),
        "iterations": result.diagnostics.n_iter,
        "residual": result.diagnostics.residual,
        "recall": result.diagnostics.recall,
        "index_mib": sum(path.stat().st_size for path in Path(run, "index").rglob("*.npy")) / 2**20,
        "stages": {name: round(seconds, 2) for name, seconds in times.seconds.items()},
    }


def compare(folder: Path, estimator: str, change: str) -> dict[str, Any]:
    """The audit that goes on, and the one of all data, both with the change."""
    features, before = np.load(folder / "x.npy", mmap_mode="r"), np.load(folder / "y.npy")
    n, run = len(before), folder / f"{estimator}-first"
    rng, some = np.random.default_rng(SEED + 1), round(SHARE * len(before))
    first = np.arange(n)
    if change == "new samples":
        first, changed, labels = np.arange(n - some), np.arange(n - some, n), before
        run = folder / f"{estimator}-part"
    elif change == "random labels":
        changed, labels = np.sort(rng.choice(n, some, replace=False)), before.copy()
        labels[changed] = rng.integers(0, before.max() + 1, some)
    else:
        table = suspects_of(run, some)
        changed, labels = np.sort(table.index.to_numpy()), before.copy()
        labels[changed] = table["predicted_label"].sort_index().to_numpy()
    if not run.exists():
        write_table(features, before, first, folder / "first.parquet")
        in_fresh_process(sys.argv[0], "--one", estimator, str(folder / "first.parquet"), str(run), "")
    sources = folder / "changed.parquet", folder / "all.parquet"
    write_table(features, labels, changed, sources[0])
    write_table(features, labels, np.arange(n), sources[1])
    name = f"{estimator}-{change.split()[0]}"
    runs = [folder / f"{name}-{kind}" for kind in ("since", "all")]
    found = in_fresh_process(sys.argv[0], "--one", estimator, str(sources[0]), str(runs[0]), str(run))
    full = in_fresh_process(sys.argv[0], "--one", estimator, str(sources[1]), str(runs[1]), "")
    ours, theirs = (np.load(one.with_suffix(".npy")) for one in runs)
    return {
        "estimator": estimator,
        "change": change,
        "n": n,
        "d": features.shape[1],
        "ratio": found["cpu_seconds"] / full["cpu_seconds"],
        "largest_difference": float(np.nanmax(np.abs(ours - theirs))),
        "mean_difference": float(np.nanmean(np.abs(ours - theirs))),
        "spearman": spearman(ours, theirs),
        "since": found,
        "full": full,
    }


def suspects_of(run: Path, n: int) -> Any:
    """The worst labels of a run, with what they are suggested to be."""
    from laplaceconfidence.records import read_audit

    issues = read_audit(run).issues
    return issues[issues["predicted_label"] != issues["given_label"]][:n]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--n", type=int, default=200_000)
    parser.add_argument("--estimators", nargs="+", default=list(SETTINGS), choices=list(SETTINGS))
    parser.add_argument("--changes", nargs="+", default=CHANGES, choices=CHANGES)
    parser.add_argument("--one", nargs=4, metavar=("ESTIMATOR", "SOURCE", "RUN", "SINCE"))
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(*options.one)))
        return
    rows = {(row["estimator"], row["change"], row["n"]): row for row in stored_rows("growing_data")}
    with tempfile.TemporaryDirectory() as folder:
        write_points(options.n, Path(folder))
        for estimator in options.estimators:
            for change in options.changes:
                row = compare(Path(folder), estimator, change)
                rows[estimator, change, options.n] = row
                print(json.dumps(row), flush=True)
                settings = {"share": SHARE, "k": K, "classes": 10, "seed": SEED, "threads": 1}
                save("growing_data", {"settings": settings, "rows": [rows[key] for key in sorted(rows)]})


if __name__ == "__main__":
    main()
