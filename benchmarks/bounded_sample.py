"""Is a sample enough? The noise-aware estimate fitted on samples, applied to all, against a fit to all data.

    python benchmarks/bounded_sample.py [--n 20000] [--samples 2500 5000 10000] [--seeds 0]

Fashion-MNIST through a fixed random ReLU layer. AUROC of "this label is right" over all
labels, calibration error (15 bins), and the noise that was found.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from laplaceconfidence import NoiseAwareConfidence, NoisyDataset, add_noise, audit
from laplaceconfidence.auditing import block_fits
from laplaceconfidence.evaluation.metrics import auroc, expected_calibration_error
from measuring import save
from real_features import Absent, fashion, random_relu_layer

N, FEATURES = 20_000, 128
SAMPLES = (2_500, 5_000, 10_000)
CELLS = (("symmetric", 0.2), ("symmetric", 0.5), ("pair", 0.3), ("instance", 0.3))


def scored(scores: np.ndarray, right: np.ndarray, cpu: float) -> dict[str, float]:
    return {
        "auroc": float(auroc(scores, right)),
        "calibration_error": float(expected_calibration_error(scores, right)),
        "noise_found": float(1 - scores.mean()),
        "cpu_seconds": cpu,
    }


def measured(
    features: np.ndarray, truth: np.ndarray, kind: str, rate: float, seed: int, samples: Sequence[int]
) -> list[dict[str, Any]]:
    clean = NoisyDataset.from_arrays(truth, features)
    given = add_noise(clean, kind, rate, random_state=seed).labels
    right = given == truth
    about = {"noise": kind, "rate": rate, "seed": seed, "wrong": float(1 - right.mean())}
    start = time.process_time()
    fitted = NoiseAwareConfidence(random_state=seed, n_jobs=1).fit(features, given)
    rows = [{**about, "sample": len(truth), **scored(fitted.confidence_, right, time.process_time() - start)}]
    for size in samples:
        block_fits.SAMPLE_SIZE = size
        with tempfile.TemporaryDirectory() as folder:
            np.save(Path(folder) / "x.npy", features)
            start = time.process_time()
            found: Any = audit(
                Path(folder) / "x.npy",
                labels=given,
                memory="2GB",
                random_state=seed,
                n_jobs=1,
                work=f"{folder}/w",
            )
        rows.append({**about, "sample": size, **scored(found.scores, right, time.process_time() - start)})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--n", type=int, default=N)
    parser.add_argument("--samples", nargs="+", type=int, default=SAMPLES)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    options = parser.parse_args()
    n, seeds = options.n, options.seeds
    warnings.simplefilter("ignore")
    data = fashion(n, None)
    if isinstance(data, Absent):
        raise SystemExit(f"{data.name} was not found: {data.advice}")
    pixels = data.images.reshape(n, -1).astype(np.float32) / 255
    features = random_relu_layer(pixels, FEATURES)
    rows = []
    for kind, rate in CELLS:
        for seed in seeds:
            for row in measured(features, data.labels, kind, rate, seed, options.samples):
                rows.append(row)
                print(
                    "  ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items()),
                    flush=True,
                )
        # After every cell: a run that is stopped has measured something.
        save(
            "bounded_sample" if n == N else f"bounded_sample_{n}",
            {"settings": {"n": n, "d": FEATURES, "seeds": seeds, "threads": 1}, "rows": rows},
        )


if __name__ == "__main__":
    main()
