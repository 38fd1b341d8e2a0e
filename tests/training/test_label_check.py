"""Refined labels are never written if they are expected to be worse than the given ones."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.exceptions import TrainingWarning
from laplaceconfidence.training.guards import Guards
from laplaceconfidence.training.label_check import FEWEST_LABELS, LabelCheck, check_labels
from laplaceconfidence.training.methods.interface import Evidence, NetworkEvidence, Problem
from small_runs import noisy_digits, quick

N, N_CLASSES = 900, 3
HELD_OUT = np.arange(0, N, 3)


@pytest.fixture(scope="module")
def truth() -> np.ndarray:
    return np.random.default_rng(0).integers(0, N_CLASSES, N)


@pytest.fixture(scope="module")
def evidence(truth: np.ndarray) -> Evidence:
    """Two networks whose features tell the classes apart; a fifth of the labels are wrong."""
    rng = np.random.default_rng(1)
    labels = np.where(rng.random(N) < 0.3, rng.integers(0, N_CLASSES, N), truth)
    labels[-5:] = MISSING
    features = [np.eye(N_CLASSES, 8)[truth] * 4 + rng.normal(size=(N, 8)) for _ in range(2)]
    networks = {
        number: NetworkEvidence(one.astype(np.float32), np.full((N, N_CLASSES), 1 / N_CLASSES))
        for number, one in enumerate(features)
    }
    problem = Problem(torch.from_numpy(labels), N_CLASSES, 2, 32, 0, (8,))
    return Evidence(networks, labels, problem, 2, 0, lambda: features[0])


def check(evidence: Evidence, refined: np.ndarray, held_out: np.ndarray = HELD_OUT) -> Any:
    return check_labels(evidence, held_out, refined, np.full(N, 0.5))


def test_better_labels_are_kept_and_their_accuracy_is_estimated(
    evidence: Evidence, truth: np.ndarray
) -> None:
    found = check(evidence, truth)
    np.testing.assert_array_equal(found.refined, truth)
    assert (found.confidence == 0.5).all()
    assert found.check.chosen == "method"
    rows = HELD_OUT[evidence.labels[HELD_OUT] != MISSING]
    assert found.check.n_labels == len(rows)
    assert found.check.given == pytest.approx((evidence.labels == truth)[rows].mean(), abs=0.04)
    assert found.check.method > 0.96
    assert "held-out labels" in found.check.sentence


def test_worse_labels_are_replaced_by_those_of_the_audit(evidence: Evidence, truth: np.ndarray) -> None:
    rng = np.random.default_rng(2)
    worse = np.where(rng.random(N) < 0.5, rng.integers(0, N_CLASSES, N), truth)
    found = check(evidence, worse)
    labeled = evidence.labels != MISSING
    assert found.check.chosen == "audit"
    assert (found.refined == truth)[labeled].mean() > 0.96
    assert (found.refined == truth)[labeled].mean() > (evidence.labels == truth)[labeled].mean()
    np.testing.assert_array_equal(found.refined[~labeled], worse[~labeled])
    np.testing.assert_array_equal(np.isnan(found.confidence), ~labeled)
    wrong = labeled & (evidence.labels != truth)
    assert found.confidence[wrong].mean() < 0.2
    assert "audit" in found.check.sentence


def test_right_labels_are_left_as_they_were_given(evidence: Evidence, truth: np.ndarray) -> None:
    clean = Evidence(evidence.networks, truth, evidence.problem, 2, 0, evidence.inputs)
    worse = (truth + (np.arange(N) % 4 == 0)) % N_CLASSES
    found = check(clean, worse)
    assert found.check.chosen in ("given", "audit")
    assert (found.refined == truth).mean() > 0.99


def test_too_few_held_out_labels_judge_nothing(evidence: Evidence, truth: np.ndarray) -> None:
    wrong = (truth + 1) % N_CLASSES
    found = check(evidence, wrong, HELD_OUT[: FEWEST_LABELS - 1])
    assert found.check is None
    np.testing.assert_array_equal(found.refined, wrong)
    assert check(evidence, wrong, HELD_OUT[:0]).check is None


def test_labels_that_features_say_nothing_about_judge_nothing(evidence: Evidence, truth: np.ndarray) -> None:
    random = np.random.default_rng(3).integers(0, N_CLASSES, N)
    unrelated = Evidence(evidence.networks, random, evidence.problem, 2, 0, evidence.inputs)
    found = check(unrelated, truth, HELD_OUT[:120])
    assert found.check is None
    np.testing.assert_array_equal(found.refined, truth)
    assert (found.confidence == 0.5).all()


def test_the_sentence_says_what_was_written() -> None:
    assert "therefore the given ones" in LabelCheck(200, 0.8, 0.6, 0.7, "given").sentence
    assert "learned features (85.0%)" in LabelCheck(200, 0.8, 0.6, 0.85, "audit").sentence


def test_rounds_that_lose_what_plain_training_had_are_reported_once() -> None:
    guards = Guards(("a", "b"))
    plain = [0.5, 0.7]
    for robust in ([], [0.5, 0.5], [0.5, 0.69, 0.5]):
        guards.check_held_out([*plain, *robust], 2, 400)
    with pytest.warns(TrainingWarning, match=r"at most 60\.0% .* plain training 70\.0%"):
        guards.check_held_out([*plain, 0.5, 0.6, 0.55], 2, 400)
    guards.check_held_out([*plain, 0.5, 0.6, 0.55, 0.5], 2, 400)
    Guards(("a", "b")).check_held_out([0.1, 0.1, 0.1, 0.1], 0, 400)


def test_a_run_states_what_was_found(tmp_path: Path) -> None:
    X, y, _ = noisy_digits(600)
    out = tmp_path / "run"
    run = quick("laplace", rounds=3, validation_fraction=0.25, network="mlp", out=out).fit(
        X.reshape(len(X), -1), y
    )
    stated = run.summary_["label_check"]
    assert stated["n_labels"] == 150
    assert stated["chosen"] in ("method", "audit", "given")
    assert run.summary_["notes"][-1] == LabelCheck(**stated).sentence
