"""Which labels are right, from their losses: two Beta distributions, which fit skewed heaps."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import betaln, expit, logsumexp
from sklearn.base import BaseEstimator

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.confidence.given_labels import check_given_labels
from laplaceconfidence.confidence.losses import are_alike, check_losses, labeled_losses, scale_to_unit
from laplaceconfidence.confidence.protocol import Evidence
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.validation import check_integer, check_real

BORDER = 1e-4  # losses stay this far from 0 and 1, where Beta densities may be infinite or zero
LEAST_RESPONSIBILITY = 1e-12
LEAST_VARIANCE = 1e-6


class BetaMixture(NamedTuple):
    """Two Beta distributions and their shares, the one of the smaller mean first."""

    alphas: FloatArray  # (2,)
    betas: FloatArray  # (2,)
    weights: FloatArray  # (2,)


class BetaLossMixture(BaseEstimator):
    """Posterior of the lower of two Beta distributions fitted to the losses of the given labels.

    The mixture of Arazo et al., "Unsupervised Label Noise Modeling and Loss Correction" (2019): the losses
    between two percentiles are brought to [0, 1], and ten steps of expectation maximization, with weighted
    moments in place of the maximization, start from Beta(1, 2) and Beta(2, 1). Here the component of the
    smaller mean is the right one, wherever the steps led, and the confidence never rises with the loss:
    beyond the point where the ratio of the two densities turns round, it stays what it is there.

    Where all losses are alike nothing tells right from wrong, and every confidence is 0.5.

    Parameters
    ----------
    max_iter
        Steps of expectation maximization.
    trim
        Share of the losses left out at either end while fitting. Where nothing but equal losses would be
        left, none is left out.
    missing_label
        One more value of ``y`` that means "no label", besides ``None``, NaN and "".

    Attributes
    ----------
    confidence_ : (n,) array, NaN where the label is missing
    label_distributions_ : None, a loss says nothing about the other classes
    classes_ : the distinct labels, sorted
    alphas_, betas_, weights_ : (2,) arrays of the mixture on the scale [0, 1], the lower component first
    """

    evidence: ClassVar[Evidence] = "losses"
    neighborhood_: ClassVar[None] = None

    def __init__(self, *, max_iter: int = 10, trim: float = 0.05, missing_label: Any = None) -> None:
        self.max_iter = max_iter
        self.trim = trim
        self.missing_label = missing_label

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the mixture to the losses ``X`` (n,) of the given labels ``y`` (n,)."""
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
            inner = _without_ends(labeled, trim)
            lowest, highest = float(inner.min()), float(inner.max())
            mixture = fit_beta_mixture(_inside(scale_to_unit(inner, lowest, highest)), max_iter)
            confidence = lower_posterior(mixture, _inside(scale_to_unit(labeled, lowest, highest)))
        self.alphas_, self.betas_, self.weights_ = mixture
        self.confidence_[given.codes != MISSING] = confidence
        return self


def fit_beta_mixture(values: FloatArray, n_steps: int) -> BetaMixture:
    """Expectation maximization with weighted moments on values strictly between 0 and 1."""
    alphas, betas, weights = np.array([1.0, 2.0]), np.array([2.0, 1.0]), np.array([0.5, 0.5])
    for _ in range(n_steps):
        log_joint = np.log(weights) + _log_density(values[:, None], alphas, betas)  # (n, 2)
        responsibility = np.exp(log_joint - logsumexp(log_joint, axis=1, keepdims=True))
        responsibility = np.maximum(responsibility, LEAST_RESPONSIBILITY)
        total = responsibility.sum(axis=0)
        mean = responsibility.T @ values / total
        variance = (responsibility * (values[:, None] - mean) ** 2).sum(axis=0) / total
        # A Beta distribution has 0 < variance < mean (1 - mean); a heap on two points breaks either rule.
        largest = mean * (1 - mean)
        variance = np.clip(variance, np.minimum(LEAST_VARIANCE, largest / 2), largest * (1 - 1e-6))
        concentration = largest / variance - 1
        alphas, betas = mean * concentration, (1 - mean) * concentration
        weights = total / total.sum()
    low_first = np.argsort(alphas / (alphas + betas), kind="stable")
    return BetaMixture(alphas[low_first], betas[low_first], weights[low_first])


def lower_posterior(mixture: BetaMixture, values: FloatArray) -> FloatArray:
    """Posterior of the lower component at ``values``, made never to rise with them."""
    alphas, betas, weights = mixture
    # The log ratio of upper to lower density is da log x + db log(1 - x) + constant: it turns once at most.
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


def _without_ends(losses: FloatArray, trim: float) -> FloatArray:
    low, high = np.quantile(losses, [trim, 1 - trim])
    inner = losses[(losses >= low) & (losses <= high)]
    return losses if len(inner) == 0 or are_alike(inner) else inner


def _inside(scaled: FloatArray) -> FloatArray:
    return np.clip(scaled, BORDER, 1 - BORDER)
