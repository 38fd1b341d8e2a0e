"""Measurement of confidence estimators: add noise to known labels, estimate, and compute metrics."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.auditing.fit_request import build_fit_request
from laplaceconfidence.confidence.registry import ESTIMATORS
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.evaluation.contenders import Contender
from laplaceconfidence.evaluation.estimate_times import EstimateTimer
from laplaceconfidence.evaluation.grid import Cell, Scores
from laplaceconfidence.evaluation.metrics import score_confidence
from laplaceconfidence.evaluation.noises import Noise
from laplaceconfidence.evaluation.out_of_fold import out_of_fold_probabilities
from laplaceconfidence.memory import PeakMemory
from laplaceconfidence.stages import observing, stage
from laplaceconfidence.validation import must_be

GIGABYTE = 1e9
Describe = Callable[[NoisyDataset, int], NoisyDataset]


def check_true_labels(dataset: NoisyDataset, noise: str) -> IntArray:
    """The true labels of a data set; an error if none are known, which is only possible without noise."""
    if dataset.true_labels is None:
        advice = "Name their column with --true-label, or add noise to the labels: symmetric:0.2."
        raise must_be("noise", "added if no true labels are known", noise, advice)
    return dataset.true_labels


@dataclass(slots=True, eq=False)
class _Shared:
    """The data of one noise and seed, shared by all estimators; probabilities are computed on first use."""

    dataset: NoisyDataset
    seed: int
    feature_seconds: float
    probability_seconds: float = 0.0
    _probabilities: FloatArray | None = None

    def probabilities(self) -> FloatArray:
        if self._probabilities is None:
            data, start = self.dataset, time.perf_counter()
            assert data.features is not None
            with stage("probabilities"):
                self._probabilities = out_of_fold_probabilities(
                    data.comparable(data.features), data.labels, data.n_classes, random_state=self.seed
                )
            self.probability_seconds = time.perf_counter() - start
        return self._probabilities


@dataclass(slots=True, eq=False)
class ConfidenceCells:
    """Measures the cells of confidence estimators on one data set, whose labels are assumed to be true.

    The seconds of a cell include those for features or probabilities, even if another cell computed them.

    Parameters
    ----------
    dataset : NoisyDataset
        The data set.
    mapping : mapping of str to str or None, default=None
        For asymmetric noise; see ``add_noise``.
    describe : callable or None, default=None
        Computes features of a data set that has none, from the data set with noisy labels and a seed.
    n_jobs : int or None, default=None
        Number of threads.
    contenders : mapping of (str, str) to Contender, optional
        Estimators with settings, by the name of the contender and the noise. A name that is not in it is
        that of an estimator.
    """

    dataset: NoisyDataset
    mapping: Mapping[str, str] | None = None
    describe: Describe | None = None
    n_jobs: int | None = None
    contenders: Mapping[tuple[str, str], Contender] = field(default_factory=dict)
    _shared: dict[tuple[str, int], _Shared] = field(default_factory=dict)

    def measure(self, cell: Cell) -> Scores:
        """Fit the estimator of a cell and return its metrics."""
        shared = self._shared_by(cell)
        contender = self.contenders.get((cell.contender, cell.noise))
        name, settings = (cell.contender, {}) if contender is None else (contender.kind, contender.settings)
        kind, data = ESTIMATORS[name], shared.dataset
        truth = check_true_labels(data, cell.noise)
        by_features = kind.evidence == "features"
        probabilities = None if by_features else shared.probabilities()
        request = build_fit_request(
            data,
            estimator=name,
            pred_probs=probabilities,
            random_state=cell.seed,
            settings={**({} if self.n_jobs is None else {"n_jobs": self.n_jobs}), **settings},
        )
        start = time.perf_counter()
        timer = EstimateTimer(len(data))
        with PeakMemory() as peak, observing(timer):
            confidence = request.fit().confidence_
        seconds = time.perf_counter() - start + shared.feature_seconds
        seconds += 0.0 if by_features else shared.probability_seconds
        known = (data.labels != MISSING) & (truth != MISSING)
        found = score_confidence(confidence[known], (data.labels == truth)[known]).as_dict()
        memory = {} if peak.bytes is None else {"peak_memory": peak.bytes / GIGABYTE}
        return {**found, "seconds": seconds, **timer.scores(shared.feature_seconds), **memory}

    def _shared_by(self, cell: Cell) -> _Shared:
        key = (cell.noise, cell.seed)
        if key not in self._shared:
            self._shared.clear()  # cells are ordered by noise and seed
            data = Noise.parse(cell.noise).add_to(self.dataset, cell.seed, self.mapping)
            check_true_labels(data, cell.noise)
            start = time.perf_counter()
            if data.features is None and self.describe is not None:
                data = self.describe(data, cell.seed)
            self._shared[key] = _Shared(data, cell.seed, time.perf_counter() - start)
        return self._shared[key]
