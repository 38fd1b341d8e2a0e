"""The second part of ``laplaceconfidence demo``: training on digits whose labels are mostly wrong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from laplaceconfidence.cli.console import output, plain_table
from laplaceconfidence.data.digits import load_digits
from laplaceconfidence.data.noise import add_noise
from laplaceconfidence.stages import stage

PRESET = "digits"


@dataclass(frozen=True, slots=True)
class TrainingOutcome:
    """Accuracies on new digits at the end of training, and the sizes of the data."""

    plain: float  # of a network trained in the usual way
    robust: float
    n_train: int
    n_wrong: int
    n_test: int


def run_training_demo(seed: int) -> TrainingOutcome:
    """Train a small network on the same noisy labels in the usual way and with this package."""
    from laplaceconfidence.training.classifier import RobustClassifier
    from laplaceconfidence.training.presets import load_preset

    preset = load_preset(PRESET)
    assert preset.noise is not None
    assert preset.data.test_share is not None
    digits = load_digits()
    rows = np.random.default_rng(seed).permutation(len(digits))
    n_test = round(preset.data.test_share * len(rows))
    test = digits.subset(rows[:n_test])
    train = add_noise(digits.subset(rows[n_test:]), preset.noise.kind, preset.noise.rate, random_state=seed)
    settings = preset.parameters() | {"random_state": seed}
    # As many passes over the data as the two robust networks make together.
    warmup, n_passes = preset.method["warmup"], preset.method["passes"]
    passes = 2 * (warmup + n_passes * (settings["rounds"] - warmup))
    shared = {
        name: settings[name] for name in ("network", "weak", "batch_size", "learning_rate", "random_state")
    }
    with stage("plain training"):
        plain = RobustClassifier(method="cross_entropy", rounds=passes, validation_fraction=0.0, **shared)
        plain.fit(train)
    with stage("robust training"):
        robust = RobustClassifier(**settings).fit(train)
    truth = np.array(test.class_names)[test.labels]

    def accuracy(classifier: RobustClassifier) -> float:
        return float(np.mean(classifier.predict(test).astype(str) == truth))

    assert train.true_labels is not None
    return TrainingOutcome(
        plain=accuracy(plain),
        robust=accuracy(robust),
        n_train=len(train),
        n_wrong=int(np.sum(train.labels != train.true_labels)),
        n_test=n_test,
    )


def show_training_outcome(outcome: TrainingOutcome) -> None:
    """Print the accuracies as a table and in plain words."""
    console = output()
    wrong = outcome.n_wrong / outcome.n_train
    table = plain_table(
        f"What if most labels are wrong? {outcome.n_train:,} digits, {wrong:.0%} of their labels wrong",
        "trained",
        f"accuracy on {outcome.n_test} new digits:",
    )
    table.add_row("in the usual way (cross-entropy)", f"{outcome.plain:.1%}")
    table.add_row("with LaplaceConfidence", f"{outcome.robust:.1%}", style="bold")
    console.print(table)
    console.print()
    console.print(
        f"[bold]In plain words:[/bold] about {round(10 * wrong)} of 10 labels were wrong. Trained in the "
        f"usual way, the network memorizes them and reads {round(100 * outcome.plain)} of 100 new digits "
        "correctly; trained with the confidence of each label, it reads "
        f"[bold]{round(100 * outcome.robust)} of 100[/bold]."
    )
    console.print()
