"""Features of images that have none: patches, and a network that learns from them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.auditing.diagnostics import installed_versions
from laplaceconfidence.cli.errors import check_torch
from laplaceconfidence.cli.sources import ImageFeatures, ImageOptions
from laplaceconfidence.confidence.noise_aware import NoiseAwareConfidence
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.image_files import BadImage, decode_images, has_image_files
from laplaceconfidence.data.images import image_shape
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.encoders.cache import FeatureCache
from laplaceconfidence.encoders.encoding import encode_dataset
from laplaceconfidence.encoders.patches import PatchEncoder
from laplaceconfidence.encoders.registry import PATCHES
from laplaceconfidence.exceptions import DataFormatError, LaplaceConfidenceWarning
from laplaceconfidence.records.learned_features import data_digest, described_features, earlier_features
from laplaceconfidence.threads import available_cores
from laplaceconfidence.wording import counted

NETWORK = "network"
"""Name of the view that a network learns."""

_LARGEST_SMALL_SIDE = 96  # pixels; larger images are resized for the network
_SIDE_OF_OTHER_IMAGES = 64


def learn_features(
    dataset: NoisyDataset,
    options: ImageOptions,
    *,
    seed: int,
    n_jobs: int | None,
    test: NoisyDataset | None = None,
    cache: FeatureCache | None = None,
    earlier: Iterable[Path] = (),
) -> tuple[ImageFeatures, NoisyDataset | None]:
    """Describe images by two views: their responses to random patches, and what a network learns.

    The network is trained on what the patches, which no label has an influence on, say about the labels. With
    0 epochs, and without torch, the patches are all. ``earlier`` are folders of audits: features that one of
    them learned from the same data with the same settings are used again. Test images get the first view.
    """
    if options.network is not None or options.epochs:
        check_torch("A network that learns features of images")
    size = options.image_size
    skipped: list[BadImage] = []
    if has_image_files(dataset):
        size = usual_size(dataset) if size is None else size
        dataset, skipped = decode_images(dataset, size, skip_bad=bool(options.skip_bad), n_workers=n_jobs)
    else:
        ImageOptions(image_size=size, skip_bad=options.skip_bad).refuse()
    patches = PatchEncoder(random_state=seed, n_jobs=n_jobs)
    described, test = encode_dataset(dataset, patches, test=test, cache=cache)
    if options.epochs == 0 or find_spec("torch") is None:
        return ImageFeatures(described, skipped=skipped), test
    return _with_network(described, options, seed, size, n_jobs, skipped, earlier), test


def _with_network(
    dataset: NoisyDataset,
    options: ImageOptions,
    seed: int,
    size: int | None,
    n_jobs: int | None,
    skipped: list[BadImage],
    earlier: Iterable[Path],
) -> ImageFeatures:
    """A second view of images that have one: the features of a network."""
    from laplaceconfidence.training.warm_up_features import WarmUp

    assert dataset.features is not None
    assert dataset.encoding is not None
    chosen = {name: getattr(options, name) for name in ("network", "epochs", "device")}
    warm_up = WarmUp(
        **{name: value for name, value in chosen.items() if value is not None},
        random_state=seed,
        image_size=size,
        n_workers=available_cores() if has_image_files(dataset) else 0,
        n_jobs=n_jobs,
    )
    learned_by = {
        "network": warm_up.network,
        "epochs": warm_up.epochs,
        "batch_size": warm_up.batch_size,
        "learning_rate": warm_up.learning_rate,
        "random_state": seed,
        "image_size": size,
        "skipped_images": [image.path for image in skipped],
        "data_digest": data_digest(dataset),
        "targets": {name: value for name, value in dataset.encoding.items() if name != "from_cache"},
        "versions": {
            "laplaceconfidence": installed_versions()["laplaceconfidence"],
            "torch": version("torch"),
        },
    }
    # The name of a network of the user's own says nothing about its code, which may have changed.
    known = None if ":" in str(warm_up.network) else earlier_features(earlier, learned_by)
    if known is None:
        found, folder = warm_up.features(dataset, distributions=_distributions(dataset, seed, n_jobs)), None
    else:
        found, folder = known
    name = warm_up.network if isinstance(warm_up.network, str) else type(warm_up.network).__name__
    encodings = {
        PATCHES: dict(dataset.encoding),
        NETWORK: {
            "name": NETWORK,
            "n_features": found.shape[1],
            "summary": f"penultimate layer of {name}, trained for {counted(warm_up.epochs, 'epoch')} on what "
            "the patches say about the labels",
        },
    }
    encoding = {
        "name": f"{PATCHES} + {NETWORK}",
        "n_features": sum(view["n_features"] for view in encodings.values()),
        "summary": "; ".join(f"{view}: {one['summary']}" for view, one in encodings.items()),
        "views": encodings,
    }
    with_views = dataset.with_views({PATCHES: dataset.features, NETWORK: found}, encoding)
    return ImageFeatures(with_views, described_features(learned_by, found), skipped, folder, learned=found)


def _distributions(dataset: NoisyDataset, seed: int, n_jobs: int | None) -> FloatArray:
    """(n, C) class probabilities of all samples by their features and given labels."""
    assert dataset.features is not None
    judge = NoiseAwareConfidence(
        n_components=dataset.features.shape[1], missing_label=MISSING, random_state=seed, n_jobs=n_jobs
    )
    with warnings.catch_warnings():  # the audit itself says what is to be said
        warnings.simplefilter("ignore", LaplaceConfidenceWarning)
        judge.fit(dataset.features, dataset.labels)
    distributions = np.zeros((len(dataset), dataset.n_classes))
    distributions[:, judge.classes_] = judge.label_distributions_
    return distributions


def usual_size(dataset: NoisyDataset) -> int | None:
    """The side that images are resized to: ``None``, their own, if it is the same for all and not large.

    Where sizes differ, the usual one counts: an odd image changes nothing for the others.
    """
    assert dataset.sources is not None
    shapes = []
    for path in dataset.sources:
        try:
            shapes.append(image_shape(str(path)))
        except DataFormatError:
            continue  # reported when it is decoded
    if not shapes:
        return None
    usual = int(np.median([max(shape) for shape in shapes]))
    if usual > _LARGEST_SMALL_SIDE:
        return _SIDE_OF_OTHER_IMAGES
    return None if len(set(shapes)) == 1 else usual
