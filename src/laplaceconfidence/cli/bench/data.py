"""The data of ``laplaceconfidence bench``: read, decoded, and described for the record."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from laplaceconfidence.cli.bench.request import BenchRequest
from laplaceconfidence.cli.sources import (
    ImageOptions,
    learn_features,
    needs_learned_features,
)
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.image_files import decode_images, has_image_files
from laplaceconfidence.data.readers import read_dataset
from laplaceconfidence.data.source_paths import full_path, with_full_paths
from laplaceconfidence.encoders.cache import FeatureCache
from laplaceconfidence.encoders.encoding import encode_dataset, needs_encoding
from laplaceconfidence.stages import stage
from laplaceconfidence.validation import must_be

if TYPE_CHECKING:
    from laplaceconfidence.training.preset_tables import Preset


@dataclass(frozen=True, slots=True, eq=False)
class BenchData:
    """The samples that noise is added to, and those that networks are tested on."""

    dataset: NoisyDataset
    test: NoisyDataset | None = None
    n_skipped: int = 0
    image_size: int | None = None


def data_of_estimators(request: BenchRequest) -> BenchData:
    """The data for a bench that trains no classifier."""
    with stage("reading"):
        dataset = read_dataset(request.source, **request.read_options)
    if "features" in request.read_options:
        dataset = replace(dataset, images=None, sources=None, source_kind=None)
    if needs_encoding(dataset):
        dataset, _ = encode_dataset(dataset, n_jobs=request.n_jobs, cache=FeatureCache.of_user())
    skipped = 0
    if needs_learned_features(dataset) and has_image_files(dataset):
        dataset, bad = decode_images(
            dataset, request.image_size, skip_bad=request.skip_bad, n_workers=request.n_jobs
        )
        skipped = len(bad)
    else:
        given = {"image_size": request.image_size, "skip_bad": request.skip_bad or None}
        for name, value in given.items():
            if value is not None:
                raise must_be(name, "left out unless features are learned from image files", value)
    if not needs_learned_features(dataset) and request.device is not None:
        raise must_be("device", "left out where no network is trained", request.device)
    return BenchData(dataset, n_skipped=skipped, image_size=request.image_size)


def data_of_methods(request: BenchRequest, dataset: NoisyDataset, preset: Preset) -> BenchData:
    """The data for a bench that trains: ``dataset`` as ``read_source`` returned it, and test data."""
    from laplaceconfidence.cli.train.data import TrainingSource, prepare

    has_test = request.test is not None or request.test_share is not None
    image_size = preset.data.image_size if request.image_size is None else request.image_size
    prepared = prepare(
        dataset,
        TrainingSource(
            source=request.source,
            read_options=request.read_options,
            tests=() if request.test is None else (request.test,),
            test_share=request.test_share if has_test else preset.data.test_share,
            image_size=image_size,
            skip_bad=request.skip_bad,
        ),
    )
    if not prepared.tests:
        advice = "Name test data with --test, or set a part of the samples aside with --test-share 0.2."
        raise must_be("test", "given if training methods are compared", None, advice)
    test = next(iter(prepared.tests.values()))
    return BenchData(prepared.train, test, len(prepared.skipped), image_size)


def features_for_noisy(request: BenchRequest, data: BenchData) -> Any:
    """The function that learns features of images with a network; ``None`` if features are there."""
    if not needs_learned_features(data.dataset):
        return None

    def describe(dataset: NoisyDataset, seed: int) -> NoisyDataset:
        size = data.image_size if has_image_files(dataset) else None
        options = ImageOptions(device=request.device, image_size=size)
        return learn_features(dataset, options, seed=seed, n_jobs=request.n_jobs).dataset

    return describe


def source_record(request: BenchRequest, data: BenchData) -> dict[str, Any]:
    """The source of the data and its fingerprint, for the record of the bench."""
    dataset, test = data.dataset, data.test
    found: dict[str, Any] = {
        "source": full_path(request.source),
        "options": with_full_paths(request.read_options),
        "class_names": list(dataset.class_names),
        "data": fingerprint(dataset),
        "n_skipped_images": data.n_skipped,
    }
    if dataset.feature_columns is not None:
        found["feature_columns"] = list(dataset.feature_columns)
    if test is not None:
        found["test"] = fingerprint(test)
    return found


def fingerprint(dataset: NoisyDataset) -> str:
    """A short text that differs for other data."""
    digest = hashlib.sha256("\n".join((*dataset.class_names, *dataset.sample_ids.tolist())).encode())
    for column in (dataset.labels, dataset.true_labels, dataset.features, dataset.images):
        if column is not None:
            digest.update(np.ascontiguousarray(column).data)
    return f"{len(dataset):,} samples, {digest.hexdigest()[:16]}"
