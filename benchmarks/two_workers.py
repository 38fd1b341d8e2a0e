"""Wall time of an audit on a Dask cluster: two workers on two cores against one worker on one core.

    python benchmarks/two_workers.py [--n 200000] [--classes 10 200] [--repeats 3] [--rows-apart] [--try]

Features are those of ``out_of_core.py``; search and solution together, which are nearly all of the audit by
"laplace". With more than ten classes, samples of a class are divided at random. Workers are processes of one
thread each, and are pinned to cores of their own; the client and the scheduler run beside them. Needs two
cores that do nothing else; with ``--try`` the workers share whatever cores there are, and nothing is
recorded. With ``--rows-apart`` every worker solves for its rows, whatever the plan would choose.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from laplaceconfidence import audit
from laplaceconfidence.blocks import cluster
from laplaceconfidence.blocks.cluster import connected
from laplaceconfidence.wording import counted
from measuring import save
from out_of_core import SEED, K, write_points


def write_labels(folder: Path, n_classes: int) -> Path:
    """Divide the ten classes of ``y.npy`` at random, all into as many."""
    labels, each = np.load(folder / "y.npy"), n_classes // 10
    path = folder / f"y{n_classes}.npy"
    np.save(path, labels * each + np.random.default_rng(SEED).integers(0, each, len(labels)))
    return path


def measure(folder: Path, n_classes: int, n_workers: int, *, pinned: bool) -> dict[str, Any]:
    """One audit with so many workers, each on a core of its own if they are pinned."""
    labels = write_labels(folder, n_classes)
    cores = sorted(os.sched_getaffinity(0))[:n_workers]
    with connected(f"local:{n_workers}", memory=2 * 10**9) as client, TemporaryDirectory(dir=folder) as work:
        client.wait_for_workers(n_workers)
        addresses = sorted(client.scheduler_info(n_workers=-1)["workers"]) if pinned else []
        for address, core in zip(addresses, cores, strict=pinned):
            client.run(os.sched_setaffinity, 0, [core], workers=[address])
        start = time.perf_counter()
        result: Any = audit(
            folder / "x.npy",
            labels=str(labels),
            estimator="laplace",
            n_neighbors=K,
            random_state=SEED,
            client=client,
            work=Path(work) / "work",
        )
        seconds = time.perf_counter() - start
    stages = {name: round(value, 2) for name, value in result.timings.items()}
    return {
        "classes": n_classes,
        "workers": n_workers,
        "seconds": round(seconds, 2),
        "classes_apart": result.plan.classes_apart,
        "blocks": result.plan.n_blocks,
        "stages": stages,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--n", type=int, default=200_000)
    parser.add_argument("--classes", type=int, nargs="+", default=[10, 200], help="multiples of 10")
    parser.add_argument("--repeats", type=int, default=3, help="audits with one and with two workers each")
    parser.add_argument("--rows-apart", action="store_true", help="never solve for classes apart")
    parser.add_argument("--try", action="store_true", dest="tried", help="on any cores, without a record")
    options = parser.parse_args()
    if not options.tried and len(os.sched_getaffinity(0)) < 2:
        raise SystemExit("This benchmark needs two cores, and this process may use one only.")
    warnings.simplefilter("ignore", ConvergenceWarning)
    if options.rows_apart:
        cluster.SECONDS_PER_STEP = 0.0  # as if messages took no time
    with TemporaryDirectory() as folder:
        write_points(options.n, Path(folder))
        rows = [
            measure(Path(folder), n_classes, n_workers, pinned=not options.tried)
            for n_classes in options.classes
            for _ in range(1 if options.tried else options.repeats)
            for n_workers in (1, 2)
        ]
    for row in rows:
        print(row)
    ratios: dict[int, list[float]] = {}
    for one, two in zip(rows[::2], rows[1::2], strict=True):
        ratios.setdefault(one["classes"], []).append(round(one["seconds"] / two["seconds"], 3))
    for n_classes, found in ratios.items():
        pairs = counted(len(found), "pair")
        print(f"{n_classes} classes: two workers are {median(found):.2f} times as fast as one ({pairs})")
    if not options.tried:
        name = "two_workers_rows_apart" if options.rows_apart else "two_workers"
        save(name, {"n": options.n, "seed": SEED, "rows": rows, "times_as_fast": ratios})


if __name__ == "__main__":
    main()
