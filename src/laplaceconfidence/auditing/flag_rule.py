"""Which labels an audit flags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.validation import check_real, must_be


@dataclass(frozen=True, slots=True)
class FlagRule:
    """Below a score, at an expected precision, or (neither given) where another class is more probable."""

    threshold: float | None = None
    target_precision: float | None = None

    def check(self, estimator: Any, name: str) -> None:
        """Raise if the rule cannot be applied to what this estimator says."""
        if self.threshold is not None:
            check_real(self.threshold, "threshold", at_least=0, at_most=1)
        if self.target_precision is None:
            return
        check_real(self.target_precision, "target_precision", above=0, below=1)
        if self.threshold is not None:
            raise must_be("target_precision", "left out where 'threshold' is given", self.target_precision)
        if not hasattr(estimator, "threshold_for"):
            rule = f"left out for {name!r}, whose scores are no calibrated probabilities"
            raise must_be("target_precision", rule, self.target_precision, "'noise-aware' has them.")

    def flagged(self, fitted: Any, scores: FloatArray, predicted: IntArray, given: IntArray) -> BoolArray:
        """(n,) which of the given labels are flagged."""
        if self.target_precision is not None:
            doubted = scores < fitted.threshold_for(precision=self.target_precision)
        else:
            doubted = predicted != given if self.threshold is None else scores < self.threshold
        flags: BoolArray = doubted & (given != MISSING)
        return flags
