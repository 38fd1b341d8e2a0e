"""Audits of photographs as files, without a pretrained encoder and with one.

    python benchmarks/photographs.py [--images 3000 10000] [--seeds 0 1 2] [--variants default patches]

3,000 or all 10,000 of the CIFAR images in ../shared/data, chosen by the seed, as PNG files in folders by
their given labels, 20% of which are redrawn. Each is audited by the command line, as a user would: by patches
and a network (the default), by patches alone (--epochs 0), and by embeddings of a small ImageNet network.
"found" is the share of the wrong labels among the worst-ranked labels of which 90% are wrong. CPU time is
that of the command and its workers; wall time is longer where other processes use the same cores.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image
from sklearn.metrics import average_precision_score, roc_auc_score

from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.noise import add_noise
from measuring import save, stored_rows

DATA = Path(__file__).parents[2] / "shared" / "data"
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
RATE, PRECISION = 0.2, 0.9
NAME = "photographs"
VARIANTS = ("default", "patches", "embeddings")


def found_at_precision(score: Any, is_wrong: Any) -> float:
    """Share of the wrong labels in the longest list of lowest scores with the precision."""
    wrong = is_wrong[np.argsort(score, kind="stable")]
    precise = np.flatnonzero(np.cumsum(wrong) / np.arange(1, len(wrong) + 1) >= PRECISION)
    return float(wrong[: precise[-1] + 1].sum() / wrong.sum()) if len(precise) else 0.0


def measure(variant: str, n_images: int, seed: int) -> dict[str, Any]:
    arrays = np.load(DATA / "cifar10_images.npz", allow_pickle=False)
    chosen = np.random.default_rng(seed).permutation(len(arrays["train_labels"]))[:n_images]
    true, images = arrays["train_labels"][chosen].astype(int), arrays["train_images"][chosen]
    clean = NoisyDataset.from_arrays(true, images=images, class_names=CLASSES)
    given = add_noise(clean, "symmetric", RATE, random_state=seed).labels
    with tempfile.TemporaryDirectory() as folder:
        for row, label in enumerate(given):
            path = Path(folder) / "photos" / CLASSES[label] / f"{row:05d}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(images[row]).save(path)
        options = {"default": [], "patches": ["--epochs", "0"], "embeddings": ["--features", "features.npy"]}
        if variant == "embeddings":
            vectors = np.load(DATA / "cifar10_embeddings.npz", allow_pickle=False)["train_features"][chosen]
            order = np.lexsort((np.arange(n_images), [CLASSES[label] for label in given]))
            np.save(Path(folder) / "features.npy", vectors[order].astype(np.float32))
        start, start_cpu = time.perf_counter(), _cpu_of_children()
        command = ["audit", "photos", "--seed", str(seed), "--no-cache", "--out", "run", *options[variant]]
        subprocess.run(
            [sys.executable, "-m", "laplaceconfidence", *command],
            cwd=folder,
            check=True,
            capture_output=True,
        )
        seconds, cpu_seconds = time.perf_counter() - start, _cpu_of_children() - start_cpu
        issues = pd.read_csv(Path(folder) / "run" / "issues.csv")
        record = json.loads((Path(folder) / "run" / "audit.json").read_text())
    rows = issues["path"].map(lambda path: int(Path(path).stem)).to_numpy()
    is_wrong = given[rows] != true[rows]
    score, flagged = issues["label_score"].to_numpy(), issues["is_label_issue"].to_numpy()
    return {
        "auroc": float(roc_auc_score(~is_wrong, score)),
        "average_precision": float(average_precision_score(is_wrong, -score)),
        "found": found_at_precision(score, is_wrong),
        "flagged_wrong": float(is_wrong[flagged].mean()) if flagged.any() else None,
        "wrong_flagged": float(flagged[is_wrong].mean()),
        "noise": record["noise_rate"],
        "wrong": float(is_wrong.mean()),
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
    }


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def rows_so_far() -> list[dict[str, Any]]:
    return stored_rows(NAME)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", nargs="+", type=int, default=[3_000, 10_000])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    options = parser.parse_args()
    for n_images in options.images:
        for variant in options.variants:
            for seed in options.seeds:
                key = {"n_images": n_images, "variant": variant, "seed": seed}
                if not any(key.items() <= row.items() for row in rows_so_far()):
                    row = key | measure(variant, n_images, seed)
                    save(NAME, {"rate": RATE, "rows": [*rows_so_far(), row]})
                    print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
