"""Class probabilities of new samples, from the same kinds of evidence and weights as in the fit.

The probes are fitted to all labels and all labels are propagated, with no fold held out: the given (or
verified) labels if the pool is that of round 1, their posteriors if it is that of a later round. Both is done
at the first prediction.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.confidence.noise_aware.coordinates import PrincipalAxes
from laplaceconfidence.confidence.noise_aware.feature_sets import FeatureSet
from laplaceconfidence.confidence.noise_aware.local_noise import LabelPosterior
from laplaceconfidence.confidence.noise_aware.noise_model import Pool
from laplaceconfidence.confidence.noise_aware.probes import Probes, fit_probes
from laplaceconfidence.confidence.noise_aware.propagation import Propagator, log_shares
from laplaceconfidence.confidence.noise_aware.round_selection import SelectedPool, log_probabilities
from laplaceconfidence.confidence.noise_aware.settings import SETTINGS
from laplaceconfidence.confidence.noise_aware.views import FeatureView, FeatureViews, side_by_side
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.graph.neighbors import nearest_among
from laplaceconfidence.threads import limited_threads, thread_count


@dataclass(slots=True, eq=False)
class NewSampleModel:
    """The model that computes evidence about new samples.

    Attributes
    ----------
    views : list of FeatureView
        Coordinates and graphs of the training samples; all views have coordinates.
    labels : ndarray of int64, shape (n,)
        Given or verified labels, ``MISSING`` where there is none.
    distributions : ndarray of shape (n, C) or None
        Posteriors to learn and propagate in place of the labels.
    n_classes : int
        Number of classes.
    n_jobs : int or None
        Number of threads.
    """

    views: list[FeatureView]
    labels: IntArray
    distributions: FloatArray | None
    n_classes: int
    n_jobs: int | None
    _fitted: list[FittedView] | None = field(default=None, repr=False)

    @property
    def view_widths(self) -> tuple[int, ...]:
        """Number of features of every view but the joint one."""
        return tuple(len(axes.mean) for axes in self._axes_of_features)

    @property
    def _axes_of_features(self) -> list[PrincipalAxes]:
        return [view.axes for view in self.views if view.axes is not None and not view.is_joint]

    def evidence(self, feature_sets: list[FeatureSet]) -> list[FloatArray]:
        """Compute evidence about new samples.

        Parameters
        ----------
        feature_sets : list of FeatureSet
            Feature vectors of every view.

        Returns
        -------
        list of ndarray of shape (m, C)
            One array per kind of evidence.
        """
        if self.views[-1].is_joint:
            with limited_threads(thread_count(self.n_jobs)):
                each = zip(self._axes_of_features, feature_sets, strict=True)
                coordinates = [axes(one.values) for axes, one in each]
            joint = side_by_side(coordinates, [one.present for one in feature_sets])
            feature_sets = [*feature_sets, joint]
        return [
            part
            for one, features in zip(self.fitted(), feature_sets, strict=True)
            for part in one.evidence(features, self.n_jobs)
        ]

    def fitted(self) -> list[FittedView]:
        """Return what is fitted to all labels, which is computed at the first call.

        Returns
        -------
        list of FittedView
        """
        if self._fitted is None:
            soft = self._soft_labels()
            self._fitted = [self._fit(view, soft) for view in self.views]
        return self._fitted

    def _fit(self, view: FeatureView, soft: FloatArray) -> FittedView:
        """Fit the probes of a view to all labels, and propagate all labels over its graphs."""
        assert view.coordinates is not None  # by ``new_sample_model``
        labeled = (self.labels != MISSING)[:, None].astype(np.float32)
        probes = fit_probes(
            view.coordinates,
            self.labels if self.distributions is None else soft[:, None],
            view.visible(labeled),
            self.n_classes,
            l2=SETTINGS.probe.first_l2 if self.distributions is None else SETTINGS.probe.later_l2,
            heavy_tails=view.heavy_tails,
            n_jobs=self.n_jobs,
        )
        propagate = Propagator(self.n_jobs)
        messages: list[FloatArray] = []
        for graph in view.graphs:
            root_degree: FloatArray = np.sqrt(graph.degree_by_sample).astype(np.float32)
            solution = propagate(graph.normalized, soft)
            messages.append(np.asarray(solution / root_degree[:, None]))
        shares = soft.sum(axis=0) if view.present is None else soft[view.present].sum(axis=0)
        return FittedView(view, probes, messages, log_shares(shares))

    def _soft_labels(self) -> FloatArray:
        """(n, C) distributions to learn and propagate, zero for samples without a label."""
        labeled = np.flatnonzero(self.labels != MISSING)
        soft = np.zeros((len(self.labels), self.n_classes), dtype=np.float32)
        if self.distributions is None:
            soft[labeled, self.labels[labeled]] = 1
        else:
            soft[labeled] = self.distributions[labeled]
        return soft


@dataclass(frozen=True, slots=True, eq=False)
class FittedView:
    """What was fitted to all labels, of one view.

    Attributes
    ----------
    view : FeatureView
        The view.
    probes : Probes
        The probes.
    messages : list of ndarray of shape (n, C)
        The labels propagated over every graph.
    neutral : ndarray of shape (C,)
        The evidence about a sample that is not in the view.
    """

    view: FeatureView
    probes: Probes
    messages: list[FloatArray]
    neutral: FloatArray

    def evidence(self, features: FeatureSet, n_jobs: int | None) -> list[FloatArray]:
        """Compute evidence about new samples.

        Parameters
        ----------
        features : FeatureSet
            Feature vectors of the view.
        n_jobs : int or None
            Number of threads.

        Returns
        -------
        list of ndarray of shape (m, C)
            One array per kind of evidence.
        """
        assert self.view.axes is not None  # by ``new_sample_model``
        with limited_threads(thread_count(n_jobs)):
            coordinates = self.view.axes(features.values)
        found = [probe.logits(coordinates)[:, 0] for probe in self.probes]
        found += self._neighbor_evidence(coordinates, n_jobs)
        if features.present is not None:
            for part in found:
                part[~features.present] = self.neutral
        return found

    def _neighbor_evidence(self, coordinates: FloatArray, n_jobs: int | None) -> list[FloatArray]:
        """Log shares per graph; every new sample is added to it as a node without a label."""
        view = self.view
        assert view.axes is not None  # by ``new_sample_model``
        assert view.coordinates is not None
        m, n = len(coordinates), len(view.coordinates)
        found = []
        for graph, messages in zip(view.graphs, self.messages, strict=True):
            fitted = graph.vectors(view.axes, view.coordinates)
            if view.present is not None:
                fitted[~view.present] = 0
            vectors = graph.vectors(view.axes, coordinates)
            nearest, similarities = nearest_among(vectors, fitted, graph.n_neighbors, n_jobs=n_jobs)
            weights = np.maximum(similarities, 0).ravel()
            row_ends = np.arange(0, weights.size + 1, nearest.shape[1])
            edges = sparse.csr_array((weights, nearest.ravel(), row_ends), shape=(m, n))
            found.append(log_shares(edges @ messages))
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Predictor:
    """The model that computes class probabilities of new samples.

    Attributes
    ----------
    model : NewSampleModel or None
        Evidence from features; ``None`` if the fit had none.
    feature_pool : Pool or None
        Weights of the evidence from features.
    joint_pool : Pool or None
        Weights of that evidence and ``pred_probs``; ``None`` if the fit did not use them.
    """

    model: NewSampleModel | None
    feature_pool: Pool | None
    joint_pool: Pool | None

    def __call__(self, feature_sets: list[FeatureSet], pred_probs: FloatArray | None) -> FloatArray:
        """Compute class probabilities.

        Parameters
        ----------
        feature_sets : list of FeatureSet
            Feature vectors of every view; empty if the fit had none.
        pred_probs : ndarray of shape (m, C) or None
            Predicted probabilities.

        Returns
        -------
        ndarray of shape (m, C)
            Rows sum to 1.
        """
        evidence = [] if self.model is None else self.model.evidence(feature_sets)
        pool = self.feature_pool
        if pred_probs is not None and self.joint_pool is not None:
            evidence.append(log_probabilities(pred_probs))
            pool = self.joint_pool
        if pool is None:
            raise AssertionError("the estimator checks that there is evidence")
        probabilities = pool.probabilities(evidence, None).astype(np.float64)
        return np.asarray(probabilities / probabilities.sum(axis=1, keepdims=True))


def new_sample_model(
    views: FeatureViews,
    labels: IntArray,
    distributions: FloatArray | None,
    n_classes: int,
    n_jobs: int | None,
) -> NewSampleModel | None:
    """Make the model that computes evidence about new samples.

    Parameters
    ----------
    views : FeatureViews
        Coordinates and graphs.
    labels : ndarray of shape (n,)
        Given or verified labels, ``MISSING`` where there is none.
    distributions : ndarray of shape (n, C) or None
        Posteriors to learn and propagate in place of the labels.
    n_classes : int
        Number of classes.
    n_jobs : int or None
        Number of threads.

    Returns
    -------
    NewSampleModel or None
        ``None`` if the fit had no features, so that new samples cannot be compared with its samples.
    """
    if not views.has_features:
        return None
    return NewSampleModel(views.each, labels, distributions, n_classes, n_jobs)


def make_predictor(
    views: FeatureViews,
    selected: SelectedPool,
    found: LabelPosterior,
    labels: IntArray,
    distributions: FloatArray,
    *,
    n_jobs: int | None,
) -> Predictor:
    """Make the model that predicts new samples from what a fit has found.

    Parameters
    ----------
    views : FeatureViews
        Coordinates and graphs.
    selected : SelectedPool
        The selected pool.
    found : LabelPosterior
        The posterior that the confidences come from.
    labels : ndarray of shape (n,)
        Given or verified labels, ``MISSING`` where there is none.
    distributions : ndarray of shape (n, C)
        Posteriors of the fitted samples.
    n_jobs : int or None
        Number of threads.

    Returns
    -------
    Predictor
    """
    # A pool is calibrated for evidence from what its round learned: labels, or their posteriors.
    learns_labels = selected.feature_round == 1 and found.noise_model != "local"
    learned = None if learns_labels else distributions
    model = new_sample_model(views, labels, learned, distributions.shape[1], n_jobs)
    if selected.uses_pred_probs:
        return Predictor(model, selected.feature_pool, found.pool)
    return Predictor(model, found.pool, None)
