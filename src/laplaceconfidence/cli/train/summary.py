"""The summary of a training run on the console."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.text import Text

from laplaceconfidence.cli.console import output, plain_table, shown
from laplaceconfidence.cli.train.data import PreparedData
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.run_files import (
    CONFIDENCES,
    METRICS,
    MODEL,
    PREDICTIONS,
    REFINED_LABELS,
    SETTINGS,
    SKIPPED_IMAGES,
    SOURCE,
)
from laplaceconfidence.wording import counted

if TYPE_CHECKING:
    from laplaceconfidence.training.classifier import RobustClassifier

MOST_SKIPPED = 10


def show_training_summary(classifier: RobustClassifier, data: PreparedData, folder: Path) -> None:
    """Print the accuracies, how many labels were changed, the images left out and the files written."""
    console = output()
    console.print()
    _show_accuracies(console, classifier, data)
    for sentence in _label_sentences(classifier, data):
        console.print(sentence, soft_wrap=True)
    for note in classifier.summary_.get("notes", ()):
        console.print(note, markup=False, soft_wrap=True)
    if data.skipped:
        _show_skipped(console, data, folder)
    console.print()
    console.print(Text.assemble("Written to ", (f"{folder}/", "bold"), ":"), soft_wrap=True)
    for name, meaning in (
        (REFINED_LABELS, "every label: given, its confidence, refined"),
        (PREDICTIONS, "class probabilities of every sample"),
        (f"{MODEL}/", "the model: laplaceconfidence predict, RobustClassifier.load"),
        (METRICS, "what was measured, one line per round"),
        (f"{CONFIDENCES}/", "the confidences of every round"),
        (SETTINGS, f"every setting; {SOURCE} has the source of the data"),
    ):
        console.print(f"  [bold]{name:<23}[/bold] {meaning}")


def _show_accuracies(console: Console, classifier: RobustClassifier, data: PreparedData) -> None:
    summary = classifier.summary_
    text = f"Trained for {counted(summary['rounds'], 'round')}; round {summary['chosen_round']} was kept."
    if "validation_accuracy" in summary:
        text += f" It predicts {summary['validation_accuracy']:.1%} of the held-out given labels."
    console.print(Text(text, style="bold"), soft_wrap=True)
    if not data.tests:
        return
    table = plain_table("Accuracy on test data (not used to choose the round)", "test set", "", "accuracy:")
    for name in data.tests:
        seen = summary.get("further_tests", {}).get(name, summary)
        chosen = seen["test_accuracy_of_chosen_round"]
        table.add_row(shown(name), "the kept round", f"{chosen:.2%}", style="bold")
        table.add_row("", "mean of the last 10 rounds", f"{seen['test_accuracy_mean_of_last_rounds']:.2%}")
        best = seen["test_accuracy_best_round_for_comparison_only"]
        table.add_row("", "best round (for comparison only)", f"{best:.2%}")
    console.print()
    console.print(table)
    console.print()


def _label_sentences(classifier: RobustClassifier, data: PreparedData) -> list[str]:
    dataset = data.train
    names = np.array([*dataset.class_names, None], dtype=object)
    given, refined = names[dataset.labels], classifier.refined_labels_.astype(object)
    labeled = dataset.labels != MISSING
    n_labeled, n_changed = int(labeled.sum()), int(np.sum((given != refined)[labeled]))
    mean_confidence = float(np.nanmean(classifier.confidence_))
    sentences = [
        f"The refined labels differ from {n_changed:,} of {n_labeled:,} given ones "
        f"({n_changed / n_labeled:.1%}); mean confidence {mean_confidence:.2f}."
    ]
    if (truth := dataset.true_labels) is not None:
        known = labeled & (truth != MISSING)
        before = float(np.mean((given == names[truth])[known]))
        after = float(np.mean((refined == names[truth])[known]))
        sentences.append(
            f"According to the true labels {before:.1%} of the given and {after:.1%} of the refined labels "
            "are correct."
        )
    return sentences


def _show_skipped(console: Console, data: PreparedData, folder: Path) -> None:
    n = len(data.skipped)
    console.print(
        f"\n{counted(n, 'image')} left out because of decoding errors ({folder / SKIPPED_IMAGES}):",
        soft_wrap=True,
    )
    for image in data.skipped[:MOST_SKIPPED]:
        console.print(Text(f"  {image.path}"), soft_wrap=True)
    if n > MOST_SKIPPED:
        console.print(f"  ... and {n - MOST_SKIPPED:,} more")
