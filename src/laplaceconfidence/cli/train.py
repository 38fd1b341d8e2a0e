"""``laplaceconfidence train``: a good classifier from labels nobody trusts, from a shell."""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from laplaceconfidence.cli.console import notices, output, plain_table
from laplaceconfidence.cli.edge import edge
from laplaceconfidence.cli.numbers import count_number, real_number, whole_number

PRESET, DATA, METHOD, MACHINE, RUN = "Settings", "The data", "The method", "The machine", "The run"

_LAST_WORDS_SECONDS = 10

EXAMPLES = """
[bold]Examples[/bold]

Photos in one sub-folder a class, all resized to 64 x 64 pixels:
[cyan]laplaceconfidence train photos/ --image-size 64 --out photos-run[/cyan]

The same run, after Ctrl-C or a crash: give the same command again.

Embeddings and labels of any kind, with a tenth set aside to see how good it got:
[cyan]laplaceconfidence train embeddings.npz --test-share 0.1[/cyan]

The paper's setting for CIFAR-10 with half the labels spoilt, one setting changed:
[cyan]laplaceconfidence train cifar10 --preset cifar10-sym50 --set noise.seed=1[/cyan]

Your own network, on two GPUs:
[cyan]torchrun --nproc-per-node 2 -m laplaceconfidence train photos/ --network my_package.nets:small[/cyan]
"""


def _show_presets(wanted: bool) -> None:
    if wanted:
        with edge():
            from laplaceconfidence.training.presets import load_preset, preset_names

            table = plain_table("Presets", "name", "what it is")
            for name in preset_names():
                table.add_row(name, load_preset(name).description)
            output().print(table)
        raise typer.Exit


def train(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A folder of images with one sub-folder a class, a .npz, .npy, .csv, .tsv or .parquet file, "
            "CIFAR or WebVision as published, or 'digits', 'cifar10', 'cifar100'.",
        ),
    ],
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            "-p",
            help="Settings by name (see --presets), or a TOML file of yours. By default a small one that "
            "fits the data.",
            rich_help_panel=PRESET,
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            "-s",
            metavar="<key=value>",
            help="Change a setting of the preset: batch_size=64, noise.rate=0.4. Repeat it for several.",
            rich_help_panel=PRESET,
        ),
    ] = None,
    presets: Annotated[
        bool,
        typer.Option(
            "--presets",
            callback=_show_presets,
            is_eager=True,
            help="List the presets.",
            rich_help_panel=PRESET,
        ),
    ] = False,
    label: Annotated[
        str | None, typer.Option(help="Column or key of the labels.", rich_help_panel=DATA)
    ] = None,
    features: Annotated[
        list[str] | None,
        typer.Option(
            metavar="<str>",
            help="Column, pattern ('emb_*') or key of features to train on, or an .npy file.",
            rich_help_panel=DATA,
        ),
    ] = None,
    labels: Annotated[
        str | None, typer.Option(help="File with the labels of an .npy or .npz source.", rich_help_panel=DATA)
    ] = None,
    images: Annotated[
        str | None, typer.Option(help="Key of the images in an .npz file.", rich_help_panel=DATA)
    ] = None,
    id: Annotated[
        str | None, typer.Option(help="Column or key of the sample ids.", rich_help_panel=DATA)
    ] = None,
    path: Annotated[
        str | None, typer.Option(help="Column or key of image paths.", rich_help_panel=DATA)
    ] = None,
    true_label: Annotated[
        str | None,
        typer.Option(
            help="Column or key of verified labels: never used, only compared with.", rich_help_panel=DATA
        ),
    ] = None,
    missing_label: Annotated[
        str | None,
        typer.Option(help="A label that means 'no label', besides empty ones.", rich_help_panel=DATA),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(help="Part of CIFAR or WebVision: train (default), test or all.", rich_help_panel=DATA),
    ] = None,
    image_size: Annotated[
        int | None,
        typer.Option(
            parser=whole_number,
            metavar="<int>",
            help="Side in pixels that image files are resized to.",
            rich_help_panel=DATA,
        ),
    ] = None,
    skip_bad: Annotated[
        bool,
        typer.Option(
            "--skip-bad", help="Leave out images that cannot be decoded, and list them.", rich_help_panel=DATA
        ),
    ] = False,
    test: Annotated[
        list[str] | None,
        typer.Option(
            metavar="<source>",
            help="Data to report the accuracy on; used for nothing else. The first is reported every round.",
            rich_help_panel=DATA,
        ),
    ] = None,
    test_share: Annotated[
        float | None,
        typer.Option(
            parser=real_number,
            metavar="<float>",
            help="Share of the samples to set aside as such a test.",
            rich_help_panel=DATA,
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(help="laplace, cross_entropy, co_teaching or dividemix.", rich_help_panel=METHOD),
    ] = None,
    network: Annotated[
        str | None,
        typer.Option(
            help="small_cnn, preact_resnet18, inception_resnet_v2, mlp, or package.module:factory of yours.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            parser=whole_number,
            metavar="<int>",
            help="Rounds in all, warm-up included.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    warmup: Annotated[
        int | None,
        typer.Option(
            parser=whole_number,
            metavar="<int>",
            help="Rounds of plain training first.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(parser=whole_number, metavar="<int>", help="Samples a step.", rich_help_panel=METHOD),
    ] = None,
    learning_rate: Annotated[
        float | None,
        typer.Option(
            parser=real_number, metavar="<float>", help="Learning rate at the start.", rich_help_panel=METHOD
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            parser=count_number,
            metavar="<int>",
            help="Seed of all that is random in training.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="auto, cpu, cuda, cuda:0 or mps.", rich_help_panel=MACHINE)
    ] = None,
    precision: Annotated[
        str | None, typer.Option(help="float32, bfloat16 or float16.", rich_help_panel=MACHINE)
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            parser=count_number,
            metavar="<int>",
            help="Workers that decode images; all cores by default.",
            rich_help_panel=MACHINE,
        ),
    ] = None,
    n_jobs: Annotated[
        int | None,
        typer.Option(
            parser=whole_number,
            metavar="<int>",
            help="Threads of torch; its own choice by default.",
            rich_help_panel=MACHINE,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Folder of the run. Default: laplaceconfidence-train-<name of the source>.",
            rich_help_panel=RUN,
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Insist on going on with the run in the folder (an unfinished one goes on by itself).",
            rich_help_panel=RUN,
        ),
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the run in the folder.", rich_help_panel=RUN)
    ] = False,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Log for TensorBoard, too.", rich_help_panel=RUN)
    ] = False,
) -> None:
    """Train a classifier on labels nobody trusts.

    Finds out during training how far each label is to be believed, and learns from the images what the
    others should be. Leaves a folder with the networks, the confidence of every label and the labels as they
    should be.
    """
    read_options = {
        "label": label,
        "features": features[0] if features and len(features) == 1 else features or None,
        "labels": labels,
        "images": images,
        "id": id,
        "path": path,
        "true_label": true_label,
        "missing_label": missing_label,
        "split": split,
    }
    settings = {
        "method": method,
        "network": network,
        "rounds": rounds,
        "warmup": warmup,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "random_state": seed,
        "device": device,
        "precision": precision,
        "n_jobs": n_jobs,
    }
    with _quiet_unless_first(), edge() as notes:
        from laplaceconfidence.cli.torch_needed import check_torch

        check_torch("Training")
        from laplaceconfidence.cli.training_run import TrainingRequest, run_training
        from laplaceconfidence.training.stopping import Interrupted

        request = TrainingRequest(
            source=source,
            preset=preset,
            changes=tuple(set_ or ()),
            settings={name: value for name, value in settings.items() if value is not None},
            read_options={name: value for name, value in read_options.items() if value is not None},
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
            notices().print(f"[bold]Stopped[/bold] as asked. Everything so far is saved in {stopped.folder}.")
            notices().print("To go on, give the same command again" + _same_command(), soft_wrap=True)
            raise typer.Exit(130) from None


train.__doc__ = f"{inspect.cleandoc(train.__doc__ or '')}\n{EXAMPLES}"


def _same_command() -> str:
    """The command of this process, without what would start the run anew."""
    words = [word for word in sys.argv[1:] if word != "--overwrite"]
    return f":\n  laplaceconfidence {shlex.join(words)}" if words[:1] == ["train"] else "."


@contextlib.contextmanager
def _quiet_unless_first() -> Iterator[None]:
    """Of several processes that torchrun started, only the first one speaks; tracebacks of all are shown."""
    if os.environ.get("RANK", "0") == "0":
        yield
        return
    silence: Any = io.StringIO()
    with contextlib.redirect_stdout(silence), contextlib.redirect_stderr(silence):
        try:
            yield
        except typer.Exit:
            # torchrun ends all processes when one fails: the first must get to say why.
            time.sleep(_LAST_WORDS_SECONDS)
            raise
