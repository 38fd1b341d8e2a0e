"""The command ``laplaceconfidence train``."""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from laplaceconfidence.cli.console import notices, output, plain_table
from laplaceconfidence.cli.errors import report_errors
from laplaceconfidence.cli.options import (
    DATA,
    DEVICE,
    MACHINE,
    METHOD,
    RUN,
    SETTINGS,
    SKIP_BAD,
    TRAINING_IMAGE_SIZE,
    Encoders,
    EncoderSettings,
    Features,
    Id,
    ImagePath,
    Images,
    Label,
    Labels,
    MissingLabel,
    NoCache,
    Source,
    Split,
    TestShare,
    TrainingText,
    TrueLabel,
    nonnegative,
    read_options,
    real,
    whole,
    word,
)

_SECONDS_FOR_FIRST_PROCESS = 10

EXAMPLES = """
[bold]Examples[/bold]

Photos in one subfolder per class, all resized to 64 x 64 pixels:
[cyan]laplaceconfidence train photos/ --image-size 64 --out photos-run[/cyan]

To resume the run after Ctrl+C or a crash: run the same command again.

Embeddings and labels of any kind, with a tenth set aside to measure the accuracy:
[cyan]laplaceconfidence train embeddings.npz --test-share 0.1[/cyan]

Texts of a table, or columns of any kind; predict then takes such tables, too:
[cyan]laplaceconfidence train reviews.csv --label mood --text review --test-share 0.1[/cyan]
[cyan]laplaceconfidence train customers.csv --label churned --features 'age,income,city'[/cyan]

The paper's settings for CIFAR-10 with 50% noise, two of them changed:
[cyan]laplaceconfidence train cifar10 --preset cifar10-sym50 --seed 1 --set method.warmup=10[/cyan]

Another method, with one of its settings:
[cyan]laplaceconfidence train photos/ --method dividemix --set method.unlabelled_weight=0[/cyan]

Your own network, on two GPUs:
[cyan]torchrun --nproc-per-node 2 -m laplaceconfidence train photos/ --network my_package.nets:small[/cyan]
"""


def _show_presets(wanted: bool) -> None:
    if wanted:
        with report_errors():
            from laplaceconfidence.training.presets import load_preset, preset_names

            table = plain_table("Presets", "name", "description")
            for name in preset_names():
                table.add_row(name, load_preset(name).description)
            output().print(table)
        raise typer.Exit


def _show_methods(wanted: bool) -> None:
    if wanted:
        with report_errors():
            from laplaceconfidence.training.methods.overview import describe_methods

            table = plain_table("Training methods", "name", "setting", "default")
            for method in describe_methods():
                settings = list(method.defaults.items())
                for number, (setting, default) in enumerate(settings or [("(no settings)", "")]):
                    table.add_row(method.name if number == 0 else "", setting, default)
            output().print(table)
            output().print("\nPapers and published settings: laplaceconfidence methods", style="dim")
        raise typer.Exit


def _show_networks(wanted: bool) -> None:
    if wanted:
        with report_errors():
            from laplaceconfidence.training.networks.registry import NETWORKS

            table = plain_table("Networks", "name", "description")
            for name, factory in NETWORKS.items():
                table.add_row(name, inspect.getdoc(factory) or "")
            output().print(table)
        raise typer.Exit


def _listing(name: str, show: Callable[[bool], None], panel: str, help: str) -> Any:
    """An option that prints a list and ends the command."""
    return typer.Option(name, callback=show, is_eager=True, help=help, rich_help_panel=panel)


def train(
    source: Source,
    preset: Annotated[
        str | None,
        word(
            SETTINGS,
            "Settings by name (--presets lists them), or the path of a TOML file. Default: selected by the "
            "shape of the data and by whether there is a GPU.",
            "--preset",
            "-p",
            metavar="NAME",
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        word(
            SETTINGS,
            "Change a setting: batch_size=64, method.warmup=10, noise.rate=0.4. Repeat the option for "
            "several.",
            "--set",
            "-s",
            metavar="KEY=VALUE",
        ),
    ] = None,
    presets: Annotated[bool, _listing("--presets", _show_presets, SETTINGS, "List the presets.")] = False,
    label: Label = None,
    features: Features = None,
    labels: Labels = None,
    images: Images = None,
    id: Id = None,
    text: TrainingText = None,
    path: ImagePath = None,
    encoder: Encoders = None,
    encoder_set: EncoderSettings = None,
    no_cache: NoCache = False,
    true_label: TrueLabel = None,
    missing_label: MissingLabel = None,
    split: Split = None,
    image_size: Annotated[int | None, whole(DATA, TRAINING_IMAGE_SIZE)] = None,
    skip_bad: Annotated[bool, word(DATA, SKIP_BAD, "--skip-bad")] = False,
    test: Annotated[
        list[str] | None,
        word(
            DATA,
            "Data whose accuracy is reported after every round; used for nothing else. Repeat the option for "
            "several.",
            metavar="SOURCE",
        ),
    ] = None,
    test_share: TestShare = None,
    method: Annotated[
        str | None,
        word(
            METHOD,
            "Training method by name (--methods lists them). Where the preset is for another one, the method "
            "keeps its own defaults.",
            metavar="NAME",
        ),
    ] = None,
    methods: Annotated[
        bool, _listing("--methods", _show_methods, METHOD, "List the training methods and their settings.")
    ] = False,
    audited: Annotated[
        Path | None,
        word(
            METHOD,
            "Labels that a person has verified: a table (.csv, .tsv, .parquet) with the columns id and "
            "verified_label, such as the one from audit --sample-for-review filled in. For methods that "
            "learn from them besides the given labels, such as mentornet with method.variant=learned.",
            metavar="FILE",
        ),
    ] = None,
    network: Annotated[
        str | None,
        word(
            METHOD,
            "Network by name (--networks lists them), or your own as package.module:factory.",
            metavar="NAME",
        ),
    ] = None,
    networks: Annotated[bool, _listing("--networks", _show_networks, METHOD, "List the networks.")] = False,
    rounds: Annotated[int | None, whole(METHOD, "Number of rounds, warm-up included.")] = None,
    batch_size: Annotated[int | None, whole(METHOD, "Samples per step.")] = None,
    learning_rate: Annotated[float | None, real(METHOD, "Learning rate of the first round.")] = None,
    seed: Annotated[
        int | None, nonnegative(METHOD, "Seed of all that is random, noise of the preset included.")
    ] = None,
    device: Annotated[str | None, word(MACHINE, DEVICE, metavar="NAME")] = None,
    precision: Annotated[
        str | None,
        word(
            MACHINE,
            "Precision: float32 (default), bfloat16 or float16 (mixed precision), or fast: bfloat16 where "
            "the machine has instructions for it.",
            metavar="TYPE",
        ),
    ] = None,
    workers: Annotated[
        int | None, nonnegative(MACHINE, "Workers that decode images. Default: one per core.")
    ] = None,
    n_jobs: Annotated[
        int | None, whole(MACHINE, "Number of torch threads. Default: chosen by torch.")
    ] = None,
    out: Annotated[
        Path | None,
        word(
            RUN,
            "Folder of the run. Default: laplaceconfidence-train-<name of the source>.",
            "--out",
            "-o",
            metavar="FOLDER",
        ),
    ] = None,
    resume: Annotated[
        bool,
        word(
            RUN,
            "Require that the folder holds a run to resume. An unfinished run is also resumed without this "
            "option.",
            "--resume",
        ),
    ] = False,
    overwrite: Annotated[bool, word(RUN, "Replace the run in the folder.", "--overwrite")] = False,
    tensorboard: Annotated[bool, word(RUN, "Also write logs for TensorBoard.", "--tensorboard")] = False,
) -> None:
    """Train a classifier on labels of which some are wrong.

    During training the probability that each label is correct is estimated; the lower it is, the more the
    label is replaced by the prediction of the networks. Writes a folder with the networks, the confidence of
    every label and the refined labels. This needs torch: pip install 'laplaceconfidence\\[train]'.
    """
    settings = {
        "network": network,
        "rounds": rounds,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "random_state": seed,
        "device": device,
        "precision": precision,
        "n_jobs": n_jobs,
    }
    with _quiet_unless_first(), report_errors() as notes:
        from laplaceconfidence.cli.errors import check_torch

        check_torch("Training")
        from laplaceconfidence.cli.train.run import TrainingRequest, run_training
        from laplaceconfidence.exceptions import Interrupted

        request = TrainingRequest(
            source=source,
            preset=preset,
            changes=tuple(set_ or ()),
            method=method,
            audited=audited,
            settings={name: value for name, value in settings.items() if value is not None},
            read_options=read_options(
                label=label,
                features=features,
                labels=labels,
                images=images,
                id=id,
                text=text,
                path=path,
                true_label=true_label,
                missing_label=missing_label,
                split=split,
            ),
            encoders=tuple(encoder or ()),
            encoder_settings=tuple(encoder_set or ()),
            no_cache=no_cache,
            tests=tuple(test or ()),
            test_share=test_share,
            image_size=image_size,
            skip_bad=skip_bad,
            n_workers=workers,
            out=out,
            resume=resume,
            overwrite=overwrite,
            tensorboard=tensorboard,
        )
        try:
            run_training(request, notes)
        except Interrupted as stopped:
            notices().print(
                f"[bold]Stopped.[/bold] Everything so far is saved in {stopped.folder}.", soft_wrap=True
            )
            notices().print("To resume, run the same command again" + _same_command(), soft_wrap=True)
            raise typer.Exit(130) from None


train.__doc__ = f"{inspect.cleandoc(train.__doc__ or '')}\n{EXAMPLES}"


def _same_command() -> str:
    """The command of this process, without the option that would start the run anew."""
    words = [word for word in sys.argv[1:] if word != "--overwrite"]
    return f":\n  laplaceconfidence {shlex.join(words)}" if words[:1] == ["train"] else "."


@contextlib.contextmanager
def _quiet_unless_first() -> Iterator[None]:
    """Of several processes that torchrun started, only the first one prints; tracebacks of all are shown."""
    if os.environ.get("RANK", "0") == "0":
        yield
        return
    silence: Any = io.StringIO()
    with contextlib.redirect_stdout(silence), contextlib.redirect_stderr(silence):
        try:
            yield
        except typer.Exit:
            # torchrun ends all processes when one fails: the first needs time to print why.
            time.sleep(_SECONDS_FOR_FIRST_PROCESS)
            raise
