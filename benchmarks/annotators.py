"""Consensus of several annotators: ours against vote, Dawid-Skene, GLAD, MACE and cleanlab.

    pip install --no-deps crowd-kit nltk regex
    python benchmarks/annotators.py [--seeds 0 1 2] [--cells 0 1 2 3]

Simulated annotators of several kinds label real samples: good ones (90% right), careless ones (60%), spammers
(any class), and confusers (95% right, but two thirds of one class are labeled as another). Each labels all
samples or a tenth. cleanlab and ours use the features as well; cleanlab by a 5-fold logistic regression on
majority votes, as its documentation suggests. "without_features" is ours on the labels alone. MACE has 3
restarts in place of its 10, for time. "expected_largest_error" is the largest error of an annotator's
accuracy that remains if our probabilities are right. What was measured before is kept.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.preprocessing import StandardScaler

from laplaceconfidence import AnnotatorConfidence, AnnotatorLabels
from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.evaluation.metrics import expected_calibration_error
from measuring import save, stored_rows
from real_features import present_sets

N_SAMPLES = 1_000
DATA = ("digits", "cifar")  # of the real features
CELLS: tuple[tuple[str, tuple[str, ...], float], ...] = (
    ("three careless, all samples", ("careless",) * 3, 1.0),
    ("one of each kind, all samples", ("good", "careless", "spammer", "confuser"), 1.0),
    (
        "thirty mixed, a tenth each",
        ("good",) * 8 + ("careless",) * 8 + ("spammer",) * 6 + ("confuser",) * 8,
        0.1,
    ),
    ("forty careless and spammers, a tenth each", ("careless",) * 20 + ("spammer",) * 20, 0.1),
)
Found = tuple[FloatArray, FloatArray | None]  # class probabilities (n, C); accuracy per annotator


def noise_matrix(kind: str, n_classes: int, rng: np.random.Generator) -> FloatArray:
    if kind == "spammer":
        return np.full((n_classes, n_classes), 1 / n_classes)
    right = {"good": 0.9, "careless": 0.6, "confuser": 0.95}[kind]
    matrix = np.full((n_classes, n_classes), (1 - right) / (n_classes - 1))
    np.fill_diagonal(matrix, right)
    if kind == "confuser":
        true, other = rng.choice(n_classes, 2, replace=False)
        matrix[true] = 0.02 / (n_classes - 2)
        matrix[true, [true, other]] = 0.32, 0.66
    return matrix


def simulate(
    truth: IntArray, kinds: tuple[str, ...], share: float, seed: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Samples, annotators and labels."""
    rng = np.random.default_rng(seed)
    n_classes = int(truth.max()) + 1
    parts = []
    for annotator, kind in enumerate(kinds):
        matrix = noise_matrix(kind, n_classes, rng)
        rows = np.flatnonzero(rng.random(len(truth)) < share)
        drawn = (rng.random(len(rows))[:, None] > matrix[truth[rows]].cumsum(axis=1)).sum(axis=1)
        parts.append((rows, np.full(len(rows), annotator), np.minimum(drawn, n_classes - 1)))
    samples, annotators, labels = (np.concatenate(column) for column in zip(*parts, strict=True))
    return samples, annotators, labels


def ours(features: FloatArray | None) -> Callable[..., Found]:
    def fit(samples: IntArray, annotators: IntArray, labels: IntArray, n: int, n_classes: int) -> Found:
        given = AnnotatorLabels.from_table(samples, annotators, labels, sample_ids=np.arange(n))
        found = AnnotatorConfidence().fit(features, given)
        accuracy = found.annotators_.set_index("annotator")["accuracy"].sort_index().to_numpy()
        return found.label_distributions_, accuracy

    return fit


def votes(samples: IntArray, annotators: IntArray, labels: IntArray, n: int, n_classes: int) -> Found:
    counts = np.zeros((n, n_classes))
    np.add.at(counts, (samples, labels), 1)
    return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1), None


def crowd_kit(name: str, **settings: Any) -> Callable[..., Found]:
    def fit(samples: IntArray, annotators: IntArray, labels: IntArray, n: int, n_classes: int) -> Found:
        try:
            from crowdkit import aggregation
        except ImportError as error:
            raise SystemExit(
                f"crowd-kit is needed: pip install --no-deps crowd-kit nltk regex ({error})"
            ) from None
        table = pd.DataFrame({"task": samples, "worker": annotators, "label": labels})
        found = getattr(aggregation, name)(**settings).fit(table).probas_
        probabilities = np.zeros((n, n_classes))
        probabilities[np.ix_(found.index, found.columns)] = found.fillna(0).to_numpy()
        return probabilities, None

    return fit


def cleanlab(features: FloatArray) -> Callable[..., Found]:
    def fit(samples: IntArray, annotators: IntArray, labels: IntArray, n: int, n_classes: int) -> Found:
        from cleanlab.multiannotator import get_label_quality_multiannotator

        labeled = np.unique(samples)  # cleanlab takes no others
        majority = votes(samples, annotators, labels, n, n_classes)[0].argmax(axis=1)[labeled]
        scaled = StandardScaler().fit_transform(features[labeled])
        regression = LogisticRegression(max_iter=300, C=0.01)
        predicted = cross_val_predict(regression, scaled, majority, cv=5, method="predict_proba")
        table = np.full((n, annotators.max() + 1), np.nan)
        table[samples, annotators] = labels
        found = get_label_quality_multiannotator(pd.DataFrame(table[labeled]), predicted, verbose=False)
        quality = found["label_quality"]
        probabilities = np.zeros((n, n_classes))
        probabilities[labeled, quality["consensus_label"].to_numpy(dtype=int)] = quality[
            "consensus_quality_score"
        ].to_numpy()
        return probabilities, found["annotator_stats"].sort_index()["annotator_quality"].to_numpy()

    return fit


def shares_right(truth: IntArray, samples: IntArray, annotators: IntArray, codes: IntArray) -> FloatArray:
    """Share of right labels of every annotator."""
    return np.bincount(annotators, codes == truth[samples]) / np.bincount(annotators)


def expected_largest_error(
    probabilities: FloatArray, samples: IntArray, annotators: IntArray, codes: IntArray, n_draws: int = 100
) -> float:
    """Largest error of the accuracies if the true classes were drawn from the probabilities, on average."""
    rng = np.random.default_rng(0)
    cumulative = probabilities.cumsum(axis=1)
    stated = np.bincount(annotators, probabilities[samples, codes]) / np.bincount(annotators)
    largest = []
    for _ in range(n_draws):
        drawn = (rng.random(len(cumulative))[:, None] > cumulative).sum(axis=1)
        classes = np.minimum(drawn, cumulative.shape[1] - 1)
        largest.append(np.abs(shares_right(classes, samples, annotators, codes) - stated).max())
    return float(np.mean(largest))


def measure(
    fit: Callable[..., Found],
    truth: IntArray,
    labels: tuple[IntArray, IntArray, IntArray],
    is_ours: bool,
) -> dict[str, float | None]:
    samples, _, codes = labels
    start = time.process_time()
    probabilities, accuracy = fit(*labels, len(truth), int(truth.max()) + 1)
    seconds = time.process_time() - start
    labeled = np.unique(samples)
    right = (probabilities.argmax(axis=1) == truth)[labeled]
    certainty = probabilities.max(axis=1)[labeled]
    result: dict[str, float | None] = {
        "consensus_right": float(right.mean()),
        "auroc": None if right.all() else float(roc_auc_score(right, certainty)),
        "calibration_error": float(expected_calibration_error(certainty, right)),
        "auroc_of_labels": float(roc_auc_score(codes == truth[samples], probabilities[samples, codes])),
        "cpu_seconds": seconds,
    }
    if accuracy is not None:
        errors = np.abs(accuracy - shares_right(truth, *labels))
        result["largest_error_of_accuracies"] = float(errors.max())
        result["mean_error_of_accuracies"] = float(errors.mean())
    if is_ours:
        result["expected_largest_error"] = expected_largest_error(probabilities, *labels)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--cells", nargs="+", type=int, default=list(range(len(CELLS))))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = stored_rows("annotators")
    for name, data in present_sets():
        if not name.lower().startswith(DATA):
            continue
        features, truth = data.features[:N_SAMPLES], data.labels[:N_SAMPLES]
        for cell, seed in ((CELLS[number], seed) for number in options.cells for seed in options.seeds):
            labels = simulate(truth, cell[1], cell[2], seed)
            own = {"ours": ours(features), "without_features": ours(None)}
            contenders = own | {
                "majority_vote": votes,
                "dawid_skene": crowd_kit("DawidSkene"),
                "glad": crowd_kit("GLAD"),
                "mace": crowd_kit("MACE", n_restarts=3),
                "cleanlab": cleanlab(features),
            }
            for contender, fit in contenders.items():
                key = {"data": name, "annotators": cell[0], "seed": seed, "method": contender}
                if not any(key.items() <= row.items() for row in rows):
                    rows.append(key | measure(fit, truth, labels, contender in own))
                    print(
                        *key.values(),
                        *(f"{value:.4f}" for value in rows[-1].values() if isinstance(value, float)),
                    )
                    save("annotators", {"n_samples": N_SAMPLES, "rows": rows})


if __name__ == "__main__":
    main()
