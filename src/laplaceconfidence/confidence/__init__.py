"""Estimators of the probability that a given label is right, all with the same interface."""

from laplaceconfidence.confidence.beta_mixture import BetaLossMixture
from laplaceconfidence.confidence.knn_vote import KNNVote
from laplaceconfidence.confidence.laplace import LaplaceConfidence
from laplaceconfidence.confidence.largest_component import LargestComponent
from laplaceconfidence.confidence.loss_mixture import GaussianLossMixture
from laplaceconfidence.confidence.noise_aware import NoiseAwareConfidence
from laplaceconfidence.confidence.normalized_margin import NormalizedMargin
from laplaceconfidence.confidence.protocol import ConfidenceEstimator
from laplaceconfidence.confidence.refined_cross_entropy import RefinedCrossEntropy
from laplaceconfidence.confidence.self_confidence import SelfConfidence

__all__ = [
    "BetaLossMixture",
    "ConfidenceEstimator",
    "GaussianLossMixture",
    "KNNVote",
    "LaplaceConfidence",
    "LargestComponent",
    "NoiseAwareConfidence",
    "NormalizedMargin",
    "RefinedCrossEntropy",
    "SelfConfidence",
]
