"""Features for data sets that have texts, images or columns of different kinds in their place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.encoders.cache import FeatureCache
from laplaceconfidence.encoders.protocol import Encoder, checked_rows
from laplaceconfidence.encoders.samples import RawSamples
from laplaceconfidence.encoders.table_columns import ColumnsEncoder
from laplaceconfidence.encoders.tfidf import TfidfEncoder
from laplaceconfidence.validation import must_be
from laplaceconfidence.wording import counted

FEATURES = "features"
"""Name of the view of the features, or of columns of a table, that a data set has besides what is encoded."""

_WORDS = {"text": "texts", "image": "images", "columns": "columns of a table"}


def needs_encoding(dataset: NoisyDataset) -> bool:
    """Return whether a data set has texts or columns of different kinds, but no features.

    Parameters
    ----------
    dataset : NoisyDataset
        The data set.

    Returns
    -------
    bool
    """
    has_content = dataset.columns is not None or dataset.source_kind == "text"
    return dataset.features is None and dataset.images is None and has_content


def default_encoder(dataset: NoisyDataset, *, n_jobs: int | None = None) -> Encoder:
    """Make the encoder of a data set with texts or columns of different kinds, if none is named.

    Parameters
    ----------
    dataset : NoisyDataset
        The data set.
    n_jobs : int, optional
        Number of threads.

    Returns
    -------
    Encoder
    """
    return ColumnsEncoder(n_jobs) if dataset.columns is not None else TfidfEncoder(n_jobs=n_jobs)


def encode_dataset(
    dataset: NoisyDataset,
    encoder: Encoder | None = None,
    *,
    test: NoisyDataset | None = None,
    n_jobs: int | None = None,
    cache: FeatureCache | None = None,
    keep_fitted: bool = False,
) -> tuple[NoisyDataset, NoisyDataset | None]:
    """Encode the texts, images or columns of a data set.

    Parameters
    ----------
    dataset : NoisyDataset
        A data set with texts, images or columns. Features that it has are replaced.
    encoder : Encoder, optional
        By default, TF-IDF vectors of texts, and standardized numbers and categories of columns.
    test : NoisyDataset, optional
        Another data set with the same kind of samples, which nothing is learned from.
    n_jobs : int, optional
        Number of threads of the default encoder.
    cache : FeatureCache, optional
        Where features are looked for, and kept.
    keep_fitted : bool, default=False
        Whether the encoder is needed afterwards, for other samples: ``dataset.encoder``. What an encoder
        learned is not in the cache, so that it learns again.

    Returns
    -------
    dataset : NoisyDataset
        With features, and how they were made as ``encoding``.
    test : NoisyDataset or None
        The test set with features of the same encoder.
    """
    encoder = default_encoder(dataset, n_jobs=n_jobs) if encoder is None else encoder
    samples = _samples(dataset, encoder, "dataset")
    others = None if test is None else _samples(test, encoder, "test")
    may_find = not encoder.learns or (test is None and not keep_fitted)
    features, summary, is_found = _features(encoder, samples, cache, fit=True, may_find=may_find)
    encoding: dict[str, Any] = {
        **encoder.describe(),
        "n_features": features.shape[1],
        "summary": summary,
        "from_cache": is_found,
    }
    encoded_test = None
    if test is not None and others is not None:
        may_find = not encoder.learns
        rows, _, _ = _features(encoder, others, cache if may_find else None, fit=False, may_find=may_find)
        encoded_test = test.with_features(rows, encoding)
    fitted = encoder if keep_fitted else None
    return dataset.with_features(features, encoding, fitted), encoded_test


def encode_views(
    dataset: NoisyDataset,
    encoders: Sequence[Encoder],
    *,
    keep_features: bool = False,
    test: NoisyDataset | None = None,
    n_jobs: int | None = None,
    cache: FeatureCache | None = None,
) -> tuple[NoisyDataset, NoisyDataset | None]:
    """Encode the texts or images of a data set by several encoders: one view each.

    Parameters
    ----------
    dataset : NoisyDataset
        A data set with texts or images.
    encoders : sequence of Encoder
        At least one. Their names name the views.
    keep_features : bool, default=False
        Whether the features of the data set, or its columns of a table, are a view, too, the last one:
        ``FEATURES``.
    test : NoisyDataset, optional
        Another data set with the same kind of samples, which gets the features of the first view.
    n_jobs : int, optional
        Number of threads for columns of a table.
    cache : FeatureCache, optional
        Where the features of each encoder are looked for, and kept.

    Returns
    -------
    dataset : NoisyDataset
        With views, and how each was made under ``"views"`` of ``encoding``.
    test : NoisyDataset or None
        The test set with features comparable with those of the first view.
    """
    views: dict[str, FloatArray] = {}
    encodings: dict[str, dict[str, Any]] = {}
    first_test: NoisyDataset | None = None
    if keep_features and dataset.features is None and dataset.columns is None:
        raise must_be("features", "given where they are to be a view", None)
    for encoder in encoders:
        is_first = not views
        encoded, encoded_test = encode_dataset(dataset, encoder, test=test if is_first else None, cache=cache)
        assert encoded.features is not None
        assert encoded.encoding is not None
        first_test = encoded_test if is_first else first_test
        name = _free_name(encoder.name, views)
        views[name], encodings[name] = encoded.features, dict(encoded.encoding)
    if keep_features:
        own = dataset
        if dataset.columns is not None:
            own, _ = encode_dataset(dataset, n_jobs=n_jobs, cache=cache)
        assert own.features is not None
        views[FEATURES] = own.comparable(own.features)
        encodings[FEATURES] = dict(own.encoding or {"name": FEATURES, "summary": _own_features(own)})
    if len(views) == 1:
        return encoded, first_test
    encoding = {
        "name": " + ".join(views),
        "n_features": sum(view.shape[1] for view in views.values()),
        "summary": "; ".join(f"{name}: {encodings[name]['summary']}" for name in views),
        "views": encodings,
    }
    return dataset.with_views(views, encoding), first_test


def _own_features(dataset: NoisyDataset) -> str:
    assert dataset.features is not None
    n = dataset.features.shape[1]
    if dataset.feature_columns is None:
        return counted(n, "feature")
    standardized = ", standardized" if dataset.feature_scaling is not None else ""
    return counted(n, "column of the table", "columns of the table") + standardized


def _free_name(name: str, taken: dict[str, FloatArray]) -> str:
    free, number = name, 2
    while free in taken:
        free, number = f"{name} ({number})", number + 1
    return free


def _features(
    encoder: Encoder, samples: RawSamples, cache: FeatureCache | None, *, fit: bool, may_find: bool
) -> tuple[FloatArray, str, bool]:
    """The features of samples, what they are in words, and whether they were found in the cache."""
    made_of: dict[str, Any] = {}
    if cache is not None and encoder.is_cached:
        made_of = {"samples": samples.digest(), "encoder": encoder.describe()}
        if may_find and (found := cache.find(made_of)) is not None and len(found.features) == len(samples):
            return found.features, found.summary, True
    encoded = encoder.fit_transform(samples) if fit else encoder.transform(samples)
    features = checked_rows(encoded, len(samples), encoder.name)
    if cache is not None and made_of:
        cache.store(made_of, features, encoder.summary())
    return features, encoder.summary(), False


def _samples(dataset: NoisyDataset, encoder: Encoder, parameter: str) -> RawSamples:
    samples = RawSamples.of_dataset(dataset, encoder.takes)
    taken = " or ".join(_WORDS[kind] for kind in encoder.takes)
    if samples is None:
        rule = f"data with {taken}, which the encoder {encoder.name} takes"
        advice = "Name the column with --text or --path." if dataset.images is None else ""
        raise must_be(parameter, rule, "data without texts and images", advice)
    if samples.kind not in encoder.takes:
        raise must_be(
            "encoder", f"one that takes {_WORDS[samples.kind]}", f"{encoder.name}, which takes {taken}"
        )
    return samples
