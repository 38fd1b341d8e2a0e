"""Options that several commands share, how options are declared, and how their help is grouped.

Nothing heavy is imported here, so that ``--help`` is instant. Names and numbers that help texts show are
repeated here for that reason; a test compares them with where they are defined.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

DATA, EVIDENCE, METHOD, RESULT = "Data", "Other evidence", "Method", "Results"
SETTINGS, MACHINE, RUN = "Settings", "Hardware", "Run folder"
IMAGES, TEST_DATA, ANNOTATORS = "Images without features", "Test data", "Several annotators"
LARGE = "More data than fits in memory"

FEATURE_ESTIMATORS = ("noise-aware", "laplace", "knn-vote", "refined-cross-entropy", "largest-component")
PROBABILITY_ESTIMATORS = ("normalized-margin", "self-confidence", "gaussian-mixture", "beta-mixture")
FEWEST_AUDITED = 50  # verified labels that calibrate the confidences of the others
NETWORKS = (
    "small_cnn",
    "small_resnet",
    "preact_resnet18",
    "preact_resnet18_normalized_stem",
    "inception_resnet_v2",
    "mlp",
)


def whole_number(text: str | int) -> int:
    """Any integer."""
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"must be a whole number. Got {text!r}.") from None


def count_number(text: str | int) -> int:
    """An integer of at least 0."""
    number = whole_number(text)
    if number < 0:
        raise typer.BadParameter(f"must be a whole number of at least 0. Got {number}.")
    return number


def real_number(text: str | float) -> float:
    """Any number; the library checks its range."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"must be a number. Got {text!r}.") from None


def number_or_word(text: str) -> int | float | str:
    """An integer or a number, else the word itself, such as 'auto'; the library checks which are allowed."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def word(panel: str | None, help: str, *names: str, metavar: str | None = None) -> Any:
    """An option whose Python type is enough to parse it."""
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=panel)


def whole(panel: str | None, help: str) -> Any:
    """An option that is a whole number; the library checks its range."""
    return typer.Option(parser=whole_number, metavar="<int>", help=help, rich_help_panel=panel)


def nonnegative(panel: str | None, help: str) -> Any:
    """An option that is a whole number of at least 0."""
    return typer.Option(parser=count_number, metavar="<int>", help=help, rich_help_panel=panel)


def real(panel: str | None, help: str) -> Any:
    """An option that is any number."""
    return typer.Option(parser=real_number, metavar="<float>", help=help, rich_help_panel=panel)


Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="The data: a .npz, .npy, .csv, .tsv, .jsonl (also .gz), .parquet or .xlsx file, or a folder of "
        ".parquet files; a folder of images with one subfolder per class, or with a table of labels; a "
        "Hugging Face dataset saved to disk; WebDataset shards (.tar, or a folder of them); .json exported "
        "from Label Studio, or COCO-style with one class per image; a folder exported from FiftyOne; "
        "CIFAR-10, CIFAR-100 or WebVision in the folders they are published in; 'digits', which comes with "
        "scikit-learn; or 'cifar10' or 'cifar100', which are downloaded once.",
    ),
]

Label = Annotated[
    str | None,
    word(
        DATA,
        "Column or key of the labels. Default: label, labels or y. For CIFAR-100: fine or coarse.",
        metavar="NAME",
    ),
]
Features = Annotated[
    list[str] | None,
    word(
        DATA,
        "Features: columns such as 'age,income,city' (numbers, dates, categories or texts), a column that "
        "holds lists, a pattern of columns such as 'emb_*', a key, or an .npy file with one row per sample. "
        "The option can be repeated. Default: a common name, or in "
        "tables a column of lists or eight or more numbered columns of floats (emb_0, emb_1, ...); other "
        "numeric columns are used only if they are named.",
        metavar="NAME",
    ),
]
Labels = Annotated[
    str | None,
    word(
        DATA,
        "File with the labels of an .npy or .npz source: an .npy file, or text with one label per line. For "
        "a folder of images: a table with a column of file names (--path) and one of labels. Default there: "
        "metadata.csv, metadata.jsonl or labels.csv in the folder.",
        metavar="FILE",
    ),
]
Images = Annotated[
    str | None,
    word(
        DATA,
        "Key of the images in an .npz file; column or field of images where a Hugging Face dataset, a "
        "Parquet file or WebDataset shards have several; or the folder of the images of a COCO file.",
        metavar="NAME",
    ),
]
Id = Annotated[
    str | None,
    word(
        DATA,
        "Column or key of the sample ids, by which verdicts and exports are matched. Default: id where it "
        "exists, otherwise the path of the image or a digest of the content.",
        metavar="NAME",
    ),
]
Text = Annotated[
    str | None,
    word(
        DATA,
        "Column or key of texts, shown beside suspects and kept with the results. Without features, they "
        "are what samples are compared by.",
        metavar="NAME",
    ),
]
TrainingText = Annotated[
    str | None,
    word(
        DATA,
        "Column or key of texts, which are encoded where there are no features. Default: text or texts.",
        metavar="NAME",
    ),
]
ImagePath = Annotated[
    str | None,
    word(
        DATA, "Column or key of image paths, shown beside suspects and kept with the results.", metavar="NAME"
    ),
]
Encoders = Annotated[
    list[str] | None,
    word(
        DATA,
        "How texts or images become features: tfidf (the default for texts), patches (of images), hf:NAME, "
        "sentence-transformers:NAME, timm:NAME, torchvision:NAME or open_clip:NAME with the name of a "
        "pretrained model or its folder, a path to an .onnx file, or your own function as "
        "package.module:function. An audit takes several, and --features besides: each is a view of its own, "
        "and held-out labels tell how much it counts.",
        "--encoder",
        metavar="NAME",
    ),
]
EncoderSettings = Annotated[
    list[str] | None,
    word(
        DATA,
        "A setting of the encoder: size=224, mean=0.5,0.5,0.5 or std=... of an .onnx file, pooling=cls of "
        "hf, n_components=256 of tfidf, batch_size=16. Repeat the option for several.",
        "--encoder-set",
        metavar="KEY=VALUE",
    ),
]
NoCache = Annotated[
    bool,
    word(
        DATA,
        "Encode texts and images again, and keep no features. Otherwise features of the same samples, "
        "encoder, settings and versions are found again; laplaceconfidence cache shows and removes them.",
        "--no-cache",
    ),
]
Annotator = Annotated[
    str | None,
    word(
        ANNOTATORS,
        "Column that says who gave the label of a row, where a table has one row per label. --id names the "
        "column of the samples.",
        metavar="NAME",
    ),
]
AnnotatorColumns = Annotated[
    str | None,
    word(
        ANNOTATORS,
        "Columns of labels, one per annotator, where a table has one row per sample: names with commas "
        "between them, or a pattern such as 'ann_*'.",
        metavar="NAMES",
    ),
]
SamplesTable = Annotated[
    str | None,
    word(
        ANNOTATORS,
        "With --annotator: another table with one row per sample, which has the texts, paths or features. "
        "Samples without a label may be in it. Otherwise these are read from the first row of every sample.",
        metavar="FILE",
    ),
]
TrueLabel = Annotated[
    str | None,
    word(
        DATA,
        "Column or key of verified labels. They are never learned from, only compared with: results then "
        "include how many wrong labels were really found.",
        metavar="NAME",
    ),
]
MissingLabel = Annotated[
    str | None,
    word(
        DATA,
        "A label that means 'no label', in addition to empty ones, such as -1 or unknown.",
        metavar="VALUE",
    ),
]
Split = Annotated[
    str | None,
    word(
        DATA,
        "Part of CIFAR (train, test or all) or of WebVision (train or test); default: train. Or a split of a "
        "Hugging Face dataset.",
        metavar="NAME",
    ),
]
TestShare = Annotated[
    float | None, real(DATA, "Fraction of the samples to set aside as test data. Noise is not added to them.")
]

# Options that commands show under different headings share only their help text.
IMAGE_SIZE = "Side in pixels that image files are resized to. Required where their sizes differ."
TRAINING_IMAGE_SIZE = (
    f"{IMAGE_SIZE} If neither a preset nor a network is named and there is no GPU, files of more than 96 "
    "pixels are resized to 64."
)
SKIP_BAD = "Leave out images that cannot be decoded, and list them. Otherwise the first one is an error."
DEVICE = "Where networks are trained: auto (a GPU if there is one), cpu, cuda, cuda:0 or mps. Default: auto."


def read_options(**options: Any) -> dict[str, Any]:
    """The options about the source that were given, as keyword arguments of ``read_dataset``."""
    names = options.pop("features")
    given = {**options, "features": names[0] if names and len(names) == 1 else names or None}
    return {name: value for name, value in given.items() if value is not None}
