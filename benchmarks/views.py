"""Several views of the same samples, against each alone and their concatenation.

"banking": a part of the questions of Banking77, all 77 intents, with TF-IDF of words and TF-IDF of
characters, each with 256 singular vectors and rows of length 1. "hidden": 1,000 synthetic samples of 8
classes, the class plus a much larger hidden vector in one view, and a rotation of the hidden vector in the
other, which says nothing by itself. Concatenated views are scaled to the same mean square. Run ``python
benchmarks/views.py [--sets banking hidden] [--samples 2500] [--seeds 21]``; stored results are kept.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import time
import warnings
from typing import Any

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from laplaceconfidence.confidence.noise_aware import NoiseAwareConfidence
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.evaluation.metrics import score_confidence
from many_classes import BANKING, WIDTH
from measuring import save, stored_rows
from noise_aware import weak_log_probabilities, with_noise

NOISE = (("symmetric", 0.4), ("pair", 0.3), ("ambiguity", 0.2))
NAME = "views"
SETS = ("banking", "hidden")


def views_of_banking(n_samples: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Words and characters of the questions, and their intents."""
    with BANKING.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    chosen = [rows[i] for i in np.random.default_rng(0).permutation(len(rows))[:n_samples]]
    texts = [row["text"] for row in chosen]
    vectorizers = {
        "words": TfidfVectorizer(sublinear_tf=True, min_df=2),
        "characters": TfidfVectorizer(sublinear_tf=True, min_df=2, analyzer="char_wb", ngram_range=(2, 4)),
    }
    views = {
        name: normalize(TruncatedSVD(WIDTH, random_state=0).fit_transform(vectorizer.fit_transform(texts)))
        for name, vectorizer in vectorizers.items()
    }
    codes = np.unique([row["category"] for row in chosen], return_inverse=True)[1]
    return {name: view.astype(np.float32) for name, view in views.items()}, codes


def measure(X: Any, labels: np.ndarray, truth: np.ndarray, seed: int) -> dict[str, Any]:
    start = time.process_time()
    model = NoiseAwareConfidence(n_jobs=1, random_state=seed).fit(X, labels)
    scores = score_confidence(model.confidence_, labels == truth)
    return {
        "auroc": scores.auroc,
        "average_precision": scores.average_precision,
        "calibration_error": scores.calibration_error,
        "noise": float((labels != truth).mean()),
        "estimated_noise": model.noise_rate_,
        "view_weights": {view: sum(kinds.values()) for view, kinds in model.view_weights_.items()},
        "cpu_seconds": time.process_time() - start,
    }


def hidden_views(seed: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Two views that say something about the classes only together."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(8, size=1_000)
    hidden, centers = 3 * rng.standard_normal((1_000, 20)), rng.standard_normal((8, 20))
    first = hidden + centers[truth] + rng.standard_normal((1_000, 20))
    second = hidden @ rng.standard_normal((20, 30)) + rng.standard_normal((1_000, 30))
    return {"class and hidden": first, "hidden": second}, truth


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--samples", type=int, default=2_500)
    parser.add_argument("--seeds", nargs="+", type=int, default=[21])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = stored_rows(NAME)
    for name, seed in itertools.product(options.sets, options.seeds):
        if name == "banking" and not BANKING.exists():
            print(f"Banking77 was not found: put its training part at {BANKING}")
            continue
        views, truth = views_of_banking(options.samples) if name == "banking" else hidden_views(seed)
        first = next(iter(views.values()))
        clean = NoisyDataset(truth, tuple(map(str, range(truth.max() + 1))), first, true_labels=truth)
        weak = weak_log_probabilities(clean)
        scaled = [view / np.sqrt(np.square(view).mean()) for view in views.values()]
        inputs = {**views, "concatenated": np.hstack(scaled), "views": views}
        for kind, rate in NOISE if name == "banking" else NOISE[:2]:
            labels = with_noise(clean, name, kind, rate, seed, weak).labels
            for features, X in inputs.items():
                cell = {"set": name, "features": features, "noise_kind": kind, "rate": rate, "seed": seed}
                row = cell | {"samples": len(truth)}
                if any(row.items() <= stored.items() for stored in rows):
                    continue
                rows.append(row | measure(X, labels, truth, seed))
                save(NAME, {"settings": {"features": WIDTH}, "rows": rows})
                print(
                    row, {key: rows[-1][key] for key in ("auroc", "average_precision", "calibration_error")}
                )


if __name__ == "__main__":
    main()
