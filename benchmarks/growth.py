"""How time and memory grow from 25,000 to 200,000 points, and whether 1,000 classes fit into 4 GB.

All sizes are drawn from one pool of 240,000: the images of Fashion-MNIST, mirrored, and moved by a pixel.
Every size runs in its own process, so that peak memory is measured per size.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from laplaceconfidence import LaplaceConfidence
from laplaceconfidence.features.scale import principal_axes, project
from measuring import in_fresh_process, peak_memory_mib, save, timed
from real_features import Absent, fashion, random_relu_layer

SIZES = (25_000, 50_000, 100_000, 200_000)
K, ALPHA, COMPONENTS = 50, 0.99, 64


def points(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """n x 64 principal components of images drawn from the pool, with half of the labels drawn at random."""
    data = fashion(60_000, None)
    if isinstance(data, Absent):
        raise SystemExit(f"{data.name} was not found: {data.advice}")
    images = data.images[..., 0]
    flipped = images[:, :, ::-1]
    pool = np.concatenate([images, flipped, np.roll(images, 1, axis=1), np.roll(flipped, 1, axis=2)])
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(pool))[:n]
    features = random_relu_layer(pool[rows].reshape(n, -1).astype(np.float32) / 255, 512)
    mean, axes, _ = principal_axes(features, COMPONENTS)
    truth = np.tile(data.labels, 4)[rows]
    drawn = rng.random(n) < 0.5
    return project(features, mean, axes), np.where(drawn, rng.integers(0, 10, n), truth)


def prepare(n: int, n_classes: int, path: Path) -> None:
    """Write the input to a file, so that the measured process holds nothing else."""
    features, labels = points(n)
    if n_classes > 10:
        # Every class is divided into equal parts along its first principal component.
        order = np.lexsort((features[:, 0], labels))
        labels = np.empty_like(labels)
        labels[order] = np.arange(n) * n_classes // n
    np.savez(path, features=features, labels=labels)


def measure(path: Path) -> dict[str, float]:
    """Time and memory of one fit."""
    with np.load(path, allow_pickle=False) as file:
        features, labels = file["features"], file["labels"]
    before = peak_memory_mib()
    seconds, fitted = timed(lambda: LaplaceConfidence(K, ALPHA, random_state=0).fit(features, labels))
    return {
        "n": len(labels),
        "classes": len(np.unique(labels)),
        "seconds": seconds,
        "input_mib": features.nbytes / 2**20,
        "peak_mib": peak_memory_mib(),
        "peak_before_fit_mib": before,
        "recall": fitted.recall_ or 1.0,
        "residual": float(fitted.residual_),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", type=Path, metavar="FILE", help="measure one prepared input, as JSON")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    if options.one:
        print(json.dumps(measure(options.one)))
        return
    rows = []
    for n, n_classes in [*((n, 10) for n in SIZES), (50_000, 1_000)]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "points.npz"
            prepare(n, n_classes, path)
            row = in_fresh_process(sys.argv[0], "--one", str(path))
        rows.append(row)
        print("  ".join(f"{name} {value:.4g}" for name, value in row.items()), flush=True)
    grown = [row for row in rows if row["classes"] == 10]
    exponent = np.polyfit(np.log([row["n"] for row in grown]), np.log([row["seconds"] for row in grown]), 1)[
        0
    ]
    overall = np.log(grown[-1]["seconds"] / grown[0]["seconds"]) / np.log(grown[-1]["n"] / grown[0]["n"])
    print(f"time grows as n^{exponent:.2f} (least squares), n^{overall:.2f} from the first to the last size")
    settings = {"d": COMPONENTS, "k": K, "alpha": ALPHA, "noise": "symmetric 50%", "seed": 0}
    save(
        "growth",
        {
            "settings": settings,
            "exponent": float(exponent),
            "end_to_end_exponent": float(overall),
            "rows": rows,
        },
    )


if __name__ == "__main__":
    main()
