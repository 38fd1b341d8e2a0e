"""What automatic settings and the noise-aware estimator cost, in multiples of a plain fit.

All three run in turn in one process at 50,000 x 512 real features (Fashion-MNIST through a fixed random ReLU
layer, 40% symmetric noise); the limit is four plain fits. Run ``python benchmarks/automatic_cost.py``.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

from laplaceconfidence.confidence.laplace import LaplaceConfidence
from laplaceconfidence.confidence.noise_aware import NoiseAwareConfidence
from laplaceconfidence.data.noise import add_noise
from laplaceconfidence.evaluation.metrics import score_confidence
from measuring import save
from real_features import Absent, fashion

PLAIN = "plain"
MOST_PLAIN_FITS = 4.0


def estimators(n_jobs: int | None) -> dict[str, Callable[[], Any]]:
    return {
        PLAIN: lambda: LaplaceConfidence(n_jobs=n_jobs, random_state=0),
        "k, alpha chosen": lambda: LaplaceConfidence("auto", "auto", n_jobs=n_jobs, random_state=0),
        "noise-aware": lambda: NoiseAwareConfidence(n_jobs=n_jobs, random_state=0),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=50_000)
    parser.add_argument(
        "--repeats", type=int, default=3, help="runs of each, in turn; the shortest is reported"
    )
    parser.add_argument("--n-jobs", type=int, default=None)
    parser.add_argument("--noise", default="symmetric", choices=("symmetric", "instance"))
    parser.add_argument("--out", default="automatic_cost")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    clean = fashion(options.n)
    if isinstance(clean, Absent):
        raise SystemExit(f"{clean.name} was not found: {clean.advice}")
    data = add_noise(clean, options.noise, 0.4, random_state=0)
    rows: dict[str, dict[str, Any]] = {}
    for _ in range(options.repeats):
        for name, make in estimators(options.n_jobs).items():
            start, start_cpu = time.perf_counter(), time.process_time()
            model = make().fit(data.features, data.labels)
            seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - start_cpu
            row = rows.setdefault(name, {"seconds": float("inf"), "cpu_seconds": float("inf")})
            row["cpu_seconds"] = min(row["cpu_seconds"], cpu_seconds)
            if seconds < row["seconds"]:
                row["seconds"], row["stages"] = seconds, dict(model.timings_)
            row["auroc"] = score_confidence(model.confidence_, data.labels == data.true_labels).auroc
    for name, row in rows.items():
        row["plain_fits"] = row["seconds"] / rows[PLAIN]["seconds"]
        row["plain_fits_cpu"] = row["cpu_seconds"] / rows[PLAIN]["cpu_seconds"]
        over = "" if row["plain_fits"] <= MOST_PLAIN_FITS else f"  over the limit of {MOST_PLAIN_FITS:g}"
        print(
            f"{name:16s} {row['seconds']:7.2f} s  {row['plain_fits']:5.2f} plain fits  "
            f"({row['cpu_seconds']:.2f} s CPU, {row['plain_fits_cpu']:.2f})  "
            f"AUROC {row['auroc']:.4f}{over}"
        )
        print("    ", {stage: round(value, 2) for stage, value in row["stages"].items()})
    noise = f"{options.noise} 40%"
    settings = {"n": options.n, "d": 512, "classes": 10, "noise": noise, "repeats": options.repeats}
    save(options.out, {"settings": settings, "rows": rows})


if __name__ == "__main__":
    main()
