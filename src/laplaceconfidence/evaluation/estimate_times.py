"""How long the parts of a graph-based estimate take: features, search, graph, solve."""

from __future__ import annotations

from dataclasses import dataclass, field

from laplaceconfidence.evaluation.grid import Scores

PARTS = {
    "seconds_search": ("index", "neighbors"),
    "seconds_graph": ("affinity",),
    "seconds_solve": ("solve",),
}
"""The parts of an estimate by the name of their score, and the stages that they consist of."""

_FEATURES = "features"


@dataclass(slots=True, eq=False)
class EstimateTimer:
    """An observer of stages that sums the seconds of the parts of all estimates.

    Parameters
    ----------
    n_samples : int
        Number of samples whose confidences are estimated: a network that computes features of other samples,
        such as those of a test set, does not do it for an estimate.
    """

    n_samples: int
    _seconds: dict[str, float] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)
    _totals: dict[str, int | None] = field(default_factory=dict)

    def started(self, name: str, total: int | None) -> None:
        """Remember how many steps the stage has."""
        self._totals[name] = total

    def advanced(self, name: str, amount: int) -> None:
        """Do nothing: the seconds are known at the end of a stage."""

    def finished(self, name: str, seconds: float) -> None:
        """Add the seconds of the stage."""
        if name == _FEATURES and (total := self._totals.get(name)) is not None:
            if total != self.n_samples:
                return
            name = "outputs"  # of a network; the estimator's own preparation of features has no steps
        self._seconds[name] = self._seconds.get(name, 0.0) + seconds
        self._counts[name] = self._counts.get(name, 0) + 1

    def scores(self, further_feature_seconds: float = 0.0) -> Scores:
        """Mean seconds per estimate by part; empty if no graph was built.

        Parameters
        ----------
        further_feature_seconds : float, default=0
            Seconds for the features of one estimate that were spent before.

        Returns
        -------
        dict of str to float
        """
        n = self._counts.get("affinity", 0)
        if n == 0:
            return {}
        outputs = self._seconds.get("outputs", 0.0) / max(1, self._counts.get("outputs", 0))
        scores: Scores = {
            "seconds_features": self._seconds.get(_FEATURES, 0.0) / n + outputs + further_feature_seconds
        }
        for score, stages in PARTS.items():
            scores[score] = sum(self._seconds.get(name, 0.0) for name in stages) / n
        scores["seconds_estimate"] = sum(float(value or 0) for value in scores.values())
        return scores
