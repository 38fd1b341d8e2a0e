"""Features of up to millions of samples, written to memory-mapped files; any first part is a random sample.

    python benchmarks/large_features.py images FOLDER [--n 1000000]

``images`` are those of Fashion-MNIST, each mirrored, shifted and scaled at random, through a fixed random
ReLU layer. ``mixture`` has no structure but its components: 50 isotropic Gaussians.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from laplaceconfidence.arrays import row_blocks
from laplaceconfidence.files import replacing
from real_features import Absent, fashion

ROWS_PER_BLOCK = 10_000
Make = Callable[[int, np.random.Generator], tuple[np.ndarray, np.ndarray]]
SIDE = 28
WIDTHS = {"images": 128, "mixture": 128}


def blocks_of(kind: str, n: int, d: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Features and true classes, block by block; a block depends on its number and the seed only."""
    make = {"images": _images, "mixture": _mixture}[kind](d, seed)
    for number, rows in enumerate(row_blocks(n, ROWS_PER_BLOCK)):
        yield make(rows.stop - rows.start, np.random.default_rng([seed, number]))


def prepared(kind: str, folder: Path, n: int, d: int | None = None, seed: int = 0) -> tuple[Path, Path]:
    """Files of features and of labels, half of which were drawn at random; written if they are absent."""
    d = d or WIDTHS[kind]
    features_file, labels_file = (
        folder / f"{kind}-{n}x{d}-{seed}-{part}.npy" for part in ("features", "labels")
    )
    if features_file.exists() and labels_file.exists():
        return features_file, labels_file
    folder.mkdir(parents=True, exist_ok=True)
    classes = np.empty(n, dtype=np.int64)
    with replacing(features_file) as temporary:
        features = np.lib.format.open_memmap(temporary, mode="w+", dtype=np.float32, shape=(n, d))
        for rows, (block, truth) in zip(
            row_blocks(n, ROWS_PER_BLOCK), blocks_of(kind, n, d, seed), strict=True
        ):
            features[rows], classes[rows] = block, truth
        features.flush()
        del features
    rng = np.random.default_rng([seed, n])
    drawn = rng.random(n) < 0.5
    with replacing(labels_file) as temporary, temporary.open("wb") as file:
        np.save(file, np.where(drawn, rng.integers(0, classes.max() + 1, n), classes))
    return features_file, labels_file


def _images(d: int, seed: int) -> Make:
    data = fashion(60_000, None)
    if isinstance(data, Absent):
        raise SystemExit(f"{data.name} was not found: {data.advice}")
    images, labels = data.images[..., 0], data.labels
    layer = np.random.default_rng(seed).standard_normal((SIDE * SIDE, d)).astype(np.float32) / SIDE

    def make(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        chosen = rng.integers(0, len(images), n)
        mirror = np.where(rng.random(n) < 0.5, -1.0, 1.0)
        scale = rng.uniform(0.9, 1.1, n)
        down, right = rng.uniform(-2, 2, (2, n))
        moved = (
            _resampling(scale, down)
            @ (images[chosen].astype(np.float32) / 255)
            @ _resampling(scale * mirror, right).transpose(0, 2, 1)
        )
        return np.maximum(moved.reshape(n, -1) @ layer, 0), labels[chosen]

    return make


def _resampling(scale: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Matrices (n, 28, 28) that scale an axis around its middle and shift it, with linear interpolation."""
    pixels = np.arange(SIDE) - (SIDE - 1) / 2
    sources = (pixels[None] - shift[:, None]) / scale[:, None]
    return np.maximum(1 - np.abs(sources[:, :, None] - pixels), 0).astype(np.float32)


def _mixture(d: int, seed: int) -> Make:
    centers = np.random.default_rng(seed).standard_normal((50, d)).astype(np.float32)

    def make(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        component = rng.integers(0, len(centers), n)
        return centers[component] + rng.standard_normal((n, d), dtype=np.float32), component % 10

    return make


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kind", choices=sorted(WIDTHS))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--n", type=int, default=1_000_000)
    options = parser.parse_args()
    for path in prepared(options.kind, options.folder, options.n):
        print(path)


if __name__ == "__main__":
    main()
