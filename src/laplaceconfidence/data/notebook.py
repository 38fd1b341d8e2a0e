"""Data sets as HTML for notebooks."""

from __future__ import annotations

import numpy as np

from laplaceconfidence.arrays import IntArray
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.data.picture_encoding import picture_of
from laplaceconfidence.notebook_html import (
    Html,
    bar,
    element,
    joined,
    panel,
    picture,
    section,
    shortened,
    table,
)
from laplaceconfidence.wording import counted

MOST_CLASSES = 12
N_SAMPLES = 8
LONGEST_TEXT = 240  # characters
LONGEST_NAME = 40
SIDE = 72  # pixels of a picture on the page; twice as many are embedded, for fine screens


def dataset_html(dataset: NoisyDataset) -> str:
    """A data set as HTML: its size, its classes with the number of their labels, and a few samples.

    Parameters
    ----------
    dataset : NoisyDataset
        The data set.

    Returns
    -------
    str
    """
    parts = [section("Labels per class", _classes(dataset))]
    if samples := _samples(dataset):
        parts.append(section("Some samples", samples))
    return panel(dataset_title(dataset), *parts, note=_facts(dataset))


def dataset_title(dataset: NoisyDataset) -> str:
    """The numbers of samples and classes, such as "1,797 samples of 10 classes".

    Parameters
    ----------
    dataset : NoisyDataset
        The data set.

    Returns
    -------
    str
    """
    return f"{counted(len(dataset), 'sample')} of {counted(dataset.n_classes, 'class', 'classes')}"


def are_pictures(dataset: NoisyDataset) -> bool:
    """Return whether the samples of a data set are shown as pictures.

    Parameters
    ----------
    dataset : NoisyDataset
        The data set.

    Returns
    -------
    bool
    """
    return dataset.images is not None or dataset.source_kind == "image"


def sample_html(dataset: NoisyDataset, row: int, side: int = SIDE) -> Html:
    """One sample as HTML: its picture, or its text, shortened.

    Parameters
    ----------
    dataset : NoisyDataset
        The data set.
    row : int
        Number of the sample.
    side : int, default=72
        Pixels of the square that a picture is fitted into.

    Returns
    -------
    Html
        A note if an image file cannot be decoded; empty if the data set has neither images nor texts.
    """
    if are_pictures(dataset):
        found = picture_of(dataset, row, 2 * side)
        if found is None:
            return element("div", "picture cannot be read", class_="lc-lost")
        name = f"sample {_name(dataset, row)}"
        return picture(found.data_uri, name, side, coarse=found.is_coarse)
    if dataset.sources is not None:
        return element("div", shortened(str(dataset.sources[row]), LONGEST_TEXT), class_="lc-text")
    return Html("")


def _facts(dataset: NoisyDataset) -> str:
    facts = []
    if n_missing := int((dataset.labels == MISSING).sum()):
        facts.append(f"{n_missing:,} without a label")
    if dataset.features is not None:
        facts.append(f"{counted(dataset.features.shape[1], 'feature')} ({dataset.features.dtype})")
    if dataset.images is not None:
        facts.append(f"images of {' × '.join(str(side) for side in dataset.images.shape[1:])}")
    if dataset.sources is not None:
        facts.append("texts" if dataset.source_kind == "text" else "image files")
    if dataset.true_labels is not None:
        facts.append("true labels known")
    return ", ".join(facts)


def _classes(dataset: NoisyDataset) -> Html:
    counts = np.bincount(dataset.labels[dataset.labels != MISSING], minlength=dataset.n_classes)
    order = np.argsort(-counts, kind="stable") if dataset.n_classes > MOST_CLASSES else range(len(counts))
    most = max(1, int(counts.max()))
    rows = [
        (shortened(dataset.class_names[code], LONGEST_NAME), f"{counts[code]:,}", bar(counts[code] / most))
        for code in order[:MOST_CLASSES]
    ]
    shown = table(("class", "labels", ""), rows, numbers=["labels"])
    if len(counts) <= MOST_CLASSES:
        return shown
    more = f"and {counted(len(counts) - MOST_CLASSES, 'class', 'classes')} with fewer labels"
    return joined([shown, element("div", more, class_="lc-note")])


def _samples(dataset: NoisyDataset) -> Html:
    """Samples from all over the data set, as files are often sorted by class."""
    rows: IntArray = np.unique(np.linspace(0, len(dataset) - 1, N_SAMPLES).astype(np.int64))
    names = [shortened(_label(dataset, int(row)), LONGEST_NAME) for row in rows]
    if are_pictures(dataset):
        cells = [
            element("div", sample_html(dataset, int(row)), name)
            for row, name in zip(rows, names, strict=True)
        ]
        return element("div", *cells, class_="lc-strip")
    if dataset.sources is None:
        return Html("")
    looks = (sample_html(dataset, int(row)) for row in rows)
    ids = (_name(dataset, int(row)) for row in rows)
    return table(("id", "label", "text"), zip(ids, names, looks, strict=True))


def _name(dataset: NoisyDataset, row: int) -> str:
    """The id, or the row where ids would have to be derived from all samples first."""
    return f"row {row}" if dataset.ids is None else shortened(str(dataset.ids[row]), LONGEST_NAME)


def _label(dataset: NoisyDataset, row: int) -> str:
    code = int(dataset.labels[row])
    return "no label" if code == MISSING else dataset.class_names[code]
