"""The command ``laplaceconfidence onnx``."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated

import typer

from laplaceconfidence.cli.errors import check_torch, report_errors
from laplaceconfidence.cli.options import RESULT, word

EXAMPLES = """
[bold]Examples[/bold]

The model of a training run as a file for onnxruntime, in any language:
[cyan]laplaceconfidence onnx photos-run -o photos.onnx[/cyan]
"""


def onnx(
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="Folder of a model, or of the training run that made it."),
    ],
    out: Annotated[
        Path | None,
        word(
            RESULT,
            "File to write, ending in .onnx. Default: <name of the folder>.onnx.",
            "--out",
            "-o",
            metavar="FILE",
        ),
    ] = None,
    overwrite: Annotated[bool, word(RESULT, "Replace the file if it exists.", "--overwrite")] = False,
    network: Annotated[
        str | None,
        word(
            None,
            "The network of a model whose network is your own, as package.module:factory. It is imported, "
            "which runs its code.",
            metavar="NAME",
        ),
    ] = None,
) -> None:
    """Write a trained model as an ONNX file.

    The file holds all networks that predict, and the normalization: its input is a batch of pixels from 0 to
    1 (n, channels, height, width) or of feature vectors (n, d), its output the probabilities of the classes,
    whose names are in its metadata. Running it needs neither torch nor this package. Writing it needs both:
    pip install 'laplaceconfidence\\[train,onnx]'.
    """
    with report_errors():
        check_torch("Writing an ONNX file")
        from laplaceconfidence.cli.console import output
        from laplaceconfidence.exceptions import RunFolderError
        from laplaceconfidence.training.classifier import RobustClassifier

        path = out or Path(f"{model.absolute().name}.onnx")
        if path.exists() and not overwrite:
            raise RunFolderError(f"{path} exists: choose another name with --out, or use --overwrite.")
        classifier = RobustClassifier.load(model, network=network, device="cpu")
        classifier.export_onnx(path)
        output().print(f"Written: {path}", markup=False, highlight=False, soft_wrap=True)


onnx.__doc__ = f"{inspect.cleandoc(onnx.__doc__ or '')}\n{EXAMPLES}"
