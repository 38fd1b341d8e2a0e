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


@dataclass(frozen=True, slots=True, eq=False)
class ImageFeatures:
    """A data set with features, and how they were learned."""

    dataset: NoisyDataset
    described: dict[str, Any] = field(default_factory=dict)  # for the record of the run
    skipped: list[BadImage] = field(default_factory=list)
    reused_from: Path | None = None  # the audit that learned them before


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
    from laplaceconfidence.records.learned_features import data_digest, described_features, earlier_features
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
