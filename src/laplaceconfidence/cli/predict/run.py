"""What ``laplaceconfidence predict`` does: read, predict, write the table and print."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.text import Text

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.cli.console import notices, output, plain_table, shown
from laplaceconfidence.cli.predict.data import PredictionSource, read_samples
from laplaceconfidence.cli.progress import showing_progress
from laplaceconfidence.cli.sources import stem_of
from laplaceconfidence.csv_files import write_csv
from laplaceconfidence.data.image_files import BadImage
from laplaceconfidence.data.labels import encodable
from laplaceconfidence.encoders.torch_device import choose_device
from laplaceconfidence.exceptions import RunFolderError
from laplaceconfidence.files import replacing
from laplaceconfidence.stages import stage
from laplaceconfidence.threads import available_cores
from laplaceconfidence.training.evaluation import Evaluation, evaluate_predictions
from laplaceconfidence.training.model_folder import read_model
from laplaceconfidence.training.results import prediction_columns
from laplaceconfidence.validation import check_integer, must_be
from laplaceconfidence.wording import counted

SUFFIXES = (".parquet", ".csv", ".npz")
_MOST_SKIPPED, _MOST_CLASSES, _MOST_CONFUSIONS = 10, 10, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionRequest:
    """The arguments of the command."""

    model: Path
    source: str
    read_options: Mapping[str, Any]
    out: Path | None = None
    overwrite: bool = False
    evaluate: bool = False
    network: str | None = None
    encoder: str | None
    device: str = "auto"
    batch_size: int = 512
    n_workers: int | None = None

    @property
    def file(self) -> Path:
        """The file to write."""
        return self.out or Path(f"{stem_of(self.source)}-predictions.parquet")


def run_prediction(request: PredictionRequest) -> None:
    """Predict as requested.

    Parameters
    ----------
    request : PredictionRequest
        The arguments of the command.
    """
    check_integer(request.batch_size, "batch_size", minimum=1)
    _check_free(request.file, overwrite=request.overwrite)
    model, _ = read_model(
        request.model,
        network=request.network,
        encoder=request.encoder,
        device=choose_device(request.device),
    )
    with showing_progress():
        with stage("reading"):
            found = read_samples(
                request.source,
                model,
                request.read_options,
                evaluate=request.evaluate,
                n_workers=request.n_workers,
            )
        n_workers = available_cores() if request.n_workers is None else request.n_workers
        samples = model.samples(found.X, n_workers=n_workers)
        probabilities = model.probabilities(samples, request.batch_size)
        with stage("writing"):
            _write(request.file, found, probabilities, model.class_names)
    evaluation = None
    if found.labels is not None:
        evaluation = evaluate_predictions(probabilities, found.labels, model.class_names)
    _show(request.file, probabilities, model.class_names, evaluation)
    if found.skipped:
        _show_skipped(found.skipped, request.file)


def _check_free(path: Path, *, overwrite: bool) -> None:
    if path.suffix.lower() not in SUFFIXES:
        raise must_be("out", f"a name that ends in {', '.join(SUFFIXES)}", str(path))
    if not path.absolute().parent.is_dir():
        raise RunFolderError(f"The folder {path.parent} does not exist: create it first, or choose another.")
    if path.is_dir() or (path.exists() and not overwrite):
        raise RunFolderError(f"{path} exists: choose another name with --out, or use --overwrite.")


def _write(
    path: Path, found: PredictionSource, probabilities: FloatArray, class_names: tuple[str, ...]
) -> None:
    columns = prediction_columns(encodable(found.ids), probabilities, class_names)
    if found.labels is not None:
        names = np.array([*class_names, None], dtype=object)  # -1 reads the last entry: no label
        columns["given_label"] = names[found.labels]
    suffix = path.suffix.lower()
    if suffix == ".npz":
        texts = {name: columns[name] for name in ("id", "predicted_label", "given_label") if name in columns}
        arrays: dict[str, Any] = {
            name: np.array([value or "" for value in values], dtype=str) for name, values in texts.items()
        }
        arrays |= {"probabilities": probabilities, "class_names": np.array(class_names)}
        with replacing(path) as temporary:
            np.savez_compressed(temporary, **arrays)
    elif suffix == ".csv":
        write_csv(path, pd.DataFrame(columns))
    else:
        with replacing(path) as temporary:
            pd.DataFrame(columns).to_parquet(temporary, index=False)


def _show(
    path: Path, probabilities: FloatArray, class_names: tuple[str, ...], evaluation: Evaluation | None
) -> None:
    console = output()
    predicted = np.bincount(probabilities.argmax(axis=1), minlength=len(class_names))
    largest = probabilities.max(axis=1).astype(np.float64)
    console.print(
        Text(
            f"{counted(len(probabilities), 'sample')} predicted; mean probability of the predicted class "
            f"{largest.mean():.2f}.",
            style="bold",
        ),
        soft_wrap=True,
    )
    if evaluation is None:
        order = np.argsort(-predicted, kind="stable")
        table = plain_table("", "class", "samples:", "share:")
        for code in order[:_MOST_CLASSES]:
            share = predicted[code] / len(probabilities)
            table.add_row(shown(class_names[code]), f"{predicted[code]:,}", f"{share:.1%}")
        console.print(table)
        if len(order) > _MOST_CLASSES:
            console.print(f"... and {len(order) - _MOST_CLASSES:,} more classes")
    else:
        _show_evaluation(evaluation)
    console.print(Text.assemble("Written: ", (str(path), "bold")), soft_wrap=True)


def _show_evaluation(evaluation: Evaluation) -> None:
    console = output()
    top_5 = evaluation.top_5_accuracy
    further = "" if top_5 is None else f", top-5 {top_5:.2%}"
    labeled = f"{counted(evaluation.n_samples, 'sample')} with a label"
    console.print(
        f"Accuracy {evaluation.accuracy:.2%}{further}; calibration error "
        f"{evaluation.expected_calibration_error:.3f} ({labeled}).",
        soft_wrap=True,
    )
    table = plain_table("Classes, lowest recall first", "class", "samples:", "recall:", "precision:")
    per_class = evaluation.per_class.sort_values("recall", kind="stable")
    for name, row in per_class.head(_MOST_CLASSES).iterrows():
        rates = ("" if np.isnan(row[rate]) else f"{row[rate]:.1%}" for rate in ("recall", "precision"))
        table.add_row(shown(name), f"{row['support']:,.0f}", *rates)
    console.print(table)
    if len(per_class) > _MOST_CLASSES:
        console.print(f"... and {len(per_class) - _MOST_CLASSES:,} more classes")
    if len(confused := evaluation.confused):
        table = plain_table("Most frequent confusions", "label", "predicted as", "samples:")
        for label, predicted, count in confused.head(_MOST_CONFUSIONS).itertuples(index=False):
            table.add_row(shown(label), shown(predicted), f"{count:,}")
        console.print(table)


def _show_skipped(skipped: list[BadImage], path: Path) -> None:
    """List the images that were left out: the first ones here, all of them in a file."""
    listed = path.with_name(f"{path.name}.skipped.txt")
    with replacing(listed) as temporary:
        lines = [f"{image.path}\t{image.reason}\n" for image in skipped]
        temporary.write_text("".join(lines), encoding="utf-8", errors="backslashreplace")
    console = notices()
    console.print(
        f"{counted(len(skipped), 'image')} left out because of decoding errors (all in {listed}):",
        soft_wrap=True,
    )
    for image in skipped[:_MOST_SKIPPED]:
        console.print(Text(f"  {image.path}"), soft_wrap=True)
    if len(skipped) > _MOST_SKIPPED:
        console.print(f"  ... and {len(skipped) - _MOST_SKIPPED:,} more")
