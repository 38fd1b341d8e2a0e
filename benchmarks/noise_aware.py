"""The noise-aware estimator and its peers: ranking, calibration, noise rate and corrected labels.

True labels are used for scoring only. Peers that need probabilities get those of a 5-fold regularized
regression on half-whitened features whose penalty is the one that predicts held-out given labels best. Run
``python benchmarks/noise_aware.py``; ``--sets``, ``--noise`` and ``--seeds`` select a part; stored results
are kept; ``--refresh`` measures the noise-aware estimator again and keeps the stored results of the peers.
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
from cleanlab import Datalab
from cleanlab.rank import get_label_quality_scores
from scipy.special import softmax
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.semi_supervised import LabelSpreading

from laplaceconfidence.confidence.held_out_folds import make_held_out_folds
from laplaceconfidence.confidence.knn_vote import KNNVote
from laplaceconfidence.confidence.laplace import LaplaceConfidence
from laplaceconfidence.confidence.loss_mixture import GaussianLossMixture
from laplaceconfidence.confidence.noise_aware import NoiseAwareConfidence
from laplaceconfidence.confidence.noise_aware.coordinates import principal_coordinates
from laplaceconfidence.confidence.noise_aware.probes import fit_regression
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.noise import add_noise
from laplaceconfidence.data.transitions import CIFAR10_ASYMMETRIC, DIGITS_ASYMMETRIC
from laplaceconfidence.evaluation.metrics import score_confidence
from measuring import save, stored_rows, timed
from real_features import FASHION_CONFUSED, present_sets

CELLS = (
    ("clean", 0.0),
    ("symmetric", 0.2),
    ("symmetric", 0.5),
    ("symmetric", 0.8),
    ("symmetric", 0.9),
    ("asymmetric", 0.4),
    ("pair", 0.3),
    ("instance", 0.2),
    ("instance", 0.4),
    ("ambiguity", 0.2),
    ("ambiguity", 0.4),
)
KINDS = sorted({kind for kind, _ in CELLS})
CONFUSED = {
    "digits": DIGITS_ASYMMETRIC,
    "cifar10-embeddings": CIFAR10_ASYMMETRIC,
    "fashion": FASHION_CONFUSED,
}
OURS = "noise-aware"
NAME = "noise_aware"


def with_noise(
    data: NoisyDataset, name: str, kind: str, rate: float, seed: int, weak: np.ndarray | None
) -> NoisyDataset:
    """The data set with noisy labels; "ambiguity" draws them from a weak model."""
    if kind == "clean":
        return replace(data, labels=data.true_labels)
    if kind == "ambiguity":
        assert weak is not None
        return replace(data, labels=drawn_from(weak, data.true_labels, rate, np.random.default_rng(seed)))
    mapping = CONFUSED[name] if kind == "asymmetric" else None
    return add_noise(data, kind, rate, mapping=mapping, random_state=seed)


def weak_log_probabilities(data: NoisyDataset) -> np.ndarray:
    """Out-of-fold predictions of a regression on 24 whitened axes, trained on true labels."""
    few = PCA(min(24, data.features.shape[1]), whiten=True, random_state=1).fit_transform(data.features)
    model = LogisticRegression(max_iter=200)
    return cross_val_predict(model, few, data.true_labels, cv=5, method="predict_log_proba")


def drawn_from(log_p: np.ndarray, truth: np.ndarray, rate: float, rng: np.random.Generator) -> np.ndarray:
    """Labels from the weak model, with a bonus for the true class such that ``rate`` of them are wrong."""
    rows = np.arange(len(truth))
    low, high = -6.0, 12.0
    for _ in range(40):
        bonus = (low + high) / 2
        scores = log_p.copy()
        scores[rows, truth] += bonus
        p = softmax(scores, axis=1)
        low, high = (bonus, high) if 1 - p[rows, truth].mean() > rate else (low, bonus)
    drawn = (p.cumsum(axis=1) < rng.random((len(truth), 1))).sum(axis=1)
    return np.minimum(drawn, p.shape[1] - 1).astype(np.int64)


def out_of_fold_probabilities(features: np.ndarray, labels: np.ndarray, seed: int) -> np.ndarray:
    n_classes = int(labels.max()) + 1
    rng = np.random.default_rng(seed)
    coordinates, axes = principal_coordinates(features, None, n_jobs=None, rng=rng)
    coordinates = axes.half_whitened(coordinates)
    folds = make_held_out_folds(labels, 5, rng)
    best, best_score = np.empty(0), -np.inf
    for l2 in (0.01, 0.03, 0.1):
        probe = fit_regression(
            coordinates, labels, folds.visible_without_folds(), n_classes, l2=l2, tol=1e-3, max_iter=100
        )
        p = softmax(folds.at_own_fold(probe.logits(coordinates)).astype(np.float64), axis=1)
        score = np.log(p[np.arange(len(labels)), labels] + 1e-12).mean()
        if score > best_score:
            best, best_score = p, score
    return best


def peers(data: NoisyDataset, seed: int) -> dict[str, tuple[float, np.ndarray, np.ndarray | None]]:
    """Seconds, confidence and corrected labels (where there are any) of every peer."""
    X, y = data.features, data.labels
    rows = np.arange(len(y))
    found: dict[str, tuple[float, np.ndarray, np.ndarray | None]] = {}

    seconds, model = timed(lambda: LaplaceConfidence(random_state=seed).fit(X, y))
    found["paper's setting"] = seconds, model.confidence_, model.label_distributions_.argmax(axis=1)
    seconds, model = timed(lambda: LaplaceConfidence("auto", "auto", random_state=seed).fit(X, y))
    found["k, alpha chosen"] = seconds, model.confidence_, model.label_distributions_.argmax(axis=1)
    seconds, model = timed(lambda: KNNVote(50, random_state=seed).fit(X, y))
    found["kNN vote 50"] = seconds, model.confidence_, model.label_distributions_.argmax(axis=1)

    seconds, p = timed(lambda: out_of_fold_probabilities(X, y, seed))
    found["5-fold regression (cleanlab)"] = seconds, get_label_quality_scores(y, p), p.argmax(axis=1)
    margin = get_label_quality_scores(y, p, method="normalized_margin")
    found["5-fold regression, margin (cleanlab)"] = seconds, margin, p.argmax(axis=1)
    losses = -np.log(np.maximum(p[rows, y], 1e-12))
    mixture = GaussianLossMixture(random_state=seed).fit(losses, y).confidence_
    found["loss mixture"] = seconds, mixture, None

    def datalab() -> np.ndarray:
        lab = Datalab(data={"label": y}, label_name="label", verbosity=0)
        lab.find_issues(features=X, issue_types={"label": {}})
        return lab.get_issues("label")["label_score"].to_numpy()

    seconds, scores = timed(datalab)
    found["features (cleanlab)"] = seconds, scores, None
    seconds, model = timed(
        lambda: LabelSpreading(kernel="knn", n_neighbors=50, alpha=0.8, max_iter=50).fit(X, y)
    )
    spread = np.nan_to_num(model.label_distributions_, nan=0.1)
    found["LabelSpreading"] = seconds, np.clip(spread[rows, y], 0, 1), spread.argmax(axis=1)
    return found


def ours(data: NoisyDataset, seed: int) -> dict[str, Any]:
    """Scores of the noise-aware estimator, with the outputs that only it has."""
    y, truth = data.labels, data.true_labels
    right = y == truth
    seconds, model = timed(lambda: NoiseAwareConfidence(random_state=seed).fit(data.features, y))
    row = scored(seconds, model.confidence_, model.label_distributions_.argmax(axis=1), data)
    flagged = model.confidence_ < model.threshold_for(precision=0.9)
    audited = np.random.default_rng(seed).choice(len(y), 100, replace=False)
    helped = NoiseAwareConfidence(random_state=seed).fit(
        data.features, y, audited={int(i): int(truth[i]) for i in audited}
    )
    rest = np.setdiff1d(np.arange(len(y)), audited)
    return row | {
        "estimated_noise": model.noise_rate_,
        "bracket": model.noise_rate_bracket_,
        "identifiable": bool(model.identifiable_),
        "noise_model": model.noise_model_,
        "round": model.round_,
        "corrected": float((model.transduction_ != model.classes_[y]).mean()),
        "n_flagged_at_90": int(flagged.sum()),
        "precision_at_90": float((~right)[flagged].mean()) if flagged.any() else None,
        "audited_calibration_error": score_confidence(
            helped.confidence_[rest], right[rest]
        ).calibration_error,
    }


def scored(
    seconds: float, confidence: np.ndarray, corrected: np.ndarray | None, data: NoisyDataset
) -> dict[str, Any]:
    row = score_confidence(confidence, data.labels == data.true_labels).as_dict()
    row["seconds"] = seconds
    row["label_accuracy"] = None if corrected is None else float((corrected == data.true_labels).mean())
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=None)
    parser.add_argument("--noise", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    add_refresh(parser)
    parser.add_argument("--out", default=NAME)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = stored_rows(options.out)
    done = {(row["set"], row["noise"], row["rate"], row["seed"]) for row in rows}
    for name, data in present_sets(options.sets):
        weak = weak_log_probabilities(data) if "ambiguity" in options.noise else None
        for seed in options.seeds:
            for kind, rate in CELLS:
                if kind not in options.noise or ((name, kind, rate, seed) in done) != options.refresh:
                    continue
                noisy = with_noise(data, name, kind, rate, seed, weak)
                cell = {"set": name, "noise": kind, "rate": rate, "seed": seed}
                measure_cell(rows, cell, noisy, refresh=options.refresh)
                save(options.out, {"settings": {"classes": 10}, "rows": rows})
                show(rows, name, kind, rate)


def add_refresh(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--refresh",
        action="store_true",
        help="measure only the noise-aware estimator again, in the stored cells",
    )


def measure_cell(
    rows: list[dict[str, Any]], cell: dict[str, Any], noisy: NoisyDataset, *, refresh: bool
) -> None:
    """Add the rows of a cell: ours and those of the peers; or, to refresh, replace ours."""
    own = cell | {"method": OURS} | ours(noisy, cell["seed"])
    if refresh:
        keys = cell | {"method": OURS}
        rows[next(i for i, row in enumerate(rows) if keys.items() <= row.items())] = own
        return
    rows.append(own)
    rows.extend(
        cell | {"method": method} | scored(*result, noisy)
        for method, result in peers(noisy, cell["seed"]).items()
    )


def show(rows: list[dict[str, Any]], name: str, kind: str, rate: float) -> None:
    """Print the means of a cell over the seeds so far: AUROC / average precision / calibration error."""
    by_method: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if (row["set"], row["noise"], row["rate"]) == (name, kind, rate):
            by_method[row["method"]].append(row)
    print(f"{name}, {kind} {rate:g}")
    for method, group in by_method.items():
        means = [
            np.mean([row[score] for row in group]) if group[0][score] is not None else np.nan
            for score in ("auroc", "average_precision", "calibration_error", "seconds")
        ]
        print(f"  {method:38s} {means[0]:.4f} {means[1]:.4f} {means[2]:.4f}  {means[3]:6.1f} s", flush=True)


if __name__ == "__main__":
    main()
