"""The default estimator, which models the noise; ``docs/concepts/noise-aware.md`` has the formulas."""

from laplaceconfidence.confidence.noise_aware.estimator import NoiseAwareConfidence

__all__ = ["NoiseAwareConfidence"]
