"""Raw texts: an audit with the default encoder, and cleanlab on a 5-fold TF-IDF and logistic regression.

Banking77 (10,003 short questions of 77 kinds; some of its own labels are wrong) with added noise. The peer is
``cross_val_predict(make_pipeline(TfidfVectorizer(), LogisticRegression(max_iter=1000)), ...)``, which sees
the raw texts as well. Three draws of the noise each; ``texts_at_size.py`` measures time and memory of the
whole command. Run ``python benchmarks/texts.py [--threads 1]``.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from cleanlab.rank import get_label_quality_scores
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline

from laplaceconfidence import NoisyDataset, audit
from laplaceconfidence.data.noise import add_noise
from laplaceconfidence.encoders.encoding import encode_dataset
from laplaceconfidence.evaluation.metrics import score_confidence
from laplaceconfidence.threads import limited_threads
from measuring import RESULTS, in_fresh_process, save

TEXTS = Path(__file__).parents[2] / "shared" / "data" / "banking77_train.csv"
NOISE = (("symmetric", 0.1), ("symmetric", 0.4), ("pair", 0.3), ("instance", 0.3))
METHODS = ("audit of texts", "cleanlab, 5-fold TF-IDF + logistic regression")


def noisy_texts(path: Path, kind: str, rate: float, seed: int) -> NoisyDataset:
    """The texts with noise; instance noise depends on their TF-IDF vectors."""
    frame = pd.read_csv(path)
    data = NoisyDataset.from_arrays(frame["category"], sources=frame["text"], source_kind="text")
    encoded, _ = encode_dataset(data, n_jobs=1)
    noisy = add_noise(encoded, kind, rate, random_state=seed)
    return NoisyDataset(
        noisy.labels,
        noisy.class_names,
        sources=data.sources,
        source_kind="text",
        true_labels=noisy.true_labels,
    )


def confidence_of(method: str, data: NoisyDataset, threads: int) -> tuple[np.ndarray, float | None]:
    if method == METHODS[0]:
        result = audit(data, random_state=0, n_jobs=threads)
        return result.table.sort_index()["label_score"].to_numpy(), result.noise_rate
    assert data.sources is not None
    pipeline = make_pipeline(TfidfVectorizer(), LogisticRegression(max_iter=1000))
    texts = data.sources.tolist()
    with limited_threads(threads):
        p = cross_val_predict(pipeline, texts, data.labels, cv=5, method="predict_proba")
    return np.asarray(get_label_quality_scores(data.labels, p)), None


def measure(path: Path, kind: str, rate: float, method: str, seed: int, threads: int) -> dict[str, Any]:
    data = noisy_texts(path, kind, rate, seed)
    start, start_cpu = time.perf_counter(), time.process_time()
    confidence, found = confidence_of(method, data, threads)
    scores = score_confidence(confidence, data.labels == data.true_labels)
    return {
        "auroc": scores.auroc,
        "average_precision": scores.average_precision,
        "calibration_error": scores.calibration_error,
        "noise_found": found,
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - start_cpu,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--texts", type=Path, default=TEXTS, help="Banking77 as CSV")
    parser.add_argument(
        "--one", nargs=4, metavar=("KIND", "RATE", "METHOD", "SEED"), help="used by this script"
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if not options.texts.is_file():
        raise SystemExit(f"{options.texts} was not found: name the file with --texts.")
    if options.one:
        kind, rate, method, seed = options.one
        print(json.dumps(measure(options.texts, kind, float(rate), method, int(seed), options.threads)))
        return
    common = ("--threads", str(options.threads), "--texts", str(options.texts))
    stored = json.loads((RESULTS / "texts.json").read_text()) if (RESULTS / "texts.json").exists() else {}
    rows: list[dict[str, Any]] = stored.get("rows", [])
    settings = {"threads": options.threads, "data": "Banking77, 10,003 texts"}
    for seed, (kind, rate), method in product(options.seeds, NOISE, METHODS):
        cell = {"noise": kind, "rate": rate, "method": method, "seed": seed}
        if any(cell.items() <= row.items() for row in rows):
            continue
        rows.append(cell | in_fresh_process(__file__, "--one", kind, str(rate), method, str(seed), *common))
        row = rows[-1]
        print(
            f"{seed}  {kind:9s} {rate:g}  {method:46s} AUROC {row['auroc']:.4f}  AP "
            f"{row['average_precision']:.4f}  {row['cpu_seconds']:.1f} s CPU",
            flush=True,
        )
        save("texts", {"settings": settings, "rows": rows})


if __name__ == "__main__":
    main()
