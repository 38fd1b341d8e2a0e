"""Features for an audit of images that come without: a network is warmed up on the given labels."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from laplaceconfidence.cli.console import notices
from laplaceconfidence.cli.torch_needed import check_torch
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.image_files import BadImage, decode_images, has_image_files
from laplaceconfidence.threads import available_cores
from laplaceconfidence.validation import must_be

MOST_SHOWN = 10


@dataclass(frozen=True, slots=True)
class ImageOptions:
    """What the user said about the network and its images; ``None`` where nothing was said."""

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
    """The data set with features, and how they came about."""

    dataset: NoisyDataset
    described: dict[str, Any] = field(default_factory=dict)  # for the record of the audit
    skipped: list[BadImage] = field(default_factory=list)


def describes_itself(dataset: NoisyDataset) -> bool:
    """Whether the data set has features already, or no images that they could come from."""
    return dataset.features is not None or (dataset.images is None and not has_image_files(dataset))


def learn_features(
    dataset: NoisyDataset, options: ImageOptions, *, seed: int, n_jobs: int | None
) -> ImageFeatures:
    """Decode the images, warm a network up on the given labels and take its features."""
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
    described = {
        "network": warm_up.network,
        "epochs": warm_up.epochs,
        "batch_size": warm_up.batch_size,
        "learning_rate": warm_up.learning_rate,
        "random_state": seed,
        "image_size": options.image_size,
        "skipped_images": [image.path for image in skipped],
    }
    return ImageFeatures(dataset.with_features(warm_up.features(dataset)), described, skipped)


def tell_skipped(skipped: list[BadImage]) -> None:
    """List the images that were left out."""
    if skipped:
        console = notices()
        console.print(f"{len(skipped):,} images cannot be decoded and were left out:")
        for image in skipped[:MOST_SHOWN]:
            console.print(f"  {image.path}", markup=False, soft_wrap=True)
        if len(skipped) > MOST_SHOWN:
            console.print(f"  ... and {len(skipped) - MOST_SHOWN:,} more, all listed in audit.json")
