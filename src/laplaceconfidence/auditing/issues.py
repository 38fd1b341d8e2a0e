"""Rank the labels of a data set, and flag those that are probably wrong."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray, to_numpy
from laplaceconfidence.auditing.annotation import AnnotationTables
from laplaceconfidence.auditing.data_issues import check_test_set, data_issues
from laplaceconfidence.auditing.diagnostics import (
    estimator_settings,
    fit_diagnostics,
    installed_versions,
    label_support,
)
from laplaceconfidence.auditing.fit_request import FitRequest, build_fit_request
from laplaceconfidence.auditing.groups import find_groups
from laplaceconfidence.auditing.inputs import audit_inputs, encoded_inputs
from laplaceconfidence.auditing.result import AuditResult
from laplaceconfidence.auditing.table import FlagRule, best_alternatives, most_probable, ranked_table
from laplaceconfidence.auditing.verified import make_certain, request_with_verified, with_verified
from laplaceconfidence.confidence.annotators.votes import VoteConfidence
from laplaceconfidence.confidence.protocol import ConfidenceEstimator
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.labels import MISSING, encode_labels
from laplaceconfidence.data.read_options import ReadOptions
from laplaceconfidence.stages import StageTimer, logging_stages, observing, stage
from laplaceconfidence.validation import must_be

if TYPE_CHECKING:
    from laplaceconfidence.auditing.block_audit import BlockAuditResult


@overload
def audit(
    dataset: Any,
    *,
    label: str | None = ...,
    features: Any = ...,
    labels: Any = ...,
    images: str | None = ...,
    id: str | None = ...,
    text: str | None = ...,
    path: str | None = ...,
    true_label: str | None = ...,
    missing_label: object = ...,
    split: str | None = ...,
    image_size: int | tuple[int, int] | None = ...,
    encoder: Any = ...,
    estimator: Any = ...,
    pred_probs: Any = ...,
    knn_graph: Any = ...,
    test: Any = ...,
    threshold: float | None = ...,
    target_precision: float | None = ...,
    random_state: Any = ...,
    audited: Mapping[int, Any] | None = ...,
    audited_at_random: Collection[int] | None = ...,
    recalibrate: Callable[[FloatArray], FloatArray] | None = ...,
    image_issues: bool | None = ...,
    annotator: str | None = ...,
    annotators: Any = ...,
    samples: Any = ...,
    memory: None = ...,
    client: None = ...,
    work: None = ...,
    keep_index: Literal[False] = ...,
    since: None = ...,
    verbose: int = ...,
    **settings: Any,
) -> AuditResult: ...


@overload
def audit(
    dataset: Any,
    *,
    label: str | None = ...,
    features: Any = ...,
    labels: Any = ...,
    images: str | None = ...,
    id: str | None = ...,
    text: str | None = ...,
    path: str | None = ...,
    true_label: str | None = ...,
    missing_label: object = ...,
    split: str | None = ...,
    image_size: int | tuple[int, int] | None = ...,
    estimator: Any = ...,
    threshold: float | None = ...,
    target_precision: float | None = ...,
    random_state: Any = ...,
    memory: str | int | None = ...,
    client: Any = ...,
    work: str | Path | None = ...,
    keep_index: bool = ...,
    since: str | Path | None = ...,
    verbose: int = ...,
    **settings: Any,
) -> BlockAuditResult: ...


def audit(
    dataset: Any,
    *,
    label: str | None = None,
    features: Any = None,
    labels: Any = None,
    images: str | None = None,
    id: str | None = None,
    text: str | None = None,
    path: str | None = None,
    true_label: str | None = None,
    missing_label: object = None,
    split: str | None = None,
    image_size: int | tuple[int, int] | None = None,
    encoder: Any = None,
    estimator: Any = None,
    pred_probs: Any = None,
    knn_graph: Any = None,
    test: Any = None,
    threshold: float | None = None,
    target_precision: float | None = None,
    random_state: Any = None,
    audited: Mapping[int, Any] | None = None,
    audited_at_random: Collection[int] | None = None,
    recalibrate: Callable[[FloatArray], FloatArray] | None = None,
    image_issues: bool | None = None,
    annotator: str | None = None,
    annotators: Any = None,
    samples: Any = None,
    memory: str | int | None = None,
    client: Any = None,
    work: str | Path | None = None,
    keep_index: bool = False,
    since: str | Path | None = None,
    verbose: int = 0,
    **settings: Any,
) -> AuditResult | BlockAuditResult:
    """Rank the labels of a data set, the least trustworthy first, and flag those that are probably wrong.

    Where the data set has features, outliers, near-duplicates and groups with many wrong labels are flagged
    as well; odd images, empty texts and rare classes always are.

    With labels of several annotators, the label of a sample is the most frequent one, what is predicted is
    the consensus of all labels and the features, and ``annotation`` of the result has every single label and
    every annotator. Features are not needed then.

    Parameters
    ----------
    dataset : NoisyDataset, path, frame, mapping of columns, Hugging Face or map-style data set, or pair
        Labels and features. Anything but a ``NoisyDataset`` is read as by ``read_dataset``.
    label, features, labels, images, id, text, path, true_label, missing_label, split, image_size : optional
        How to read it, as for ``read_dataset``: ``audit(frame, label="mood", features="emb_*")``. Refused for
        a ``NoisyDataset``.
    encoder : str, Encoder or list of these, optional
        How texts or images become features, as for ``make_encoder``: "hf:NAME", a path to an .onnx file, and
        so on. Several make several views, and ``features`` that are named are a view besides them. By
        default, texts without features become TF-IDF vectors.
    estimator : str or ConfidenceEstimator, optional
        A name such as "noise-aware", "laplace" (the paper's) or "knn-vote", or an estimator, of which a copy
        is fitted. By default "noise-aware", or "normalized-margin" if only ``pred_probs`` are given.
    pred_probs : array-like of shape (n, C), optional
        Class probabilities, in the order of the data set's classes, of a model that was not trained on the
        labels of the samples it predicts. Estimators of losses use the loss -log p[label].
    knn_graph : sparse matrix of shape (n, n), optional
        A neighbor graph, in place of the one that would be built from the features.
    test : NoisyDataset or anything that ``dataset`` may be, optional
        Another set with the same features, such as the test set of this training set, read with the same
        options; samples that are in both are flagged as leaked.
    threshold : float, optional
        Flag labels with a score below it. By default, labels are flagged if another class is more probable.
    target_precision : float, optional
        Flag as many labels as possible such that this share of them is expected to be wrong; for estimators
        whose scores are calibrated probabilities, such as "noise-aware".
    random_state : int or None, optional
        Seed of whatever is random in the estimator.
    audited : mapping of int to label, optional
        Labels that a person has verified, by row; None where no class fits. They replace the given ones, are
        certain, and the estimator uses them for the others.
    audited_at_random : collection of int, optional
        Rows of ``audited`` that were drawn at random, where not all of them were: only these calibrate the
        scores of all other labels.
    recalibrate : callable, optional
        Applied to the scores of all other labels, such as a calibration learned from a review; not used where
        the estimator itself learns from ``audited``.
    image_issues : bool, optional
        Whether images are looked at for those that are dark, bright, of one color, blurry, of an odd size or
        shape, or unreadable. By default they are, unless there are more than 20,000 image files.
    annotator, annotators, samples : optional
        Where labels of several annotators are, as for ``read_dataset``: ``audit(frame, id="item",
        annotator="worker", label="label")``. A ``NoisyDataset`` has them as its ``annotations``.
    memory : str or int, optional
        Memory that may be used, such as "8GB": the audit then runs in blocks of rows, and features are never
        whole in memory. For files (.npy with ``labels``, Parquet), lists and folders of them, any path of
        fsspec, pairs of arrays, and dask arrays and data frames; by "noise-aware", which is then fitted on a
        sample of 20,000, or "laplace".
    client : distributed.Client, optional
        A Dask cluster on which the blocks are computed; needs ``pip install 'laplaceconfidence[cluster]'``.
    work : str or path, optional
        Folder for parts of an audit in blocks, which all workers must see under the same path. An audit that
        was stopped goes on from finished parts if it is started again with the same folder.
    keep_index : bool, default=False
        Whether the saved run keeps what another audit can go on from; the audit runs in blocks.
    since : str or path, optional
        The folder of a run with an index: ``dataset`` holds samples that are new, or whose labels changed,
        and the result covers them and all samples of the run. Estimator and settings are those of the run.
    verbose : int, default=0
        1 logs the start and the seconds of every stage as INFO to the logger "laplaceconfidence", and shows
        the records on ``sys.stderr`` where no handler would show them; 0 logs nothing.
    **settings
        Settings of the estimator, where it is given by name: ``n_neighbors=10``, for example.

    Returns
    -------
    AuditResult or BlockAuditResult
        A ``BlockAuditResult`` where ``memory``, ``client``, ``work``, ``keep_index`` or ``since`` is given.

    Examples
    --------
    >>> from laplaceconfidence.data.digits import load_digits
    >>> audit(load_digits(), estimator="laplace", n_neighbors=10, max_iter=100)
    AuditResult(49 of 1,797 labels flagged, by laplace)
    """
    options = ReadOptions(
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
        image_size=image_size,
        labels_only=True if pred_probs is not None or knn_graph is not None else None,
        annotator=annotator,
        annotators=annotators,
        samples=samples,
    )
    if any(value is not None for value in (memory, client, work, since)) or keep_index:
        only_in_memory = {
            "encoder": encoder,
            "pred_probs": pred_probs,
            "knn_graph": knn_graph,
            "test": test,
            "audited": audited,
            "audited_at_random": audited_at_random,
            "recalibrate": recalibrate,
            "image_issues": image_issues,
            "annotator": annotator,
            "annotators": annotators,
            "samples": samples,
        }
        for name, value in only_in_memory.items():
            if value is not None:
                raise must_be(name, "left out where an audit runs in blocks", type(value).__name__)
        from laplaceconfidence.auditing.block_audit import audit_in_blocks
        from laplaceconfidence.auditing.block_growth import audit_since, refuse_settings

        rule = FlagRule(threshold, target_precision)
        if since is not None:
            n_jobs = settings.pop("n_jobs", None)
            given = {"estimator": estimator, "random_state": random_state, **settings}
            refuse_settings({**given, "memory": memory, "client": client, "work": work})
            with logging_stages(verbose):
                own_rule = None if rule == FlagRule() else rule
                return audit_since(dataset, options, since, rule=own_rule, n_jobs=n_jobs)
        with logging_stages(verbose):
            return audit_in_blocks(
                dataset,
                options,
                estimator=estimator,
                settings=settings,
                rule=rule,
                random_state=random_state,
                memory=memory,
                client=client,
                work=work,
                keep_index=keep_index,
            )
    with logging_stages(verbose):
        inputs = audit_inputs(dataset, test, options)
        if encoder is not None or (pred_probs is None and knn_graph is None):
            inputs = encoded_inputs(inputs, encoder, n_jobs=settings.get("n_jobs"))
        result = _audited(
            inputs.dataset,
            inputs.test,
            estimator=estimator,
            pred_probs=pred_probs,
            knn_graph=knn_graph,
            rule=FlagRule(threshold, target_precision),
            random_state=random_state,
            audited=audited,
            audited_at_random=audited_at_random,
            recalibrate=recalibrate,
            image_issues=image_issues,
            settings=settings,
        )
    # Verified labels are not in the file, so the file does not hold the audited data.
    return result if audited is not None else replace(result, source=inputs.source)


def _audited(
    dataset: NoisyDataset,
    test: NoisyDataset | None,
    *,
    estimator: Any,
    pred_probs: Any,
    knn_graph: Any,
    rule: FlagRule,
    random_state: Any,
    audited: Mapping[int, Any] | None,
    audited_at_random: Collection[int] | None,
    recalibrate: Callable[[FloatArray], FloatArray] | None,
    image_issues: bool | None,
    settings: dict[str, Any],
) -> AuditResult:
    check_test_set(dataset, test)
    request = build_fit_request(
        dataset,
        estimator=estimator,
        pred_probs=pred_probs,
        knn_graph=knn_graph,
        random_state=random_state,
        settings=settings,
    )
    if audited is None:
        return _fit_and_rank(request, dataset, rule, test, recalibrate=recalibrate, image_issues=image_issues)
    request = request_with_verified(request, dataset, audited, audited_at_random)
    verified = with_verified(dataset, audited)
    if "audited" in request.fit_arguments:
        recalibrate = None
    return _fit_and_rank(
        request,
        verified,
        rule,
        test,
        audited=audited,
        recalibrate=recalibrate,
        in_data=dataset.labels,
        image_issues=image_issues,
    )


def find_label_issues(
    labels: Any,
    features: Any = None,
    *,
    knn_graph: Any = None,
    pred_probs: Any = None,
    classes: Any = None,
    ids: Any = None,
    missing_label: object = None,
    estimator: Any = None,
    threshold: float | None = None,
    target_precision: float | None = None,
    random_state: Any = None,
    verbose: int = 0,
    **settings: Any,
) -> AuditResult:
    """Audit plain arrays: labels as people write them, with features, a graph or class probabilities.

    Parameters
    ----------
    labels : array-like of shape (n,) or (n, A), or AnnotatorLabels
        Labels of any kind; with several columns, those of several annotators.
    features : array-like of shape (n, d), optional
        Feature vectors.
    knn_graph : sparse matrix of shape (n, n), optional
        A neighbor graph, in place of the one that would be built from the features.
    pred_probs : array-like of shape (n, C), optional
        Class probabilities of a model that was not trained on the labels of the samples it predicts.
    classes : sequence, optional
        The class of every column of ``pred_probs``. By default they are the distinct labels, sorted; integer
        labels from 0 to C - 1 may leave out classes that have a column.
    ids : sequence of str, optional
        Ids of the samples; by default they are derived from the features.
    missing_label : object, optional
        A label that means "no label", besides None, NaN and empty text.
    estimator, threshold, target_precision, random_state, verbose, **settings
        As in ``audit``.

    Returns
    -------
    AuditResult

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> y[0] = 7                                          # a wrong label
    >>> table = find_label_issues(y, X).table             # indexed by row, the worst label first
    >>> worst = table.iloc[0]
    >>> int(worst.name), int(worst.given_label), int(worst.predicted_label)
    (0, 7, 0)
    """
    if pred_probs is not None and classes is None:
        classes = _classes_by_column(labels, pred_probs, missing_label)
    dataset = NoisyDataset.from_arrays(
        labels, features, classes=classes, ids=ids, missing_label=missing_label
    )
    request = build_fit_request(
        dataset,
        estimator=estimator,
        pred_probs=pred_probs,
        knn_graph=knn_graph,
        random_state=random_state,
        settings=settings,
    )
    if features is not None and request.estimator.evidence != "features":
        rule = f"left out for {request.name!r}, which uses class probabilities"
        raise must_be("features", rule, f"shape {np.shape(features)}")
    with logging_stages(verbose):
        return _fit_and_rank(request, dataset, FlagRule(threshold, target_precision))


def _fit_and_rank(
    request: FitRequest,
    dataset: NoisyDataset,
    rule: FlagRule,
    test: NoisyDataset | None = None,
    *,
    audited: Mapping[int, Any] | None = None,
    recalibrate: Callable[[FloatArray], FloatArray] | None = None,
    in_data: IntArray | None = None,
    image_issues: bool | None = None,
) -> AuditResult:
    rule.check(request.estimator, request.name)
    if dataset.n_classes < 2:
        found = f"1 class: {dataset.class_values.tolist()}"
        raise must_be(
            "labels", "of at least two classes", found, "A label can only be wrong where others exist."
        )
    timer = StageTimer()
    with observing(timer), stage("total"):
        estimator = request.fit()
        # Neighbors in a graph of the caller need not be near by their features.
        neighborhood = None if request.brings_graph else estimator.neighborhood_
        own = estimator_settings(estimator)
        more = data_issues(dataset, neighborhood, test, own, image_issues=image_issues)
        with stage("ranking"):
            scores: FloatArray = np.asarray(estimator.confidence_, dtype=np.float64)
            distributions = request.distributions_of(estimator, dataset)
            if recalibrate is not None:
                scores = recalibrate(scores)
            if audited is not None:
                scores, distributions = make_certain(scores, distributions, dataset.labels, audited)
            predicted = most_probable(distributions, dataset.labels)
            flagged = rule.flagged(estimator, scores, predicted, dataset.labels)
            support = _support(estimator, audited or {})
            alternatives = best_alternatives(distributions, dataset.labels, support)
            columns = {**more.columns, **_group_columns(dataset, scores, own.get("random_state"))}
            annotation = None
            if isinstance(estimator, VoteConfidence):
                tables = AnnotationTables(dataset, estimator, predicted, rule)
                columns, annotation = {**tables.columns(), **columns}, tables.result()
            table = ranked_table(
                dataset, distributions, scores, predicted, alternatives, flagged, columns, in_data
            )
    noise_rate = fit_diagnostics(estimator).noise_rate
    if noise_rate is None:
        noise_rate = float(1 - scores[dataset.labels != MISSING].mean())
    return AuditResult(
        table=table,
        noise_rate=noise_rate,
        dataset=dataset,
        predicted=predicted,
        alternatives=alternatives[0],
        distributions=distributions,
        support=support,
        estimator=estimator,
        estimator_name=request.name,
        settings=_recorded_settings(estimator, rule),
        timings=timer.seconds,
        versions=installed_versions(),
        row_order=more.order,
        annotation=annotation,
    )


def _group_columns(dataset: NoisyDataset, scores: FloatArray, random_state: Any) -> dict[str, Any]:
    """Columns about the groups of similar samples; empty without features or with too few samples."""
    if dataset.features is None:
        return {}
    known = np.where(dataset.labels == MISSING, np.nan, scores)
    groups = find_groups(dataset.comparable(dataset.features), known, random_state=random_state)
    if groups is None:
        return {}
    return {"group": groups.group, "group_noise": groups.noise, "is_group_issue": groups.flagged}


def _classes_by_column(labels: Any, pred_probs: Any, missing_label: object) -> Any:
    """0, 1, ... where the labels are such numbers and some column's class has no label, as in cleanlab."""
    shape = np.shape(to_numpy(pred_probs))
    present = encode_labels(labels, missing_label=missing_label).class_values
    if len(shape) != 2 or present.dtype.kind != "i" or not 0 < len(present) < shape[1]:
        return None
    return np.arange(shape[1]) if present[0] >= 0 and present[-1] < shape[1] else None


def _support(estimator: ConfidenceEstimator, audited: Collection[int]) -> FloatArray | None:
    """Probabilities of the given labels by the other evidence, where the noise is not identified.

    The distributions then are between two readings, of which one takes nearly every given label as right.
    """
    support = label_support(estimator)
    if support is None or fit_diagnostics(estimator).identified is not False:
        return None
    support = support.copy()
    support[list(audited)] = 1.0
    return support


def _recorded_settings(estimator: ConfidenceEstimator, rule: FlagRule) -> dict[str, Any]:
    """Settings of the estimator and of the rule, without those that the audit sets."""
    settings = estimator_settings(estimator)
    settings.pop("missing_label", None)
    settings.pop("classes", None)
    return {**settings, **asdict(rule)}
