"""The data of ``laplaceconfidence bench``: read, decoded, and described for the record."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from laplaceconfidence.cli.bench.request import BenchRequest
from laplaceconfidence.cli.image_features import learn_features
from laplaceconfidence.cli.sources import ImageOptions, needs_learned_features
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.image_files import decode_images, has_image_files
from laplaceconfidence.data.readers import read_dataset
from laplaceconfidence.data.source_paths import full_path, with_full_paths
from laplaceconfidence.data.transitions import DIGITS_ASYMMETRIC
from laplaceconfidence.encoders.cache import FeatureCache
from laplaceconfidence.encoders.encoding import encode_dataset, needs_encoding
from laplaceconfidence.evaluation.bench_file import DataTable
from laplaceconfidence.stages import stage
from laplaceconfidence.validation import must_be

if TYPE_CHECKING:
    from laplaceconfidence.training.preset_tables import Preset

_SEED_OF_SUBSET = 0


@dataclass(frozen=True, slots=True, eq=False)
class BenchData:
    """The samples that noise is added to, and those that networks are tested on."""

    dataset: NoisyDataset
    tests: dict[str, NoisyDataset] = field(default_factory=dict)  # by name; the first is the main one
    n_skipped: int = 0
    image_size: int | None = None
    preset: str | None = None  # where networks are trained


def mapping_of(table: DataTable) -> dict[str, str] | None:
    """Which class asymmetric noise replaces by which; ``None`` where the class names imply it."""
    if table.mapping is None and table.source == "digits":
        return dict(DIGITS_ASYMMETRIC)
    return table.mapping


def data_of_estimators(table: DataTable, request: BenchRequest) -> BenchData:
    """The data for a bench that trains no classifier."""
    assert table.source is not None
    with stage("reading"):
        dataset = _some_of(read_dataset(table.source, **table.read_options()), table)
    if table.features is not None:
        dataset = replace(dataset, images=None, sources=None, source_kind=None)
    if needs_encoding(dataset):
        dataset, _ = encode_dataset(dataset, n_jobs=request.n_jobs, cache=FeatureCache.of_user())
    skipped = 0
    if needs_learned_features(dataset) and has_image_files(dataset):
        dataset, bad = decode_images(
            dataset, table.image_size, skip_bad=table.skip_bad, n_workers=request.n_jobs
        )
        skipped = len(bad)
    else:
        given = {"image_size": table.image_size, "skip_bad": table.skip_bad or None}
        for name, value in given.items():
            if value is not None:
                raise must_be(name, "left out unless features are learned from image files", value)
    if not needs_learned_features(dataset) and request.device is not None:
        raise must_be("device", "left out where no network is trained", request.device)
    return BenchData(dataset, n_skipped=skipped, image_size=table.image_size)


def data_of_methods(
    table: DataTable, request: BenchRequest, preset: str | None, load: Callable[[str], Preset]
) -> BenchData:
    """The data for a bench that trains: samples, test sets, and the preset that suits them.

    ``preset`` is the one that the bench states; ``load`` gives its settings by name.
    """
    from laplaceconfidence.cli.train.data import (
        TrainingSource,
        automatic_preset_for,
        prepare,
        read_source,
    )

    assert table.source is not None
    with stage("reading"):
        dataset = _some_of(read_source(table.source, table.read_options()), table)
    image_size = table.image_size
    if preset is None:
        preset, image_size = automatic_preset_for(
            table.source,
            dataset,
            image_size=image_size,
            settings={} if request.device is None else {"device": request.device},
            changes=request.changes,
        )
    data = load(preset).data
    image_size = data.size(image_size)
    has_test = bool(table.test) or table.test_share is not None
    prepared = prepare(
        dataset,
        TrainingSource(
            source=table.source,
            read_options=table.read_options(),
            named_tests={
                test.name: (test.source or table.source, test.read_options()) for test in table.test
            },
            test_share=table.test_share if has_test else data.test_share,
            image_size=image_size,
            skip_bad=table.skip_bad,
        ),
    )
    tests = prepared.tests if request.needs_tests else {}
    if request.needs_tests and not tests:
        advice = "Name test data with --test, or set a part of the samples aside with --test-share 0.2."
        raise must_be("test", "given if training methods are compared", None, advice)
    return BenchData(prepared.train, tests, len(prepared.skipped), image_size, preset)


def _some_of(dataset: NoisyDataset, table: DataTable) -> NoisyDataset:
    """As many samples as the bench states, the same in every cell."""
    if table.samples is None or table.samples >= len(dataset):
        return dataset
    rows = np.random.default_rng(_SEED_OF_SUBSET).permutation(len(dataset))[: table.samples]
    return dataset.subset(np.sort(rows))


def features_for_noisy(request: BenchRequest, data: BenchData) -> Any:
    """The function that learns features of images with a network; ``None`` if features are there."""
    if not needs_learned_features(data.dataset):
        return None

    def describe(dataset: NoisyDataset, seed: int) -> NoisyDataset:
        size = data.image_size if has_image_files(dataset) else None
        options = ImageOptions(device=request.device, image_size=size)
        learned, _ = learn_features(dataset, options, seed=seed, n_jobs=request.n_jobs)
        return learned.dataset

    return describe


def data_record(table: DataTable, data: BenchData) -> dict[str, Any]:
    """The source of the data, how they were read and their fingerprint, for the record of the bench."""
    dataset = data.dataset
    assert table.source is not None
    found: dict[str, Any] = {
        "source": full_path(table.source),
        "options": with_full_paths(table.read_options()),
        "class_names": list(dataset.class_names),
        "data": fingerprint(dataset),
        "n_skipped_images": data.n_skipped,
        "noises": list(table.noises),
        "mapping": mapping_of(table) if any(n.kind == "asymmetric" for n in table.parsed_noises) else None,
        "image_size": data.image_size,
        # Results on a part of the data are not compared with published ones.
        "published_as": table.published_as if table.samples is None else None,
    }
    if dataset.feature_columns is not None:
        found["feature_columns"] = list(dataset.feature_columns)
    if data.preset is not None:
        found["preset"] = data.preset
        found["tests"] = {name: fingerprint(test) for name, test in data.tests.items()}
    return found


def fingerprint(dataset: NoisyDataset) -> str:
    """A short text that differs for other data."""
    digest = hashlib.sha256("\n".join((*dataset.class_names, *dataset.sample_ids.tolist())).encode())
    for column in (dataset.labels, dataset.true_labels, dataset.features, dataset.images):
        if column is not None:
            digest.update(np.ascontiguousarray(column).data)
    return f"{len(dataset):,} samples, {digest.hexdigest()[:16]}"
