"""NoiseAwareConfidence: the default estimator, which models the noise and needs no tuning."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted

from laplaceconfidence.arrays import FloatArray, IntArray, to_numpy
from laplaceconfidence.confidence.best_pool import BestPool, find_best_pool
from laplaceconfidence.confidence.candidate_classes import ALL_UP_TO, widen
from laplaceconfidence.confidence.decisions import ExpectedCurve, expected_curve, threshold_for_precision
from laplaceconfidence.confidence.feature_vectors import check_feature_vectors
from laplaceconfidence.confidence.found_views import find_views
from laplaceconfidence.confidence.given_labels import check_given_labels
from laplaceconfidence.confidence.label_reading import LabelReading, read_labels
from laplaceconfidence.confidence.noise_inputs import (
    audited_column,
    check_pred_probs,
    encode_audited,
    rows_as_mask,
)
from laplaceconfidence.confidence.protocol import Evidence
from laplaceconfidence.confidence.self_training import Views
from laplaceconfidence.confidence.transition import pair_counts
from laplaceconfidence.confidence.verdict import calibrate_reading
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


class NoiseAwareConfidence(BaseEstimator):
    """Probability that each given label is right, from evidence that never saw it and a model of the noise.

    A linear probe and a graph judge every sample without having seen its label. One likelihood of the given
    labels weighs the two, calibrates them and fits the noise T[z, y] = p(given y | true z); the posteriors
    then train better probes and graphs, again without any label coming back to its own sample. Every step is
    kept only if it makes held-out given labels more likely. docs/noise-aware.md has the formulas.

    Parameters
    ----------
    n_neighbors : neighbors of a sample in each of the graphs; "auto" is (30, 100), or (10, 30) where classes
        have fewer than 100 members; above 50 classes one graph of 30.
    n_components : principal axes that are looked at; ``None`` takes up to 256.
    n_rounds : most rounds of self-training, the first included; "auto" is 4, above 50 classes 2.
    n_folds : parts the given labels are hidden in, at least 3.
    search, target_recall : as in ``LaplaceConfidence``; several views make up for missed neighbors.
    knn_graph_kind : what the values of a ``knn_graph`` passed to ``fit`` are.
    missing_label : a value of ``y`` that means "no label", besides ``None``, NaN and the empty string.
    n_jobs : threads; ``None`` and -1 take every core.
    random_state : seed of the folds and the approximate search.

    Attributes
    ----------
    confidence_ : (n,) probability that the given label is right, NaN where none was given.
    label_distributions_ : (n, C) probability of every class given features and label.
    transduction_ : (n,) the most probable class.
    classes_ : (C,) the classes, in the order of the columns.
    cautious_confidence_ : (n,) mean over the rounds; thresholds and curves count with it, so that what the
        rounds disagree about is not promised.
    label_support_ : (n,) probability of the given label before it was looked at, the pessimistic reading.
    noise_rate_ : expected share of wrong labels.
    noise_rate_bracket_ : the optimistic and the pessimistic noise rate.
    identifiable_ : whether the noise could be told from the overlap of the classes.
    transition_matrix_ : (C, C) p(given | true).
    class_prior_ : (C,) expected shares of the true classes.
    expected_errors_ : (C, C) expected number of wrong labels, by true class (rows) and given label.
    rounds_ : what every round tried, how likely it made held-out labels, and which step was kept.
    noise_model_, round_ : the kind of noise and the round that is read; "local" is noise that features
        predict, found by doubt that is the same everywhere.
    doubt_ : share of labels that held-out evidence contradicts, among its surest predictions and among all;
        ``None`` above 50 classes and where a simpler estimate was used.
    fallback_ : why a simpler estimate was used, or ``None``.
    calibration_ : slopes and offset learned from audited labels, or ``None``.
    n_neighbors_, search_, recall_ : what the neighbor search found and reached (``None`` without one).
    residual_ : largest true relative residual of the spreading (``None`` without a graph).
    timings_ : seconds by stage.

    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> y[0] = 7                                          # a wrong label
    >>> NoiseAwareConfidence().fit(X, y).confidence_.argmin()
    np.int64(0)
    """

    evidence: ClassVar[Evidence] = "features"

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
    ) -> Self:
        """Estimate the confidence of every label of ``y``.

        ``X`` are features (n, d); it may be ``None`` if a ``knn_graph`` or ``pred_probs`` is passed.
        ``knn_graph`` (sparse, n x n) replaces the graphs made from ``X``. ``pred_probs`` (n, C), predicted by
        models that did not train on the sample, are further evidence. ``audited`` are labels a person has
        verified: a mapping from row to label, or a column with gaps. They are certain, and 50 or more random
        ones calibrate the rest; where only some were drawn at random (not suspects looked at first), name
        their rows in ``audited_at_random``.
        """
        self._check_settings()
        rng = check_random_state(self.random_state)
        timer = StageTimer()
        with observing(timer):
            if y is None:
                raise InvalidInputError(
                    "NoiseAwareConfidence requires y to be passed, but the target y is None."
                )
            features = None if X is None else self._checked_features(X)
            given, verified = self._encode(y, audited, None if features is None else len(features))
            probabilities = check_pred_probs(pred_probs, len(given), len(self.classes_))
            views = self._views(features, knn_graph, given, rng, needed=probabilities is None)
            best = find_best_pool(
                views,
                probabilities,
                given,
                verified,
                len(self.classes_),
                n_rounds=self._round_count(),
                n_folds=self.n_folds,
                rng=rng,
            )
            with stage("confidence"):
                read = read_labels(best, views, given, len(self.classes_))
                verdict = calibrate_reading(
                    read.reading,
                    read.cautious,
                    given,
                    verified,
                    len(self.classes_),
                    fallback=best.fallback is not None,
                    at_random=rows_as_mask(audited_at_random, len(given), "audited_at_random"),
                )
                self.calibration_ = verdict.calibration
                self.identifiable_ = verdict.identifiable
                self.noise_rate_, self.noise_rate_bracket_ = verdict.noise_rate, verdict.bracket
                self._keep(read, verdict.cautious, best, given, verified)
        self.residual_ = views.spread.residual if views.graphs else None
        self.timings_ = timer.seconds
        self._warn_if_unidentified()
        return self

    @property
    def neighborhood_(self) -> Neighborhood | None:
        """The neighbors and weights of the widest graph; None without a graph."""
        check_is_fitted(self)
        return None if self._affinity is None else Neighborhood.of_graph(self._affinity)

    def threshold_for(self, precision: float = 0.95) -> float:
        """The confidence below which labels are expected to be wrong at this rate; 0 where none can be."""
        check_is_fitted(self)
        return threshold_for_precision(self.confidence_, precision, self.cautious_confidence_)

    def expected_curve(self) -> ExpectedCurve:
        """Expected precision and recall of flagging the labels below every confidence."""
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

    def _checked_features(self, X: Any) -> FloatArray:
        features = check_feature_vectors(self, X)
        if (features == features[0]).all():
            raise must_be(
                "X", "different between samples", f"{len(features)} equal rows (n_samples={len(features)})"
            )
        return features

    def _encode(self, y: Any, audited: Any, n_samples: int | None) -> tuple[IntArray, IntArray | None]:
        """Codes of the given and of the verified labels."""
        y = to_numpy(y)
        y = column_or_1d(y, warn=True) if y.ndim == 2 else y
        n_samples = len(y) if n_samples is None else n_samples
        classes, verified = encode_audited(audited_column(audited, n_samples), y, self.missing_label)
        labels = check_given_labels(y, n_samples, missing_label=self.missing_label, classes=classes)
        self.classes_ = labels.class_values
        if len(self.classes_) < 2:
            raise must_be("y", "labels of at least two classes", f"1 class: {self.classes_.tolist()}")
        return labels.codes, verified

    def _views(
        self,
        features: FloatArray | None,
        knn_graph: Any,
        given: IntArray,
        rng: np.random.Generator,
        *,
        needed: bool,
    ) -> Views:
        if features is None and knn_graph is None and needed:
            raise must_be("X", "given unless a 'knn_graph' or 'pred_probs' is", None)
        found = find_views(
            features,
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
        self.n_neighbors_, self.search_, self.recall_ = found.n_neighbors, found.search, found.recall
        self._affinity = found.affinity
        return found.views

    def _round_count(self) -> int:
        if not isinstance(self.n_rounds, str):
            return self.n_rounds
        return 4 if len(self.classes_) <= ALL_UP_TO else 2  # a round is dear there and adds little

    def _keep(
        self,
        read: LabelReading,
        cautious: FloatArray,
        best: BestPool,
        given: IntArray,
        verified: IntArray | None,
    ) -> None:
        reading = read.reading
        n, n_classes = len(given), len(self.classes_)
        distributions = reading.distributions
        errors = distributions[reading.rows].copy()
        errors[np.arange(len(errors)), reading.columns] = 0
        some = None if best.candidates is None else best.candidates[reading.rows]
        self.expected_errors_ = pair_counts(errors, given[reading.rows], n_classes, some)
        distributions = widen(distributions, best.candidates, n_classes)
        if verified is not None:
            known = np.flatnonzero(verified != MISSING)
            distributions[known] = 0
            distributions[known, verified[known]] = 1
        self.label_distributions_: FloatArray = distributions
        self.transduction_ = self.classes_[distributions.argmax(axis=1)]
        self.class_prior_ = distributions.mean(axis=0, dtype=np.float64)
        self.confidence_ = np.full(n, np.nan)
        self.confidence_[reading.rows] = reading.confidence
        self.cautious_confidence_ = np.full(n, np.nan)
        self.cautious_confidence_[reading.rows] = cautious
        self.label_support_ = np.full(n, np.nan)
        self.label_support_[reading.rows] = reading.support
        self.transition_matrix_ = read.transition
        self.noise_model_, self.round_ = read.noise_model, read.round
        self.doubt_ = read.doubt
        self.rounds_ = read.history
        self.fallback_ = best.fallback

    def _warn_if_unidentified(self) -> None:
        low, high = self.noise_rate_bracket_
        if self.fallback_ is not None:
            warnings.warn(
                f"A simpler estimate was used: {self.fallback_}. Read the confidences as a ranking.",
                LaplaceConfidenceWarning,
                stacklevel=3,
            )
        elif not self.identifiable_:
            warnings.warn(
                f"Wrong labels cannot be told from classes that overlap: anything from {low:.1%} to "
                f"{high:.1%} of the labels may be wrong. The ranking can be used, the confidences are the "
                "optimistic end. "
                "Verify 50 to 100 labels drawn at random and pass them as 'audited'.",
                LaplaceConfidenceWarning,
                stacklevel=3,
            )
