"""Sources as commands use them: their names in folders and records, and features for images without any."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

from laplaceconfidence.auditing.diagnostics import installed_versions
from laplaceconfidence.cli.errors import check_torch
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.image_files import BadImage, decode_images, has_image_files
from laplaceconfidence.data.readers import decodes_images
from laplaceconfidence.encoders.cache import FeatureCache
from laplaceconfidence.encoders.encoding import default_encoder, encode_dataset
from laplaceconfidence.encoders.protocol import Encoder
from laplaceconfidence.records.learned_features import (
    LEARNED_BY,
    data_digest,
    described_features,
    earlier_features,
)
from laplaceconfidence.threads import available_cores
from laplaceconfidence.validation import must_be
from laplaceconfidence.wording import counted

_MOST_COLUMNS = 8


def stem_of(source: str) -> str:
    """The name of the source without folder and suffixes."""
    name = Path(source).absolute().name
    return name.lstrip(".").split(".")[0] or "data"


@dataclass(frozen=True, slots=True)
class ImageOptions:
    """Options about the network that learns features and about its images; ``None`` where not given."""

    network: str | None = None
    epochs: int | None = None
    device: str | None = None
    image_size: int | None = None
    skip_bad: bool | None = None

    def refuse(self) -> None:
        """Raise for an option that would be ignored."""
        for option in fields(self):
            if (value := getattr(self, option.name)) is not None:
                rule = "left out unless images are audited without features, a graph or class probabilities"
                raise must_be(option.name, rule, value)


@dataclass(frozen=True, slots=True)
class EncoderRequest:
    """The encoder as the command line asks for it."""

    names: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()  # "key=value"
    image_options: ImageOptions = field(default_factory=ImageOptions)
    n_jobs: int | None = None
    uses_cache: bool = True

    @property
    def cache(self) -> FeatureCache | None:
        """The cache of the user, unless it is not wanted."""
        return FeatureCache.of_user() if self.uses_cache else None

    @property
    def is_given(self) -> bool:
        """Whether an encoder was named."""
        return bool(self.names)

    def check(self, read_options: Mapping[str, Any]) -> None:
        """Raise for options that do not go together."""
        if len(self.names) > 1:
            raise must_be("encoder", "given once, as samples are compared by one set of features", self.names)
        if self.is_given and "features" in read_options:
            rule = "left out where --features are given, as samples are compared by one of them"
            raise must_be("encoder", rule, self.names[0])

    def refuse_network_options(self) -> None:
        """Raise for options about the network that would learn the features of images."""
        for name in ("network", "epochs", "image_size"):
            if (value := getattr(self.image_options, name)) is not None:
                raise must_be(name, "left out where an encoder makes the features", value)

    def make(self, dataset: NoisyDataset) -> Encoder:
        """The encoder; the default one for the data where none was named."""
        from laplaceconfidence.encoders.registry import TFIDF, make_encoder, parse_settings

        if dataset.columns is not None:
            for setting in self.settings:
                raise must_be("encoder_set", "left out where columns of a table are the features", setting)
            return default_encoder(dataset, n_jobs=self.n_jobs)
        return make_encoder(
            self.names[0] if self.names else TFIDF,
            parse_settings(self.settings),
            device=self.image_options.device,
            n_jobs=self.n_jobs,
        )


@dataclass(frozen=True, slots=True, eq=False)
class ImageFeatures:
    """A data set with features, and how they were learned."""

    dataset: NoisyDataset
    described: dict[str, Any] = field(default_factory=dict)  # for the record of the run
    skipped: list[BadImage] = field(default_factory=list)
    reused_from: Path | None = None  # the audit that learned them before

    @property
    def recorded(self) -> dict[str, Any]:
        """What the record of the run says about it."""
        if self.described:
            return {LEARNED_BY: self.described}
        return {"skipped_images": [image.path for image in self.skipped]} if self.skipped else {}


def with_image_size(
    source: str, read_options: Mapping[str, Any], image_size: int | None
) -> tuple[dict[str, Any], int | None]:
    """Move the image size to the options of the reader if it decodes the images; returns both."""
    if image_size is None or not decodes_images(source, split=read_options.get("split")):
        return dict(read_options), image_size
    return {**read_options, "image_size": image_size}, None


def features_line(dataset: NoisyDataset, *, are_compared: bool = True) -> str | None:
    """The sentence about the columns that were used as features; ``None`` where they are not from a table.

    ``are_compared`` is whether samples are compared by them, and not only a network trained on them.
    """
    if dataset.encoding is not None:
        found = ", found in the cache" if dataset.encoding.get("from_cache") else ""
        return f"Features: {dataset.encoding['summary']}{found}."
    names = dataset.feature_columns
    if names is None:
        return None
    listed = names if len(names) <= _MOST_COLUMNS else (*names[:3], "...", names[-1])
    is_standardized = are_compared and dataset.feature_scaling is not None
    standardized = ", standardized before samples are compared" if is_standardized else ""
    return f"Features: {counted(len(names), 'column')} ({', '.join(listed)}){standardized}."


def needs_learned_features(dataset: NoisyDataset) -> bool:
    """Whether the data set has images but no features."""
    return dataset.features is None and (dataset.images is not None or has_image_files(dataset))


def encoded_features(
    dataset: NoisyDataset, test: NoisyDataset | None, wanted: EncoderRequest, *, keep_fitted: bool = False
) -> tuple[ImageFeatures, NoisyDataset | None]:
    """Encode the texts, images or columns of the data and of the test data."""
    encoder = wanted.make(dataset)
    skipped: list[BadImage] = []
    if wanted.image_options.skip_bad:
        if not has_image_files(dataset):
            raise must_be("skip_bad", "left out unless image files are encoded", True)
        # Decoded to find those that cannot be; the encoder decodes the others at the size it needs.
        dataset, skipped = decode_images(dataset, 8, skip_bad=True, n_workers=wanted.n_jobs, keep_up_to=0)
    dataset, test = encode_dataset(dataset, encoder, test=test, cache=wanted.cache, keep_fitted=keep_fitted)
    return ImageFeatures(dataset, skipped=skipped), test


def learn_features(
    dataset: NoisyDataset,
    options: ImageOptions,
    *,
    seed: int,
    n_jobs: int | None,
    earlier: Iterable[Path] = (),
) -> ImageFeatures:
    """Decode the images, train a network briefly on the given labels and take its features.

    ``earlier`` are folders of audits: features that one of them learned from the same data with the same
    settings are used again.
    """
    check_torch("An audit of images without features")
    from laplaceconfidence.training.warm_up_features import WarmUp

    skipped: list[BadImage] = []
    if has_image_files(dataset):
        dataset, skipped = decode_images(
            dataset, options.image_size, skip_bad=bool(options.skip_bad), n_workers=n_jobs
        )
    else:
        ImageOptions(image_size=options.image_size, skip_bad=options.skip_bad).refuse()
    for_network = {name: getattr(options, name) for name in ("network", "epochs", "device")}
    warm_up = WarmUp(
        **{name: value for name, value in for_network.items() if value is not None},
        random_state=seed,
        image_size=options.image_size,
        n_workers=available_cores() if has_image_files(dataset) else 0,
        n_jobs=n_jobs,
    )
    learned_by = {
        "network": warm_up.network,
        "epochs": warm_up.epochs,
        "batch_size": warm_up.batch_size,
        "learning_rate": warm_up.learning_rate,
        "random_state": seed,
        "image_size": options.image_size,
        "skipped_images": [image.path for image in skipped],
        "data_digest": data_digest(dataset),
        "versions": {
            "laplaceconfidence": installed_versions()["laplaceconfidence"],
            "torch": version("torch"),
        },
    }
    # The name of a network of the user's own says nothing about its code, which may have changed.
    known = None if ":" in str(warm_up.network) else earlier_features(earlier, learned_by)
    found, folder = (warm_up.features(dataset), None) if known is None else known
    with_features = dataset.with_features(found)
    assert with_features.features is not None
    described = described_features(learned_by, with_features.features)
    return ImageFeatures(with_features, described, skipped, folder)
