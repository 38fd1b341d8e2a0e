"""A mixture of two Gaussians fitted to the losses: the one with the smaller mean models right labels."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.mixture import GaussianMixture

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.confidence.inputs import check_given_labels, refuse_sample_weight
from laplaceconfidence.confidence.losses import are_alike, check_losses, labeled_losses, scale_to_unit
from laplaceconfidence.confidence.protocol import EvidenceKind
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.validation import check_boolean, check_integer, check_random_state, check_real


class GaussianLossMixture(BaseEstimator):
    """Posterior of the lower of two Gaussians fitted to the losses of the given labels.

    Networks learn right labels first, so that early in training the losses of right and wrong labels form two
    clusters. The losses are scaled to [0, 1] and a mixture of two Gaussians is fitted by expectation
    maximization (EM); the confidence is the posterior probability of the component with the smaller mean. The
    default settings are those of DivideMix [1]_, which replaced the Beta mixture of [2]_ by Gaussians.

    If all losses are equal up to rounding, every confidence is 0.5.

    Parameters
    ----------
    max_iter : int, default=10
        Largest number of EM steps.
    tol : float, default=1e-2
        EM stops if the mean log-likelihood gains less than this.
    reg_covar : float, default=5e-4
        Added to the variances to keep them above zero.
    rescale : bool, default=True
        Whether the losses are scaled to [0, 1] first. ``False`` is for losses that were scaled before, such
        as means of scaled losses over several epochs.
    missing_label : object, default=None
        A value of ``y`` that means "no label", besides ``None``, NaN and the empty string.
    n_jobs : int or None, default=None
        Accepted because all estimators have it; it has no effect.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the k-means clustering that initializes the mixture.

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
    means_ : ndarray of shape (2,)
        Means of the components on the scale of the losses they were fitted to, the smaller one first.
    variances_ : ndarray of shape (2,)
        Variances of the components.
    weights_ : ndarray of shape (2,)
        Weights of the components.
    n_iter_ : int
        Number of EM steps.
    converged_ : bool
        Whether EM stopped because of ``tol``.

    References
    ----------
    .. [1] Li, Socher, Hoi, "DivideMix: Learning with Noisy Labels as Semi-supervised Learning", ICLR 2020.
    .. [2] Arazo, Ortego, Albert, O'Connor, McGuinness, "Unsupervised Label Noise Modeling and Loss
       Correction", ICML 2019.

    Examples
    --------
    >>> from laplaceconfidence import GaussianLossMixture
    >>> losses = [0.1, 0.2, 0.15, 2.9, 0.1, 3.1]
    >>> GaussianLossMixture(random_state=0).fit(losses, [0, 1, 0, 1, 0, 1]).confidence_.round(2)
    array([1., 1., 1., 0., 1., 0.])
    """

    evidence: ClassVar[EvidenceKind] = "losses"
    neighborhood_: ClassVar[None] = None

    def __init__(
        self,
        *,
        max_iter: int = 10,
        tol: float = 1e-2,
        reg_covar: float = 5e-4,
        rescale: bool = True,
        missing_label: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.reg_covar = reg_covar
        self.rescale = rescale
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
        GaussianLossMixture
            The fitted estimator.
        """
        refuse_sample_weight(self, sample_weight, "scikit-learn's GaussianMixture, which it fits, takes none")
        max_iter = check_integer(self.max_iter, "max_iter", minimum=1)
        tol = check_real(self.tol, "tol", at_least=0)
        reg_covar = check_real(self.reg_covar, "reg_covar", above=0)
        rescale = check_boolean(self.rescale, "rescale")
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

        scaled = (
            scale_to_unit(labeled, labeled.min(), labeled.max()) if rescale else labeled.astype(np.float64)
        )
        scaled = scaled[:, None]
        mixture = GaussianMixture(
            n_components=2, max_iter=max_iter, tol=tol, reg_covar=reg_covar, random_state=seed
        )
        # Sorted, so that the order of the samples does not change where k-means starts.
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
