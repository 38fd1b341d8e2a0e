"""NoiseAwareConfidence: the default estimator, which models the noise and needs no tuning."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted

from laplaceconfidence.arrays import FloatArray, IntArray, to_numpy
from laplaceconfidence.confidence.audited_labels import (
    audited_column,
    encode_audited,
    labels_to_learn,
    rows_as_mask,
)
from laplaceconfidence.confidence.decisions import ExpectedCurve, expected_curve, threshold_for_precision
from laplaceconfidence.confidence.inputs import check_given_labels, check_memory
from laplaceconfidence.confidence.noise_aware.feature_sets import (
    FeatureSet,
    check_feature_sets,
    check_new_feature_sets,
)
from laplaceconfidence.confidence.noise_aware.local_noise import LabelPosterior, label_posterior
from laplaceconfidence.confidence.noise_aware.noise_model import Pool
from laplaceconfidence.confidence.noise_aware.posterior import calibrate_posterior
from laplaceconfidence.confidence.noise_aware.prediction import make_predictor
from laplaceconfidence.confidence.noise_aware.round_selection import SelectedPool, select_pool
from laplaceconfidence.confidence.noise_aware.settings import FEWEST_AUDITED, SETTINGS
from laplaceconfidence.confidence.noise_aware.transition import class_pair_counts
from laplaceconfidence.confidence.noise_aware.views import FeatureViews, count_views, find_views
from laplaceconfidence.confidence.probabilities import check_pred_probs
from laplaceconfidence.confidence.protocol import EvidenceKind
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.exceptions import InvalidInputError, LaplaceConfidenceWarning
from laplaceconfidence.graph.affinity import GRAPH_KINDS
from laplaceconfidence.graph.neighborhood import Neighborhood
from laplaceconfidence.graph.neighbors import SEARCHES
from laplaceconfidence.stages import StageTimer, observing, stage
from laplaceconfidence.validation import (
    check_choice,
    check_integer,
    check_random_state,
    check_real,
    must_be,
)
from laplaceconfidence.wording import listed

UNSEEN_SHARE = 0.1
"""A class with fewer expected members than this part of its labels is not shown by the features."""
FEWEST_OF_UNSEEN = 30
"""Labels of a class from which that is said: of fewer, chance leaves none that are believed."""


class NoiseAwareConfidence(ClassifierMixin, BaseEstimator):
    """Probability that each given label is right, from held-out evidence and a model of the noise.

    Two linear probes and labels propagated over graphs give evidence about every sample that does not depend
    on its own label. One likelihood of the given labels weights the evidence, calibrates it and fits the
    noise T[z, y] = p(given y | true z). In further rounds of self-training, the posteriors replace the given
    labels that are learned and propagated; every label stays held out from the evidence about its own sample.
    The round is used under which held-out given labels are most likely. Several views of the samples, such as
    two encoders or images and texts, have probes and graphs of their own, and probes over all views side by
    side, which the likelihood weights like all others. The documentation page "The noise-aware estimator" has
    the formulas.

    Parameters
    ----------
    n_neighbors : int, sequence of int or "auto", default="auto"
        Number of neighbors per sample in each of the graphs. "auto" is (30, 100), or (10, 30) if classes have
        fewer than 100 labels on average. The graph of fewest neighbors compares half-whitened features, the
        others the features as they are.
    n_components : int or None, default=None
        Number of principal components to keep; ``None`` keeps up to 256.
    n_rounds : int or "auto", default="auto"
        Number of rounds of self-training, the first included; "auto" is 4, but 3 or 2 if samples times
        classes exceed 500,000.
    n_folds : int, default=5
        Number of folds in which the given labels are held out, at least 3.
    search : {"auto", "exact", "ivf"}, default="auto"
        The neighbor search; "ivf" is approximate and fast, "auto" uses it from 20,000 samples on.
    target_recall : float, default=0.9
        Share of the true neighbors that an approximate search must find, measured on a sample.
    knn_graph_kind : {"similarity", "cosine_distance", "distance"}, default="similarity"
        What the values of a ``knn_graph`` passed to ``fit`` are.
    missing_label : object, default=None
        A value of ``y`` that means "no label", besides ``None``, NaN and the empty string.
    n_jobs : int or None, default=None
        Number of threads; ``None`` and -1 use all cores.
    random_state : int, Generator, RandomState or None, default=0
        Seed of the folds, of the rows that pools are fitted on, and of the approximate search.

    Attributes
    ----------
    confidence_ : ndarray of shape (n,)
        Probability that the given label is right, NaN where none was given. If the noise was not identified,
        it is the mean of two readings: all labels are right, or ``label_support_`` is all there is to know.
    label_distributions_ : ndarray of shape (n, C)
        Probability of every class given features and label; rows sum to 1.
    transduction_ : ndarray of shape (n,)
        The most probable class.
    classes_ : ndarray of shape (C,)
        The classes, in the order of the columns.
    cautious_confidence_ : ndarray of shape (n,)
        Mean confidence over the rounds. ``threshold_for`` and ``expected_curve`` compute expected errors from
        it, because a single round may be overconfident.
    label_support_ : ndarray of shape (n,)
        Probability of the given label according to evidence that does not include it, a pessimistic estimate.
    noise_rate_ : float
        Expected share of wrong labels.
    noise_rate_bracket_ : tuple of float
        Optimistic and pessimistic noise rate.
    identifiable_ : bool
        Whether the noise was identified; if not, wrong labels cannot be distinguished from overlapping
        classes.
    transition_matrix_ : ndarray of shape (C, C)
        p(given | true), true classes in rows.
    class_prior_ : ndarray of shape (C,)
        Expected shares of the true classes.
    expected_errors_ : ndarray of shape (C, C)
        Expected number of wrong labels per true class (rows) and given label (columns).
    rounds_ : list of dict
        One entry per round: the kinds of noise that were tried, the log-likelihood of held-out labels,
        whether the round was selected ("won"), and whether the next one learned posteriors under a matrix
        read from the most certain samples instead ("overruled").
    noise_model_ : str
        The selected kind of noise: "symmetric", "proportional", "sparse" or "shrunk"; "local" for
        noise that the features predict; "assumed" in a fallback.
    round_ : int
        The selected entry of ``rounds_``, from 1; 0 in a fallback.
    disagreement_ : Disagreement or None
        Share of labels that differ from predictions by held-out evidence, among the most certain predictions
        and among all; ``None`` without a graph and in a fallback.
    fallback_ : str or None
        The reason why fixed weights and an assumed noise rate were used; ``None`` if they were not.
    calibration_ : LogOddsCalibration or None
        Slopes and offset fitted to audited labels; ``None`` if there were too few.
    neighborhood_ : Neighborhood or None
        Neighbors and weights of the widest graph of the first view; ``None`` without a graph.
    n_neighbors_, search_, recall_ : int, str and float, or None
        Number of neighbors of the widest graph of the first view, the neighbor search that was used and the
        share of the true neighbors that it found; ``None`` without a search.
    view_names_ : tuple of str
        Names of the views: "features" if ``X`` was one array, "view 1", "view 2", ... if it was a list; empty
        without features.
    view_weights_ : dict of str to dict of str to float
        Share of every view and kind of evidence in the estimate, weight times standard deviation over the
        classes; all sum to 1. "all views" are probes over several views side by side; ``pred_probs`` and a
        ``knn_graph`` without features count as views.
    residual_ : float or None
        Largest relative residual of the propagation; ``None`` without a graph.
    timings_ : dict of str to float
        Seconds per stage.
    n_features_in_ : int
        Number of features of all views; not set without features.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from laplaceconfidence import NoiseAwareConfidence
    >>> X, y = load_digits(return_X_y=True)
    >>> y[0] = 7  # a wrong label
    >>> NoiseAwareConfidence().fit(X, y).confidence_.argmin()
    np.int64(0)
    """

    evidence: ClassVar[EvidenceKind] = "features"

    def __init__(
        self,
        n_neighbors: str | int | Sequence[int] = "auto",
        n_components: int | None = None,
        *,
        n_rounds: int | str = "auto",
        n_folds: int = 5,
        search: str = "auto",
        target_recall: float = 0.9,
        knn_graph_kind: str = "similarity",
        missing_label: Any = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.n_components = n_components
        self.n_rounds = n_rounds
        self.n_folds = n_folds
        self.search = search
        self.target_recall = target_recall
        self.knn_graph_kind = knn_graph_kind
        self.missing_label = missing_label
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        knn_graph: Any = None,
        pred_probs: Any = None,
        audited: Any = None,
        audited_at_random: Collection[int] | None = None,
        **unsupported: Any,
    ) -> Self:
        """Estimate the confidence of every label of ``y``.

        Parameters
        ----------
        X : array-like of shape (n, d), mapping of str to such arrays, list of such arrays, or None
            Feature vectors, or several views of the samples by name or in order. In a view, a row of NaN is a
            sample that is not in it. May be ``None`` if a ``knn_graph`` or ``pred_probs`` is passed.
        y : array-like of shape (n,)
            Given labels.
        knn_graph : scipy.sparse matrix of shape (n, n) or None, default=None
            A graph of neighbors that replaces all graphs made from ``X``, with values as ``knn_graph_kind``
            says.
        pred_probs : array-like of shape (n, C) or None, default=None
            Further evidence: probabilities predicted by models that did not train on the sample.
        audited : mapping of int to label, array-like of shape (n,) or None, default=None
            Labels that a person has verified, by row number or as a column with missing values. They are
            taken as certain, and if there are 50 or more, they calibrate the confidences of the others.
        audited_at_random : collection of int or None, default=None
            Rows among ``audited`` that were drawn at random, if not all were: only these calibrate the
            others.
        **unsupported : None
            ``sample_weight`` is not supported: other values raise ``InvalidInputError``.

        Returns
        -------
        NoiseAwareConfidence
            The fitted estimator.
        """
        refuse_unsupported(unsupported)
        self._check_settings()
        rng = check_random_state(self.random_state)
        timer = StageTimer()
        with observing(timer):
            if y is None:
                raise InvalidInputError(
                    "NoiseAwareConfidence requires y to be passed, but the target y is None."
                )
            feature_sets = [] if X is None else check_feature_sets(self, X)
            given, verified = self._encode(y, audited, len(feature_sets[0].values) if feature_sets else None)
            n_classes, n_views = len(self.classes_), count_views(feature_sets)
            check_memory(self, len(given), n_classes, per_probability=80 * n_views, per_class_pair=40)
            probabilities = (
                None if pred_probs is None else check_pred_probs(pred_probs, len(given), n_classes)
            )
            views = self._find_views(feature_sets, knn_graph, given, rng, needed=probabilities is None)
            selected = select_pool(
                views,
                probabilities,
                given,
                verified,
                n_classes,
                n_rounds=self._round_count(len(given) * n_views),
                n_folds=self.n_folds,
                rng=rng,
            )
            with stage("confidence"):
                found = label_posterior(selected, views, given, n_classes)
                noise = calibrate_posterior(
                    found.posterior,
                    found.cautious,
                    found.least_support,
                    given,
                    verified,
                    n_classes,
                    fallback=selected.fallback is not None,
                    at_random=rows_as_mask(audited_at_random, len(given), "audited_at_random"),
                )
                self.calibration_ = noise.calibration
                self.identifiable_ = noise.identifiable
                self.noise_rate_, self.noise_rate_bracket_ = noise.noise_rate, noise.bracket
                self._keep(found, noise.cautious, selected, given, verified)
                self.view_weights_ = _weights_by_view(found.pool, selected, views)
        self.residual_ = None if views.widest_graph is None else views.propagate.residual
        self.timings_ = timer.seconds
        self._widest_graph = views.widest_graph
        self._neighborhood: Neighborhood | None = None
        self._fitted_with_pred_probs = probabilities is not None
        self._predictor = make_predictor(
            views,
            selected,
            found,
            labels_to_learn(given, verified),
            self.label_distributions_,
            n_jobs=self.n_jobs,
        )
        self._warn_if_unidentified()
        self._warn_of_unseen_classes(given)
        return self

    @property
    def neighborhood_(self) -> Neighborhood | None:
        """The neighbors and normalized weights of the widest graph of the first view; ``None`` without one.

        It compares the features as they are; labels are propagated over all graphs of all views.
        """
        check_is_fitted(self)
        if self._neighborhood is None and self._widest_graph is not None:
            self._neighborhood = self._widest_graph.neighborhood()
        return self._neighborhood

    def predict_proba(self, X: Any, *, pred_probs: Any = None) -> FloatArray:
        """Predict the class probabilities of new samples.

        The kinds of evidence are those of the fit, a linear classifier and labels propagated from neighbors
        among the fitted samples, with the same weights. At the first call, the classifier is fitted to all
        labels and the labels are propagated without held-out folds.

        Parameters
        ----------
        X : array-like of shape (m, d), mapping or list of such arrays, or None
            Feature vectors, with the views of the fit; ``None`` only if the estimator was fitted on
            ``pred_probs`` alone.
        pred_probs : array-like of shape (m, C) or None, default=None
            Predicted probabilities of the new samples, from the same kind of model as those passed to
            ``fit``. Without them, the weights fitted to the features alone are used.

        Returns
        -------
        ndarray of shape (m, C)
            Rows sum to 1.
        """
        check_is_fitted(self)
        feature_sets = self._new_feature_sets(X)
        probabilities = None
        if pred_probs is not None:
            if not self._fitted_with_pred_probs:
                rule = "left out: the estimator was fitted without 'pred_probs'"
                raise must_be("pred_probs", rule, type(pred_probs).__name__)
            n_samples, same_as = len(pred_probs), "pred_probs"
            if feature_sets:
                n_samples, same_as = len(feature_sets[0].values), "X"
            probabilities = check_pred_probs(pred_probs, n_samples, len(self.classes_), same_as)
        elif not feature_sets:
            rule = "given: the estimator was fitted on 'pred_probs' alone"
            raise must_be("pred_probs", rule, None)
        return self._predictor(feature_sets, probabilities)

    def predict(self, X: Any, *, pred_probs: Any = None) -> NDArray[Any]:
        """Predict the most probable class of new samples.

        Parameters
        ----------
        X : array-like of shape (m, d), mapping or list of such arrays, or None
            As in ``predict_proba``.
        pred_probs : array-like of shape (m, C) or None, default=None
            As in ``predict_proba``.

        Returns
        -------
        ndarray of shape (m,)
        """
        columns = self.predict_proba(X, pred_probs=pred_probs).argmax(axis=1)
        most_probable: NDArray[Any] = self.classes_[columns]
        return most_probable

    def threshold_for(self, precision: float = 0.95) -> float:
        """Find the largest threshold such that the labels below it are expected to be wrong at some rate.

        Parameters
        ----------
        precision : float, default=0.95
            Expected share of wrong labels among those below the threshold.

        Returns
        -------
        float
            The threshold; 0, which flags no label, if no threshold reaches the rate.
        """
        check_is_fitted(self)
        return threshold_for_precision(self.confidence_, precision, self.cautious_confidence_)

    def expected_curve(self) -> ExpectedCurve:
        """Compute the expected precision and recall of flagging the labels below each threshold.

        Returns
        -------
        ExpectedCurve
        """
        check_is_fitted(self)
        return expected_curve(self.confidence_, self.cautious_confidence_)

    def _check_settings(self) -> None:
        if isinstance(self.n_neighbors, str):
            check_choice(self.n_neighbors, "n_neighbors", ("auto",))
        else:
            for k in np.atleast_1d(self.n_neighbors).tolist():
                check_integer(k, "n_neighbors", minimum=1)
        if self.n_components is not None:
            check_integer(self.n_components, "n_components", minimum=1)
        if isinstance(self.n_rounds, str):
            check_choice(self.n_rounds, "n_rounds", ("auto",))
        else:
            check_integer(self.n_rounds, "n_rounds", minimum=1)
        check_integer(self.n_folds, "n_folds", minimum=3)
        check_choice(self.search, "search", SEARCHES)
        check_real(self.target_recall, "target_recall", above=0, at_most=1)
        check_choice(self.knn_graph_kind, "knn_graph_kind", GRAPH_KINDS)

    def _new_feature_sets(self, X: Any) -> list[FeatureSet]:
        """Check features of new samples; empty if the estimator was fitted on ``pred_probs`` alone."""
        if (model := self._predictor.model) is not None:
            if X is None:
                raise must_be("X", "given: the estimator was fitted on features", None)
            return check_new_feature_sets(self, X, self.view_names_, model.view_widths)
        if self._widest_graph is not None:
            raise InvalidInputError(
                "This estimator was fitted on a 'knn_graph' without features, so new samples cannot be "
                "compared with the fitted ones. Pass 'X' to fit, too."
            )
        if X is not None:
            raise must_be("X", "None: the estimator was fitted on 'pred_probs' alone", type(X).__name__)
        return []

    def _encode(self, y: Any, audited: Any, n_samples: int | None) -> tuple[IntArray, IntArray | None]:
        """Encode the given and the verified labels."""
        y = to_numpy(y)
        y = column_or_1d(y, warn=True) if y.ndim == 2 else y
        n_samples = len(y) if n_samples is None else n_samples
        classes, verified = encode_audited(audited_column(audited, n_samples), y, self.missing_label)
        labels = check_given_labels(y, n_samples, missing_label=self.missing_label, classes=classes)
        self.classes_ = labels.class_values
        if len(self.classes_) < 2:
            raise must_be("y", "labels of at least two classes", f"1 class: {self.classes_.tolist()}")
        return labels.codes, verified

    def _find_views(
        self,
        feature_sets: list[FeatureSet],
        knn_graph: Any,
        given: IntArray,
        rng: np.random.Generator,
        *,
        needed: bool,
    ) -> FeatureViews:
        if not feature_sets and knn_graph is None and needed:
            raise must_be("X", "given unless a 'knn_graph' or 'pred_probs' is", None)
        views = find_views(
            feature_sets,
            knn_graph,
            given,
            len(self.classes_),
            n_neighbors=self.n_neighbors,
            n_components=self.n_components,
            search=self.search,
            target_recall=self.target_recall,
            knn_graph_kind=self.knn_graph_kind,
            n_jobs=self.n_jobs,
            rng=rng,
        )
        self.view_names_ = tuple(one.name for one in feature_sets)
        graph = views.widest_graph
        neighbors = None if graph is None else graph.closest_neighbors
        self.n_neighbors_ = None if graph is None or neighbors is None else graph.n_neighbors
        self.search_ = None if neighbors is None else neighbors.search
        self.recall_ = None if neighbors is None else neighbors.recall
        return views

    def _round_count(self, n_samples: int) -> int:
        """Rounds of self-training; samples count once per view."""
        if not isinstance(self.n_rounds, str):
            return self.n_rounds
        limits = SETTINGS.classes
        affordable = limits.entries_of_all_rounds // (n_samples * len(self.classes_))
        return min(max(affordable, limits.fewest_rounds), limits.rounds)

    def _keep(
        self,
        found: LabelPosterior,
        cautious: FloatArray,
        selected: SelectedPool,
        given: IntArray,
        verified: IntArray | None,
    ) -> None:
        """Set the fitted attributes, with arrays over all classes and all samples."""
        posterior = found.posterior
        n = len(given)
        distributions = posterior.distributions
        errors = distributions[posterior.rows].copy()
        errors[np.arange(len(errors)), posterior.codes] = 0
        self.expected_errors_ = class_pair_counts(errors, posterior.codes)
        if verified is not None:
            known = np.flatnonzero(verified != MISSING)
            distributions[known] = 0
            distributions[known, verified[known]] = 1
        self.label_distributions_: FloatArray = distributions
        self.transduction_ = self.classes_[distributions.argmax(axis=1)]
        self.class_prior_ = distributions.mean(axis=0, dtype=np.float64)
        self.confidence_ = np.full(n, np.nan)
        self.confidence_[posterior.rows] = posterior.confidence
        self.cautious_confidence_ = np.full(n, np.nan)
        self.cautious_confidence_[posterior.rows] = cautious
        self.label_support_ = np.full(n, np.nan)
        self.label_support_[posterior.rows] = posterior.support
        self.transition_matrix_ = found.transition
        self.noise_model_, self.round_ = found.noise_model, found.round
        self.disagreement_ = found.disagreement
        self.rounds_ = found.history
        self.fallback_ = selected.fallback

    def _warn_if_unidentified(self) -> None:
        low, high = self.noise_rate_bracket_
        if self.fallback_ is not None:
            warnings.warn(
                f"A simpler estimate was used: {self.fallback_}. Use the confidences as a ranking only.",
                LaplaceConfidenceWarning,
                stacklevel=3,
            )
        elif not self.identifiable_:
            warnings.warn(
                f"Wrong labels cannot be distinguished from overlapping classes: {low:.1%} to {high:.1%} of "
                "the labels may be wrong. The ranking can be used; the confidences are the middle of that "
                f"range. Verify {FEWEST_AUDITED} to {2 * FEWEST_AUDITED} labels drawn at random and "
                "pass them as 'audited'.",
                LaplaceConfidenceWarning,
                stacklevel=3,
            )

    def _warn_of_unseen_classes(self, given: IntArray) -> None:
        """Warn of classes that hardly any sample seems to belong to: all their labels are doubted."""
        labels = np.bincount(given[given != MISSING], minlength=len(self.classes_))
        members = self.class_prior_ * len(given)
        unseen = (labels >= FEWEST_OF_UNSEEN) & (members < UNSEEN_SHARE * labels)
        if unseen.any() and self.identifiable_:
            named = listed(self.classes_[unseen].tolist())
            warnings.warn(
                f"Nearly all {labels[unseen].sum():,} labels of {named} are doubted. Either they are wrong, "
                "or what makes this class is not in the features: look at some before you change any.",
                LaplaceConfidenceWarning,
                stacklevel=3,
            )


def _weights_by_view(pool: Pool, selected: SelectedPool, views: FeatureViews) -> dict[str, dict[str, float]]:
    evidence = next(parts for one, parts in selected.alternatives if one is pool)
    names = views.evidence_names
    names += [("pred_probs", "probabilities")] * (len(evidence) - len(names))
    weights: dict[str, dict[str, float]] = {}
    for (view, kind), weight in zip(names, pool.influence(evidence), strict=True):
        weights.setdefault(view, {})[kind] = float(weight)
    return weights


def refuse_unsupported(unsupported: dict[str, Any]) -> None:
    """Raise for arguments of ``fit`` that it cannot use; ``sample_weight=None`` is allowed."""
    for parameter, value in unsupported.items():
        if parameter != "sample_weight":
            raise TypeError(f"NoiseAwareConfidence.fit() got an unexpected keyword argument {parameter!r}")
        if value is not None:
            raise must_be(
                parameter,
                "None for NoiseAwareConfidence, whose held-out folds count every sample once",
                type(value).__name__,
                "LaplaceConfidence takes sample weights.",
            )
