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
from laplaceconfidence.confidence.noise_aware.local_noise import LabelPosterior
from laplaceconfidence.confidence.noise_aware.noise_model import Pool
from laplaceconfidence.confidence.noise_aware.probes import LinearProbe, fit_probes
from laplaceconfidence.confidence.noise_aware.propagation import Propagator, log_shares
from laplaceconfidence.confidence.noise_aware.round_selection import SelectedPool, log_probabilities
from laplaceconfidence.confidence.noise_aware.settings import SETTINGS
from laplaceconfidence.confidence.noise_aware.views import FeatureViews, NeighborGraphs, PrincipalAxes
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.features.scale import unit_length
from laplaceconfidence.graph.affinity import degrees, normalized
from laplaceconfidence.graph.neighbors import nearest_among
from laplaceconfidence.threads import limited_threads, thread_count


@dataclass(slots=True, eq=False)
class NewSampleModel:
    """The model that computes evidence about new samples.

    Attributes
    ----------
    coordinates : ndarray of float32, shape (n, d)
        Principal coordinates of the training samples.
    axes : PrincipalAxes
        The map of new samples to these coordinates.
    graphs : NeighborGraphs
        The graphs over the training samples.
    labels : ndarray of int64, shape (n,)
        Given or verified labels, ``MISSING`` where there is none.
    distributions : ndarray of shape (n, C) or None
        Posteriors to learn and propagate in place of the labels.
    n_classes : int
        Number of classes.
    n_jobs : int or None
        Number of threads.
    """

    coordinates: FloatArray
    axes: PrincipalAxes
    graphs: NeighborGraphs
    labels: IntArray
    distributions: FloatArray | None
    n_classes: int
    n_jobs: int | None
    _probes: list[LinearProbe] | None = field(default=None, repr=False)
    _messages: list[FloatArray] | None = field(default=None, repr=False)

    def evidence(self, features: FloatArray) -> list[FloatArray]:
        """Compute evidence about new samples.

        Parameters
        ----------
        features : ndarray of shape (m, d)
            Feature vectors.

        Returns
        -------
        list of ndarray of shape (m, C)
            One array per kind of evidence.
        """
        with limited_threads(thread_count(self.n_jobs)):
            coordinates = self.axes(features)
        found = [probe.logits(coordinates)[:, 0] for probe in self._fitted_probes()]
        return found + self._neighbor_evidence(coordinates)

    def _fitted_probes(self) -> list[LinearProbe]:
        if self._probes is None:
            labeled = self.labels != MISSING
            learned = self.labels if self.distributions is None else self._soft_labels()[:, None]
            self._probes = fit_probes(
                self.coordinates,
                learned,
                labeled[:, None].astype(np.float32),
                self.n_classes,
                l2=SETTINGS.probe.first_l2 if self.distributions is None else SETTINGS.probe.later_l2,
                n_jobs=self.n_jobs,
            )
        return self._probes

    def _neighbor_evidence(self, coordinates: FloatArray) -> list[FloatArray]:
        """Log shares per graph; every new sample is added to it as a node without a label."""
        if self._messages is None:
            propagate, soft = Propagator(self.n_jobs), self._soft_labels()
            self._messages = []
            for affinity in self.graphs.affinities():
                degree = degrees(affinity)
                solution = propagate(normalized(affinity, degree), soft)
                root_degree: FloatArray = np.sqrt(degree).astype(np.float32)
                self._messages.append(np.asarray(solution / root_degree[:, None]))
        counts = self.graphs.new_sample_counts
        nearest, similarities = nearest_among(
            unit_length(self.axes.half_whitened(coordinates)),
            unit_length(self.axes.half_whitened(self.coordinates)),
            counts[-1],
            n_jobs=self.n_jobs,
        )
        weights = np.maximum(similarities, 0)
        m, n = len(coordinates), len(self.coordinates)
        found = []
        for k, messages in zip(counts, self._messages, strict=True):
            row_ends = np.arange(0, m * k + 1, k)
            edges = (weights[:, :k].ravel(), nearest[:, :k].ravel(), row_ends)
            found.append(log_shares(sparse.csr_array(edges, shape=(m, n)) @ messages))
        return found

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

    def __call__(self, features: FloatArray | None, pred_probs: FloatArray | None) -> FloatArray:
        """Compute class probabilities.

        Parameters
        ----------
        features : ndarray of shape (m, d) or None
            Feature vectors.
        pred_probs : ndarray of shape (m, C) or None
            Predicted probabilities.

        Returns
        -------
        ndarray of shape (m, C)
            Rows sum to 1.
        """
        evidence = [] if self.model is None or features is None else self.model.evidence(features)
        pool = self.feature_pool
        if pred_probs is not None and self.joint_pool is not None:
            evidence.append(log_probabilities(pred_probs))
            pool = self.joint_pool
        if pool is None:
            raise AssertionError("the estimator checks that there is evidence")
        probabilities = pool.probabilities(evidence, None).astype(np.float64)
        return np.asarray(probabilities / probabilities.sum(axis=1, keepdims=True))


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
    model = None
    if views.coordinates is not None and views.axes is not None and views.graphs is not None:
        # A pool is calibrated for evidence from what its round learned: labels, or their posteriors.
        learns_labels = selected.feature_round == 1 and found.noise_model != "local"
        model = NewSampleModel(
            views.coordinates,
            views.axes,
            views.graphs,
            labels,
            None if learns_labels else distributions,
            distributions.shape[1],
            n_jobs,
        )
    if selected.uses_pred_probs:
        return Predictor(model, selected.feature_pool, found.pool)
    return Predictor(model, found.pool, None)
