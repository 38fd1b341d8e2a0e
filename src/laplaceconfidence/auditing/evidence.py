"""Which estimator judges the labels, and the evidence it is handed."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.confidence.inputs import at_given_labels
from laplaceconfidence.confidence.probabilities import check_probabilities
from laplaceconfidence.confidence.protocol import ConfidenceEstimator
from laplaceconfidence.confidence.registry import ESTIMATORS
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.validation import must_be

FOR_FEATURES = "noise-aware"
FOR_PROBABILITIES = "normalized-margin"

# A label that a model holds for impossible has an infinite loss, and one nearly so would squeeze all others
# into a corner of the scale on which mixtures are fitted.
LEAST_PROBABILITY = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """An estimator that is ready to be fitted, and everything that its ``fit`` is handed."""

    estimator: ConfidenceEstimator
    name: str
    X: Any
    y: NDArray[Any]  # labels as the user writes them, None where none was given
    more: dict[str, Any] = field(default_factory=dict)  # further arguments of ``fit``
    pred_probs: FloatArray | None = None  # where the estimator itself returns no distribution
    X_is: str = "features"  # what the caller calls ``X``

    def judged(self) -> ConfidenceEstimator:
        """The fitted estimator; errors speak of the parameters that the caller used."""
        with _in_the_callers_words(self.X_is):
            return self.estimator.fit(self.X, self.y, **self.more)


def build_case(
    dataset: NoisyDataset,
    *,
    estimator: Any = None,
    pred_probs: Any = None,
    knn_graph: Any = None,
    random_state: Any = None,
    settings: dict[str, Any],
) -> Case:
    """Choose the estimator and hand it its evidence. Evidence that it cannot use is an error."""
    if estimator is None:
        estimator = default_estimator(dataset, pred_probs, knn_graph)
    judge, name = _instance(estimator, random_state, settings)
    y = dataset.label_values()
    _prepare_for_labels(judge, name, dataset)
    wanted = judge.evidence
    if wanted == "features":
        X, more = _graph_evidence(judge, name, dataset, pred_probs, knn_graph)
        return Case(judge, name, X, y, more)
    if knn_graph is not None:
        rule = f"left out for {name!r}, which judges by class probabilities"
        raise must_be("knn_graph", rule, type(knn_graph).__name__)
    if pred_probs is None:
        rule = f"given for {name!r}, which judges by class probabilities"
        raise must_be("pred_probs", rule, None, "Out-of-fold probabilities, shape (n, C), are best.")
    if wanted == "probabilities":
        return Case(judge, name, pred_probs, y, X_is="pred_probs")
    with _in_the_callers_words("pred_probs"):
        probabilities, given = check_probabilities(
            pred_probs, y, classes=dataset.class_values, missing_label=None
        )
    losses = -np.log(np.maximum(at_given_labels(probabilities, given.codes), LEAST_PROBABILITY))
    return Case(judge, name, losses, y, pred_probs=probabilities, X_is="pred_probs")


def class_values(dataset: NoisyDataset) -> NDArray[Any]:
    """The classes as they are written among the labels, in the order of their codes."""
    return dataset.class_values


def labels_as_written(dataset: NoisyDataset) -> NDArray[Any]:
    """The labels in the user's writing, with ``None`` where none was given."""
    return dataset.label_values()


def default_estimator(dataset: NoisyDataset, pred_probs: Any, knn_graph: Any) -> str:
    """The noise-aware one, which weighs all evidence; a plain score where probabilities are all there is."""
    only_probabilities = pred_probs is not None and knn_graph is None and dataset.features is None
    return FOR_PROBABILITIES if only_probabilities else FOR_FEATURES


def _instance(estimator: Any, random_state: Any, settings: dict[str, Any]) -> tuple[ConfidenceEstimator, str]:
    """A fresh estimator from its name and settings, or a copy of the one that was passed."""
    if not isinstance(estimator, str):
        if inspect.isclass(estimator) or not (hasattr(estimator, "fit") and hasattr(estimator, "evidence")):
            raise must_be("estimator", "a name or a confidence estimator", estimator, _known_names())
        name = type(estimator).__name__
        if settings:
            rule = f"left out where 'estimator' is an instance ({name})"
            raise must_be(next(iter(settings)), rule, next(iter(settings.values())))
        copy = clone(estimator) if hasattr(estimator, "get_params") else estimator
        if random_state is not None:
            _set(copy, name, random_state=random_state)
        return cast(ConfidenceEstimator, copy), name
    if estimator not in ESTIMATORS:
        raise must_be("estimator", "a known name", estimator, _known_names())
    kind = ESTIMATORS[estimator]
    accepted = [name for name in inspect.signature(kind).parameters if name not in OURS]
    if unknown := [setting for setting in settings if setting not in accepted]:
        listed = ", ".join(accepted) or "none"
        rule = f"left out for {estimator!r}"
        advice = f"The settings of {estimator!r}: {listed}."
        others = [
            name for name, other in ESTIMATORS.items() if unknown[0] in inspect.signature(other).parameters
        ]
        if others:
            advice += f" For this one name the estimator: {', '.join(map(repr, others))}."
        raise must_be(unknown[0], rule, settings[unknown[0]], advice)
    judge: Any = kind(**settings)
    if random_state is not None and "random_state" in judge.get_params():
        judge.set_params(random_state=random_state)
    return cast(ConfidenceEstimator, judge), estimator


OURS = ("random_state", "missing_label")  # parameters of estimators that the audit itself answers for


def _set(judge: Any, name: str, **values: Any) -> None:
    for parameter, value in values.items():
        if parameter not in judge.get_params():
            raise must_be(parameter, f"left out for {name}, which has no such setting", value)
        judge.set_params(**{parameter: value})


def _prepare_for_labels(judge: Any, name: str, dataset: NoisyDataset) -> None:
    """Gaps are ``None`` by now, whatever they were; and probabilities have a column for every class."""
    settings = judge.get_params() if hasattr(judge, "get_params") else {}
    if "missing_label" in settings:
        judge.set_params(missing_label=None)
    if "classes" in settings and settings["classes"] is None:
        judge.set_params(classes=dataset.class_values)


def _graph_evidence(
    judge: ConfidenceEstimator, name: str, dataset: NoisyDataset, pred_probs: Any, knn_graph: Any
) -> tuple[FloatArray | None, dict[str, Any]]:
    """Features, or the graph in their place, and what else ``fit`` has room for."""
    more = {}
    accepted = inspect.signature(judge.fit).parameters
    for parameter, value in (("knn_graph", knn_graph), ("pred_probs", pred_probs)):
        if value is None:
            continue
        if parameter not in accepted:
            rule = f"left out for {name!r}, which cannot use it"
            raise must_be(parameter, rule, type(value).__name__)
        more[parameter] = value
    if dataset.features is None and not more:
        raise InvalidInputError(_nothing_to_judge_by(dataset))
    return dataset.features, more


def _nothing_to_judge_by(dataset: NoisyDataset) -> str:
    message = (
        "Labels alone say nothing about themselves: an audit needs features, a 'knn_graph' or 'pred_probs'."
    )
    if dataset.images is not None or dataset.source_kind == "image":
        return f"{message} This data set has images: embed them with any network and pass the embeddings."
    if dataset.source_kind == "text":
        return f"{message} This data set has texts: embed them with any model and pass the embeddings."
    return message


def _known_names() -> str:
    return "Known names: " + ", ".join(repr(name) for name in ESTIMATORS) + "."


@contextmanager
def _in_the_callers_words(X_is: str) -> Iterator[None]:
    """Estimators call their evidence X and y; whoever called an audit did not."""
    try:
        yield
    except InvalidInputError as error:
        message = str(error).replace("'X'", f"'{X_is}'").replace("'y'", "'labels'")
        raise InvalidInputError(message) from error
