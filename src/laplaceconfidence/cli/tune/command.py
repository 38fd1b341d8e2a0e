"""The command ``laplaceconfidence tune``."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated

import typer

from laplaceconfidence.cli.console import notices
from laplaceconfidence.cli.errors import report_errors
from laplaceconfidence.cli.options import (
    DATA,
    DEVICE,
    MACHINE,
    RUN,
    SETTINGS,
    SKIP_BAD,
    TRAINING_IMAGE_SIZE,
    Features,
    Id,
    ImagePath,
    Images,
    Label,
    Labels,
    MissingLabel,
    Source,
    Split,
    TestShare,
    read_options,
    whole,
    word,
)

SOME_RUNS_FAILED = 3  # exit code

EXAMPLES = """
[bold]Examples[/bold]

The paper's grid (sharpening 1 to 4; 2, 10, 50 or 100 neighbors) on your own images, 16 runs:
[cyan]laplaceconfidence tune photos/ --set method.confidence=laplace[/cyan]

Two settings of your choice, with another method:
[cyan]laplaceconfidence tune photos/ --method mixup --try alpha=1,8,32 --try learning_rate=0.02,0.05[/cyan]

Train with what was chosen:
[cyan]laplaceconfidence train photos/ --preset laplaceconfidence-tune-photos/tuned.toml[/cyan]
"""


def tune(
    source: Source,
    try_: Annotated[
        list[str] | None,
        word(
            SETTINGS,
            "A setting and the values to try, of the method (sharpen) or of the training (learning_rate). "
            "Repeat the option for several: all combinations are trained. Default for laplace: "
            "label_smoothing=0,0.1,0.2 or, where labels are refurbished, what the paper tries: "
            "sharpen=1,2,3,4 and, if its confidences are those of the paper, n_neighbors=2,10,50,100.",
            "--try",
            "-t",
            metavar="SETTING=VALUES",
        ),
    ] = None,
    method: Annotated[
        str, word(SETTINGS, "Training method (laplaceconfidence methods lists them).", metavar="NAME")
    ] = "laplace",
    preset: Annotated[
        str | None,
        word(SETTINGS, "Preset with all other settings, as for train.", "--preset", "-p", metavar="NAME"),
    ] = None,
    set_: Annotated[
        list[str] | None,
        word(
            SETTINGS,
            "Fix another setting, such as rounds=20 or method.warmup=5. Repeat the option for several.",
            "--set",
            "-s",
            metavar="KEY=VALUE",
        ),
    ] = None,
    noise: Annotated[
        str | None,
        word(
            SETTINGS,
            "For benchmarks: noise to add to the labels, such as symmetric:0.5. Default: that of the preset, "
            "otherwise the labels are taken as given.",
            metavar="KIND:RATE",
        ),
    ] = None,
    seeds: Annotated[int, whole(SETTINGS, "Number of seeds that accuracies are averaged over.")] = 1,
    label: Label = None,
    features: Features = None,
    labels: Labels = None,
    images: Images = None,
    id: Id = None,
    path: ImagePath = None,
    missing_label: MissingLabel = None,
    split: Split = None,
    image_size: Annotated[int | None, whole(DATA, TRAINING_IMAGE_SIZE)] = None,
    skip_bad: Annotated[bool, word(DATA, SKIP_BAD, "--skip-bad")] = False,
    test_share: TestShare = None,
    device: Annotated[str | None, word(MACHINE, DEVICE, metavar="NAME")] = None,
    n_jobs: Annotated[int | None, whole(MACHINE, "Number of threads. Default: all cores.")] = None,
    out: Annotated[
        Path | None,
        word(
            RUN,
            "Folder of the runs. Default: laplaceconfidence-tune-<name of the source>. Runs in it are "
            "resumed.",
            "--out",
            "-o",
            metavar="FOLDER",
        ),
    ] = None,
) -> None:
    """Choose settings of a training method by held-out labels.

    Every combination of the values is trained once per seed, and the one whose chosen round predicts the
    held-out part of the given, noisy labels best is written as a preset, tuned.toml. No true labels and no
    test data are used. The runs are those of a bench: after Ctrl+C the same command resumes them, and
    laplaceconfidence report shows them.
    """
    with report_errors():
        from laplaceconfidence.cli.bench.run import run_bench
        from laplaceconfidence.cli.bench.summary import show_failures
        from laplaceconfidence.cli.tune.request import TuneRequest
        from laplaceconfidence.cli.tune.summary import show_tuning

        request = TuneRequest(
            source=source,
            method=method,
            tried=tuple(try_ or ()),
            noises=() if noise is None else (noise,),
            n_seeds=seeds,
            preset=preset,
            changes=tuple(set_ or ()),
            read_options=read_options(
                label=label,
                features=features,
                labels=labels,
                images=images,
                id=id,
                path=path,
                missing_label=missing_label,
                split=split,
            ),
            image_size=image_size,
            skip_bad=skip_bad,
            test_share=test_share,
            device=device,
            n_jobs=n_jobs,
            out=out,
        )
        finished = run_bench(request)
        if finished.was_stopped:
            notices().print(
                f"[bold]Stopped.[/bold] {finished.n_done:,} of {len(finished.cells):,} runs are done and "
                f"saved in {finished.run.folder}. To resume, run the same command again.",
                soft_wrap=True,
            )
            raise typer.Exit(130)
        show_tuning(finished.run, request)
        show_failures(finished.run)
        if finished.run.failed:
            raise typer.Exit(SOME_RUNS_FAILED)


tune.__doc__ = f"{inspect.cleandoc(tune.__doc__ or '')}\n{EXAMPLES}"
