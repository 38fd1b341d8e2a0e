"""All confidence estimators by the names that the command line and the benchmarks use."""

from __future__ import annotations

from typing import Any, Protocol

from laplaceconfidence.confidence.beta_mixture import BetaLossMixture
from laplaceconfidence.confidence.knn_vote import KNNVote
from laplaceconfidence.confidence.laplace import LaplaceConfidence
from laplaceconfidence.confidence.largest_component import LargestComponent
from laplaceconfidence.confidence.loss_mixture import GaussianLossMixture
from laplaceconfidence.confidence.noise_aware import NoiseAwareConfidence
from laplaceconfidence.confidence.normalized_margin import NormalizedMargin
from laplaceconfidence.confidence.protocol import ConfidenceEstimator, EvidenceKind
from laplaceconfidence.confidence.refined_cross_entropy import RefinedCrossEntropy
from laplaceconfidence.confidence.self_confidence import SelfConfidence


class EstimatorClass(Protocol):
    """The class of an estimator, which makes an estimator from its parameters."""

    @property
    def evidence(self) -> EvidenceKind:
        """What ``fit`` takes as ``X``."""

    def __call__(self, *args: Any, **settings: Any) -> ConfidenceEstimator: ...


ESTIMATORS: dict[str, EstimatorClass] = {
    "noise-aware": NoiseAwareConfidence,
    "laplace": LaplaceConfidence,
    "knn-vote": KNNVote,
    "gaussian-mixture": GaussianLossMixture,
    "beta-mixture": BetaLossMixture,
    "self-confidence": SelfConfidence,
    "normalized-margin": NormalizedMargin,
    "refined-cross-entropy": RefinedCrossEntropy,
    "largest-component": LargestComponent,
}
