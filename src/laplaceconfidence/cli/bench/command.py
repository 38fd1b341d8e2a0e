"""The command ``laplaceconfidence bench``."""

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
    IMAGE_SIZE,
    MACHINE,
    RUN,
    SETTINGS,
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
    TrueLabel,
    read_options,
    whole,
    word,
)

GRID = "What is compared"
SOME_CELLS_FAILED = 3  # exit code

EXAMPLES = """
[bold]Examples[/bold]

Every confidence estimator on embeddings of yours, under three rates of noise:
[cyan]laplaceconfidence bench embeddings.npz[/cyan]

Two of them, under noise of another kind:
[cyan]laplaceconfidence bench digits --noise asymmetric:0.4 --estimators laplace,knn-vote[/cyan]

How well they find the mistakes in the given labels, where true labels are known:
[cyan]laplaceconfidence bench reviews.parquet --noise none --true-label verified[/cyan]

Training methods in one loop, a quarter of the samples set aside as a test:
[cyan]laplaceconfidence bench photos/ --methods cross_entropy,dividemix,laplace --test-share 0.25[/cyan]

The paper's setting; it takes days. After Ctrl-C the same command resumes it:
[cyan]laplaceconfidence bench cifar10 --methods all --preset cifar10-sym50 --noise symmetric:0.5[/cyan]
"""


def bench(
    source: Source,
    noise: Annotated[
        list[str] | None,
        word(
            GRID,
            "Noise put into the labels: symmetric, symmetric-excluding, asymmetric, pair or instance with "
            "its rate; or none, for the labels as given. Repeat it for several. Default: symmetric:0.2, "
            "symmetric:0.5 and symmetric:0.8.",
            metavar="<kind:rate>",
        ),
    ] = None,
    seeds: Annotated[int, whole(GRID, "How many seeds, of noise and all else that is random.")] = 3,
    estimators: Annotated[
        str | None,
        word(
            GRID,
            "Confidence estimators by name, or all (default unless --methods is given).",
            metavar="<a,b,...>",
        ),
    ] = None,
    methods: Annotated[
        str | None,
        word(
            GRID,
            "Training methods by name, or all (laplaceconfidence train --methods lists them).",
            metavar="<a,b,...>",
        ),
    ] = None,
    mapping: Annotated[
        list[str] | None,
        word(
            GRID,
            "For asymmetric noise: which class is replaced by which. Known for digits and CIFAR. Repeat it "
            "for several.",
            metavar="<class=class>",
        ),
    ] = None,
    preset: Annotated[
        str | None,
        word(
            SETTINGS,
            "Settings of the training methods, as for train. Its noise is not used here; methods that it is "
            "not for keep their own defaults.",
            "--preset",
            "-p",
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        word(
            SETTINGS,
            "Change a setting that all methods share (rounds=20), or one of a method's own "
            "(laplace.n_neighbors=10). Repeat it for several.",
            "--set",
            "-s",
            metavar="<key=value>",
        ),
    ] = None,
    label: Label = None,
    features: Features = None,
    labels: Labels = None,
    images: Images = None,
    id: Id = None,
    path: ImagePath = None,
    true_label: TrueLabel = None,
    missing_label: MissingLabel = None,
    split: Split = None,
    image_size: Annotated[int | None, whole(DATA, IMAGE_SIZE)] = None,
    skip_bad: Annotated[
        bool, word(DATA, "Leave out images that cannot be decoded, and count them.", "--skip-bad")
    ] = False,
    test: Annotated[
        str | None,
        word(
            DATA,
            "Data that trained networks are tested on. CIFAR and WebVision bring theirs.",
            metavar="<source>",
        ),
    ] = None,
    test_share: TestShare = None,
    device: Annotated[str | None, word(MACHINE, DEVICE)] = None,
    n_jobs: Annotated[int | None, whole(MACHINE, "Threads; all by default.")] = None,
    out: Annotated[
        Path | None,
        word(
            RUN,
            "Folder of the bench. Default: laplaceconfidence-bench-<name of the source>. A bench in it "
            "is resumed.",
            "--out",
            "-o",
        ),
    ] = None,
) -> None:
    """Compare estimators and training methods on your data.

    The labels are taken as correct (the true labels, where there are some), noise is put into them, and
    every estimator and every method is measured under every noise with every seed. Writes a folder with every
    result and tables as Markdown, CSV and LaTeX.
    """
    with report_errors():
        from laplaceconfidence.cli.bench.request import BenchRequest
        from laplaceconfidence.cli.bench.run import run_bench
        from laplaceconfidence.cli.bench.summary import show_bench

        request = BenchRequest(
            source=source,
            noises=tuple(noise or ()),
            n_seeds=seeds,
            estimators=estimators,
            methods=methods,
            mapping=tuple(mapping or ()),
            preset=preset,
            changes=tuple(set_ or ()),
            read_options=read_options(
                label=label,
                features=features,
                labels=labels,
                images=images,
                id=id,
                path=path,
                true_label=true_label,
                missing_label=missing_label,
                split=split,
            ),
            image_size=image_size,
            skip_bad=skip_bad,
            test=test,
            test_share=test_share,
            device=device,
            n_jobs=n_jobs,
            out=out,
        )
        run, was_stopped = run_bench(request)
        if was_stopped:
            notices().print(
                f"[bold]Stopped[/bold] as asked. {len(run.done):,} of {len(run.cells):,} cells are done and "
                f"saved in {run.folder}. To resume it, give the same command again.",
                soft_wrap=True,
            )
            raise typer.Exit(130)
        show_bench(run)
        if run.failed:
            raise typer.Exit(SOME_CELLS_FAILED)


bench.__doc__ = f"{inspect.cleandoc(bench.__doc__ or '')}\n{EXAMPLES}"
