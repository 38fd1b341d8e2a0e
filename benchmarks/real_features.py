"""Real features for benchmarks: the digits, CIFAR-10 embeddings and Fashion-MNIST where present."""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from laplaceconfidence.data.cifar_classes import CIFAR10_CLASSES
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.digits import load_digits
from laplaceconfidence.files import replacing

FASHION = Path("/usr/share/datasets/fashion-mnist")  # apt-get install dataset-fashion-mnist
EMBEDDINGS = Path(__file__).parents[2] / "shared" / "data" / "cifar10_embeddings.npz"
FASHION_CLASSES = (
    "top",
    "trousers",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "boot",
)
FASHION_CONFUSED = {
    "pullover": "coat",
    "coat": "pullover",
    "shirt": "top",
    "sneaker": "sandal",
    "boot": "sneaker",
}


@dataclass(frozen=True)
class Absent:
    """A data set that is not on this machine, and how to get it."""

    name: str
    advice: str


def fashion(
    n: int, n_features: int | None = 512, seed: int = 0, part: str = "train"
) -> NoisyDataset | Absent:
    """The first n images of "train" or "t10k", as pixels or through one fixed random ReLU layer."""
    if not FASHION.exists():
        return Absent("Fashion-MNIST", "apt-get install dataset-fashion-mnist")
    raw = gzip.decompress((FASHION / f"{part}-images-idx3-ubyte.gz").read_bytes())
    images = np.frombuffer(raw, np.uint8, offset=16).reshape(-1, 28, 28, 1)[:n]
    labels = np.frombuffer(
        gzip.decompress((FASHION / f"{part}-labels-idx1-ubyte.gz").read_bytes()), np.uint8, offset=8
    )
    features = images.reshape(len(images), -1).astype(np.float32) / 255
    if n_features is not None:
        features = random_relu_layer(features, n_features, seed)
    codes = labels[:n].astype(np.int64)
    return NoisyDataset(codes, FASHION_CLASSES, features, images, true_labels=codes)


def random_relu_layer(pixels: np.ndarray, n_features: int, seed: int = 0) -> np.ndarray:
    """Features of a fixed random ReLU layer, without training."""
    width = pixels.shape[1]
    layer = np.random.default_rng(seed).standard_normal((width, n_features)).astype(np.float32)
    return np.maximum(pixels @ layer / np.sqrt(width, dtype=np.float32), 0)


def cifar10_embeddings() -> NoisyDataset | Absent:
    """10,000 CIFAR-10 images through a small network trained on ImageNet, without these labels."""
    if not EMBEDDINGS.exists():
        return Absent("CIFAR-10 embeddings", f"a developer's data set, expected at {EMBEDDINGS}")
    with np.load(EMBEDDINGS, allow_pickle=False) as file:
        codes = file["train_labels"].astype(np.int64)
        features = file["train_features"].astype(np.float32)
    return NoisyDataset(codes, CIFAR10_CLASSES, features, true_labels=codes)


def quality_sets() -> dict[str, NoisyDataset | Absent]:
    """What estimators are compared on."""
    return {"digits": load_digits(), "cifar10-embeddings": cifar10_embeddings(), "fashion": fashion(10_000)}


def present_sets(wanted: Sequence[str] | None = None) -> Iterator[tuple[str, NoisyDataset]]:
    """The sets by these names (all by default) that are on this machine; prints how to get the others."""
    for name, data in quality_sets().items():
        if wanted is not None and name not in wanted:
            continue
        if isinstance(data, Absent):
            print(f"{data.name} was not found: {data.advice}")
        else:
            yield name, data


def write_fashion(path: Path) -> None:
    """The file that the bench ``small-table-fashion`` reads: 10,000 training and 2,000 test images."""
    arrays: dict[str, np.ndarray] = {}
    for name, part, n in (("train", "train", 10_000), ("test", "t10k", 2_000)):
        found = fashion(n, n_features=None, part=part)
        if isinstance(found, Absent):
            raise SystemExit(f"{found.name} was not found: {found.advice}")
        arrays |= {f"{name}_images": np.asarray(found.images), f"{name}_labels": found.labels}
    with replacing(path) as temporary:
        np.savez(temporary, allow_pickle=False, **arrays)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=write_fashion.__doc__)
    parser.add_argument("file", type=Path, help="such as fashion.npz")
    write_fashion(parser.parse_args().file)
