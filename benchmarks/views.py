"""Several views of the same samples, against each alone and their concatenation.

Banking77 (a part of its questions, all 77 intents) with TF-IDF of words and TF-IDF of characters, each with
256 singular vectors and rows of length 1. Run ``python benchmarks/views.py [--samples 2500] [--seeds 21]``;
stored results are kept.
"""

from __future__ import annotations

import argparse
import csv
import json
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
from measuring import RESULTS, save
from noise_aware import weak_log_probabilities, with_noise

NOISE = (("symmetric", 0.4), ("pair", 0.3), ("ambiguity", 0.2))
NAME = "views"


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=2_500)
    parser.add_argument("--seeds", nargs="+", type=int, default=[21])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if not BANKING.exists():
        print(f"Banking77 was not found: put its training part at {BANKING}")
        return
    views, truth = views_of_banking(options.samples)
    words = views["words"]
    clean = NoisyDataset(truth, tuple(map(str, range(truth.max() + 1))), words, true_labels=truth)
    weak = weak_log_probabilities(clean)
    inputs = {**views, "concatenated": np.hstack(list(views.values())), "views": views}
    path = RESULTS / f"{NAME}.json"
    rows: list[dict[str, Any]] = json.loads(path.read_text())["rows"] if path.exists() else []
    for seed in options.seeds:
        for kind, rate in NOISE:
            labels = with_noise(clean, "banking", kind, rate, seed, weak).labels
            for name, X in inputs.items():
                row = {
                    "features": name,
                    "noise_kind": kind,
                    "rate": rate,
                    "seed": seed,
                    "samples": len(truth),
                }
                if any(row.items() <= stored.items() for stored in rows):
                    continue
                rows.append(row | measure(X, labels, truth, seed))
                save(NAME, {"settings": {"features": WIDTH}, "rows": rows})
                print(
                    row, {key: rows[-1][key] for key in ("auroc", "average_precision", "calibration_error")}
                )


if __name__ == "__main__":
    main()
