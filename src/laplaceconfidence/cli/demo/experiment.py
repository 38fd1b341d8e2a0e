"""The first part of ``laplaceconfidence demo``: known wrong labels in the digits, found and corrected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from laplaceconfidence.arrays import IntArray
from laplaceconfidence.auditing.issues import audit
from laplaceconfidence.auditing.result import AuditResult
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.digits import load_digits
from laplaceconfidence.data.noise import add_noise
from laplaceconfidence.evaluation.metrics import auroc
from laplaceconfidence.evaluation.out_of_fold import out_of_fold_probabilities
from laplaceconfidence.stages import stage

NOISE_RATE = 0.4
TEST_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class EstimatorScore:
    """How well one estimator found the wrong labels."""

    name: str
    auroc: float
    precision: float  # share of the flagged labels that are wrong
    recall: float  # share of the wrong labels that are flagged


@dataclass(frozen=True, slots=True, eq=False)
class DemoOutcome:
    """What the demonstration measured."""

    result: AuditResult
    scores: list[EstimatorScore]  # the default first
    accuracy: dict[str, float]  # of a classifier trained on given, corrected and true labels
    n_wrong: int
    n_found: int
    n_wrong_after: int  # wrong labels left after accepting all suggestions
    n_test: int


def run_demo(seed: int) -> DemoOutcome:
    """Corrupt labels of three quarters of the digits, audit them, and test the corrected ones on the rest."""
    from sklearn.model_selection import train_test_split

    with stage("noise"):
        digits = load_digits()
        rows = np.arange(len(digits))
        train_rows, test_rows = train_test_split(
            rows, test_size=TEST_SHARE, stratify=digits.labels, random_state=seed
        )
        train = add_noise(digits.subset(train_rows), "symmetric", NOISE_RATE, random_state=seed)
        test = digits.subset(test_rows)
    result = audit(train, random_state=seed)
    with stage("other estimators"):
        assert train.features is not None
        out_of_fold = out_of_fold_probabilities(
            train.features, train.labels, train.n_classes, random_state=seed, model=_classifier()
        )
        vote = audit(train, estimator="knn-vote", random_state=seed)
        paper = audit(train, estimator="laplace", random_state=seed)
        losses = audit(train, estimator="gaussian-mixture", pred_probs=out_of_fold, random_state=seed)
    with stage("classifiers"):
        corrected = result.correct().dataset.labels
        accuracy = {
            "given": _test_accuracy(train, train.labels, test),
            "corrected": _test_accuracy(train, corrected, test),
            "true": _test_accuracy(train, train.true_labels, test),
        }
    wrong = train.labels != train.true_labels
    flagged = result.table.sort_index()["is_label_issue"].to_numpy()
    return DemoOutcome(
        result=result,
        scores=[
            _score("noise-aware (the default)", result),
            _score("the paper's estimator", paper),
            _score("kNN vote", vote),
            _score("Gaussian mixture of losses", losses),
        ],
        accuracy=accuracy,
        n_wrong=int(wrong.sum()),
        n_found=int((wrong & flagged).sum()),
        n_wrong_after=int((corrected != train.true_labels).sum()),
        n_test=len(test),
    )


def _classifier() -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=1_000)


def _test_accuracy(train: NoisyDataset, labels: IntArray | None, test: NoisyDataset) -> float:
    return float(_classifier().fit(train.features, labels).score(test.features, test.labels))


def _score(name: str, result: AuditResult) -> EstimatorScore:
    by_row = result.table.sort_index()
    wrong = result.dataset.labels != result.dataset.true_labels
    flagged = by_row["is_label_issue"].to_numpy()
    hits = int((wrong & flagged).sum())
    return EstimatorScore(
        name=name,
        auroc=auroc(by_row["label_score"].to_numpy(), ~wrong),
        precision=hits / max(1, int(flagged.sum())),
        recall=hits / max(1, int(wrong.sum())),
    )
