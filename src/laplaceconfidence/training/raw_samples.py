"""Texts, images and columns that an encoder turns into the inputs of a network."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.frame_reader import FrameTable
from laplaceconfidence.data.mixed_columns import MixedColumns
from laplaceconfidence.encoders.encoding import encode_dataset, needs_encoding
from laplaceconfidence.encoders.protocol import Encoder, checked_rows
from laplaceconfidence.encoders.samples import RawSamples
from laplaceconfidence.encoders.table_columns import ColumnsEncoder
from laplaceconfidence.encoders.tfidf import TfidfEncoder


def fit_encoder(X: Any, n_jobs: int | None = None) -> tuple[Any, Encoder | None]:
    """Turn raw samples that a network is trained on into features.

    Parameters
    ----------
    X : NoisyDataset, sequence of str or anything else
        What ``fit`` was given.
    n_jobs : int, optional
        Number of threads.

    Returns
    -------
    X : object
        A data set or array with features; the argument itself, unless it is texts or columns.
    encoder : Encoder or None
        The encoder that made the features.
    """
    if isinstance(X, NoisyDataset):
        if needs_encoding(X):
            X, _ = encode_dataset(X, n_jobs=n_jobs, keep_fitted=True)
            X = replace(X, sources=None, source_kind=None)
        return X, X.encoder
    if are_texts(X):
        encoder = TfidfEncoder(n_jobs=n_jobs)
        return encoder.fit_transform(RawSamples.of_texts(X)), encoder
    return X, None


def encode_like_fit(X: Any, encoder: Encoder | None) -> Any:
    """Turn raw samples into features with the encoder of the training samples.

    Parameters
    ----------
    X : NoisyDataset, sequence of str, data frame or anything else
        What ``predict`` was given.
    encoder : Encoder or None
        The encoder of ``fit``.

    Returns
    -------
    object
        A data set or array with features; the argument itself, unless it is raw.
    """
    if encoder is None:
        return X
    if isinstance(X, NoisyDataset):
        samples = RawSamples.of_dataset(X)
        if samples is None or X.features is not None or samples.kind not in encoder.takes:
            return X
        features = checked_rows(encoder.transform(samples), len(samples), encoder.name)
        return replace(X.with_features(features), images=None, sources=None, source_kind=None)
    if "text" in encoder.takes and are_texts(X):
        return encoder.transform(RawSamples.of_texts(X))
    if isinstance(encoder, ColumnsEncoder) and hasattr(X, "iloc") and hasattr(X, "columns"):
        table = FrameTable(X, "X")
        names = [name for name in encoder.columns if name in table.column_names]
        cells = MixedColumns.of(names, [table.texts(name) for name in names])
        return encoder.transform(RawSamples("columns", cells))
    return X


def are_texts(X: Any) -> bool:
    """Return whether ``X`` is a sequence of texts.

    Parameters
    ----------
    X : object
        What was passed.

    Returns
    -------
    bool
    """
    is_series = hasattr(X, "iloc") and not hasattr(X, "columns")
    if not (is_series or isinstance(X, (list, tuple, np.ndarray))) or getattr(X, "ndim", 1) != 1:
        return False
    return len(X) > 0 and all(isinstance(text, str) for text in X)
