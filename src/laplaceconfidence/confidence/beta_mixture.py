"""A mixture of two Beta distributions fitted to the losses, which also fits skewed clusters."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import betaln, expit, logsumexp
from sklearn.base import BaseEstimator

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.confidence.inputs import check_given_labels, refuse_sample_weight
from laplaceconfidence.confidence.losses import are_alike, check_losses, labeled_losses, scale_to_unit
from laplaceconfidence.confidence.protocol import EvidenceKind
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.validation import check_integer, check_real

BORDER = 1e-4  # losses stay this far from 0 and 1, where Beta densities may be infinite or zero
LEAST_RESPONSIBILITY = 1e-12
LEAST_VARIANCE = 1e-6


class BetaMixture(NamedTuple):
    """Two Beta distributions, the one with the smaller mean first.

    Attributes
    ----------
    alphas, betas : ndarray of shape (2,)
        Parameters of the distributions.
    weights : ndarray of shape (2,)
        Weights of the distributions.
    """

    alphas: FloatArray
    betas: FloatArray
    weights: FloatArray


class BetaLossMixture(BaseEstimator):
    """Posterior of the lower of two Beta distributions fitted to the losses of the given labels.

    As in [1]_, the losses between two percentiles are scaled to [0, 1], and expectation maximization (EM)
    with weighted moments in place of the maximization starts from Beta(1, 2) and Beta(2, 1). The component
    with the smaller mean models the right labels. Unlike in [1]_, the confidence never increases with the
    loss: beyond the point where the ratio of the two densities has its extremum, the confidence is constant.

    If all losses are equal up to rounding, every confidence is 0.5.

    Parameters
    ----------
    max_iter : int, default=10
        Number of EM steps.
    trim : float, default=0.05
        Share of the losses left out at either end while fitting, in [0, 0.5). If only equal losses would
        remain, none are left out.
    missing_label : object, default=None
        A value of ``y`` that means "no label", besides ``None``, NaN and the empty string.
    n_jobs : int or None, default=None
        Accepted because all estimators have it; the computation uses one thread.
    random_state : int, Generator, RandomState or None, default=None
        Accepted because all estimators have it; the estimate is deterministic.

    Attributes
    ----------
    confidence_ : ndarray of shape (n,)
        Probability that the given label is right, NaN where none was given.
    label_distributions_ : None
        Losses of the given labels contain no information about other classes.
    classes_ : ndarray of shape (C,)
        The distinct labels, sorted.
    neighborhood_ : None
        This estimator uses no neighbors.
    alphas_ : ndarray of shape (2,)
        First parameter of the components on the scale [0, 1], the component with the smaller mean first.
    betas_ : ndarray of shape (2,)
        Second parameter of the components.
    weights_ : ndarray of shape (2,)
        Weights of the components.

    References
    ----------
    .. [1] Arazo, Ortego, Albert, O'Connor, McGuinness, "Unsupervised Label Noise Modeling and Loss
       Correction", ICML 2019.

    Examples
    --------
    >>> from laplaceconfidence import BetaLossMixture
    >>> losses = [0.1, 0.2, 0.15, 2.9, 0.1, 3.1]
    >>> BetaLossMixture().fit(losses, [0, 1, 0, 1, 0, 1]).confidence_ > 0.5
    array([ True,  True,  True, False,  True, False])
    """

    evidence: ClassVar[EvidenceKind] = "losses"
    neighborhood_: ClassVar[None] = None

    def __init__(
        self,
        *,
        max_iter: int = 10,
        trim: float = 0.05,
        missing_label: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.max_iter = max_iter
        self.trim = trim
        self.missing_label = missing_label
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, sample_weight: None = None) -> Self:
        """Fit the mixture to the losses of the given labels.

        Parameters
        ----------
        X : array-like of shape (n,)
            Losses of the given labels; those of missing labels may be NaN.
        y : array-like of shape (n,)
            Given labels; only which of them are missing matters.
        sample_weight : None
            Not supported: other values raise ``InvalidInputError``.

        Returns
        -------
        BetaLossMixture
            The fitted estimator.
        """
        refuse_sample_weight(self, sample_weight, "the method defines no weights of losses")
        max_iter = check_integer(self.max_iter, "max_iter", minimum=1)
        trim = check_real(self.trim, "trim", at_least=0, below=0.5)
        losses = check_losses(X)
        given = check_given_labels(y, len(losses), missing_label=self.missing_label)
        labeled = labeled_losses(losses, given.codes)

        self.classes_ = given.class_values
        self.label_distributions_: FloatArray | None = None
        self.confidence_ = np.full(len(losses), np.nan)
        if are_alike(labeled):
            mixture = BetaMixture(np.ones(2), np.ones(2), np.full(2, 0.5))
            confidence = np.full(len(labeled), 0.5)
        else:
            inner = _trimmed(labeled, trim)
            lowest, highest = float(inner.min()), float(inner.max())
            mixture = fit_beta_mixture(_inside_border(scale_to_unit(inner, lowest, highest)), max_iter)
            confidence = lower_posterior(mixture, _inside_border(scale_to_unit(labeled, lowest, highest)))
        self.alphas_, self.betas_, self.weights_ = mixture
        self.confidence_[given.codes != MISSING] = confidence
        return self


def fit_beta_mixture(values: FloatArray, n_steps: int) -> BetaMixture:
    """Fit two Beta distributions by expectation maximization with weighted moments.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Values strictly between 0 and 1.
    n_steps : int
        Number of EM steps.

    Returns
    -------
    BetaMixture
    """
    alphas, betas, weights = np.array([1.0, 2.0]), np.array([2.0, 1.0]), np.array([0.5, 0.5])
    for _ in range(n_steps):
        log_joint = np.log(weights) + _log_density(values[:, None], alphas, betas)  # (n, 2)
        responsibility = np.exp(log_joint - logsumexp(log_joint, axis=1, keepdims=True))
        responsibility = np.maximum(responsibility, LEAST_RESPONSIBILITY)
        total = responsibility.sum(axis=0)
        mean = responsibility.T @ values / total
        variance = (responsibility * (values[:, None] - mean) ** 2).sum(axis=0) / total
        # A Beta distribution has 0 < variance < mean (1 - mean); values on one or two points break this.
        largest = mean * (1 - mean)
        variance = np.clip(variance, np.minimum(LEAST_VARIANCE, largest / 2), largest * (1 - 1e-6))
        concentration = largest / variance - 1
        alphas, betas = mean * concentration, (1 - mean) * concentration
        weights = total / total.sum()
    low_first = np.argsort(alphas / (alphas + betas), kind="stable")
    return BetaMixture(alphas[low_first], betas[low_first], weights[low_first])


def lower_posterior(mixture: BetaMixture, values: FloatArray) -> FloatArray:
    """Compute the posterior of the lower component, made non-increasing in the values.

    Parameters
    ----------
    mixture : BetaMixture
        The fitted mixture.
    values : ndarray of shape (n,)
        Values strictly between 0 and 1.

    Returns
    -------
    ndarray of shape (n,)
    """
    alphas, betas, weights = mixture
    # The log ratio of upper to lower density is da log x + db log(1 - x) + constant: one extremum at most.
    da, db = alphas[1] - alphas[0], betas[1] - betas[0]
    if da > 0 and db > 0:
        values = np.minimum(values, da / (da + db))
    elif da < 0 and db < 0:
        values = np.maximum(values, da / (da + db))
    log_joint = np.log(weights) + _log_density(values[:, None], alphas, betas)
    posterior: FloatArray = expit(log_joint[:, 0] - log_joint[:, 1])
    return posterior


def _log_density(values: FloatArray, alphas: FloatArray, betas: FloatArray) -> FloatArray:
    log_density: FloatArray = (
        (alphas - 1) * np.log(values) + (betas - 1) * np.log1p(-values) - betaln(alphas, betas)
    )
    return log_density


def _trimmed(losses: FloatArray, trim: float) -> FloatArray:
    low, high = np.quantile(losses, [trim, 1 - trim])
    inner = losses[(losses >= low) & (losses <= high)]
    return losses if len(inner) == 0 or are_alike(inner) else inner


def _inside_border(scaled: FloatArray) -> FloatArray:
    return np.clip(scaled, BORDER, 1 - BORDER)
