"""Which estimator is fitted, and the arguments of its ``fit``."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.auditing.diagnostics import estimator_settings
from laplaceconfidence.confidence.annotators.votes import VoteConfidence
from laplaceconfidence.confidence.inputs import MINUS_ONE_IS_A_CLASS, at_given_labels
from laplaceconfidence.confidence.noise_aware import NoiseAwareConfidence
from laplaceconfidence.confidence.probabilities import check_probabilities
from laplaceconfidence.confidence.protocol import ConfidenceEstimator
from laplaceconfidence.confidence.registry import ESTIMATORS
from laplaceconfidence.data.annotator_labels import AnnotatorLabels
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.encoders.registry import BUILT_IN
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.validation import must_be

SET_BY_AUDIT = ("random_state", "missing_label")  # parameters of estimators that the audit itself sets
FOR_FEATURES = "noise-aware"
FOR_PROBABILITIES = "normalized-margin"
FOR_ANNOTATORS = "annotators"

# The loss of a label with a probability of 0 is infinite. Losses of probabilities near 0 are so large that
# all other losses would be nearly equal on the scale on which mixtures are fitted.
LEAST_PROBABILITY = 1e-6

# The fitted attributes that ``ConfidenceEstimator`` requires.
FITTED = ("classes_", "confidence_", "label_distributions_", "neighborhood_")


@dataclass(frozen=True, slots=True, eq=False)
class FitRequest:
    """An estimator that is ready to be fitted, and the arguments of its ``fit``.

    Parameters
    ----------
    estimator : ConfidenceEstimator
        Not fitted yet.
    name : str
        The name it was requested by, or the name of its class.
    X : array, mapping of str to array, or None
        Features or several views of them, class probabilities or losses, whatever the estimator takes.
    y : ndarray of shape (n,) or AnnotatorLabels
        Labels as the user writes them, None where there is none; or those of several annotators.
    fit_arguments : dict
        Further arguments of ``fit``.
    pred_probs : ndarray of shape (n, C), optional
        Class probabilities, where the estimator itself returns no distribution.
    X_name : str, default="features"
        What the caller calls ``X``.
    """

    estimator: ConfidenceEstimator
    name: str
    X: Any
    y: NDArray[Any] | AnnotatorLabels
    fit_arguments: dict[str, Any] = field(default_factory=dict)
    pred_probs: FloatArray | None = None
    X_name: str = "features"

    @property
    def brings_graph(self) -> bool:
        """bool: whether the caller passed a graph, so that the features are not searched for neighbors."""
        return "knn_graph" in self.fit_arguments

    def fit(self) -> ConfidenceEstimator:
        """Fit the estimator; errors name the parameters that the caller used.

        Returns
        -------
        ConfidenceEstimator
            The fitted estimator.

        Raises
        ------
        InvalidInputError
            If the input is invalid, or the estimator does not set the attributes that it must.
        """
        with _callers_parameter_names(self.X_name), warnings.catch_warnings():
            # The data set has asked about all labels that look like missing ones.
            warnings.filterwarnings("ignore", message=MINUS_ONE_IS_A_CLASS)
            fitted = self.estimator.fit(self.X, self.y, **self.fit_arguments)
        present = {*vars(fitted), *dir(type(fitted))}
        if lacking := [attribute for attribute in FITTED if attribute not in present]:
            rule = f"one whose fit sets {', '.join(FITTED)}"
            raise must_be("estimator", rule, f"{self.name} without {', '.join(lacking)}")
        return fitted

    def distributions_of(self, fitted: ConfidenceEstimator, dataset: NoisyDataset) -> FloatArray:
        """Return the distribution over the classes of the data set that a fitted estimator found.

        Parameters
        ----------
        fitted : ConfidenceEstimator
            What ``fit`` returned.
        dataset : NoisyDataset
            The audited data set.

        Returns
        -------
        ndarray of shape (n, C)
            Probability of every class; 0 for classes without a label in the fit.
        """
        distributions = fitted.label_distributions_
        if distributions is None:
            if self.pred_probs is None:
                raise must_be("estimator", "one that gives a distribution over the classes", self.name)
            return self.pred_probs
        code_of = {value: code for code, value in enumerate(dataset.class_values.tolist())}
        codes = np.array([code_of[value] for value in fitted.classes_.tolist()])
        if np.array_equal(codes, np.arange(dataset.n_classes)):
            return distributions
        spread = np.zeros((len(dataset), dataset.n_classes), dtype=distributions.dtype)
        spread[:, codes] = distributions
        return spread


def build_fit_request(
    dataset: NoisyDataset,
    *,
    estimator: Any = None,
    pred_probs: Any = None,
    knn_graph: Any = None,
    random_state: Any = None,
    settings: dict[str, Any],
) -> FitRequest:
    """Choose the estimator and collect the arguments of its ``fit``.

    Parameters
    ----------
    dataset : NoisyDataset
        Labels and features.
    estimator : str or ConfidenceEstimator, optional
        A name, or an estimator of which a copy is made; None chooses one by what is given.
    pred_probs : array-like of shape (n, C), optional
        Class probabilities.
    knn_graph : sparse matrix of shape (n, n), optional
        A neighbor graph in place of one made from the features.
    random_state : int or None, optional
        Seed of the estimator.
    settings : dict
        Settings of an estimator that is given by name.

    Returns
    -------
    FitRequest

    Raises
    ------
    InvalidInputError
        If something is given that the estimator cannot use, or something that it needs is not.
    """
    if dataset.annotations is not None:
        return _annotator_request(
            dataset,
            dataset.annotations,
            estimator=estimator,
            pred_probs=pred_probs,
            knn_graph=knn_graph,
            random_state=random_state,
            settings=settings,
        )
    if estimator is None:
        estimator = default_estimator(dataset, pred_probs, knn_graph)
    if estimator == FOR_FEATURES:
        settings = {**_settings_of_encoding(dataset, knn_graph), **settings}
    chosen, name = _instance(estimator, random_state, settings)
    y = dataset.label_values()
    _set_label_parameters(chosen, dataset)
    if chosen.evidence == "features":
        X, arguments = _arguments_by_features(chosen, name, dataset, pred_probs, knn_graph)
        return FitRequest(chosen, name, X, y, arguments)
    if knn_graph is not None:
        rule = f"left out for {name!r}, which uses class probabilities"
        raise must_be("knn_graph", rule, type(knn_graph).__name__)
    if pred_probs is None:
        rule = f"given for {name!r}, which uses class probabilities"
        raise must_be("pred_probs", rule, None, "Out-of-fold probabilities, shape (n, C), are best.")
    if chosen.evidence == "probabilities":
        return FitRequest(chosen, name, pred_probs, y, X_name="pred_probs")
    with _callers_parameter_names("pred_probs"):
        probabilities, given = check_probabilities(
            pred_probs, y, classes=dataset.class_values, missing_label=None
        )
    losses = -np.log(np.maximum(at_given_labels(probabilities, given.codes), LEAST_PROBABILITY))
    return FitRequest(chosen, name, losses, y, pred_probs=probabilities, X_name="pred_probs")


def _annotator_request(
    dataset: NoisyDataset,
    annotations: AnnotatorLabels,
    *,
    estimator: Any,
    pred_probs: Any,
    knn_graph: Any,
    random_state: Any,
    settings: dict[str, Any],
) -> FitRequest:
    """The request for labels of several annotators, which one estimator knows how to use."""
    if estimator not in (None, FOR_ANNOTATORS, FOR_FEATURES):
        advice = "To audit the most frequent labels alone, pass them as the labels."
        raise must_be("estimator", "left out for labels of several annotators", estimator, advice)
    accepted = [name for name in inspect.signature(VoteConfidence).parameters if name not in SET_BY_AUDIT]
    if unknown := [setting for setting in settings if setting not in accepted]:
        advice = f"The settings: {', '.join(accepted)}."
        raise must_be(unknown[0], "left out for labels of several annotators", settings[unknown[0]], advice)
    chosen = VoteConfidence(**{**_settings_of_encoding(dataset, knn_graph), **settings})
    chosen.set_params(random_state=random_state, missing_label=None)
    given = {"knn_graph": knn_graph, "pred_probs": pred_probs}
    arguments = {name: value for name, value in given.items() if value is not None}
    return FitRequest(chosen, FOR_ANNOTATORS, _features_or_views(dataset), annotations, arguments)


def _settings_of_encoding(dataset: NoisyDataset, knn_graph: Any) -> dict[str, Any]:
    """All components of texts and images are kept: the last ones tell similar classes apart."""
    width = 0 if knn_graph is not None else reduced_width(dataset.encoding)
    return {"n_components": width} if width else {}


def reduced_width(encoding: Mapping[str, Any] | None) -> int:
    """Return the number of components that an encoder reduced its features, or those of a view, to.

    Parameters
    ----------
    encoding : mapping of str to object, optional
        How features were made, as in ``NoisyDataset.encoding``.

    Returns
    -------
    int
        0 without such an encoder.
    """
    encoding = encoding or {}
    made = encoding.get("views", {"": encoding}).values()
    return max((one["n_features"] for one in made if one.get("name") in BUILT_IN), default=0)


def default_estimator(dataset: NoisyDataset, pred_probs: Any, knn_graph: Any) -> str:
    """Return the name of the estimator that is used by default.

    Parameters
    ----------
    dataset : NoisyDataset
        Labels and features.
    pred_probs : array-like or None
        Class probabilities, if given.
    knn_graph : sparse matrix or None
        A neighbor graph, if given.

    Returns
    -------
    str
        "normalized-margin" where there are only probabilities, else "noise-aware".
    """
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
        copy = clone(estimator, safe=False)  # a deep copy, where it has no get_params
        if random_state is not None:
            if "random_state" not in estimator_settings(copy):
                raise must_be("random_state", f"left out for {name}, which has no such setting", random_state)
            copy.set_params(random_state=random_state)
        return cast(ConfidenceEstimator, copy), name
    if estimator not in ESTIMATORS:
        raise must_be("estimator", "a known name", estimator, _known_names())
    kind = ESTIMATORS[estimator]
    accepted = [name for name in inspect.signature(kind).parameters if name not in SET_BY_AUDIT]
    if unknown := [setting for setting in settings if setting not in accepted]:
        listed = ", ".join(accepted) or "none"
        rule = f"left out for {estimator!r}"
        advice = f"The settings of {estimator!r}: {listed}."
        others = [
            name for name, other in ESTIMATORS.items() if unknown[0] in inspect.signature(other).parameters
        ]
        if others:
            advice += f" It is a setting of {', '.join(map(repr, others))}: name one of them as 'estimator'."
        raise must_be(unknown[0], rule, settings[unknown[0]], advice)
    chosen: Any = kind(**settings)
    if random_state is not None and "random_state" in chosen.get_params():
        chosen.set_params(random_state=random_state)
    return cast(ConfidenceEstimator, chosen), estimator


def _set_label_parameters(estimator: Any, dataset: NoisyDataset) -> None:
    """Set how missing labels are marked in ``y``, and the classes, also those without a label."""
    settings = estimator_settings(estimator)
    if "missing_label" in settings:
        estimator.set_params(missing_label=None)
    if "classes" in settings and settings["classes"] is None:
        estimator.set_params(classes=dataset.class_values)


def _arguments_by_features(
    estimator: ConfidenceEstimator, name: str, dataset: NoisyDataset, pred_probs: Any, knn_graph: Any
) -> tuple[FloatArray | dict[str, FloatArray] | None, dict[str, Any]]:
    """Features or views, if there are any, and the further arguments that ``fit`` takes."""
    more = {}
    accepted = inspect.signature(estimator.fit).parameters
    for parameter, value in (("knn_graph", knn_graph), ("pred_probs", pred_probs)):
        if value is None:
            continue
        if parameter not in accepted:
            rule = f"left out for {name!r}, which cannot use it"
            raise must_be(parameter, rule, type(value).__name__)
        more[parameter] = value
    if dataset.features is None:
        if not more:
            raise InvalidInputError(_no_input(dataset))
        return None, more
    has_views = dataset.views is not None and len(dataset.views) > 1
    if has_views and not isinstance(estimator, NoiseAwareConfidence):
        rule = f"one feature set for {name!r}, which cannot use several"
        found = ", ".join(map(repr, dataset.views or ()))
        raise must_be("views", rule, found, f"{FOR_FEATURES!r} takes several.")
    return _features_or_views(dataset), more


def _features_or_views(dataset: NoisyDataset) -> FloatArray | dict[str, FloatArray] | None:
    if dataset.features is None:
        return None
    features = dataset.comparable(dataset.features)
    if dataset.views is None or len(dataset.views) == 1:
        return features
    return {**dataset.views, next(iter(dataset.views)): features}


def _no_input(dataset: NoisyDataset) -> str:
    message = "An audit needs features, a 'knn_graph' or 'pred_probs' besides the labels."
    if dataset.images is not None or dataset.source_kind == "image":
        return f"{message} This data set has images: name an 'encoder', or pass embeddings of any network."
    return message if dataset.feature_advice is None else f"{message} {dataset.feature_advice}"


def _known_names() -> str:
    return "Known names: " + ", ".join(repr(name) for name in ESTIMATORS) + "."


@contextmanager
def _callers_parameter_names(X_name: str) -> Iterator[None]:
    """Estimators call their arguments X and y; the caller of an audit used other names."""
    try:
        yield
    except InvalidInputError as error:
        message = (
            str(error).replace("'X'", f"'{X_name}'").replace("'X[", "'views[").replace("'y'", "'labels'")
        )
        raise InvalidInputError(message) from error
