"""Results of a finished run: confidences, predictions and refined labels of every sample, and a summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.run_files import PREDICTIONS, REFINED_LABELS, TEST_PREDICTIONS
from laplaceconfidence.stages import stage
from laplaceconfidence.training.evaluation import TOP, top_5_accuracy
from laplaceconfidence.training.inputs import TrainingData
from laplaceconfidence.training.label_check import LabelCheck, check_labels
from laplaceconfidence.training.loop import Loop
from laplaceconfidence.training.methods.interface import Evidence
from laplaceconfidence.training.networks.registry import NetworkSpec, network_reference
from laplaceconfidence.training.progress import counts
from laplaceconfidence.training.run_folder import RunFolder
from laplaceconfidence.training.seeds import derived_seed
from laplaceconfidence.training.trained_model import TrainedModel

LAST_ROUNDS = 10


@dataclass(frozen=True, slots=True, eq=False)
class Results:
    """Per-sample results of the chosen networks, held-out samples included."""

    confidence: FloatArray  # (n,) NaN where no label was given
    probabilities: FloatArray  # (n, C)
    refined: IntArray  # (n,) codes
    check: LabelCheck | None  # of the refined labels, if enough labels were held out


def final_results(loop: Loop) -> Results:
    """Confidences, predictions and refined labels of all samples, from the networks as they are now."""
    task, method = loop.task, loop.method
    rows = torch.arange(len(task.labels))
    seen = {network: task.observe(network, loop.settings, rows) for network in loop.predictors}
    seed = derived_seed(loop.settings.seed, "final")
    inputs = partial(task.inputs, rows, loop.settings)
    evidence = Evidence(seen, task.labels, loop.problem, loop.settings.rounds, seed, inputs, task.modules)

    probabilities = task.combined([one.probabilities for one in seen.values()])
    held_out = task.validation_rows.numpy()

    def estimated() -> dict[str, Any]:
        confidence = np.asarray(method.final_confidence(evidence, loop.progress.state), np.float64)
        with stage("checking the labels"):
            refined = refined_labels(task.labels, confidence, probabilities)
            checked = check_labels(evidence, held_out, refined, confidence)
        return {
            "confidence": torch.from_numpy(checked.confidence),
            "refined": torch.from_numpy(checked.refined),
            "check": checked.check and checked.check.as_dict(),
        }

    found = task.team.on_first(estimated, task.device)
    check = found["check"] and LabelCheck(**found["check"])
    return Results(found["confidence"].numpy(), probabilities, found["refined"].numpy(), check)


def refined_labels(labels: IntArray, confidence: FloatArray, probabilities: FloatArray) -> IntArray:
    """The class with the largest weight in w * given + (1 - w) * prediction; without a given label, w = 0."""
    weight = np.where(labels == MISSING, 0.0, confidence)[:, None]
    given = np.eye(probabilities.shape[1])[np.maximum(labels, 0)]
    refined: IntArray = (weight * given + (1 - weight) * probabilities).argmax(axis=1).astype(np.int64)
    return refined


def trained_model(
    loop: Loop, data: TrainingData, network: NetworkSpec, feature_layer: str | None
) -> TrainedModel:
    """What the networks of a finished run predict with, without the data they were trained on."""
    task, settings = loop.task, loop.settings
    return TrainedModel(
        networks=tuple(trained.module for trained in task.networks),
        predictors=loop.predictors,
        sums_logits=loop.method.sums_logits,
        classes=data.class_values,
        class_names=data.class_names,
        input_shape=task.samples.shape,
        mean=task.views.mean,
        deviation=task.views.deviation,
        crop=task.views.crop,
        network=network_reference(network),
        feature_layer=feature_layer,
        feature_columns=data.feature_columns,
        encoder=data.encoder,
        precision=settings.precision,
        channels_last=settings.channels_last,
        device=task.device,
    )


def training_summary(loop: Loop, check: LabelCheck | None) -> dict[str, Any]:
    """The chosen round, the accuracies and the check of the refined labels.

    Test accuracies are reported; nothing is chosen by them.
    """
    history, best = loop.progress.history, loop.progress.best
    summary: dict[str, Any] = {
        "rounds": len(history),
        "chosen_round": best["round"] if best else len(history),
    }
    if check is not None:
        summary["label_check"] = check.as_dict()
    if notes := [*_notes_on_rounds(loop), *([] if check is None else [check.sentence])]:
        summary["notes"] = notes
    if loop.progress.stop_reason is not None:
        summary["stop_reason"] = loop.progress.stop_reason
    if best:
        summary["validation_accuracy"] = best["validation_accuracy"]
    if history and "test_accuracy" in history[-1]:
        accuracies = [record["test_accuracy"] for record in history]
        summary |= _test_summary(accuracies, history, summary["chosen_round"])
    if loop.task.further_tests:
        summary["further_tests"] = {
            name: _test_summary(
                [record["further_test_accuracies"][name] for record in history],
                history,
                summary["chosen_round"],
            )
            for name in loop.task.further_tests
        }
    return summary


def _notes_on_rounds(loop: Loop) -> list[str]:
    """Whether the rounds after the warm-up were of any use, by the accuracy on held-out given labels."""
    best, n_plain = loop.progress.best, loop.n_plain_rounds
    if best is None or not 0 < n_plain < len(loop.progress.history) or best["round"] > n_plain:
        return []
    return [
        f"The kept round, {best['round']}, is one of the {n_plain} rounds of plain training: the rounds "
        "after them predict held-out given labels less well."
    ]


def _test_summary(
    accuracies: Sequence[float], history: Sequence[Mapping[str, Any]], chosen_round: int
) -> dict[str, float]:
    """The accuracies on one test set; rounds that could not be chosen are left out, if there are others."""
    counting = [value for value, record in zip(accuracies, history, strict=True) if counts(record)]
    counting = counting or [*accuracies]
    return {
        "test_accuracy_of_chosen_round": accuracies[chosen_round - 1],
        "test_accuracy_mean_of_last_rounds": float(np.mean(counting[-LAST_ROUNDS:])),
        "test_accuracy_best_round_for_comparison_only": max(counting),
    }


def top_5_accuracies(loop: Loop) -> dict[str, float]:
    """Top-5 accuracy of the networks as they are now on every test set, by name; empty for few classes.

    The name of the test set that ``fit(test=...)`` was given is "".
    """
    task = loop.task
    tests = {**({} if task.test is None else {"": task.test}), **task.further_tests}
    found = {}
    for name, test in tests.items() if len(task.class_names) > TOP else ():
        rows = torch.arange(len(test.samples))
        predicted = task.mean_probabilities(loop.predictors, loop.settings, rows, test.samples)
        accuracy = top_5_accuracy(predicted, test.labels)
        if accuracy is not None:
            found[name] = accuracy
    return found


def add_top_5(summary: dict[str, Any], top_5: Mapping[str, float]) -> None:
    """Add top-5 accuracies of the chosen round to the summary of a run."""
    for name, accuracy in top_5.items():
        of_test = summary["further_tests"][name] if name else summary
        of_test["test_top_5_accuracy_of_chosen_round"] = accuracy


def write_results(folder: RunFolder | None, loop: Loop, results: Results, summary: Mapping[str, Any]) -> None:
    """Write predictions, refined labels and, last, the summary, which marks the run as finished."""
    task = loop.task
    test_probabilities = None
    if task.test is not None:  # every process takes part, only the first writes
        rows = torch.arange(len(task.test.samples))
        test_probabilities = task.mean_probabilities(loop.predictors, loop.settings, rows, task.test.samples)
    if folder is None:
        return
    names = np.array([*task.class_names, None], dtype=object)  # -1 reads the last entry: no label
    columns = prediction_columns(task.ids, results.probabilities, task.class_names)
    folder.write_table(PREDICTIONS, columns)
    if test_probabilities is not None:
        ids = np.arange(len(test_probabilities)).astype(str)
        folder.write_table(TEST_PREDICTIONS, prediction_columns(ids, test_probabilities, task.class_names))
    folder.write_table(
        REFINED_LABELS,
        {
            "id": task.ids,
            "given_label": names[task.labels],
            "confidence": results.confidence,
            "refined_label": names[results.refined],
            "held_out": np.isin(np.arange(len(task.labels)), task.validation_rows.numpy()),
        },
    )
    folder.write_summary(summary)


def prediction_columns(ids: Any, probabilities: FloatArray, class_names: tuple[str, ...]) -> dict[str, Any]:
    """The columns of a table of predictions: ids, most probable classes and all probabilities."""
    names = np.array(class_names, dtype=object)
    columns: dict[str, Any] = {"id": ids, "predicted_label": names[probabilities.argmax(axis=1)]}
    return columns | {f"p_{name}": probabilities[:, code] for code, name in enumerate(class_names)}
