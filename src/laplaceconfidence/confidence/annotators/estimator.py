"""AnnotatorConfidence: the noise-aware estimator for labels of several annotators."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.confidence.annotators.consensus import Consensus, find_consensus
from laplaceconfidence.confidence.annotators.labels import CodedLabels
from laplaceconfidence.confidence.annotators.model import support_of_labels
from laplaceconfidence.confidence.annotators.tables import annotator_table, best_questions
from laplaceconfidence.confidence.audited_labels import audited_column
from laplaceconfidence.confidence.inputs import check_memory, warn_about_minus_one
from laplaceconfidence.confidence.noise_aware.estimator import NoiseAwareConfidence, refuse_unsupported
from laplaceconfidence.confidence.noise_aware.feature_sets import check_feature_sets
from laplaceconfidence.confidence.noise_aware.noise_model import Pool
from laplaceconfidence.confidence.noise_aware.posterior import POSTERIOR
from laplaceconfidence.confidence.noise_aware.prediction import Predictor, new_sample_model
from laplaceconfidence.confidence.noise_aware.views import FeatureViews, count_views
from laplaceconfidence.confidence.probabilities import check_pred_probs
from laplaceconfidence.data.annotator_labels import AnnotatorLabels
from laplaceconfidence.data.labels import MISSING, distinct_labels, encode_labels
from laplaceconfidence.exceptions import LaplaceConfidenceWarning
from laplaceconfidence.stages import StageTimer, observing, stage
from laplaceconfidence.validation import check_integer, check_random_state, check_same_length, must_be
from laplaceconfidence.wording import counted

if TYPE_CHECKING:
    import pandas as pd


class AnnotatorConfidence(NoiseAwareConfidence):
    """Consensus of several annotators, and the probability that each of their labels is right.

    Every annotator has a noise matrix T_a; the labels and the features maximize one likelihood,
    L = sum_i log sum_z p_iz prod_a T_a[z, y_ia]. The matrix of an annotator of few labels is close to the one
    that all share. Without features this is a regularized Dawid-Skene model; with one annotator it is
    ``NoiseAwareConfidence``. The parameters are those of ``NoiseAwareConfidence``.

    Attributes
    ----------
    confidence_ : ndarray of the shape of ``y``
        Probability that every label is right, NaN where none was given.
    label_distributions_ : ndarray of shape (n, C)
        Probability of every class given the features and all labels of the sample.
    transduction_ : ndarray of shape (n,)
        The consensus: the most probable class.
    annotators_ : DataFrame
        One row per annotator: ``annotator``, ``n_labels``, estimated ``accuracy`` with its 95% interval
        (``accuracy_low``, ``accuracy_high``), ``agreement`` with the consensus, the most frequent error
        (samples of ``true_class`` labeled ``confused_with``, as a share of its samples: ``confused_share``),
        and ``copies``: the annotator whose labels are identical, if chance does not explain it. Labels of
        such copies are not counted twice.
    label_support_ : ndarray of the shape of ``y``
        Probability of every label's class by the features and the *other* labels of the sample.
    noise_rate_, noise_rate_bracket_, identifiable_
        As in ``NoiseAwareConfidence``, over all labels.
    transition_matrix_ : ndarray of shape (C, C)
        The noise matrix that all annotators share; ``annotator_matrix`` has that of one.
    rounds_ : list of dict
        Log-likelihood, noise rate and weights of the evidence after every step.
    classes_, class_prior_, n_neighbors_, search_, recall_, residual_, timings_, n_features_in_
        As in ``NoiseAwareConfidence``.

    Examples
    --------
    >>> from laplaceconfidence import AnnotatorConfidence
    >>> y = [["cat", "cat", "dog"], ["dog", "dog", None], ["cat", "cat", "cat"], ["dog", "dog", "cat"]]
    >>> found = AnnotatorConfidence().fit(None, y)
    >>> found.transduction_.tolist()
    ['cat', 'dog', 'cat', 'dog']
    >>> found.annotators_["annotator"][found.annotators_["accuracy"].idxmin()]
    np.int64(2)
    """

    _consensus: Consensus | None

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
        """Estimate the consensus and the confidence of every label.

        Parameters
        ----------
        X : array-like of shape (n, d) or None
            Feature vectors; ``None`` uses the labels alone.
        y : array-like of shape (n, A), DataFrame or AnnotatorLabels
            One column of labels per annotator, with gaps; or a long table as ``AnnotatorLabels.from_table``.
        knn_graph, pred_probs
            Further evidence, as in ``NoiseAwareConfidence.fit``.
        audited : mapping of int to label, array-like of shape (n,) or None, default=None
            True classes of samples that a person has verified, by row number or as a column with missing
            values. They are taken as certain; the matrices of the annotators follow from them as well.
        audited_at_random : collection of int or None, default=None
            As in ``NoiseAwareConfidence.fit``. It matters for one annotator only: the likelihood of the
            labels of several needs no random sample, as samples are chosen by what is in it already.
        **unsupported : None
            ``sample_weight`` is not supported: other values raise ``InvalidInputError``.

        Returns
        -------
        AnnotatorConfidence
            The fitted estimator.
        """
        refuse_unsupported(unsupported)
        self._check_settings()
        rng = check_random_state(self.random_state)
        given = self._labels(y)
        timer = StageTimer()
        with observing(timer):
            feature_sets = [] if X is None else check_feature_sets(self, X)
            if feature_sets:
                check_same_length("X", len(feature_sets[0].values), "y", given.n_samples)
            coded, verified = self._coded(given, audited)
            if coded.n_annotators == 1 and len(np.unique(coded.samples)) == len(coded.samples):
                return self._fit_single(X, given, coded, knn_graph, pred_probs, audited, audited_at_random)
            n_classes, n_views = len(self.classes_), count_views(feature_sets)
            check_memory(self, coded.n_samples, n_classes, per_probability=120 * n_views, per_class_pair=40)
            probabilities = (
                None if pred_probs is None else check_pred_probs(pred_probs, coded.n_samples, n_classes)
            )
            majority = np.where(coded.votes().any(axis=1), coded.votes().argmax(axis=1), MISSING)
            views = self._find_views(feature_sets, knn_graph, majority, rng, needed=False)
            consensus = find_consensus(
                views,
                probabilities,
                coded,
                verified,
                n_rounds=self._round_count(coded.n_samples * n_views),
                n_folds=self.n_folds,
                rng=rng,
            )
            with stage("confidence"):
                self._keep_consensus(given, coded, consensus)
        self.residual_ = None if views.widest_graph is None else views.propagate.residual
        self.timings_ = timer.seconds
        self._widest_graph, self._neighborhood = views.widest_graph, None
        self._fitted_with_pred_probs = probabilities is not None
        self._predictor = self._make_predictor(views, consensus, with_pred_probs=probabilities is not None)
        self._coded_labels, self._consensus = coded, consensus
        self._warn_about_overlap(coded, has_evidence=not views.is_empty or probabilities is not None)
        return self

    def annotator_matrix(self, annotator: Any) -> FloatArray:
        """The noise matrix of one annotator.

        Parameters
        ----------
        annotator : object
            The annotator as in ``annotators_``.

        Returns
        -------
        ndarray of shape (C, C)
            p(label | true class), true classes in rows.
        """
        names = self.annotators_["annotator"].tolist()
        if annotator not in names:
            raise must_be("annotator", "one of those in 'annotators_'", annotator)
        if self._consensus is None:
            return self.transition_matrix_
        number = names.index(annotator)
        number = self._consensus.copied_from.get(number, number)
        return self._consensus.model.matrix(self._consensus.labels, number)

    def labels_to_ask(self, n: int = 20) -> pd.DataFrame:
        """Which labels to ask for next: those that are expected to tell most about the true classes.

        Parameters
        ----------
        n : int, default=20
            Number of labels.

        Returns
        -------
        DataFrame
            ``sample``, the ``annotator`` to ask and the expected ``gain``, the decrease of the entropy of the
            sample's class in nats; the largest first. Empty with a single annotator.
        """
        import pandas as pd

        check_integer(n, "n", minimum=1)
        annotators, gains = self.best_questions_
        rows = np.argsort(-gains, kind="stable")[:n]
        rows = rows[gains[rows] > 0]
        names = self.annotators_["annotator"].to_numpy()
        return pd.DataFrame(
            {
                "sample": self._sample_ids[rows],
                "annotator": names[annotators[rows]],
                "gain": gains[rows],
            }
        )

    @property
    def best_questions_(self) -> tuple[IntArray, FloatArray]:
        """Whom to ask about every sample, and the expected gain, each (n,).

        An annotator is a position in ``annotators_``, -1 where nobody is expected to tell anything.
        """
        if self._consensus is None:
            n = len(self.label_distributions_)
            return np.full(n, MISSING), np.zeros(n)
        return best_questions(self._coded_labels, self._consensus)

    def _labels(self, y: Any) -> AnnotatorLabels:
        if y is None:
            raise must_be("y", "the labels, a column per annotator", None)
        if isinstance(y, AnnotatorLabels):
            return y
        return AnnotatorLabels.from_columns(y, missing_label=self.missing_label)

    def _coded(self, given: AnnotatorLabels, audited: Any) -> tuple[CodedLabels, IntArray | None]:
        """Encode all labels and the verified classes."""
        if len(given.labels) == 0:
            raise must_be("y", "at least one label that is not missing", "no labels")
        column = audited_column(audited, given.n_samples)
        sources = [("y", given.labels)] + ([] if column is None else [("audited", column)])
        self.classes_ = distinct_labels(*sources, missing_label=self.missing_label)
        if len(self.classes_) < 2:
            raise must_be("y", "labels of at least two classes", f"1 class: {self.classes_.tolist()}")
        warn_about_minus_one(self.classes_, self.missing_label)

        def codes(values: Any, parameter: str) -> IntArray:
            return encode_labels(
                values, classes=self.classes_, missing_label=self.missing_label, parameter=parameter
            ).codes

        coded = CodedLabels(
            given.samples,
            given.annotators,
            codes(given.labels, "y"),
            given.n_samples,
            len(given.annotator_names),
            len(self.classes_),
        )
        self._sample_ids = given.sample_ids
        return coded, None if column is None else codes(column, "audited")

    def _fit_single(
        self,
        X: Any,
        given: AnnotatorLabels,
        coded: CodedLabels,
        knn_graph: Any,
        pred_probs: Any,
        audited: Any,
        at_random: Collection[int] | None,
    ) -> Self:
        """Fit the labels of one annotator as ``NoiseAwareConfidence`` does."""
        column = np.full(given.n_samples, None, dtype=object)
        column[given.samples] = given.labels
        super().fit(
            X,
            column,
            knn_graph=knn_graph,
            pred_probs=pred_probs,
            audited=audited,
            audited_at_random=at_random,
        )
        self._consensus = None
        rows = given.samples
        self.annotators_ = annotator_table(
            coded, self.label_distributions_, {}, given.annotator_names, self.classes_
        )
        self.confidence_ = given.as_given(self.confidence_[rows])
        self.label_support_ = given.as_given(self.label_support_[rows])
        self.cautious_confidence_ = given.as_given(self.cautious_confidence_[rows])
        return self

    def _keep_consensus(self, given: AnnotatorLabels, coded: CodedLabels, consensus: Consensus) -> None:
        posteriors = consensus.model.posteriors
        self.label_distributions_ = posteriors
        self.transduction_ = self.classes_[posteriors.argmax(axis=1)]
        self.class_prior_ = posteriors.mean(axis=0)
        right = posteriors[coded.samples, coded.codes]
        self.confidence_ = given.as_given(right)
        self.cautious_confidence_ = self.confidence_
        support = right.copy()  # a copied label has no support of its own
        counted = ~np.isin(coded.annotators, list(consensus.copied_from))
        support[counted] = support_of_labels(consensus.labels, consensus.log_prior, consensus.model)
        self.label_support_ = given.as_given(support)
        low, high = sorted((1 - float(right.mean()), 1 - float(support.mean())))
        self.noise_rate_, self.noise_rate_bracket_ = 1 - float(right.mean()), (low, high)
        self.identifiable_ = high - low <= POSTERIOR.wide_bracket or low >= POSTERIOR.found_share * high
        self.transition_matrix_ = consensus.model.shared
        self.annotators_ = annotator_table(
            coded, posteriors, consensus.copied_from, given.annotator_names, self.classes_
        )
        self.rounds_ = consensus.history

    def _make_predictor(
        self, views: FeatureViews, consensus: Consensus, *, with_pred_probs: bool
    ) -> Predictor:
        codes = self.label_distributions_.argmax(axis=1)
        distributions = self.label_distributions_
        model = new_sample_model(views, codes, distributions, len(self.classes_), self.n_jobs)
        pool = consensus.pool
        if pool is None or not with_pred_probs:
            return Predictor(model, pool, None)
        of_features = None if model is None else Pool(pool.weights[:-1], pool.bias, pool.transition)
        return Predictor(model, of_features, pool)

    def _warn_about_overlap(self, coded: CodedLabels, *, has_evidence: bool) -> None:
        several = np.bincount(coded.samples, minlength=coded.n_samples) > 1
        overlaps = np.zeros(coded.n_annotators, dtype=bool)
        overlaps[coded.annotators[several[coded.samples]]] = True
        present = np.bincount(coded.annotators, minlength=coded.n_annotators) > 0
        n_alone = int((present & ~overlaps).sum())
        if several.any() and n_alone and not has_evidence:
            warnings.warn(
                f"{counted(n_alone, 'annotator')} labeled no sample that somebody else labeled, and there "
                "are no features: their accuracy is that of the others, not an estimate of their own.",
                LaplaceConfidenceWarning,
                stacklevel=3,
            )
        if not several.any() and not has_evidence:
            self.identifiable_ = False
            self.noise_rate_bracket_ = (0.0, self.noise_rate_bracket_[1])
            warnings.warn(
                "No sample has labels of two annotators and there are no features, so that nothing tells "
                "right labels from wrong ones. Let annotators label some of the same samples, or pass "
                "features.",
                LaplaceConfidenceWarning,
                stacklevel=3,
            )
