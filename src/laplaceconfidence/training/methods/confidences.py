"""Fitting a confidence estimator on the outputs of a network, or on the samples themselves."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.confidence.losses import scale_to_unit
from laplaceconfidence.confidence.protocol import ConfidenceEstimator
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.encoders.patches import PatchEncoder
from laplaceconfidence.encoders.samples import RawSamples
from laplaceconfidence.exceptions import LaplaceConfidenceWarning, TrainingStopped
from laplaceconfidence.training.augment.pixels import as_bytes
from laplaceconfidence.training.methods.interface import Evidence, NetworkEvidence, State
from laplaceconfidence.validation import check_finite

AVERAGED_EPOCHS = 5
NOT_IDENTIFIED = (
    "Wrong labels cannot be distinguished from overlapping classes: the networks are trained on the given "
    "labels until they can."
)


def estimate_confidence(
    estimator: ConfidenceEstimator, evidence: Evidence, network: int, losses: FloatArray | None = None
) -> FloatArray:
    """Confidences from the outputs of one network.

    Parameters
    ----------
    estimator : ConfidenceEstimator
        The estimator; it is copied before it is fitted.
    evidence : Evidence
        Outputs of the networks and given labels.
    network : int
        Which network.
    losses : ndarray of shape (n_samples,), optional
        Losses that replace the current ones, such as their mean over the last epochs.

    Returns
    -------
    ndarray of shape (n_samples,)
        0 where no label was given.
    """
    inputs = _input_of(estimator, evidence.networks[network], evidence.labels, network, losses)
    return _fitted_confidence(estimator, inputs, evidence)


def fit_on_features(estimator: ConfidenceEstimator, evidence: Evidence, network: int, rows: IntArray) -> Any:
    """A copy of ``estimator``, fitted on one network's features of the samples ``rows``."""
    features = _checked_features(evidence.networks[network], network)
    return _fitted(estimator, features[rows], evidence.labels[rows], evidence)


def features_of_inputs(evidence: Evidence) -> FloatArray:
    """Features of the samples themselves, which no label has an influence on.

    Parameters
    ----------
    evidence : Evidence
        The samples.

    Returns
    -------
    ndarray of shape (n_samples, d)
        Feature vectors as they are; responses of images to random patches.
    """
    inputs = evidence.inputs()
    if inputs.ndim == 2:
        return inputs
    pixels = as_bytes(torch.from_numpy(inputs)).permute(0, 2, 3, 1).numpy()
    encoder = PatchEncoder(
        mirror=evidence.problem.mirrors,
        random_state=evidence.problem.seed % 2**31,
        n_jobs=torch.get_num_threads(),
    )
    return encoder.fit_transform(RawSamples("image", pixels))


@dataclass(frozen=True, slots=True, eq=False)
class EstimatedLabels:
    """What an estimator finds about the labels of a data set.

    Parameters
    ----------
    confidence : ndarray of shape (n_samples,)
        Confidences of the given labels, 0 where there is none.
    distributions : ndarray of shape (n_samples, n_classes)
        Class probabilities of every sample.
    is_identified : bool
        Whether wrong labels could be told from overlapping classes.
    """

    confidence: FloatArray
    distributions: FloatArray
    is_identified: bool

    def to_train_on(self, labels: IntArray) -> EstimatedLabels:
        """Take labels as they were given where noise is not identified.

        The confidences are the middle of a range then, and networks learn less from them than from the labels
        if these are right (decision 21).

        Parameters
        ----------
        labels : ndarray of int of shape (n_samples,)
            The given labels.

        Returns
        -------
        EstimatedLabels
        """
        if self.is_identified:
            return self
        warnings.warn(NOT_IDENTIFIED, LaplaceConfidenceWarning, stacklevel=2)
        labeled = labels != MISSING
        given = np.eye(self.distributions.shape[1], dtype=np.float32)[labels]
        distributions = np.where(labeled[:, None], given, self.distributions)
        return EstimatedLabels(labeled.astype(np.float32), distributions, self.is_identified)


def estimate_labels(
    estimator: ConfidenceEstimator, evidence: Evidence, inputs: FloatArray, network: int | None = None
) -> EstimatedLabels:
    """Confidences and class probabilities from the samples themselves, and from a network if one is given.

    Parameters
    ----------
    estimator : ConfidenceEstimator
        The estimator; it is copied before it is fitted.
    evidence : Evidence
        Outputs of the networks and given labels.
    inputs : ndarray of shape (n_samples, d)
        What ``features_of_inputs`` found.
    network : int, optional
        The network whose features are a second view of the samples.

    Returns
    -------
    EstimatedLabels
    """
    if len(evidence.problem.sample_shape) == 3 and getattr(estimator, "n_components", 0) is None:
        # All components of patches are kept: the last ones tell similar classes apart.
        estimator = copy.copy(estimator)
        estimator.n_components = inputs.shape[1]  # type: ignore[attr-defined]
    features: Any = inputs
    if network is not None:
        features = {"inputs": inputs, "network": _checked_features(evidence.networks[network], network)}
    fitted = _fitted(estimator, features, evidence.labels, evidence)
    distributions = np.zeros((len(inputs), evidence.problem.n_classes), np.float32)
    distributions[:, fitted.classes_] = fitted.label_distributions_
    return EstimatedLabels(
        _confidence_of(fitted), distributions, bool(getattr(fitted, "identifiable_", True))
    )


def _fitted_confidence(estimator: ConfidenceEstimator, inputs: FloatArray, evidence: Evidence) -> FloatArray:
    return _confidence_of(_fitted(estimator, inputs, evidence.labels, evidence))


def _confidence_of(fitted: Any) -> FloatArray:
    confidence: FloatArray = np.nan_to_num(np.asarray(fitted.confidence_, dtype=np.float32), nan=0.0)
    return confidence


def _fitted(estimator: ConfidenceEstimator, inputs: Any, labels: IntArray, evidence: Evidence) -> Any:
    fitted: Any = copy.deepcopy(estimator)
    _set_if_none(fitted, "random_state", evidence.seed % 2**31)
    _set_if_none(fitted, "missing_label", MISSING)
    _set_if_none(fitted, "n_jobs", torch.get_num_threads())
    _set_if_none(fitted, "classes", np.arange(evidence.problem.n_classes))
    with warnings.catch_warnings():
        # The paper's 30 iterations are meant to end the solver, round after round.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", LaplaceConfidenceWarning)  # what estimators advise is about audits
        fitted.fit(inputs, labels)
    return fitted


def mean_confidence(each: Sequence[FloatArray], labels: IntArray) -> FloatArray:
    """The mean of several confidences of each label; NaN where no label was given."""
    mean: FloatArray = np.where(labels == MISSING, np.nan, np.mean(each, axis=0))
    return mean


def averaged_losses(state: State, network: int, losses: FloatArray) -> FloatArray:
    """The mean of the last five epochs' losses, each scaled to [0, 1] and kept in ``state``.

    As DivideMix does at 90% noise (Li, Socher, Hoi, 2020).
    """
    lowest, highest = float(np.nanmin(losses)), float(np.nanmax(losses))
    scaled = scale_to_unit(losses, lowest, highest) if highest > lowest else np.zeros_like(losses)
    name = f"losses_{network}"
    newest = torch.as_tensor(scaled, dtype=torch.float32).unsqueeze(0)
    known = state[name] if name in state else newest[:0]
    state[name] = torch.cat([known.cpu(), newest])[-AVERAGED_EPOCHS:]
    mean: FloatArray = state[name].double().mean(dim=0).numpy()
    return mean


def _input_of(
    estimator: ConfidenceEstimator,
    seen: NetworkEvidence,
    labels: IntArray,
    network: int,
    losses: FloatArray | None,
) -> FloatArray:
    if estimator.evidence == "losses":
        return seen.losses(labels) if losses is None else losses
    if estimator.evidence == "probabilities":
        return seen.probabilities
    return _checked_features(seen, network)


def _checked_features(seen: NetworkEvidence, network: int) -> FloatArray:
    check_finite(seen.features, f"features of network {network + 1}")
    if (seen.features == seen.features[0]).all():
        raise TrainingStopped(
            f"Network {network + 1} gives every sample the same features: it has collapsed. Lower "
            "'learning_rate' or check the inputs."
        )
    return seen.features


def _set_if_none(estimator: Any, name: str, value: Any) -> None:
    """Set a parameter that the user left at ``None``, so that a resumed run computes the same."""
    if hasattr(estimator, name) and getattr(estimator, name) is None:
        setattr(estimator, name, value)
