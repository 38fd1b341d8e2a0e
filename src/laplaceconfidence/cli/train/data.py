"""The data of ``laplaceconfidence train``: read, decoded, and with noise if the preset states one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from laplaceconfidence.cli.sources import EncoderRequest, encoded_features
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.image_files import BadImage, decode_images, has_image_files
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.data.noise import add_noise
from laplaceconfidence.data.readers import has_published_test, read_dataset
from laplaceconfidence.data.shared_classes import with_classes_of
from laplaceconfidence.data.webvision import is_webvision_folder, read_ilsvrc_validation
from laplaceconfidence.encoders.encoding import needs_encoding
from laplaceconfidence.encoders.torch_device import choose_device
from laplaceconfidence.stages import stage
from laplaceconfidence.training.automatic_settings import (
    automatic_image_size,
    automatic_preset,
    first_image_shape,
    warn_if_large_for_cpu,
)
from laplaceconfidence.training.preset_tables import NoiseSettings
from laplaceconfidence.training.presets import parse_changes
from laplaceconfidence.training.raw_samples import encode_like_fit
from laplaceconfidence.validation import must_be


@dataclass(frozen=True, slots=True, eq=False)
class TrainingSource:
    """The data as the command line and the preset specify it."""

    source: str
    read_options: Mapping[str, Any]  # arguments of read_dataset, as far as they were given
    encoder: EncoderRequest = field(default_factory=EncoderRequest)
    tests: Sequence[str] = ()
    named_tests: Mapping[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)
    """Further test sets by name: sources, and what is read differently there."""
    test_share: float | None = None
    noise: NoiseSettings | None = None
    image_size: int | None = None
    skip_bad: bool = False
    n_workers: int | None = None
    seed: int = 0  # of the choice of samples that are set aside, and of noise without a seed of its own


@dataclass(frozen=True, slots=True, eq=False)
class PreparedData:
    """The data for ``RobustClassifier.fit``, and the images that were left out."""

    train: NoisyDataset
    tests: dict[str, NoisyDataset] = field(default_factory=dict)  # by the name that the summary shows
    skipped: list[BadImage] = field(default_factory=list)


def read_source(
    source: str, read_options: Mapping[str, Any], encoder: EncoderRequest | None = None
) -> NoisyDataset:
    """The data set to train on: with features if they were named, else with images or texts if there are any.

    Parameters
    ----------
    source : str
        What the command was given.
    read_options : mapping of str to Any
        Arguments of ``read_dataset``.
    encoder : EncoderRequest, optional
        The encoder that was asked for. If one was named, texts or images are kept for it.

    Returns
    -------
    NoisyDataset
        Image files are not decoded, and texts are not encoded yet.
    """
    dataset = read_dataset(source, **read_options)
    if "features" in read_options:
        if "text" in read_options:
            rule = "left out where --features are given, as a network is trained on one of them"
            raise must_be("text", rule, read_options["text"])
        return replace(dataset, images=None, sources=None, source_kind=None)
    if (encoder is not None and encoder.is_given) or "text" in read_options:
        return replace(dataset, features=None, feature_columns=None, feature_scaling=None)
    if dataset.images is None and dataset.source_kind is None and dataset.features is None:
        advice = dataset.feature_advice or ""
        raise must_be("source", "data with images, texts or features", "one with labels only", advice)
    return dataset


def automatic_preset_for(
    source: str,
    dataset: NoisyDataset,
    *,
    image_size: int | None,
    settings: Mapping[str, Any],
    changes: Sequence[str],
    is_encoded: bool = False,
) -> tuple[str, int | None]:
    """The preset and the image size where no preset was named, as ``RobustClassifier()`` chooses them.

    Parameters
    ----------
    source : str
        What the command was given; "digits" has a preset of its own, which adds noise.
    dataset : NoisyDataset
        What ``read_source`` returned.
    image_size : int or None
        Side that image files are resized to, if it was given as an option.
    settings : mapping of str to Any
        Shared settings that were given as options, such as the network and the device.
    changes : sequence of str
        Changes of settings, which may state the image size, the network and the device, too.
    is_encoded : bool, default=False
        Whether an encoder turns images into features.

    Returns
    -------
    name : str
        Name of the preset.
    image_size : int or None
        The image size to use; ``None`` where images keep their size or the changes state one.
    """
    if source == "digits":
        return "digits", image_size
    tables = parse_changes(changes)
    stated = {**settings, **tables.get("training", {})}
    device = choose_device(stated.get("device", "auto"))
    if is_encoded:
        return automatic_preset((1,), device), image_size
    changed = tables.get("data", {}).get("image_size")
    if image_size is None and changed is None and "network" not in stated:
        image_size = automatic_image_size(dataset, device)
    side = changed if image_size is None and isinstance(changed, int) else image_size
    shape = sample_shape(dataset, side)
    if "network" not in stated:
        warn_if_large_for_cpu(shape, device)
    return automatic_preset(shape, device), image_size


def sample_shape(dataset: NoisyDataset, image_size: int | None) -> tuple[int, ...]:
    """The shape of one sample as networks see it: (features,) or (channels, height, width)."""
    if dataset.images is not None:
        return (dataset.images.shape[-1], *dataset.images.shape[1:3])
    if not has_image_files(dataset):
        # Texts and columns are not encoded yet: they become vectors, of whatever length.
        return (1,) if dataset.features is None else dataset.features.shape[1:]
    if image_size is not None:
        return (3, image_size, image_size)
    return first_image_shape(dataset) or (3, 1, 1)  # if none can be decoded, decode_images reports it


def prepare(dataset: NoisyDataset, wanted: TrainingSource) -> PreparedData:
    """The data ready to be trained on.

    Parameters
    ----------
    dataset : NoisyDataset
        What ``read_source`` returned.
    wanted : TrainingSource
        Test data, noise and image options.

    Returns
    -------
    PreparedData
    """
    with stage("reading"):
        dataset, tests = _with_tests(dataset, wanted)
    if wanted.noise is not None:
        noise = wanted.noise
        dataset = add_noise(
            dataset, noise.kind, noise.rate, random_state=wanted.seed if noise.seed is None else noise.seed
        )
    dataset = replace(dataset, given=None)  # labels as class names from here on
    if wanted.encoder.is_given or needs_encoding(dataset):
        return _encoded(dataset, tests, wanted)
    if wanted.encoder.settings:
        rule = "left out where no encoder makes the features"
        raise must_be("encoder_set", rule, wanted.encoder.settings[0])
    if not has_image_files(dataset):
        _refuse_image_options(dataset, wanted)
        return PreparedData(dataset, tests)
    dataset, skipped = _decoded(dataset, wanted)
    for name, test in tests.items():
        if has_image_files(test):
            tests[name], bad = _decoded(test, wanted)
            skipped = skipped + bad
    return PreparedData(dataset, tests, skipped)


def _encoded(dataset: NoisyDataset, tests: dict[str, NoisyDataset], wanted: TrainingSource) -> PreparedData:
    """The data with features in place of texts, images or columns; the encoder learns from no test set."""
    if not has_image_files(dataset):
        _refuse_image_options(dataset, wanted)
    elif wanted.image_size is not None:
        raise must_be("image_size", "left out where an encoder makes the features", wanted.image_size)
    options = replace(wanted.encoder.image_options, skip_bad=wanted.skip_bad or None)
    encoder = replace(wanted.encoder, image_options=options)
    found, _ = encoded_features(dataset, None, encoder, keep_fitted=True)
    fitted = found.dataset.encoder
    for name, test in tests.items():
        tests[name] = encode_like_fit(test, fitted)
    train = replace(found.dataset, images=None, sources=None, source_kind=None, columns=None)
    return PreparedData(train, tests, found.skipped)


def _with_tests(
    dataset: NoisyDataset, wanted: TrainingSource
) -> tuple[NoisyDataset, dict[str, NoisyDataset]]:
    if (wanted.tests or wanted.named_tests) and wanted.test_share is not None:
        raise must_be("test_share", "left out where --test names a test set", wanted.test_share)
    if wanted.test_share is not None:
        return _set_aside(dataset, wanted)
    tests = {name: _read_test(name, dataset, wanted) for name in wanted.tests}
    for name, (source, options) in wanted.named_tests.items():
        tests[name] = _read_test(source, dataset, wanted, options)
    if (
        not tests
        and wanted.read_options.get("split", "train") == "train"
        and has_published_test(wanted.source)
    ):
        of_test = {**wanted.read_options, "split": "test"}
        if not _has_separate_files(wanted):
            tests = {"the published test set": read_source(wanted.source, of_test, wanted.encoder)}
    return dataset, {name: _verified(with_classes_of(test, dataset)) for name, test in tests.items()}


def _set_aside(dataset: NoisyDataset, wanted: TrainingSource) -> tuple[NoisyDataset, dict[str, NoisyDataset]]:
    share = wanted.test_share
    assert share is not None
    rows = np.random.default_rng(wanted.seed).permutation(len(dataset))
    n_test = round(share * len(rows))
    if not 0 < n_test < len(rows):
        raise must_be("test_share", f"such that both parts of the {len(rows)} samples are not empty", share)
    test = replace(dataset.subset(np.sort(rows[:n_test])), given=None)
    return dataset.subset(np.sort(rows[n_test:])), {f"{share:.0%} of the samples, set aside": _verified(test)}


def _read_test(
    test: str, dataset: NoisyDataset, wanted: TrainingSource, options: Mapping[str, Any] | None = None
) -> NoisyDataset:
    if options:
        return read_source(test, {**wanted.read_options, **options})
    if _has_separate_files(wanted):
        rule = "left out where features or labels are in a separate file"
        raise must_be("test", rule, test, "Set a part of the samples aside with --test-share instead.")
    folder = Path(test)
    if is_webvision_folder(Path(wanted.source)) and folder.is_dir() and not is_webvision_folder(folder):
        return read_ilsvrc_validation(folder, dataset.class_names)
    of_test = {name: value for name, value in wanted.read_options.items() if name != "split"}
    if has_published_test(test):
        of_test["split"] = "test"
    return read_source(test, of_test, wanted.encoder)


def _has_separate_files(wanted: TrainingSource) -> bool:
    features = wanted.read_options.get("features")
    return (isinstance(features, str) and features.endswith(".npy")) or "labels" in wanted.read_options


def _verified(test: NoisyDataset) -> NoisyDataset:
    """A test set with its true labels, where they are known."""
    if test.true_labels is None:
        return test
    return test.with_labels(np.where(test.true_labels == MISSING, test.labels, test.true_labels))


def _decoded(dataset: NoisyDataset, wanted: TrainingSource) -> tuple[NoisyDataset, list[BadImage]]:
    # Zero worker processes means one thread here.
    n_threads = None if wanted.n_workers is None else max(1, wanted.n_workers)
    return decode_images(dataset, wanted.image_size, skip_bad=wanted.skip_bad, n_workers=n_threads)


def _refuse_image_options(dataset: NoisyDataset, wanted: TrainingSource) -> None:
    how = "come as arrays" if dataset.images is not None else "are not trained on"
    if wanted.image_size is not None:
        raise must_be("image_size", f"left out where images {how}", wanted.image_size)
    if wanted.skip_bad:
        raise must_be("skip_bad", f"left out where images {how}", True)
    if wanted.n_workers is not None:
        raise must_be("workers", f"left out where images {how}", wanted.n_workers)
