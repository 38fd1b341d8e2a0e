"""How well each estimator separates right from wrong labels, by kind and rate of noise, on real features.

Estimators that need probabilities or losses get those of a 5-fold logistic regression on the same features
and given labels. True labels are used for scoring only. The noise-aware estimator has its own benchmark,
noise_aware.py.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from cleanlab import Datalab
from cleanlab.rank import get_label_quality_scores
from sklearn.semi_supervised import LabelSpreading

from laplaceconfidence.confidence.registry import ESTIMATORS
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.noise import add_noise
from laplaceconfidence.data.transitions import CIFAR10_ASYMMETRIC, DIGITS_ASYMMETRIC
from laplaceconfidence.evaluation.metrics import score_confidence
from laplaceconfidence.evaluation.out_of_fold import out_of_fold_probabilities
from measuring import save, timed
from real_features import FASHION_CONFUSED, present_sets

CELLS = (
    ("symmetric", 0.2),
    ("symmetric", 0.5),
    ("symmetric", 0.8),
    ("symmetric", 0.9),
    ("asymmetric", 0.4),
    ("instance", 0.4),
)
CONFUSED = {
    "digits": DIGITS_ASYMMETRIC,
    "cifar10-embeddings": CIFAR10_ASYMMETRIC,
    "fashion": FASHION_CONFUSED,
}


def confidences(data: NoisyDataset, seed: int) -> dict[str, tuple[float, np.ndarray]]:
    """Seconds and confidence of every estimator and peer. Shared probabilities are not included."""
    features, labels = data.features, data.labels
    rows = np.arange(len(labels))
    probabilities = out_of_fold_probabilities(features, labels, data.n_classes, random_state=seed)
    evidence = {
        "features": features,
        "probabilities": probabilities,
        "losses": -np.log(np.maximum(probabilities[rows, labels], 1e-12)),
    }

    def one_of_ours(name: str) -> Any:
        estimator = ESTIMATORS[name]
        return lambda: estimator(random_state=seed).fit(evidence[estimator.evidence], labels).confidence_

    def cleanlab_features() -> np.ndarray:
        lab = Datalab({"label": labels}, label_name="label", verbosity=0)
        lab.find_issues(features=features, issue_types={"label": {}})
        return lab.get_issues("label")["label_score"].to_numpy()

    def cleanlab_margin() -> np.ndarray:
        return get_label_quality_scores(labels, probabilities, method="normalized_margin")

    def spreading() -> np.ndarray:
        model = LabelSpreading(kernel="knn", n_neighbors=50, alpha=0.99, max_iter=30, n_jobs=2)
        return model.fit(features, labels).label_distributions_[rows, labels]

    work = {name: one_of_ours(name) for name in ESTIMATORS if name != "noise-aware"}
    work |= {"cleanlab, features": cleanlab_features, "cleanlab, 5-fold LR": cleanlab_margin}
    work |= {"sklearn LabelSpreading": spreading}
    return {name: timed(run) for name, run in work.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sets", nargs="*", default=None, help="digits, cifar10-embeddings, fashion")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    table: list[dict[str, Any]] = []
    for set_name, clean in present_sets(options.sets):
        for kind, rate in CELLS:
            scores: dict[str, list[dict[str, Any]]] = {}
            for seed in range(options.seeds):
                mapped = {"mapping": CONFUSED[set_name]} if kind == "asymmetric" else {}
                data = add_noise(clean, kind, rate, random_state=seed, **mapped)
                for name, (seconds, confidence) in confidences(data, seed).items():
                    found = score_confidence(np.clip(confidence, 0, 1), data.labels == data.true_labels)
                    scores.setdefault(name, []).append({**found.as_dict(), "seconds": seconds})
            print(f"\n{set_name}, {kind} {rate:.0%}, mean of {options.seeds} seeds")
            for name, runs in scores.items():
                mean = {
                    key: float(np.mean([run[key] for run in runs]))
                    for key in runs[0]
                    if runs[0][key] is not None
                }
                spread = float(np.std([run["auroc"] for run in runs]))
                table.append(
                    {
                        "set": set_name,
                        "noise": kind,
                        "rate": rate,
                        "estimator": name,
                        **mean,
                        "auroc_std": spread,
                    }
                )
                print(
                    f"  {name:24s} AUROC {mean['auroc']:.3f}  AP {mean['average_precision']:.3f}  "
                    f"F1 {mean['f1_wrong']:.3f}  ECE {mean['calibration_error']:.3f}  "
                    f"{mean['seconds']:.2f} s",
                    flush=True,
                )
    save("quality", {"settings": {"seeds": list(range(options.seeds))}, "rows": table})


if __name__ == "__main__":
    main()
