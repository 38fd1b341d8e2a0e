"""The noise rate that some methods have to be told, estimated where it is not given.

A network that was trained on a label shows it in the features of that sample, right or wrong, after very few
rounds. So the plain phase trains on one half of the labels, and the rate is estimated on the other half.
"""

from __future__ import annotations

import numpy as np
import torch

from laplaceconfidence.arrays import IntArray
from laplaceconfidence.confidence.noise_aware import NoiseAwareConfidence
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.stages import LOGGER
from laplaceconfidence.training.methods.confidences import fit_on_features
from laplaceconfidence.training.methods.interface import Evidence, Plan, State
from laplaceconfidence.training.seeds import derived_seed

NOISE_RATE = "noise_rate"
"""Name of the estimate in the state of a method and in the measures of a plan."""

_HIGHEST = 0.99  # a method that leaves out this share still has something to train on


def plan_before_estimate(evidence: Evidence) -> Plan:
    """The plan of a plain phase before the noise rate is estimated: one half of the labeled samples.

    Parameters
    ----------
    evidence : Evidence
        What ``plan`` was given.

    Returns
    -------
    Plan
    """
    return Plan.over(halves(evidence)[0])


def estimated_noise_rate(setting: str, evidence: Evidence, state: State) -> float:
    """The share of wrong labels by the noise-aware audit of features of samples that were not trained on.

    It is estimated once, from the first evidence; later calls return the same number.

    Parameters
    ----------
    setting : str
        The setting of the method that would have given the rate, for the note in the log.
    evidence : Evidence
        Outputs of the networks after a phase with ``plan_before_estimate``.
    state : dict of str to Tensor
        The state of the method, in which the estimate is kept.

    Returns
    -------
    float
        The mean over the networks.
    """
    if NOISE_RATE not in state:
        held_out = halves(evidence)[1]
        rates = [
            float(fit_on_features(NoiseAwareConfidence(), evidence, network, held_out).noise_rate_)
            for network in evidence.networks
        ]
        rate = float(np.clip(np.mean(rates), 0, _HIGHEST))
        state[NOISE_RATE] = torch.tensor(rate, dtype=torch.float64)
        LOGGER.info(
            "The noise rate was not given: the noise-aware audit of the features of %d samples that were "
            "held out so far estimates %.1f%% wrong labels. Set '%s' if it is known.",
            len(held_out),
            100 * rate,
            setting,
        )
    return float(state[NOISE_RATE])


def halves(evidence: Evidence) -> tuple[IntArray, IntArray]:
    """Labeled samples that the plain phase trains on, and those it holds out; the same in every round."""
    labeled = np.flatnonzero(evidence.labels != MISSING)
    seed = derived_seed(evidence.problem.seed, "halves for the noise rate")
    order = np.random.default_rng(seed).permutation(labeled)
    middle = (len(order) + 1) // 2
    return np.sort(order[:middle]), np.sort(order[middle:])
