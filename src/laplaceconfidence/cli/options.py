"""Options that several commands share, how options are declared, and how their help is grouped."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from laplaceconfidence.cli.numbers import count_number, real_number, whole_number

DATA, EVIDENCE, METHOD, RESULT = "The data", "Other evidence", "The method", "The result"
SETTINGS, MACHINE, RUN = "Settings", "The machine", "The run"
IMAGES, SECOND_SET = "Images without features", "A second set"


def word(panel: str, help: str, *names: str, metavar: str | None = None) -> Any:
    """An option whose type says all about its values."""
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=panel)


def whole(panel: str, help: str) -> Any:
    """An option that is a whole number; which ones make sense is the library's to say."""
    return typer.Option(parser=whole_number, metavar="<int>", help=help, rich_help_panel=panel)


def counted(panel: str, help: str) -> Any:
    """An option that is a whole number from 0 on."""
    return typer.Option(parser=count_number, metavar="<int>", help=help, rich_help_panel=panel)


def real(panel: str, help: str) -> Any:
    """An option that is any number."""
    return typer.Option(parser=real_number, metavar="<float>", help=help, rich_help_panel=panel)


Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="A .npz, .npy, .csv, .tsv or .parquet file, a folder of images with one sub-folder a class, "
        "CIFAR or WebVision as published, or 'digits', 'cifar10', 'cifar100'.",
    ),
]

Label = Annotated[str | None, word(DATA, "Column or key of the labels.")]
Features = Annotated[
    list[str] | None,
    word(
        DATA,
        "Column, pattern ('emb_*') or key of the features, or an .npy file. Repeat it for several columns.",
        metavar="<str>",
    ),
]
Labels = Annotated[
    str | None,
    word(DATA, "File with the labels of an .npy or .npz source: .npy, or text with one a line."),
]
Images = Annotated[str | None, word(DATA, "Key of the images in an .npz file.")]
Id = Annotated[str | None, word(DATA, "Column or key of the sample ids.")]
Text = Annotated[str | None, word(DATA, "Column or key of the texts to show.")]
ImagePath = Annotated[str | None, word(DATA, "Column or key of the image paths.")]
TrueLabel = Annotated[
    str | None, word(DATA, "Column or key of verified labels: never used, only compared with.")
]
MissingLabel = Annotated[str | None, word(DATA, "A label that means 'no label', besides empty ones.")]
Split = Annotated[str | None, word(DATA, "Part of CIFAR or WebVision: train (default), test or all.")]
TestShare = Annotated[float | None, real(DATA, "Share of the samples to set aside as such a test.")]

# What commands group differently in their help is shared without its panel.
IMAGE_SIZE = "Side in pixels that image files are resized to."
SKIP_BAD = "Leave out images that cannot be decoded, and list them."
DEVICE = "auto, cpu, cuda, cuda:0 or mps."


def read_options(**options: Any) -> dict[str, Any]:
    """What the user said about the source, in the words of ``read_dataset``."""
    names = options.pop("features")
    said = {**options, "features": names[0] if names and len(names) == 1 else names or None}
    return {name: value for name, value in said.items() if value is not None}
