"""The last word on every label: small classes lean on the others where noise was found, verified labels
correct all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray
from laplaceconfidence.confidence.calibration import (
    LogOddsCalibration,
    fit_calibration_of_both,
    is_rare,
    shrunk_by_class,
)
from laplaceconfidence.confidence.noise_reading import Reading
from laplaceconfidence.data.labels import MISSING

FEWEST_AUDITED = 50  # verified labels from which the rest is calibrated


@dataclass(frozen=True, slots=True)
class Verdict:
    """What goes with the confidences that were written into the reading."""

    cautious: FloatArray  # (rows,)
    noise_rate: float
    bracket: tuple[float, float]
    identifiable: bool
    calibration: LogOddsCalibration | None


def calibrate_reading(
    reading: Reading,
    cautious: FloatArray,
    given: IntArray,
    verified: IntArray | None,
    n_classes: int,
    *,
    fallback: bool,
    at_random: BoolArray | None = None,
) -> Verdict:
    """Write calibrated confidences into ``reading``; ``cautious`` ones follow the same way.

    Where the data could not even support a pool (``fallback``), no label may be wrong for all we know. Only
    verified labels ``at_random`` say how right the others are; ``None`` means that all of them do.
    """
    low, high = reading.bracket
    low = 0.0 if fallback else low
    identifiable = reading.identifiable and not fallback
    codes = given[reading.rows]
    if identifiable:
        reading.replace_confidence(shrunk_by_class(reading.confidence, codes, n_classes))
        cautious = shrunk_by_class(cautious, codes, n_classes)
    else:
        # At the optimistic end confidences are near 1, the mean of a class hangs on its one or two worst
        # labels, and to draw it to the others' would only spoil the ranking: but for classes so rare that
        # the evidence hardly knows them, whose labels would all come first.
        shrunk = shrunk_by_class(reading.confidence, codes, n_classes)
        rare = is_rare(codes, n_classes)[codes]
        reading.replace_confidence(np.where(rare, shrunk, reading.confidence))
        cautious = reading.confidence
    calibration = None
    if verified is not None:
        known = verified[reading.rows] != MISSING
        right = verified[reading.rows] == codes
        drawn = known if at_random is None else known & at_random[reading.rows]
        if (n_drawn := int(drawn.sum())) >= FEWEST_AUDITED:
            calibration = fit_calibration_of_both(
                reading.confidence[drawn], reading.support[drawn], right[drawn], trusted=identifiable
            )
            reading.replace_confidence(calibration(reading.confidence, reading.support))
            cautious = calibration(cautious, reading.support)
            rate = 1 - float(reading.confidence.mean())
            error = 2 * float(np.sqrt(max(rate * (1 - rate), 1 / n_drawn) / n_drawn))
            low, high = max(0.0, rate - error), min(1.0, rate + error)
            identifiable = True
        certain = reading.confidence.copy()
        certain[known] = cautious[known] = right[known]
        reading.replace_confidence(certain)
    rate = 1 - float(reading.confidence.mean())
    return Verdict(cautious, rate, (min(low, rate), max(high, rate)), identifiable, calibration)
