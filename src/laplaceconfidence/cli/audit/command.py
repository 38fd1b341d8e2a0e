"""The options of ``laplaceconfidence audit``, and their help."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated, Any

from laplaceconfidence.cli.errors import report_errors
from laplaceconfidence.cli.options import (
    DEVICE,
    EVIDENCE,
    FEATURE_ESTIMATORS,
    FEWEST_AUDITED,
    IMAGE_SIZE,
    IMAGES,
    LARGE,
    METHOD,
    NETWORKS,
    PROBABILITY_ESTIMATORS,
    RESULT,
    SKIP_BAD,
    TEST_DATA,
    Annotator,
    AnnotatorColumns,
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
    SamplesTable,
    Source,
    Split,
    Text,
    TrueLabel,
    nonnegative,
    number_or_word,
    read_options,
    real,
    whole,
    word,
)

EXAMPLES = """
[bold]Examples[/bold]

Texts with a label, in a table; nothing is downloaded:
[cyan]laplaceconfidence audit reviews.csv --label mood --text review[/cyan]

The same with a sentence encoder:
[cyan]laplaceconfidence audit reviews.csv --label mood --text review --encoder hf:NAME[/cyan]

A table with a label column and embeddings in the columns emb_0, emb_1, ...:
[cyan]laplaceconfidence audit reviews.parquet --label mood --features 'emb_*' --text review[/cyan]

A table of numbers, dates, categories and texts:
[cyan]laplaceconfidence audit customers.csv --label churned --features 'age,income,city,since'[/cyan]

Labels of several people, one row per label, with the texts in another table or without any features:
[cyan]laplaceconfidence audit labels.csv --id item --annotator worker --samples items.csv --text review[/cyan]
[cyan]laplaceconfidence audit labels.csv --id item --annotator worker[/cyan]

Arrays under the keys 'features' and 'labels', reduced to 64 principal components first:
[cyan]laplaceconfidence audit embeddings.npz --n-components 64[/cyan]

A folder of images with one subfolder per class; a small network learns their features first:
[cyan]laplaceconfidence audit photos/ --image-size 64[/cyan]

The same folder with embeddings from any network:
[cyan]laplaceconfidence audit photos/ --features embeddings.npy --out photos-audit[/cyan]

Training samples that are also in the test data:
[cyan]laplaceconfidence audit train.npz --test test.npz[/cyan]

Draw 100 labels to verify, and audit again with the verified labels:
[cyan]laplaceconfidence audit data.csv --sample-for-review 100 --out first[/cyan]
[cyan]laplaceconfidence audit data.csv --audited first/review_sample.csv --out second[/cyan]

In a pipeline: fail if more than 5% of the labels are wrong, or a sample is also in the test data:
[cyan]laplaceconfidence audit train.csv --test test.csv --fail-if 'noise > 5%' --fail-if 'leaks > 0'[/cyan]

More data than fits in memory, and the same on a Dask cluster:
[cyan]laplaceconfidence audit parts/ --label y --features emb --memory 8GB[/cyan]
[cyan]laplaceconfidence audit parts/ --label y --features emb --cluster tcp://host:8786[/cyan]

Data that grows: keep an index, and later audit only what is new or was relabeled:
[cyan]laplaceconfidence audit january.parquet --label y --features emb --keep-index --out january[/cyan]
[cyan]laplaceconfidence audit february.parquet --label y --features emb --since january --out february[/cyan]

Out-of-fold class probabilities from your own model in place of features:
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
    encoder: Encoders = None,
    encoder_set: EncoderSettings = None,
    no_cache: NoCache = False,
    true_label: TrueLabel = None,
    missing_label: MissingLabel = None,
    split: Split = None,
    annotator: Annotator = None,
    annotators: AnnotatorColumns = None,
    samples: SamplesTable = None,
    test: Annotated[
        str | None,
        word(
            TEST_DATA,
            "Test data, read with the same options. Audited samples that are also in it, or nearly so, are "
            "flagged as leaked.",
            metavar="SOURCE",
        ),
    ] = None,
    test_features: Annotated[
        str | None,
        word(
            TEST_DATA,
            "Like --features, for the test data. Needed where --features is a file.",
            metavar="NAME",
        ),
    ] = None,
    test_labels: Annotated[
        str | None, word(TEST_DATA, "Like --labels, for the test data.", metavar="FILE")
    ] = None,
    test_split: Annotated[
        str | None, word(TEST_DATA, "Like --split, for the test data.", metavar="NAME")
    ] = None,
    pred_probs: Annotated[
        Path | None,
        word(
            EVIDENCE,
            "Class probabilities (.npy), one row per sample and one column per class in sorted order. They "
            "should come from a model that was not trained on the label in question (out-of-fold).",
            metavar="FILE",
        ),
    ] = None,
    knn_graph: Annotated[
        Path | None,
        word(
            EVIDENCE,
            "A neighbor graph in place of the one built from features, in CSR format as "
            "scipy.sparse.save_npz writes it (.npz).",
            metavar="FILE",
        ),
    ] = None,
    knn_graph_kind: Annotated[
        str | None,
        word(
            EVIDENCE,
            "What the values of --knn-graph are: similarity (default), cosine_distance or distance (any "
            "other distance).",
            metavar="KIND",
        ),
    ] = None,
    audited: Annotated[
        list[Path] | None,
        word(
            EVIDENCE,
            "Labels that a person has verified: a table (.csv, .tsv, .parquet) with the columns id and "
            "verified_label, such as the one from --sample-for-review filled in. Samples are matched by id; "
            "where there is a column given_label, the data must still have that label or the verified one. "
            f"These labels are taken as certain, and {FEWEST_AUDITED} or more calibrate the confidences of "
            "the others, so they should be a random sample. Repeat the option for several tables. Only for "
            "the estimator noise-aware.",
            metavar="FILE",
        ),
    ] = None,
    decisions: Annotated[
        Path | None,
        word(
            EVIDENCE,
            "Folder of a reviewed audit of the same data, in any order, or the tasks of its export that were "
            "annotated in Label Studio and exported as JSON. Samples are matched by id; decisions "
            "that find none are counted. What was decided there replaces the given labels and is taken as "
            "certain; the other confidences are updated from it, and calibrated where "
            f"{FEWEST_AUDITED} or more of the decisions are about a random sample.",
            metavar="RUN",
        ),
    ] = None,
    estimator: Annotated[
        str | None,
        word(
            METHOD,
            f"Confidence estimator. From features or a graph: {', '.join(FEATURE_ESTIMATORS)}; laplace is "
            "the paper's, and the first one is the default. From --pred-probs: "
            f"{', '.join(PROBABILITY_ESTIMATORS)}; the first one is the default where there are no features.",
            metavar="NAME",
        ),
    ] = None,
    n_neighbors: Annotated[
        str | None,
        word(
            METHOD,
            "Neighbors per sample, or auto. Lowered, with a note, where there are fewer samples.",
            "--n-neighbors",
            "-k",
            metavar="K",
        ),
    ] = None,
    alpha: Annotated[
        str | None,
        word(
            METHOD,
            "How far labels propagate over the graph: between 0 and 1, or auto. Small for general-purpose "
            "embeddings and few samples, 0.99 for features that were learned from these labels.",
            metavar="A",
        ),
    ] = None,
    n_components: Annotated[
        int | None,
        whole(
            METHOD, "Principal components to keep before neighbors are searched: faster for wide features."
        ),
    ] = None,
    search: Annotated[
        str | None,
        word(
            METHOD,
            "Neighbor search: exact, ivf (approximate and fast; the share of neighbors it finds is measured "
            "and reported) or auto, which is ivf from 20,000 samples on.",
            metavar="KIND",
        ),
    ] = None,
    dtype: Annotated[
        str | None,
        word(
            METHOD,
            "Precision: float32, float64 or auto, which is float64 up to 5,000 samples.",
            metavar="TYPE",
        ),
    ] = None,
    n_jobs: Annotated[int | None, whole(METHOD, "Number of threads. Default: all cores.")] = None,
    seed: Annotated[
        int, nonnegative(METHOD, "Seed of everything that is random. The same seed gives the same results.")
    ] = 0,
    network: Annotated[
        str | None,
        word(
            IMAGES,
            f"Network that learns the features: {', '.join(NETWORKS)}, or your own as "
            f"package.module:factory. Default: {NETWORKS[0]}.",
            metavar="NAME",
        ),
    ] = None,
    epochs: Annotated[int | None, whole(IMAGES, "Passes over the images. Default: 10.")] = None,
    image_size: Annotated[int | None, whole(IMAGES, IMAGE_SIZE)] = None,
    skip_bad: Annotated[bool | None, word(IMAGES, SKIP_BAD, "--skip-bad")] = None,
    device: Annotated[str | None, word(IMAGES, DEVICE, metavar="NAME")] = None,
    image_issues: Annotated[
        bool | None,
        word(
            RESULT,
            "Whether to look at the images for those that are dark, bright, of one color, blurry, of an odd "
            "size or shape, or unreadable. Default: yes, unless there are more than 20,000 files.",
            "--image-issues/--no-image-issues",
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        real(
            RESULT,
            "Flag labels with a score below this value. By default, a label is flagged where another class "
            "is more probable than the given one.",
        ),
    ] = None,
    target_precision: Annotated[
        float | None,
        real(
            RESULT,
            "Flag as many labels as possible such that this share of them is expected to be wrong, such as "
            "0.95. Only for estimators with calibrated scores (noise-aware). Where that flags nothing, the "
            "summary says which precision can be reached.",
        ),
    ] = None,
    suspects: Annotated[
        int, nonnegative(RESULT, "Number of labels to show in the summary: flagged ones first, then by rank.")
    ] = 10,
    sample_for_review: Annotated[
        int | None,
        whole(
            RESULT,
            "Choose this many labels and write them into the folder as review_sample.csv for a person to "
            f"fill in: {FEWEST_AUDITED} uniformly at random, suspects or not (100 where only a range is "
            "known for the number of wrong labels); of more, half at random and half those whose answer is "
            "least certain. Only those drawn at random calibrate. 100 is a good number.",
        ),
    ] = None,
    fail_if: Annotated[
        list[str] | None,
        word(
            RESULT,
            "End with exit code 1 if the audit meets this condition, for pipelines: noise (expected share of "
            "wrong labels), flagged, missing, outliers, copies, conflicting-copies, leaks, odd-images, "
            "empty, missing-values, rare-class, bad-groups or row-order (numbers of labels or samples, or "
            "shares with %), compared by >, >=, < or <=: 'noise > 0.05', 'flagged > 2%', 'leaks > 0'. With "
            "--baseline also new-flagged, new-leaks and so on. Repeat the option for several. The folder is "
            "written in any case.",
            metavar="CONDITION",
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        word(
            RESULT,
            "Folder of an earlier audit of this data. Conditions of --fail-if that begin with new- count "
            "only samples that were not flagged there, such as 'new-conflicting-copies > 0'.",
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
            metavar="FOLDER",
        ),
    ] = None,
    overwrite: Annotated[
        bool,
        word(
            RESULT,
            "Replace the audit in the folder. A folder with other files in it, or with a review_sample.csv "
            "that has been filled in, is never replaced, nor is one that is being reviewed. Decisions of a "
            "review need --discard-decisions as well.",
            "--overwrite",
        ),
    ] = False,
    discard_decisions: Annotated[
        bool,
        word(
            RESULT,
            "With --overwrite: replace the audit even if it holds decisions of a review, which are deleted.",
            "--discard-decisions",
        ),
    ] = False,
    memory: Annotated[
        str | None,
        word(
            LARGE,
            "Memory that may be used, such as 8GB. The audit then runs in blocks of rows: features in .npy "
            "or Parquet files, folders, patterns or any path of fsspec (s3://...) are never whole in memory. "
            "Block sizes, expected time and disk are stated before it starts. noise-aware is then fitted on "
            "a sample of 20,000 and applied to all; laplace uses the graph of all samples.",
            metavar="SIZE",
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        word(
            LARGE,
            "Dask cluster that computes the blocks: the address of a scheduler (tcp://host:8786), a "
            "scheduler file, or local:N, which starts N workers here. Every worker may use --memory.",
            metavar="ADDRESS",
        ),
    ] = None,
    work: Annotated[
        Path | None,
        word(
            LARGE,
            "Folder for the parts of an audit in blocks, which all workers must see under the same path. If "
            "the audit is stopped, the same command goes on from finished parts. Default: beside --out; "
            "removed at the end.",
            metavar="FOLDER",
        ),
    ] = None,
    keep_index: Annotated[
        bool,
        word(
            LARGE,
            "Keep in the folder 'index' of the run what another audit can go on from (--since). The audit "
            "runs in blocks.",
            "--keep-index",
        ),
    ] = False,
    since: Annotated[
        Path | None,
        word(
            LARGE,
            "Run with an index: SOURCE holds samples that are new, or whose labels changed, and the audit "
            "covers them and all samples of the run. Estimator and settings are those of the run.",
            metavar="RUN",
        ),
    ] = None,
) -> None:
    """Find labels that are probably wrong.

    Ranks the labels of SOURCE from least to most trustworthy, estimates how many are wrong, flags those that
    probably are, prints a summary and writes the results into a folder. Look at them with
    [cyan]laplaceconfidence report[/cyan], decide label by label with [cyan]laplaceconfidence review[/cyan],
    and write the corrected data set with [cyan]laplaceconfidence export[/cyan].

    The folder appears only when it is complete. It holds issues.csv and issues.parquet (one row per sample,
    worst first: the given label, its score, which is the probability that it is right, the predicted label
    with its probability, the flag, the most probable class other than the given one, and whether the sample
    is an outlier, a near-duplicate or leaked, an odd image, an empty text, of a rare class or in a group with
    many wrong labels), evidence.parquet (the most probable classes and the neighbors
    of every sample) and audit.json (what was found, settings, versions, source, timings, notes).

    Where wrong labels cannot be told from overlapping classes, only a range is known for their number. The
    labels are then listed by rank, flagged or not, and the summary prints the commands for verifying a random
    sample, which settles it.

    An option that does not apply to this kind of source, or that the chosen estimator does not have, is
    refused and never ignored.

    Images without features: a network is first trained on them briefly, with the labels as they are, because
    it learns what the classes have in common before it memorizes single wrong labels. The graph is built from
    its features, which are kept in the folder: an audit of the same data with the same options that replaces
    the folder, or uses its decisions or its verified sample, does not learn them again. This needs torch: pip
    install 'laplaceconfidence\\[train]'.

    Texts without features become TF-IDF vectors of words and pairs of words, and of characters where texts
    share few words, reduced by a truncated SVD. With --encoder, any pretrained model turns texts or images
    into features; models are read from the disk, or downloaded if they are not there, and no code of theirs
    is run.

    Several annotators: with --annotator (one row per label) or --annotators (one column per annotator), every
    annotator has a noise matrix of their own, and all labels and the features give the consensus. The given
    label of a sample is then its most frequent one, and the predicted label is the consensus; issues.csv also
    says who said what and whom to ask next. The folder holds three more tables, as .csv and .parquet: labels
    (every single label with its score), annotators (labels given, accuracy with an interval, what they
    confuse, whom they copy) and questions (which labels to ask for next).

    Verified labels: --sample-for-review draws labels at random, and adds those that are least certain; the
    column chosen says which is which. Write the right label of each into the column
    verified_label, even where the given one is right, leave it empty only where you are not sure, and audit
    again with --audited. Or decide on the same labels in the browser, and audit again with --decisions. Both
    can be combined. Fewer than {fewest} verified labels are taken as certain but do not calibrate the others.
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
        from laplaceconfidence.cli.audit.run import AuditRequest, run_audit
        from laplaceconfidence.cli.sources import ImageOptions

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
                annotator=annotator,
                annotators=annotators,
                samples=samples,
                labels_only=True if pred_probs is not None or knn_graph is not None else None,
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
            encoders=tuple(encoder or ()),
            encoder_settings=tuple(encoder_set or ()),
            no_cache=no_cache,
            image_options=ImageOptions(network, epochs, device, image_size, skip_bad),
            image_issues=image_issues,
            threshold=threshold,
            target_precision=target_precision,
            n_suspects=suspects,
            n_for_review=sample_for_review,
            fail_if=tuple(fail_if or ()),
            baseline=baseline,
            out=out,
            overwrite=overwrite,
            discard_decisions=discard_decisions,
            memory=memory,
            cluster=cluster,
            work=work,
            keep_index=keep_index,
            since=since,
        )
        run_audit(request, warnings)


_TEXT = inspect.cleandoc(audit.__doc__ or "").replace("{fewest}", str(FEWEST_AUDITED))
audit.__doc__ = f"{_TEXT}\n{EXAMPLES}"
