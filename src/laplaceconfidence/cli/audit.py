"""``laplaceconfidence audit``: which labels are probably wrong, from a shell."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated, Any

from laplaceconfidence.cli.errors import report_errors
from laplaceconfidence.cli.numbers import number_or_word
from laplaceconfidence.cli.options import (
    DEVICE,
    EVIDENCE,
    IMAGE_SIZE,
    IMAGES,
    METHOD,
    RESULT,
    SECOND_SET,
    SKIP_BAD,
    Features,
    Id,
    ImagePath,
    Images,
    Label,
    Labels,
    MissingLabel,
    Source,
    Split,
    Text,
    TrueLabel,
    counted,
    read_options,
    real,
    whole,
    word,
)

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

Draw 100 labels to verify, and audit again with what was found:
[cyan]laplaceconfidence audit data.csv --sample-for-review 100 --out first[/cyan]
[cyan]laplaceconfidence audit data.csv --audited first/review_sample.csv --out second[/cyan]

Out-of-fold class probabilities of your own model in place of features:
[cyan]laplaceconfidence audit data.csv --pred-probs p.npy --estimator normalized-margin[/cyan]
"""


def audit(
    source: Source,
    label: Label = None,
    features: Features = None,
    labels: Labels = None,
    images: Images = None,
    id: Id = None,
    text: Text = None,
    path: ImagePath = None,
    true_label: TrueLabel = None,
    missing_label: MissingLabel = None,
    split: Split = None,
    test: Annotated[
        str | None,
        word(
            SECOND_SET,
            "Test data, read with the same options: which audited samples are in it as well?",
            metavar="SOURCE",
        ),
    ] = None,
    test_features: Annotated[
        str | None, word(SECOND_SET, "As --features, where those of the test data differ.")
    ] = None,
    test_labels: Annotated[str | None, word(SECOND_SET, "File with the labels of the test data.")] = None,
    test_split: Annotated[str | None, word(SECOND_SET, "Part of CIFAR for the test data.")] = None,
    pred_probs: Annotated[
        Path | None, word(EVIDENCE, "Class probabilities (.npy), one column a class in sorted order.")
    ] = None,
    knn_graph: Annotated[
        Path | None,
        word(EVIDENCE, "Neighbor graph (.npz of scipy) in place of one built from features."),
    ] = None,
    knn_graph_kind: Annotated[
        str | None,
        word(EVIDENCE, "What its values are: similarity (default), cosine_distance or distance."),
    ] = None,
    estimator: Annotated[
        str | None,
        word(
            METHOD,
            "noise-aware (default), laplace (the paper's), knn-vote, refined-cross-entropy, "
            "largest-component; with --pred-probs: normalized-margin, self-confidence, gaussian-mixture, "
            "beta-mixture.",
        ),
    ] = None,
    n_neighbors: Annotated[
        str | None, word(METHOD, "Neighbors of a sample: a number or auto.", "--n-neighbors", "-k")
    ] = None,
    alpha: Annotated[str | None, word(METHOD, "How far labels spread: between 0 and 1, or auto.")] = None,
    n_components: Annotated[int | None, whole(METHOD, "Principal components to keep.")] = None,
    search: Annotated[str | None, word(METHOD, "Neighbor search: auto, exact or ivf.")] = None,
    dtype: Annotated[str | None, word(METHOD, "Precision: auto, float32 or float64.")] = None,
    n_jobs: Annotated[int | None, whole(METHOD, "Threads; all by default.")] = None,
    seed: Annotated[int, counted(METHOD, "Seed of all that is random.")] = 0,
    network: Annotated[
        str | None,
        word(
            IMAGES,
            "Network that learns the features: small_cnn (default), preact_resnet18, inception_resnet_v2, "
            "or package.module:factory.",
        ),
    ] = None,
    epochs: Annotated[int | None, whole(IMAGES, "Passes over the images.")] = None,
    image_size: Annotated[int | None, whole(IMAGES, IMAGE_SIZE)] = None,
    skip_bad: Annotated[bool | None, word(IMAGES, SKIP_BAD, "--skip-bad")] = None,
    device: Annotated[str | None, word(IMAGES, DEVICE)] = None,
    threshold: Annotated[
        float | None,
        real(
            RESULT,
            "Flag labels with a score below this. By default, flag where another class is more probable.",
        ),
    ] = None,
    target_precision: Annotated[
        float | None,
        real(
            RESULT,
            "Flag as many labels as possible such that this share of them is expected to be wrong.",
        ),
    ] = None,
    suspects: Annotated[int, counted(RESULT, "How many suspects to show.")] = 10,
    sample_for_review: Annotated[
        int | None,
        whole(
            RESULT,
            "Draw so many labels at random, suspects or not, and write them as a table for a person to fill "
            "in. 100 is a good number.",
        ),
    ] = None,
    audited: Annotated[
        list[Path] | None,
        word(
            EVIDENCE,
            "A table with the columns id and verified_label (.csv, .parquet), such as the one of "
            "--sample-for-review filled in: these labels are certain, and 50 or more random ones calibrate "
            "the rest. Repeat it for several.",
            metavar="FILE",
        ),
    ] = None,
    decisions: Annotated[
        Path | None,
        word(
            EVIDENCE,
            "A reviewed audit of the same data: what was decided there is certain, and the confidence of the "
            "rest is updated from it.",
            metavar="RUN",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        word(
            RESULT,
            "Folder for the results. Default: laplaceconfidence-audit-<name of the source>.",
            "--out",
            "-o",
        ),
    ] = None,
    overwrite: Annotated[bool, word(RESULT, "Replace the audit in that folder.", "--overwrite")] = False,
) -> None:
    """Find labels that are probably wrong.

    Reads data with labels nobody has verified, ranks the labels from least to most trustworthy and writes
    issues.csv, issues.parquet and audit.json into a folder.
    """
    settings: dict[str, Any] = {
        "n_neighbors": None if n_neighbors is None else number_or_word(n_neighbors),
        "alpha": None if alpha is None else number_or_word(alpha),
        "n_components": n_components,
        "search": search,
        "dtype": dtype,
        "n_jobs": n_jobs,
        "knn_graph_kind": knn_graph_kind,
    }
    with report_errors() as warnings:
        from laplaceconfidence.cli.audit_run import AuditRequest, run_audit
        from laplaceconfidence.cli.image_features import ImageOptions

        request = AuditRequest(
            source=source,
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
            test=test,
            test_options={"features": test_features, "labels": test_labels, "split": test_split},
            pred_probs=pred_probs,
            knn_graph=knn_graph,
            audited=tuple(audited or ()),
            decisions=decisions,
            estimator=estimator,
            settings={name: value for name, value in settings.items() if value is not None},
            seed=seed,
            n_jobs=n_jobs,
            image_options=ImageOptions(network, epochs, device, image_size, skip_bad),
            threshold=threshold,
            target_precision=target_precision,
            n_suspects=suspects,
            n_for_review=sample_for_review,
            out=out,
            overwrite=overwrite,
        )
        run_audit(request, warnings)


audit.__doc__ = f"{inspect.cleandoc(audit.__doc__ or '')}\n{EXAMPLES}"
