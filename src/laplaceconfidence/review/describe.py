"""Samples, neighbors and progress as the page shows them: values for JSON."""

from __future__ import annotations

from typing import Any

import numpy as np

from laplaceconfidence.confidence.calibration import LogOddsCalibration
from laplaceconfidence.confidence.noise_aware.settings import FEWEST_AUDITED
from laplaceconfidence.data.identity import name_of
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.records.sample_arrays import Neighbor
from laplaceconfidence.records.thumbnails import Thumbnails
from laplaceconfidence.review.decisions import SHOWN_NEIGHBORS
from laplaceconfidence.review.estimates import ReviewProgress
from laplaceconfidence.review.session import ReviewSession

CHARACTERS_AT_ONCE = 5_000
CHARACTERS_ON_A_TILE = 160


class Describer:
    """Describes samples, neighbors and progress of a session.

    Parameters
    ----------
    session : ReviewSession
        The review.
    thumbnails : Thumbnails
        The pictures of its samples.
    """

    def __init__(self, session: ReviewSession, thumbnails: Thumbnails) -> None:
        self._session = session
        self._samples = session.samples
        self._has_pictures = thumbnails.are_pictures

    def tile(self, row: int, most_characters: int = CHARACTERS_ON_A_TILE) -> dict[str, Any]:
        """Describe a sample in short.

        Parameters
        ----------
        row : int
            Row of the sample.
        most_characters : int, default=160
            Characters of its text at most.

        Returns
        -------
        dict of str to object
            Values for JSON.
        """
        samples = self._samples
        decision = self._session.decision(row)
        return {
            "row": row,
            "id": str(samples.ids[row]),
            "name": name_of(str(samples.ids[row]), row),
            "given": samples.name(int(samples.given[row])),
            "suggested": samples.name(int(samples.offered[row])),
            "probability": _number(samples.offered_probability[row]),
            "confidence": _number(samples.confidence[row]),
            "picture": self._has_pictures,
            "text": self._text(row, most_characters),
            "version": decision.version if decision else 0,
            "verdict": decision.verdict if decision else None,
            "decided": None
            if decision is None or decision.verdict is None
            else {
                "label": None if decision.label is None else samples.name(decision.label),
                "who": decision.who,
                "at": decision.at,
            },
        }

    def sample(self, row: int, calibration: LogOddsCalibration | None) -> dict[str, Any]:
        """Describe a sample with its most probable classes and its neighbors.

        Parameters
        ----------
        row : int
            Row of the sample.
        calibration : LogOddsCalibration or None
            Calibration of the confidences, if there is one.

        Returns
        -------
        dict of str to object
            Values for JSON.
        """
        samples = self._samples
        calibrated = None
        if calibration is not None and samples.given[row] != MISSING:
            calibrated = _number(calibration(samples.confidence[row : row + 1])[0])
        text = self._text(row, CHARACTERS_AT_ONCE)
        return {
            **self.tile(row, CHARACTERS_AT_ONCE),
            "calibrated": calibrated,
            "n_characters": None if text is None else len(samples.sources[row]),  # type: ignore[index]
            "top": [
                {"name": samples.name(code), "probability": _number(p), "code": code}
                for code, p in samples.top_classes(row)
            ],
            "neighbors": [self._neighbor(found) for found in samples.neighbors(row, SHOWN_NEIGHBORS)],
        }

    def progress(self, progress: ReviewProgress) -> dict[str, Any]:
        """Describe the progress of the review.

        Parameters
        ----------
        progress : ReviewProgress
            Counts and estimates.

        Returns
        -------
        dict of str to object
            Values for JSON.
        """
        noise = progress.noise
        return {
            "n_suspects": progress.n_suspects,
            "n_suspects_decided": progress.n_suspects_decided,
            "by_verdict": progress.by_verdict,
            "n_ranked": progress.n_ranked,
            "n_ranked_decided": progress.n_ranked_decided,
            "n_left": progress.n_left,
            "expected_left": round(progress.expected_left, 1),
            "most_left": None if progress.most_left is None else round(progress.most_left, 1),
            "random": {
                "n": noise.n_verdicts,
                "wrong": noise.n_wrong,
                "rate": _number(noise.rate),
                "low": _number(noise.low),
                "high": _number(noise.high),
                "needed": FEWEST_AUDITED,
            },
            "calibrated": progress.calibration is not None,
        }

    def text_from(self, row: int, start: int) -> str:
        """Return a further part of a long text.

        Parameters
        ----------
        row : int
            Row of the sample.
        start : int
            Its first character.

        Returns
        -------
        str
        """
        sources = self._samples.sources
        return "" if sources is None else str(sources[row])[start : start + CHARACTERS_AT_ONCE]

    def _text(self, row: int, most: int) -> str | None:
        samples = self._samples
        if samples.sources is None or samples.run.record.source_kind != "text":
            return None
        return str(samples.sources[row])[:most]

    def _neighbor(self, neighbor: Neighbor) -> dict[str, Any]:
        return {
            **self.tile(neighbor.row),
            "similarity": _number(neighbor.similarity),
            "weight": _number(neighbor.weight),
            "position": neighbor.position,
        }


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
