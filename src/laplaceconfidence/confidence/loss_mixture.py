"""Which labels are right, from their losses: two Gaussians, the one of the small losses is right."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.mixture import GaussianMixture

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.confidence.given_labels import check_given_labels
from laplaceconfidence.confidence.losses import are_alike, check_losses, labeled_losses, scale_to_unit
from laplaceconfidence.confidence.protocol import Evidence
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.validation import check_integer, check_random_state, check_real


class GaussianLossMixture(BaseEstimator):
    """Posterior of the lower of two Gaussians fitted to the losses of the given labels.

    Networks learn right labels first, so that for a while the losses of right and wrong labels form two
    heaps. The losses are brought to [0, 1] and a mixture of two Gaussians is fitted by expectation
    maximization. The default settings are those of DivideMix (Li, Socher, Hoi, 2020), which took the idea
    from the Beta mixture of Arazo et al. (2019).

    Where all losses are alike nothing tells right from wrong, and every confidence is 0.5.

    Parameters
    ----------
    max_iter, tol, reg_covar
        Most EM steps, the gain in mean log-likelihood below which they end, and what is added to the
        variances to keep them from vanishing.
    random_state
        Seed of the k-means that starts the mixture.
    missing_label
        One more value of ``y`` that means "no label", besides ``None``, NaN and "".

    Attributes
    ----------
    confidence_ : (n,) array, NaN where the label is missing
    label_distributions_ : None, a loss says nothing about the other classes
    classes_ : the distinct labels, sorted
    means_, variances_, weights_ : (2,) arrays of the mixture on the scale [0, 1], the lower component first
    n_iter_, converged_ : EM steps made, and whether they ended by ``tol``
    """

    evidence: ClassVar[Evidence] = "losses"
    neighborhood_: ClassVar[None] = None

    def __init__(
        self,
        *,
        max_iter: int = 10,
        tol: float = 1e-2,
        reg_covar: float = 5e-4,
        random_state: Any = None,
        missing_label: Any = None,
    ) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.reg_covar = reg_covar
        self.random_state = random_state
        self.missing_label = missing_label

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the mixture to the losses ``X`` (n,) of the given labels ``y`` (n,)."""
        max_iter = check_integer(self.max_iter, "max_iter", minimum=1)
        tol = check_real(self.tol, "tol", at_least=0)
        reg_covar = check_real(self.reg_covar, "reg_covar", above=0)
        seed = int(check_random_state(self.random_state).integers(2**31 - 1))
        losses = check_losses(X)
        given = check_given_labels(y, len(losses), missing_label=self.missing_label)
        labeled = labeled_losses(losses, given.codes)

        self.classes_ = given.class_values
        self.label_distributions_: FloatArray | None = None
        self.confidence_ = np.full(len(losses), np.nan)
        if are_alike(labeled):
            self._keep(np.zeros(2), np.full(2, reg_covar), np.full(2, 0.5), n_iter=0, converged=True)
            self.confidence_[given.codes != MISSING] = 0.5
            return self

        scaled = scale_to_unit(labeled, labeled.min(), labeled.max())[:, None]
        mixture = GaussianMixture(
            n_components=2, max_iter=max_iter, tol=tol, reg_covar=reg_covar, random_state=seed
        )
        # In order of size, so that the order of the samples has no say in where k-means starts.
        mixture.fit(np.sort(scaled, axis=0))
        low_first = np.argsort(mixture.means_[:, 0], kind="stable")
        self._keep(
            mixture.means_[low_first, 0],
            mixture.covariances_[low_first, 0, 0],
            mixture.weights_[low_first],
            n_iter=mixture.n_iter_,
            converged=mixture.converged_,
        )
        self.confidence_[given.codes != MISSING] = mixture.predict_proba(scaled)[:, low_first[0]]
        return self

    def _keep(
        self, means: FloatArray, variances: FloatArray, weights: FloatArray, *, n_iter: int, converged: bool
    ) -> None:
        self.means_, self.variances_, self.weights_ = means, variances, weights
        self.n_iter_, self.converged_ = n_iter, converged
