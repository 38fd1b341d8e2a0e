"""``laplaceconfidence audit``: which labels are probably wrong, from a shell."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated, Any

import typer

from laplaceconfidence.cli.edge import edge
from laplaceconfidence.cli.numbers import count_number, number_or_word, real_number, whole_number
from laplaceconfidence.cli.progress import showing_progress

DATA, EVIDENCE, METHOD, RESULT = "The data", "Other evidence", "The method", "The result"
IMAGES = "Images without features"
SECOND = "A second set"

EXAMPLES = """
[bold]Examples[/bold]

A table with a label column and embeddings in the columns emb_0, emb_1, ...:
[cyan]laplaceconfidence audit reviews.parquet --label mood --features 'emb_*' --text review[/cyan]

Arrays under the keys 'features' and 'labels', reduced to 64 components first:
[cyan]laplaceconfidence audit embeddings.npz --n-components 64[/cyan]

A folder of images, one sub-folder a class; a small network learns their features first:
[cyan]laplaceconfidence audit photos/ --image-size 64[/cyan]

The same with embeddings of any network:
[cyan]laplaceconfidence audit photos/ --features embeddings.npy --out photos-audit[/cyan]

Which training samples are in the test data as well:
[cyan]laplaceconfidence audit train.npz --test test.npz[/cyan]

Out-of-fold class probabilities of your own model in place of features:
[cyan]laplaceconfidence audit data.csv --pred-probs p.npy --estimator normalized-margin[/cyan]
"""


def audit(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A .npz, .npy, .csv, .tsv or .parquet file, a folder of images, CIFAR or WebVision as "
            "published, or 'digits', 'cifar10', 'cifar100'.",
        ),
    ],
    label: Annotated[
        str | None, typer.Option(help="Column or key of the labels.", rich_help_panel=DATA)
    ] = None,
    features: Annotated[
        list[str] | None,
        typer.Option(
            metavar="<str>",
            help="Column, pattern ('emb_*') or key of the features, or an .npy file. Repeat it for several "
            "columns.",
            rich_help_panel=DATA,
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            help="File with the labels of an .npy or .npz source: .npy, or text with one a line.",
            rich_help_panel=DATA,
        ),
    ] = None,
    images: Annotated[
        str | None, typer.Option(help="Key of the images in an .npz file.", rich_help_panel=DATA)
    ] = None,
    id: Annotated[
        str | None, typer.Option(help="Column or key of the sample ids.", rich_help_panel=DATA)
    ] = None,
    text: Annotated[
        str | None, typer.Option(help="Column or key of the texts to show.", rich_help_panel=DATA)
    ] = None,
    path: Annotated[
        str | None, typer.Option(help="Column or key of the image paths to show.", rich_help_panel=DATA)
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
        str | None, typer.Option(help="Part of CIFAR: train, test or all.", rich_help_panel=DATA)
    ] = None,
    test: Annotated[
        str | None,
        typer.Option(
            metavar="SOURCE",
            help="Test data, read with the same options: which audited samples are in it as well?",
            rich_help_panel=SECOND,
        ),
    ] = None,
    test_features: Annotated[
        str | None,
        typer.Option(help="As --features, where those of the test data differ.", rich_help_panel=SECOND),
    ] = None,
    test_labels: Annotated[
        str | None, typer.Option(help="File with the labels of the test data.", rich_help_panel=SECOND)
    ] = None,
    test_split: Annotated[
        str | None, typer.Option(help="Part of CIFAR for the test data.", rich_help_panel=SECOND)
    ] = None,
    pred_probs: Annotated[
        Path | None,
        typer.Option(
            help="Class probabilities (.npy), one column a class in sorted order.", rich_help_panel=EVIDENCE
        ),
    ] = None,
    knn_graph: Annotated[
        Path | None,
        typer.Option(
            help="Neighbour graph (.npz of scipy) in place of one built from features.",
            rich_help_panel=EVIDENCE,
        ),
    ] = None,
    knn_graph_kind: Annotated[
        str | None,
        typer.Option(
            help="What its values are: similarity (default), cosine_distance or distance.",
            rich_help_panel=EVIDENCE,
        ),
    ] = None,
    estimator: Annotated[
        str | None,
        typer.Option(
            help="noise-aware (default), laplace (the paper's), knn-vote, refined-cross-entropy, "
            "largest-component; with --pred-probs: normalized-margin, self-confidence, gaussian-mixture, "
            "beta-mixture.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    n_neighbors: Annotated[
        str | None,
        typer.Option(
            "--n-neighbors", "-k", help="Neighbours of a sample: a number or auto.", rich_help_panel=METHOD
        ),
    ] = None,
    alpha: Annotated[
        str | None,
        typer.Option(help="How far labels spread: between 0 and 1, or auto.", rich_help_panel=METHOD),
    ] = None,
    n_components: Annotated[
        int | None,
        typer.Option(
            parser=whole_number,
            metavar="<int>",
            help="Principal components to keep.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    search: Annotated[
        str | None, typer.Option(help="Neighbour search: auto, exact or ivf.", rich_help_panel=METHOD)
    ] = None,
    dtype: Annotated[
        str | None, typer.Option(help="Precision: auto, float32 or float64.", rich_help_panel=METHOD)
    ] = None,
    n_jobs: Annotated[
        int | None,
        typer.Option(
            parser=whole_number, metavar="<int>", help="Threads; all by default.", rich_help_panel=METHOD
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            parser=count_number, metavar="<int>", help="Seed of all that is random.", rich_help_panel=METHOD
        ),
    ] = 0,
    network: Annotated[
        str | None,
        typer.Option(
            help="Network that learns the features: small_cnn (default), preact_resnet18, "
            "inception_resnet_v2, or package.module:factory.",
            rich_help_panel=IMAGES,
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            parser=whole_number, metavar="<int>", help="Passes over the images.", rich_help_panel=IMAGES
        ),
    ] = None,
    image_size: Annotated[
        int | None,
        typer.Option(
            parser=whole_number,
            metavar="<int>",
            help="Side in pixels that image files are resized to.",
            rich_help_panel=IMAGES,
        ),
    ] = None,
    skip_bad: Annotated[
        bool | None,
        typer.Option(
            "--skip-bad",
            help="Leave out images that cannot be decoded, and list them.",
            rich_help_panel=IMAGES,
        ),
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="auto, cpu, cuda, cuda:0 or mps.", rich_help_panel=IMAGES)
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            parser=real_number,
            metavar="<float>",
            help="Flag labels with a score below this. By default, flag where another class is more "
            "probable.",
            rich_help_panel=RESULT,
        ),
    ] = None,
    target_precision: Annotated[
        float | None,
        typer.Option(
            parser=real_number,
            metavar="<float>",
            help="Flag as many labels as possible such that this share of them is expected to be wrong.",
            rich_help_panel=RESULT,
        ),
    ] = None,
    suspects: Annotated[
        int,
        typer.Option(
            parser=count_number, metavar="<int>", help="How many suspects to show.", rich_help_panel=RESULT
        ),
    ] = 10,
    decisions: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN",
            help="A reviewed audit of the same data: what was decided there is certain, and the confidence "
            "of the rest is updated from it.",
            rich_help_panel=EVIDENCE,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Folder for the results. Default: laplaceconfidence-audit-<name of the source>.",
            rich_help_panel=RESULT,
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the audit in that folder.", rich_help_panel=RESULT)
    ] = False,
) -> None:
    """Find labels that are probably wrong.

    Reads data with labels nobody has verified, ranks the labels from least to most trustworthy and writes
    issues.csv, issues.parquet and audit.json into a folder.
    """
    read_options: dict[str, Any] = {
        "label": label,
        "features": features[0] if features and len(features) == 1 else features or None,
        "labels": labels,
        "images": images,
        "id": id,
        "text": text,
        "path": path,
        "true_label": true_label,
        "missing_label": missing_label,
        "split": split,
    }
    settings: dict[str, Any] = {
        "n_neighbors": None if n_neighbors is None else number_or_word(n_neighbors),
        "alpha": None if alpha is None else number_or_word(alpha),
        "n_components": n_components,
        "search": search,
        "dtype": dtype,
        "n_jobs": n_jobs,
        "knn_graph_kind": knn_graph_kind,
    }
    with edge() as warnings:
        from laplaceconfidence.audit.issues import audit as find_issues
        from laplaceconfidence.cli.decisions import decisions_for
        from laplaceconfidence.cli.evidence_files import load_graph, load_probabilities
        from laplaceconfidence.cli.image_features import (
            ImageFeatures,
            ImageOptions,
            describes_itself,
            learn_features,
            tell_skipped,
        )
        from laplaceconfidence.cli.second_set import read_second_set
        from laplaceconfidence.cli.summary import show_summary
        from laplaceconfidence.data.readers import read_dataset
        from laplaceconfidence.records import write_audit
        from laplaceconfidence.records.run_folder import check_place
        from laplaceconfidence.stages import stage

        folder = out or Path(f"laplaceconfidence-audit-{_stem(source)}")
        check_place(folder, overwrite=overwrite)
        image_options = ImageOptions(network, epochs, device, image_size, skip_bad)
        given = {name: value for name, value in read_options.items() if value is not None}
        with showing_progress():
            with stage("reading"):
                dataset = read_dataset(source, **given)
                second = read_second_set(
                    test, given, features=test_features, labels=test_labels, split=test_split
                )
            learned = ImageFeatures(dataset)
            if pred_probs is None and knn_graph is None and not describes_itself(dataset):
                learned = learn_features(dataset, image_options, seed=seed, n_jobs=n_jobs)
            else:
                image_options.refuse()
            decided = decisions_for(learned.dataset, decisions)
            result = find_issues(
                learned.dataset,
                audited=decided.labels,
                recalibrate=decided.recalibrate,
                estimator=estimator,
                pred_probs=None if pred_probs is None else load_probabilities(pred_probs),
                knn_graph=None if knn_graph is None else load_graph(knn_graph),
                test=second,
                threshold=threshold,
                target_precision=target_precision,
                random_state=seed,
                **{name: value for name, value in settings.items() if value is not None},
            )
            with stage("writing"):
                run = write_audit(
                    result,
                    folder,
                    source=_described(source, given, {"pred_probs": pred_probs, "knn_graph": knn_graph})
                    | ({"test": _full(test)} if test else {})
                    | decided.described
                    | ({"features_learned_by": learned.described} if learned.described else {}),
                    warnings=tuple(warnings),
                    overwrite=overwrite,
                )
        tell_skipped(learned.skipped)
        show_summary(result, run, n_suspects=suspects)


audit.__doc__ = f"{inspect.cleandoc(audit.__doc__ or '')}\n{EXAMPLES}"


def _stem(source: str) -> str:
    """The name of the source without folder and suffixes."""
    name = Path(source).absolute().name
    return name.lstrip(".").split(".")[0] or "data"


def _described(source: str, options: dict[str, Any], files: dict[str, Path | None]) -> dict[str, Any]:
    """Where the data came from, with full paths, so that it can be found again from elsewhere."""
    return {
        "source": _full(source),
        "options": {
            name: _full(value) if name in ("features", "labels") and isinstance(value, str) else value
            for name, value in options.items()
        },
        **{name: _full(str(path)) for name, path in files.items() if path is not None},
    }


def _full(path: str) -> str:
    """A path made absolute; what is no path, such as 'digits' or a column, as it is."""
    return str(Path(path).absolute()) if Path(path).exists() else path
