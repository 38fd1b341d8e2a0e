"""The figures of a training run: curves, confidences over rounds and confusions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.auditing.summary import confusion_counts
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.evaluation.metrics import f1_at
from laplaceconfidence.records.training_run import TrainingRun
from laplaceconfidence.report.audit_figures import CLASSES_WITH_NUMBERS, MOST_CLASSES, draw_matrix
from laplaceconfidence.report.drawing import PALETTE, Drawing, Theme, new_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def accuracy_curves(run: TrainingRun) -> Drawing | None:
    """Draw accuracy by round on the held-out given labels and on the test set.

    Parameters
    ----------
    run : TrainingRun
        The run.

    Returns
    -------
    Drawing or None
        None where no accuracy was recorded.
    """
    names = {"test_accuracy": "test set", "validation_accuracy": "held-out given labels"}
    curves = {words: _curve(run, name) for name, words in names.items()}
    curves = {words: curve for words, curve in curves.items() if len(curve[0])}
    if not curves:
        return None

    def draw(theme: Theme) -> Figure:
        figure, (axes,) = new_figure(5.2, 2.6)
        for (words, (rounds, values)), color, style in zip(
            curves.items(), (theme.trusted, theme.suspect), ("-", "--"), strict=False
        ):
            axes.plot(rounds, 100 * values, style, color=color, label=words, linewidth=1.8)
        label_by_round(axes)
        axes.set_ylabel("accuracy in %")
        axes.legend()
        return figure

    last = "; ".join(f"{words} {values[-1]:.1%}" for words, (_, values) in curves.items())
    return Drawing("accuracy", "Accuracy", f"Accuracy by round. In the last round: {last}.", draw)


def loss_curves(run: TrainingRun) -> Drawing | None:
    """Draw training loss by round, one curve per network.

    Parameters
    ----------
    run : TrainingRun
        The run.

    Returns
    -------
    Drawing or None
        None where no loss was recorded.
    """
    by_network: dict[int, dict[int, list[float]]] = {}
    for entry in run.metrics:
        for phase in entry.get("phases", []):
            for network in phase.get("networks", []):
                if "loss" in phase:
                    by_network.setdefault(network, {}).setdefault(entry["round"], []).append(phase["loss"])
    if not by_network:
        return None

    def draw(theme: Theme) -> Figure:
        figure, (axes,) = new_figure(5.2, 2.4)
        colors, styles = (theme.trusted, theme.suspect, *PALETTE), ("-", "--", ":", "-.")
        for index, (network, losses) in enumerate(sorted(by_network.items())):
            means = [float(np.mean(values)) for values in losses.values()]
            axes.plot(
                list(losses), means, styles[index % 4], color=colors[index % 9], label=f"network {network}"
            )
        label_by_round(axes)
        axes.set_ylabel("training loss")
        axes.legend()
        return figure

    ends = "; ".join(f"network {n}: {np.mean(list(v.values())[-1]):.3f}" for n, v in by_network.items())
    return Drawing("loss", "Training loss", f"Training loss by round. In the last round {ends}.", draw)


def confidence_over_rounds(run: TrainingRun) -> Drawing | None:
    """Draw a histogram of the confidences for every round, one column per round.

    Parameters
    ----------
    run : TrainingRun
        The run.

    Returns
    -------
    Drawing or None
        None where no confidences were recorded.
    """
    if not run.confidences:
        return None
    edges = np.linspace(0, 1, 31)
    rounds = sorted(run.confidences)
    shares = np.array([np.histogram(_mean_confidence(run.confidences[r]), edges)[0] for r in rounds], float)
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1)

    def draw(theme: Theme) -> Figure:
        from matplotlib.colors import PowerNorm

        figure, (axes,) = new_figure(5.2, 2.6)
        image = axes.imshow(
            shares.T,
            origin="lower",
            aspect="auto",
            cmap="viridis",
            extent=(rounds[0] - 0.5, rounds[-1] + 0.5, 0, 1),
            interpolation="nearest",
            norm=PowerNorm(0.4, vmin=0),  # else the two ends would hide everything between them
        )
        label_by_round(axes)
        axes.set_ylabel("confidence")
        bar = figure.colorbar(image, ax=axes, label="share of the labels")
        bar.outline.set_edgecolor(theme.soft)
        return figure

    means = [float(np.nanmean(_mean_confidence(run.confidences[r]))) for r in (rounds[0], rounds[-1])]
    alt = (
        f"Histogram of the confidence for every round from {rounds[0]} to {rounds[-1]}; its mean goes from "
        f"{means[0]:.2f} to {means[1]:.2f}."
    )
    return Drawing("confidence", "Confidence over the rounds", alt, draw)


def f1_over_rounds(run: TrainingRun) -> Drawing | None:
    """Draw the F1 scores of finding clean and wrong labels by their confidence, by round.

    Parameters
    ----------
    run : TrainingRun
        The run.

    Returns
    -------
    Drawing or None
        None where no true labels or no confidences are known.
    """
    scores = {target: f1_by_round(run, target) for target in ("right", "wrong")}
    if not scores["wrong"]:
        return None
    words = {"right": "clean labels", "wrong": "wrong labels"}

    def draw(theme: Theme) -> Figure:
        figure, (axes,) = new_figure(5.2, 2.2)
        colors = {"right": theme.trusted, "wrong": theme.suspect}
        for target, by_round in scores.items():
            rounds, values = list(by_round), list(by_round.values())
            axes.plot(rounds, values, color=colors[target], marker="o", markersize=3, label=words[target])
        label_by_round(axes)
        axes.set_ylabel("F1")
        axes.set_ylim(0, 1.02)
        axes.legend()
        return figure

    last = "; ".join(f"{words[target]} {list(one.values())[-1]:.3f}" for target, one in scores.items())
    alt = f"F1 of finding clean and wrong labels by their confidence, by round. At the end: {last}."
    return Drawing("f1", "How well clean and wrong labels are found", alt, draw)


def f1_by_round(run: TrainingRun, target: str) -> dict[int, float]:
    """Return the F1 score of finding labels by their confidence.

    Parameters
    ----------
    run : TrainingRun
        The run.
    target : {"right", "wrong"}
        Which labels are to be found: by a confidence of one half or more, or below it.

    Returns
    -------
    dict of int to float
        By round; empty where no true labels or no confidences are known.
    """
    refined, truth = run.refined_labels, true_labels(run, "train")
    if refined is None or truth is None:
        return {}
    given = refined.set_index("id")["given_label"]
    scores: dict[int, float] = {}
    for number, table in sorted(run.confidences.items()):
        known = table[table["id"].isin(truth.index) & table["id"].map(given).notna()]
        if len(known):
            right = known["id"].map(given).to_numpy() == known["id"].map(truth).to_numpy()
            scores[number] = f1_at(_mean_confidence(known), right, target=target)  # type: ignore[arg-type]
    return scores


def confusions(run: TrainingRun) -> Drawing | None:
    """Draw given labels, training predictions and test predictions against the true (or given) labels.

    Parameters
    ----------
    run : TrainingRun
        The run.

    Returns
    -------
    Drawing or None
        None while the run is not finished.
    """
    found = confusion_panels(run)
    if found is None:
        return None
    panels, names = found

    def draw(theme: Theme) -> Figure:
        side = min(2.7 if len(names) <= CLASSES_WITH_NUMBERS else 3.4, 1.4 + 0.2 * len(names))
        figure, axes = new_figure(max(4.2, (side + 0.4) * len(panels)), side + 0.5, len(panels))
        for (title, words, counts), one in zip(panels, axes, strict=True):
            draw_matrix(one, counts, names, theme)
            for text in one.texts:
                text.set_fontsize(6)
            one.tick_params(labelsize=7)
            one.set_title(title)
            one.set_ylabel(words)
        return figure

    right = "; ".join(
        f"{title} {np.trace(c) / max(1, c.sum()):.1%} on the diagonal" for title, _, c in panels
    )
    return Drawing("confusions", "Confusions", f"Confusion matrices: {right}.", draw)


def confusion_panels(run: TrainingRun) -> tuple[list[tuple[str, str, IntArray]], list[str]] | None:
    """Count given labels, training predictions and test predictions by true (or given) label.

    Parameters
    ----------
    run : TrainingRun
        The run.

    Returns
    -------
    panels : list of (str, str, ndarray of shape (C, C))
        Title, what the rows are, and the counts.
    names : list of str
        The classes.

    None is returned while the run is not finished.
    """
    refined, predictions = run.refined_labels, run.predictions
    if refined is None or predictions is None:
        return None
    names = [name.removeprefix("p_") for name in predictions.columns if name.startswith("p_")][:MOST_CLASSES]
    truth, test_truth = true_labels(run, "train"), true_labels(run, "test")
    panels: list[tuple[str, str, IntArray]] = []
    against = refined.set_index("id")["given_label"] if truth is None else truth
    row_words = "given label" if truth is None else "true label"
    if truth is not None:
        panels.append(("given labels", row_words, _counts(refined, "given_label", truth, names)))
    panels.append(
        ("training predictions", row_words, _counts(predictions, "predicted_label", against, names))
    )
    if test_truth is not None and run.test_predictions is not None:
        counts = _counts(run.test_predictions, "predicted_label", test_truth, names)
        panels.append(("test predictions", "true label", counts))
    return panels, names


def label_by_round(axes: Axes) -> None:
    """Label the x axis as rounds, with integer ticks."""
    from matplotlib.ticker import MaxNLocator

    axes.set_xlabel("round")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _curve(run: TrainingRun, name: str) -> tuple[IntArray, FloatArray]:
    found = [(entry["round"], entry[name]) for entry in run.metrics if name in entry]
    return np.array([r for r, _ in found], np.int64), np.array([v for _, v in found], np.float64)


def _mean_confidence(table: pd.DataFrame) -> FloatArray:
    columns = [name for name in table.columns if name.startswith("confidence")]
    means: FloatArray = table[columns].to_numpy(dtype=np.float64).mean(axis=1)
    return means


def true_labels(run: TrainingRun, split: str) -> Any:
    """Return the true labels of a run by id.

    Parameters
    ----------
    run : TrainingRun
        The run.
    split : {"train", "test"}
        Which samples.

    Returns
    -------
    pandas.Series or None
        None where they are not known.
    """
    truth = run.truth
    if truth is None:
        return None
    part = truth[truth["split"] == split]
    return None if part.empty else part.set_index("id")["true_label"]


def _counts(table: pd.DataFrame, column: str, against: Any, names: list[str]) -> IntArray:
    code = {name: number for number, name in enumerate(names)}
    rows, columns = (
        labels.astype(object).map(code).fillna(MISSING).to_numpy().astype(np.int64)
        for labels in (table["id"].map(against), table[column])
    )
    return confusion_counts(rows, columns, len(names))
