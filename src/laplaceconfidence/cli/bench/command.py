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
    Split,
    TestShare,
    TrainingText,
    TrueLabel,
    read_options,
    whole,
    word,
)

GRID = "What is compared"
SOME_CELLS_FAILED = 3  # exit code

EXAMPLES = """
[bold]Examples[/bold]

Every confidence estimator on your own embeddings, at three noise rates:
[cyan]laplaceconfidence bench embeddings.npz[/cyan]

Two of them, under noise of another kind:
[cyan]laplaceconfidence bench digits --noise asymmetric:0.4 --estimators laplace,knn-vote[/cyan]

How well they find the mistakes in the given labels, if true labels are known:
[cyan]laplaceconfidence bench reviews.parquet --noise none --true-label verified[/cyan]

Training methods, with a quarter of the samples set aside as test data:
[cyan]laplaceconfidence bench photos/ --methods cross_entropy,dividemix,laplace --test-share 0.25[/cyan]

The paper's table of CIFAR; first only what it would measure and how long that takes:
[cyan]laplaceconfidence bench table-cifar --dry-run[/cyan]

The same methods on digits, which two cores finish; --list shows the others:
[cyan]laplaceconfidence bench small-table[/cyan]

Your own bench file:
[cyan]laplaceconfidence bench table.toml --data photos=/data/photos[/cyan]

The second of eight parts, on one of eight machines that share the folder; after Ctrl+C it is resumed:
[cyan]laplaceconfidence bench table.toml --out /shared/table --shard 2/8[/cyan]
"""


def _list_benches(wanted: bool) -> None:
    if not wanted:
        return
    from laplaceconfidence.cli.console import output, plain_table
    from laplaceconfidence.evaluation.bench_file import bench_names, read_bench_file

    table = plain_table("Bench files", "name", "what it measures")
    for name in bench_names():
        file = read_bench_file(name)
        table.add_row(name, f"{file.title}. {file.description}.")
    output().print(table)
    raise typer.Exit


def bench(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A bench file (.toml) or the name of one that comes with the package; or the data, as for "
            "audit and train: a file, a folder of images, 'digits', 'cifar10' or 'cifar100'.",
        ),
    ],
    noise: Annotated[
        list[str] | None,
        word(
            GRID,
            "Noise to add to the labels: symmetric, symmetric-excluding, asymmetric, pair or instance with "
            "its rate; or none, for the labels as given. Repeat the option for several. Default: "
            "symmetric:0.2, symmetric:0.5 and symmetric:0.8.",
            metavar="KIND:RATE",
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        whole(GRID, "Number of seeds, of the noise and of everything else that is random. Default: 3."),
    ] = None,
    estimators: Annotated[
        str | None,
        word(
            GRID,
            "Confidence estimators, separated by commas, or all (default unless --methods is given).",
            metavar="NAMES",
        ),
    ] = None,
    methods: Annotated[
        str | None,
        word(
            GRID,
            "Training methods, separated by commas, or all (laplaceconfidence methods lists them).",
            metavar="NAMES",
        ),
    ] = None,
    mapping: Annotated[
        list[str] | None,
        word(
            GRID,
            "For asymmetric noise: which class is replaced by which, such as cat=dog. Not needed for digits "
            "and CIFAR. Repeat the option for several.",
            metavar="CLASS=CLASS",
        ),
    ] = None,
    preset: Annotated[
        str | None,
        word(
            SETTINGS,
            "Settings of the training methods, as for train. The noise of the preset is not used; methods "
            "other than that of the preset keep their own defaults.",
            "--preset",
            "-p",
            metavar="NAME",
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        word(
            SETTINGS,
            "Change a setting that all methods share (rounds=20), or one of a method's own "
            "(laplace.n_neighbors=10). Repeat the option for several.",
            "--set",
            "-s",
            metavar="KEY=VALUE",
        ),
    ] = None,
    label: Label = None,
    features: Features = None,
    labels: Labels = None,
    images: Images = None,
    id: Id = None,
    text: TrainingText = None,
    path: ImagePath = None,
    true_label: TrueLabel = None,
    missing_label: MissingLabel = None,
    split: Split = None,
    image_size: Annotated[int | None, whole(DATA, f"{IMAGE_SIZE} With --methods, as for train.")] = None,
    skip_bad: Annotated[
        bool, word(DATA, "Leave out images that cannot be decoded, and show how many.", "--skip-bad")
    ] = False,
    test: Annotated[
        str | None,
        word(
            DATA,
            "Test data for the training methods. CIFAR and WebVision have their own.",
            metavar="SOURCE",
        ),
    ] = None,
    test_share: TestShare = None,
    data: Annotated[
        list[str] | None,
        word(
            DATA,
            "For a bench file: where data or test data that it names are. Repeat the option for several.",
            metavar="NAME=PATH",
        ),
    ] = None,
    device: Annotated[str | None, word(MACHINE, DEVICE, metavar="NAME")] = None,
    n_jobs: Annotated[int | None, whole(MACHINE, "Number of threads. Default: all cores.")] = None,
    out: Annotated[
        Path | None,
        word(
            RUN,
            "Folder of the bench. Default: laplaceconfidence-bench-<name of the source>. A bench in it "
            "is resumed.",
            "--out",
            "-o",
            metavar="FOLDER",
        ),
    ] = None,
    shard: Annotated[
        str | None,
        word(
            RUN,
            "Measure only this part of the cells, such as 2/8 for the second of eight. Machines that share "
            "the folder each measure another part.",
            metavar="PART/PARTS",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        word(
            RUN, "Show the cells, their settings and about how long they take; measure nothing.", "--dry-run"
        ),
    ] = False,
    list_: Annotated[
        bool,
        typer.Option(
            "--list",
            callback=_list_benches,
            is_eager=True,
            help="List the bench files that come with the package.",
            rich_help_panel=GRID,
        ),
    ] = False,
) -> None:
    """Compare estimators and training methods on your data.

    Noise is added to the true labels, or to the given ones, which are taken as correct, if no true labels are
    known. Every estimator and every training method is then measured under every noise with every seed.
    Writes a folder with all results, and tables in Markdown, CSV and LaTeX. A bench file states data, noises,
    contenders with settings, and sweeps, and ends with a report and figures as PDF and PNG; the options about
    them are for small benches without a file.
    """
    with report_errors():
        from laplaceconfidence.cli.bench.dry_run import show_plan
        from laplaceconfidence.cli.bench.request import BenchRequest
        from laplaceconfidence.cli.bench.run import run_bench, write_bench_report
        from laplaceconfidence.cli.bench.summary import show_bench
        from laplaceconfidence.evaluation.bench_file import is_bench_file

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
                text=text,
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
            data=tuple(data or ()),
            shard=shard,
            dry_run=dry_run,
        )
        if dry_run:
            show_plan(request)
            return
        finished = run_bench(request)
        run, cells = finished.run, finished.cells
        if finished.was_stopped:
            notices().print(
                f"[bold]Stopped.[/bold] {finished.n_done:,} of {len(cells):,} cells are done and saved in "
                f"{run.folder}. To resume, run the same command again.",
                soft_wrap=True,
            )
            raise typer.Exit(130)
        has_report = is_bench_file(source) and write_bench_report(run)
        show_bench(run, has_report=has_report)
        own = frozenset(cells)
        if any(outcome.cell in own for outcome in run.failed):
            raise typer.Exit(SOME_CELLS_FAILED)


bench.__doc__ = f"{inspect.cleandoc(bench.__doc__ or '')}\n{EXAMPLES}"
