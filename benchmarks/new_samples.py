"""New samples: how well ``NoiseAwareConfidence.predict_proba`` does on digits that it was not fitted on.

    python benchmarks/new_samples.py [--seeds 0 1 2]

Two thirds of the digits get noisy labels and are fitted; the true labels of the other third score the
predictions. Beside them: the share of the fitted samples whose ``transduction_`` is the true class, and a
logistic regression on the noisy labels (scikit-learn's defaults; features divided by their largest value).
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from laplaceconfidence import NoiseAwareConfidence, NoisyDataset, add_noise, load_digits
from laplaceconfidence.evaluation.metrics import expected_calibration_error
from measuring import save

CELLS = (("symmetric", 0.4), ("symmetric", 0.8), ("pair", 0.3), ("instance", 0.4))


def measured(kind: str, rate: float, seed: int) -> dict[str, Any]:
    digits = load_digits()
    fitted, new = train_test_split(
        np.arange(len(digits.labels)), test_size=1 / 3, stratify=digits.labels, random_state=seed
    )
    clean = NoisyDataset(digits.labels[fitted], digits.class_names, digits.features[fitted])
    noisy = add_noise(clean, kind, rate, random_state=seed)
    estimator = NoiseAwareConfidence(random_state=seed).fit(noisy.features, noisy.labels)
    probabilities = estimator.predict_proba(digits.features[new])
    truth, right = digits.labels[new], estimator.predict(digits.features[new]) == digits.labels[new]
    largest = noisy.features.max()
    regression = LogisticRegression(max_iter=1000).fit(noisy.features / largest, noisy.labels)
    return {
        "noise": kind,
        "rate": rate,
        "seed": seed,
        "accuracy": float(right.mean()),
        "calibration_error": float(expected_calibration_error(probabilities.max(axis=1), right)),
        "transduction_accuracy": float((estimator.transduction_ == clean.labels).mean()),
        "regression_accuracy": float((regression.predict(digits.features[new] / largest) == truth).mean()),
        "noise_model": estimator.noise_model_,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    seeds = parser.parse_args().seeds
    warnings.simplefilter("ignore")
    rows = []
    for kind, rate in CELLS:
        cell = [measured(kind, rate, seed) for seed in seeds]
        rows += cell
        print(f"{kind} {rate:.0%}")
        for name in ("accuracy", "calibration_error", "transduction_accuracy", "regression_accuracy"):
            found = [row[name] for row in cell]
            print(f"  {name}: {np.mean(found):.3f} ({min(found):.3f}-{max(found):.3f})")
        print(f"  noise model: {', '.join(row['noise_model'] for row in cell)}")
    save("new_samples", {"seeds": seeds, "rows": rows})


if __name__ == "__main__":
    main()
