"""The command ``laplaceconfidence predict``."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated

import typer

from laplaceconfidence.cli.errors import check_torch, report_errors
from laplaceconfidence.cli.options import (
    DATA,
    MACHINE,
    RESULT,
    Id,
    ImagePath,
    Images,
    MissingLabel,
    Split,
    nonnegative,
    read_options,
    whole,
    word,
)

EVALUATION = "Evaluation"

EXAMPLES = """
[bold]Examples[/bold]

Photos anywhere below a folder, with the model of a training run:
[cyan]laplaceconfidence predict photos-run new-photos/[/cyan]

A table with the columns that the model was trained on, as a spreadsheet can open it:
[cyan]laplaceconfidence predict photos-run patients.csv -o predictions.csv[/cyan]

Texts, with a model that was trained on texts:
[cyan]laplaceconfidence predict reviews-run new.csv --text review -o moods.csv[/cyan]

Photos in one subfolder per class: also print how good the predictions are:
[cyan]laplaceconfidence predict photos-run verified-photos/ --evaluate[/cyan]

A model with a network of your own, which you allow to be imported:
[cyan]laplaceconfidence predict photos-run images.npz --network my_package.nets:small[/cyan]
"""


def predict(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="Folder of a training run, or of a model that RobustClassifier.save wrote."
        ),
    ],
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="The samples: an image, a folder with images anywhere below it, a .npy or .npz file of "
            "images or features, or a .csv, .tsv (also .gz) or .parquet table with the columns that the "
            "model was trained on, with texts or with paths of images. Labels are not needed. The other "
            "sources of the train command can be used, too.",
        ),
    ],
    out: Annotated[
        Path | None,
        word(
            RESULT,
            "File to write: .parquet, .csv or .npz. Default: <name of the source>-predictions.parquet.",
            "--out",
            "-o",
            metavar="FILE",
        ),
    ] = None,
    overwrite: Annotated[bool, word(RESULT, "Replace the file if it exists.", "--overwrite")] = False,
    evaluate: Annotated[
        bool,
        word(
            EVALUATION,
            "Also compare with the labels of the source: accuracy, classes, confusions, calibration.",
            "--evaluate",
        ),
    ] = False,
    label: Annotated[
        str | None,
        word(
            EVALUATION,
            "Column or key of the labels. Default: label, labels or y. For CIFAR-100: fine or coarse.",
            metavar="NAME",
        ),
    ] = None,
    labels: Annotated[
        str | None,
        word(
            EVALUATION,
            "File with the labels of an .npy or .npz source: an .npy file, or text with one label per line.",
            metavar="FILE",
        ),
    ] = None,
    missing_label: MissingLabel = None,
    features: Annotated[
        list[str] | None,
        word(
            DATA,
            "Features: a column that holds lists, a pattern of columns such as 'emb_*', or a key. Repeat the "
            "option for several columns. Default: the columns that the model was trained on.",
            metavar="NAME",
        ),
    ] = None,
    images: Images = None,
    id: Id = None,
    text: Annotated[
        str | None,
        word(
            DATA,
            "Column of texts, for a model that was trained on texts. Default: text or texts.",
            metavar="NAME",
        ),
    ] = None,
    path: ImagePath = None,
    split: Split = None,
    network: Annotated[
        str | None,
        word(
            MACHINE,
            "The network of a model whose network is your own, as package.module:factory. It is imported, "
            "which runs its code; what the folder of the model states is never imported by itself.",
            metavar="NAME",
        ),
    ] = None,
    encoder: Annotated[
        str | None,
        word(
            MACHINE,
            "The encoder of a model that was trained with a function of your own, as "
            "package.module:function. It is imported, which runs its code.",
            metavar="NAME",
        ),
    ] = None,
    device: Annotated[
        str,
        word(
            MACHINE,
            "Where the networks run: auto (a GPU if there is one), cpu, cuda, cuda:0 or mps.",
            metavar="NAME",
        ),
    ] = "auto",
    batch_size: Annotated[int, whole(MACHINE, "Samples per forward pass.")] = 512,
    workers: Annotated[
        int | None, nonnegative(MACHINE, "Workers that decode images. Default: one per core.")
    ] = None,
) -> None:
    """Predict classes with a trained model.

    Writes one row per sample: its id, the most probable class, and the probability of every class. Image
    files are resized to the size that the model was trained with; those that cannot be decoded are left out
    and listed. This needs torch: pip install 'laplaceconfidence\\[train]'.
    """
    with report_errors():
        check_torch("Predicting")
        from laplaceconfidence.cli.predict.run import PredictionRequest, run_prediction

        run_prediction(
            PredictionRequest(
                model=model,
                source=source,
                read_options=read_options(
                    label=label,
                    labels=labels,
                    missing_label=missing_label,
                    features=features,
                    images=images,
                    id=id,
                    text=text,
                    path=path,
                    split=split,
                ),
                out=out,
                overwrite=overwrite,
                evaluate=evaluate,
                network=network,
                encoder=encoder,
                device=device,
                batch_size=batch_size,
                n_workers=workers,
            )
        )


predict.__doc__ = f"{inspect.cleandoc(predict.__doc__ or '')}\n{EXAMPLES}"
