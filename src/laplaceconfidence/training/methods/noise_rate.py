"""The noise rate that some methods have to be told, estimated where it is not given."""

from __future__ import annotations

import numpy as np
import torch

from laplaceconfidence.confidence.noise_aware import NoiseAwareConfidence
from laplaceconfidence.stages import LOGGER
from laplaceconfidence.training.methods.confidences import fit_on_features
from laplaceconfidence.training.methods.interface import Evidence, State

NOISE_RATE = "noise_rate"
"""Name of the estimate in the state of a method and in the measures of a plan."""

_HIGHEST = 0.99  # a method that leaves out this share still has something to train on


def estimated_noise_rate(setting: str, evidence: Evidence, state: State) -> float:
    """The share of wrong labels by the noise-aware audit of the networks' features.

    It is estimated once, from the first evidence; later calls return the same number. Features that have
    begun to memorize wrong labels give too low a rate: the plain phase should be short.

    Parameters
    ----------
    setting : str
        The setting of the method that would have given the rate, for the note in the log.
    evidence : Evidence
        Outputs of the networks at the end of a plain phase: before wrong labels are memorized.
    state : dict of str to Tensor
        The state of the method, in which the estimate is kept.

    Returns
    -------
    float
        The mean over the networks.
    """
    if NOISE_RATE not in state:
        rates = [
            float(fit_on_features(NoiseAwareConfidence(), evidence, network).noise_rate_)
            for network in evidence.networks
        ]
        rate = float(np.clip(np.mean(rates), 0, _HIGHEST))
        state[NOISE_RATE] = torch.tensor(rate, dtype=torch.float64)
        LOGGER.info(
            "The noise rate was not given: the noise-aware audit of the features estimates %.1f%% wrong "
            "labels. Set '%s' if it is known.",
            100 * rate,
            setting,
        )
    return float(state[NOISE_RATE])
