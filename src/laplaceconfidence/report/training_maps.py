"""Maps of learned features: t-SNE after plain and after robust training, as in the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray, StrArray
from laplaceconfidence.notebook_html import shortened
from laplaceconfidence.records.training_run import LearnedFeatures, TrainingRun
from laplaceconfidence.report.audit_figures import LONGEST_NAME
from laplaceconfidence.report.drawing import PALETTE, Drawing, Theme, new_figure
from laplaceconfidence.report.training_figures import true_labels
from laplaceconfidence.wording import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_POINTS = 5_000
MOST_NAMED = 20  # classes
_MARKS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">")


def feature_maps(run: TrainingRun) -> Drawing | None:
    """Draw t-SNE maps of the features before and after training, colored by true (or given) label.

    Parameters
    ----------
    run : TrainingRun
        The run.

    Returns
    -------
    Drawing or None
        None where no features were stored.
    """
    features, found = run.features, _shown_samples(run)
    if features is None or found is None:
        return None
    chosen, classes = found
    maps = {"after training": embedded(features.after[chosen])}
    if features.before is not None:
        maps = {_before(features): embedded(features.before[chosen]), **maps}

    def draw(theme: Theme) -> Figure:
        figure, axes = new_figure(4.1 * len(maps), 4.1, len(maps))
        for (title, points), one in zip(maps.items(), axes, strict=True):
            draw_map(one, points, classes, theme)
            one.set_title(title)
        return figure

    words = "given" if true_labels(run, "train") is None else "true"
    alt = f"t-SNE maps of {len(chosen):,} samples, {' and '.join(maps)}, marked by their {words} label."
    return Drawing("features", "Learned features", alt, draw)


def mapped_features(run: TrainingRun) -> tuple[FloatArray, StrArray] | None:
    """Compute the t-SNE map of the features after training.

    Parameters
    ----------
    run : TrainingRun
        The run.

    Returns
    -------
    points : ndarray of shape (m, 2)
        The map.
    classes : ndarray of str of shape (m,)
        True (or given) labels.

    None is returned where no features were stored.
    """
    features, found = run.features, _shown_samples(run)
    if features is None or found is None:
        return None
    chosen, classes = found
    return embedded(features.after[chosen]), classes


def draw_map(axes: Axes, points: FloatArray, classes: StrArray, theme: Theme) -> None:
    """Draw a map: one color and mark per class, and the names of the classes if there are few.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Where to draw.
    points : ndarray of shape (m, 2)
        The map.
    classes : ndarray of str of shape (m,)
        Classes of the points.
    theme : Theme
        Colors.
    """
    names = sorted(set(classes))
    for index, name in enumerate(names):
        own = classes == name
        axes.scatter(
            points[own, 0],
            points[own, 1],
            s=8,
            color=PALETTE[index % len(PALETTE)],
            marker=_MARKS[index % len(_MARKS)],
            linewidths=0,
            rasterized=True,
        )
    if len(names) <= MOST_NAMED:
        _write_names(axes, points, classes, theme)
    axes.axis("off")


def _shown_samples(run: TrainingRun) -> tuple[IntArray, StrArray] | None:
    """Which of the stored features are drawn, and the true (or given) labels of their samples."""
    features, refined = run.features, run.refined_labels
    if features is None or refined is None:
        return None
    chosen = np.random.default_rng(0).permutation(len(features.rows))[:MOST_POINTS]
    ids = refined["id"].to_numpy()[features.rows[chosen]]
    truth = true_labels(run, "train")
    labels = refined.set_index("id")["given_label"] if truth is None else truth
    return chosen, labels.reindex(ids).fillna("no label").astype(str).to_numpy(dtype=str)


def maps_note(run: TrainingRun) -> str:
    """Describe what the maps show.

    Parameters
    ----------
    run : TrainingRun
        The run.

    Returns
    -------
    str
        Empty where there are no maps.
    """
    features = run.features
    if features is None:
        return ""
    learned = "the inputs of the last layer of the network"
    if features.before is None:
        return f"t-SNE of {learned}. This run had no warm-up on the given labels to compare with."
    return (
        f"t-SNE of {learned}, for the same samples: on the left after training on the given labels only, "
        "wrong ones included; on the right at the end."
    )


def embedded(features: FloatArray) -> FloatArray:
    """Compute a t-SNE map of features, with a fixed seed.

    Parameters
    ----------
    features : ndarray of shape (n, ...)
        Features.

    Returns
    -------
    ndarray of shape (n, 2)
    """
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    flat = features.reshape(len(features), -1).astype(np.float32)
    if flat.shape[1] > 50:
        flat = PCA(50, random_state=0).fit_transform(flat) if len(flat) > 50 else flat
    perplexity = min(30.0, max(2.0, (len(flat) - 1) / 3))
    points: FloatArray = TSNE(2, perplexity=perplexity, init="pca", random_state=0).fit_transform(flat)
    return points


def _write_names(axes: Axes, points: FloatArray, classes: StrArray, theme: Theme) -> None:
    """Write each name at the central sample of its class, in place of a legend."""
    for name in np.unique(classes):
        own = points[classes == name]
        x, y = own[np.argmin(np.abs(own - np.median(own, axis=0)).sum(axis=1))]
        behind = {"boxstyle": "round,pad=0.15", "facecolor": theme.ground, "alpha": 0.8, "linewidth": 0}
        axes.text(
            x,
            y,
            shortened(name, LONGEST_NAME),
            ha="center",
            va="center",
            size=9,
            weight="bold",
            color=theme.ink,
            bbox=behind,
        )


def _before(features: LearnedFeatures) -> str:
    return f"after the warm-up ({counted(features.warm_up_rounds or 0, 'round')})"
