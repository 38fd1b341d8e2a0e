"""How verified labels improve the confidences of all others: 100 drawn at random or the worst suspects.

The labels are confused where the classes overlap, which cannot be seen from given labels alone; in a second
case, 5% of the labels are wrong at random as well. Calibration error and error of the noise rate are computed
on the labels that were not verified; means over the seeds. docs/concepts/what-the-number-means.md shows the
table. About two minutes.
"""

from __future__ import annotations

import warnings

import numpy as np

from laplaceconfidence.auditing.review_sample import drawn_order
from laplaceconfidence.confidence.noise_aware import NoiseAwareConfidence
from laplaceconfidence.evaluation.metrics import expected_calibration_error
from laplaceconfidence.exceptions import LaplaceConfidenceWarning
from measuring import save

N_SAMPLES, SEEDS = 6_000, range(6)


def main() -> None:
    warnings.simplefilter(
        "ignore", LaplaceConfidenceWarning
    )  # the noise rate is not identifiable, on purpose
    rows = [row for share in (0.0, 0.05) for row in compared(share)]
    for row in rows:
        print(row)
    save("random_or_worst", {"n_samples": N_SAMPLES, "seeds": list(SEEDS), "rows": rows})


def compared(other_mistakes: float) -> list[dict[str, object]]:
    seen: dict[str, list[tuple[float, float, float]]] = {}
    for seed in SEEDS:
        features, true, given = confused_where_alike(other_mistakes, seed)
        right = given == true
        model = NoiseAwareConfidence(random_state=0).fit(features, given)
        worst = model.confidence_.argsort()
        chosen = {
            "none": worst[:0],
            "100 at random": drawn_order(given, 100, seed=seed)[:100],
            **{f"{n:,} worst": worst[:n] for n in (100, 300, 1_000)},
        }
        for name, rows in chosen.items():
            audited = {int(row): int(true[row]) for row in rows}
            scores = NoiseAwareConfidence(random_state=0).fit(features, given, audited=audited).confidence_
            rest = np.setdiff1d(np.arange(N_SAMPLES), rows)
            seen.setdefault(name, []).append(
                (
                    float((~right[rows]).mean()) if len(rows) else float("nan"),
                    abs(float(scores[rest].mean() - right[rest].mean())),
                    expected_calibration_error(scores[rest], right[rest]),
                )
            )
    return [
        {
            "other_mistakes": other_mistakes,
            "verified": name,
            "wrong_among_verified": None if name == "none" else round(float(wrong), 3),
            "error_of_noise_rate": round(float(off), 3),
            "calibration_error": round(float(calibration), 3),
        }
        for name, (wrong, off, calibration) in (
            (name, np.mean(found, axis=0)) for name, found in seen.items()
        )
    ]


def confused_where_alike(other_mistakes: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, true and given labels of Gaussian classes; a label is drawn by how close the classes are."""
    rng = np.random.default_rng(seed)
    n_classes, distance = (3, 2.2) if other_mistakes == 0 else (5, 2.6)
    centers = distance * np.eye(n_classes)
    true = np.arange(N_SAMPLES) % n_classes
    features = centers[true] + rng.normal(size=(N_SAMPLES, n_classes))
    closeness = np.exp(-0.5 * ((features[:, None] - centers) ** 2).sum(axis=2))
    bounds = (closeness / closeness.sum(axis=1, keepdims=True)).cumsum(axis=1)
    given = np.minimum((rng.random((N_SAMPLES, 1)) > bounds).sum(axis=1), n_classes - 1)
    anew = rng.random(N_SAMPLES) < other_mistakes
    given[anew] = rng.integers(0, n_classes, anew.sum())
    return features, true, given


if __name__ == "__main__":
    main()
