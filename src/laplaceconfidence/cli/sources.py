"""Sources as commands use them: their names in folders and records, and the encoders of their samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.image_files import BadImage, decode_images, has_image_files
from laplaceconfidence.data.readers import decodes_images
from laplaceconfidence.encoders.cache import FeatureCache
from laplaceconfidence.encoders.encoding import default_encoder, encode_dataset, encode_views
from laplaceconfidence.encoders.protocol import Encoder
from laplaceconfidence.records.learned_features import LEARNED_BY
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

    def refuse_several_views(self, read_options: Mapping[str, Any]) -> None:
        """Raise where more than one set of features is asked for, of which a network takes one."""
        if len(self.names) > 1:
            rule = "given once, as a network is trained on one set of features; audits take several"
            raise must_be("encoder", rule, self.names)
        if self.is_given and "features" in read_options:
            rule = "left out where --features are given, as a network is trained on one of them"
            raise must_be("encoder", rule, self.names[0], "Audits take both.")

    def refuse_network_options(self) -> None:
        """Raise for options about the network that would learn the features of images."""
        for name in ("network", "epochs", "image_size"):
            if (value := getattr(self.image_options, name)) is not None:
                raise must_be(name, "left out where an encoder makes the features", value)

    def make(self, dataset: NoisyDataset) -> list[Encoder]:
        """The encoders; the default one for the data where none was named."""
        from laplaceconfidence.encoders.registry import TFIDF, make_encoders, parse_settings

        if dataset.columns is not None and not self.names:
            for setting in self.settings:
                raise must_be("encoder_set", "left out where columns of a table are the features", setting)
            return [default_encoder(dataset, n_jobs=self.n_jobs)]
        return make_encoders(
            self.names or (TFIDF,),
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
    learned: FloatArray | None = None  # what the network learned

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


def features_line(
    dataset: NoisyDataset, *, are_compared: bool = True, weights: Mapping[str, float] | None = None
) -> str | None:
    """The sentence about the columns that were used as features; ``None`` where they are not from a table.

    ``are_compared`` is whether samples are compared by them, and not only a network trained on them;
    ``weights`` are the shares of the views in the estimate, if there are several.
    """
    if dataset.encoding is not None:
        views = dataset.encoding.get("views", {})
        if not views:
            return f"Features: {_encoded(dataset.encoding)}."
        lines = [f"Features: {len(views)} views, weighted by how well they predict held-out labels:"]
        for name, view in views.items():
            share = f" ({weights[name]:.0%} of the weight)" if weights and name in weights else ""
            lines.append(f"  {name}{share}: {_encoded(view)}")
        lines += [
            f"  {name} ({share:.0%} of the weight)"
            for name, share in (weights or {}).items()
            if name not in views
        ]
        return "\n".join(lines)
    names = dataset.feature_columns
    if names is None:
        return None
    listed = names if len(names) <= _MOST_COLUMNS else (*names[:3], "...", names[-1])
    is_standardized = are_compared and dataset.feature_scaling is not None
    standardized = ", standardized before samples are compared" if is_standardized else ""
    return f"Features: {counted(len(names), 'column')} ({', '.join(listed)}){standardized}."


def _encoded(encoding: Mapping[str, Any]) -> str:
    return f"{encoding['summary']}{', found in the cache' if encoding.get('from_cache') else ''}"


def needs_learned_features(dataset: NoisyDataset) -> bool:
    """Whether the data set has images but no features."""
    return dataset.features is None and (dataset.images is not None or has_image_files(dataset))


def encoded_features(
    dataset: NoisyDataset,
    test: NoisyDataset | None,
    wanted: EncoderRequest,
    *,
    keep_fitted: bool = False,
    keep_features: bool = False,
) -> tuple[ImageFeatures, NoisyDataset | None]:
    """Encode the texts, images or columns of the data and of the test data.

    ``keep_fitted`` is whether the encoder is needed afterwards, ``keep_features`` whether the features that
    the data has are a view besides those of the encoders.
    """
    encoders = wanted.make(dataset)
    skipped: list[BadImage] = []
    if wanted.image_options.skip_bad:
        if not has_image_files(dataset):
            raise must_be("skip_bad", "left out unless image files are encoded", True)
        # Decoded to find those that cannot be; the encoder decodes the others at the size it needs.
        dataset, skipped = decode_images(dataset, 8, skip_bad=True, n_workers=wanted.n_jobs, keep_up_to=0)
    if len(encoders) == 1 and not keep_features:
        dataset, test = encode_dataset(
            dataset, encoders[0], test=test, cache=wanted.cache, keep_fitted=keep_fitted
        )
    else:
        dataset, test = encode_views(
            dataset,
            encoders,
            keep_features=keep_features,
            test=test,
            n_jobs=wanted.n_jobs,
            cache=wanted.cache,
        )
    return ImageFeatures(dataset, skipped=skipped), test
