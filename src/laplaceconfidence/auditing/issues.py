"""The ranked table of labels that are probably wrong."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray, to_numpy
from laplaceconfidence.auditing.data_issues import check_test_set, data_issues
from laplaceconfidence.auditing.evidence import Case, build_case
from laplaceconfidence.auditing.flag_rule import FlagRule
from laplaceconfidence.auditing.inputs import audit_inputs
from laplaceconfidence.auditing.result import AuditResult
from laplaceconfidence.auditing.table import ranked_table
from laplaceconfidence.auditing.verified import made_certain, told_verified, with_verified
from laplaceconfidence.auditing.versions import installed_versions
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.labels import MISSING, encode_labels
from laplaceconfidence.data.read_options import ReadOptions
from laplaceconfidence.stages import StageTimer, logging_stages, observing, stage
from laplaceconfidence.validation import must_be


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
    verbose: int = 0,
    **settings: Any,
) -> AuditResult:
    """Rank the labels of ``dataset``, the least trustworthy first, and flag those that are probably wrong.

    Where the data set has features, samples far from everything and near-duplicates are flagged as well.

    Parameters
    ----------
    dataset : NoisyDataset, path, frame, dict of columns, Hugging Face dataset, map-style dataset or pair
        Labels and features. What is not a ``NoisyDataset`` is read as ``read_dataset`` does.
    label, features, labels, images, id, text, path, true_label, missing_label, split, image_size : optional
        How to read it, as for ``read_dataset``: ``audit(frame, label="mood", features="emb_*")``. Refused for
        a ``NoisyDataset``.
    estimator : a name such as "noise-aware", "laplace" (the paper's) or "knn-vote", or an estimator, of which
        a copy is fitted. ``None`` takes "noise-aware", or "normalized-margin" for ``pred_probs`` alone.
    pred_probs : (n, C) class probabilities of a model that did not see the labels it judges, in the order of
        the data set's classes. Estimators of losses take the loss -log p[label] from them.
    knn_graph : (n, n) sparse neighbor graph, in place of the one that would be built from the features.
    test : another set with the same features, such as the test set of this training set, read with the same
        options; samples that are in both are flagged as leaked.
    threshold : flag labels with a score below it. ``None`` flags where another class is more probable than
        the given one.
    target_precision : flag as many labels as possible such that this share of them is expected to be wrong;
        for estimators whose scores are probabilities, such as "noise-aware".
    random_state : seed of whatever is random in the estimator.
    audited : labels that a person has verified, by row; ``None`` where no class fits. They take the place of
        the given ones, are certain, and the others are judged by them.
    audited_at_random : rows of ``audited`` that were drawn at random, where not all of them were: only these
        say how right all other labels are.
    recalibrate : applied to the scores of all other labels, such as a calibration learned from a review; left
        alone where the estimator itself learns from ``audited``.
    verbose : int, default=0
        1 logs the start and the seconds of every stage as INFO to the logger "laplaceconfidence", which are
        shown on ``sys.stderr`` where no handler would show them; 0 logs nothing.
    settings : of the estimator, when it is named: ``n_neighbors=10``, say.

    >>> from laplaceconfidence.data.digits import load_digits
    >>> audit(load_digits(), estimator="laplace", n_neighbors=10, max_iter=100)
    AuditResult(49 of 1797 labels flagged, by laplace)
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
    )
    with logging_stages(verbose):
        inputs = audit_inputs(dataset, test, options)
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
            settings=settings,
        )
    # Verified labels are not in the file, so that it is not the data that was audited.
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
    settings: dict[str, Any],
) -> AuditResult:
    check_test_set(dataset, test)
    case = build_case(
        dataset,
        estimator=estimator,
        pred_probs=pred_probs,
        knn_graph=knn_graph,
        random_state=random_state,
        settings=settings,
    )
    if audited is None:
        return _judged(case, dataset, rule, test, recalibrate=recalibrate)
    case = told_verified(case, dataset, audited, audited_at_random)
    verified = with_verified(dataset, audited)
    if "audited" in case.more:
        recalibrate = None
    return _judged(case, verified, rule, test, audited=audited, recalibrate=recalibrate)


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
    """``audit`` of plain arrays: labels as people write them, and at least one kind of evidence.

    ``classes`` names the class of every column of ``pred_probs``. By default they are the distinct labels,
    sorted; integer labels from 0 to C - 1 may leave out classes that have a column. ``missing_label`` is a
    label that means "no label", besides ``None``, NaN and empty text. All else is as for ``audit``.

    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> y[0] = 7                                          # a wrong label
    >>> worst = find_label_issues(y, X).table.iloc[0]
    >>> worst.id, int(worst.given_label), int(worst.predicted_label)
    ('0', 7, 0)
    """
    if pred_probs is not None and classes is None:
        classes = _classes_by_column(labels, pred_probs, missing_label)
    dataset = NoisyDataset.from_arrays(
        labels, features, classes=classes, ids=ids, missing_label=missing_label
    )
    case = build_case(
        dataset,
        estimator=estimator,
        pred_probs=pred_probs,
        knn_graph=knn_graph,
        random_state=random_state,
        settings=settings,
    )
    if features is not None and case.estimator.evidence != "features":
        rule = f"left out for {case.name!r}, which judges by class probabilities"
        raise must_be("features", rule, f"shape {np.shape(features)}")
    with logging_stages(verbose):
        return _judged(case, dataset, FlagRule(threshold, target_precision))


def _judged(
    case: Case,
    dataset: NoisyDataset,
    rule: FlagRule,
    test: NoisyDataset | None = None,
    *,
    audited: Mapping[int, Any] | None = None,
    recalibrate: Callable[[FloatArray], FloatArray] | None = None,
) -> AuditResult:
    rule.check(case.estimator, case.name)
    if dataset.n_classes < 2:
        found = f"1 class: {dataset.class_values.tolist()}"
        raise must_be(
            "labels", "of at least two classes", found, "A label can only be wrong where others exist."
        )
    timer = StageTimer()
    with observing(timer), stage("total"):
        judge = case.judged()
        more = data_issues(dataset, judge, test)
        with stage("ranking"):
            scores: FloatArray = np.asarray(judge.confidence_, dtype=np.float64)
            distributions = _distributions(case, dataset)
            if recalibrate is not None:
                scores = recalibrate(scores)
            if audited is not None:
                scores, distributions = made_certain(scores, distributions, dataset.labels, audited)
            predicted = _most_probable(distributions, dataset.labels)
            flagged = rule.flagged(judge, scores, predicted, dataset.labels)
            table = ranked_table(dataset, distributions, scores, predicted, flagged, more)
    labeled = dataset.labels != MISSING
    return AuditResult(
        table=table,
        noise_rate=float(getattr(judge, "noise_rate_", 1 - scores[labeled].mean())),
        dataset=dataset,
        predicted=predicted,
        distributions=distributions,
        estimator=judge,
        estimator_name=case.name,
        settings=_told(judge, rule),
        timings=timer.seconds,
        versions=installed_versions(),
    )


def _classes_by_column(labels: Any, pred_probs: Any, missing_label: object) -> Any:
    """0, 1, ... where the labels are such numbers and some column's class has no label, as in cleanlab."""
    shape = np.shape(to_numpy(pred_probs))
    present = encode_labels(labels, missing_label=missing_label).class_values
    if len(shape) != 2 or present.dtype.kind != "i" or not 0 < len(present) < shape[1]:
        return None
    return np.arange(shape[1]) if present[0] >= 0 and present[-1] < shape[1] else None


def _distributions(case: Case, dataset: NoisyDataset) -> FloatArray:
    """(n, C) probability of every class of the data set; 0 for those the estimator never heard of."""
    judge = case.estimator
    if judge.label_distributions_ is None:
        if case.pred_probs is None:
            raise must_be("estimator", "one that gives a distribution over the classes", case.name)
        return case.pred_probs
    code_of = {value: code for code, value in enumerate(dataset.class_values.tolist())}
    codes = np.array([code_of[value] for value in judge.classes_.tolist()])
    if np.array_equal(codes, np.arange(dataset.n_classes)):
        return judge.label_distributions_
    spread = np.zeros((len(dataset), dataset.n_classes), dtype=judge.label_distributions_.dtype)
    spread[:, codes] = judge.label_distributions_
    return spread


def _most_probable(distributions: FloatArray, given: IntArray) -> IntArray:
    """The most probable class; of several, the given one."""
    rows = np.arange(len(given))
    best = distributions.argmax(axis=1)
    is_best = distributions[rows, np.maximum(given, 0)] >= distributions[rows, best]
    return np.where((given != MISSING) & is_best, given, best)


def _told(judge: Any, rule: FlagRule) -> dict[str, Any]:
    """Every setting that had a say in the result."""
    settings = dict(judge.get_params()) if hasattr(judge, "get_params") else {}
    settings.pop("missing_label", None)  # labels were read before
    settings.pop("classes", None)
    return {**settings, **asdict(rule)}
