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
from laplaceconfidence.review.copies import SHOWN_COPIES
from laplaceconfidence.review.decisions import SHOWN_NEIGHBORS, Subject
from laplaceconfidence.review.estimates import ReviewProgress
from laplaceconfidence.review.session import ReviewSession

CHARACTERS_AT_ONCE = 5_000
CHARACTERS_ON_A_TILE = 160
CHARACTERS_OF_A_COPY = 1_000
SHOWN_ANNOTATORS = 30


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
        self._by_evidence_alone = session.samples.run.record.suggests_by_evidence_alone

    def tile(
        self, row: int, most_characters: int = CHARACTERS_ON_A_TILE, subject: Subject = "label"
    ) -> dict[str, Any]:
        """Describe a sample in short.

        Parameters
        ----------
        row : int
            Row of the sample.
        most_characters : int, default=160
            Characters of its text at most.
        subject : {"label", "copies", "leaks"}, default="label"
            The decision that is described.

        Returns
        -------
        dict of str to object
            Values for JSON.
        """
        samples = self._samples
        decision = self._session.decision(row, subject)
        dropped = self._session.dropped_by(row)
        return {
            "row": row,
            "id": str(samples.ids[row]),
            "name": name_of(str(samples.ids[row]), row),
            "given": samples.name(int(samples.given[row])),
            "suggested": samples.name(int(samples.offered[row])),
            "probability": _number(samples.offered_probability[row]),
            "confidence": None if self._by_evidence_alone else _number(samples.confidence[row]),
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
            "dropped_by": None
            if dropped is None
            else {"subject": dropped.subject, "verdict": dropped.verdict, "who": dropped.who},
        }

    def sample(
        self, row: int, calibration: LogOddsCalibration | None, subject: Subject = "label"
    ) -> dict[str, Any]:
        """Describe a sample with its most probable classes and its neighbors.

        Parameters
        ----------
        row : int
            Row of the sample.
        calibration : LogOddsCalibration or None
            Calibration of the confidences, if there is one.
        subject : {"label", "copies", "leaks"}, default="label"
            The decision that is described.

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
        for_suggested, for_given = samples.words(row)
        return {
            **self.tile(row, CHARACTERS_AT_ONCE, subject),
            "calibrated": calibrated,
            "n_characters": None if text is None else len(samples.sources[row]),  # type: ignore[index]
            "top": [
                {"name": samples.name(code), "probability": _number(p), "code": code}
                for code, p in samples.top_classes(row)
            ],
            "words": {"suggested": for_suggested, "given": for_given},
            "neighbors": [self._neighbor(found) for found in samples.neighbors(row, SHOWN_NEIGHBORS)],
            "leak": self._leak(row),
            "annotators": self._annotators(row),
            "image_issues": self._session.issues.image_issues(row),
            "missing_values": self._session.issues.missing_values(row),
        }

    def copies(self, row: int) -> dict[str, Any]:
        """Describe a sample and its copies.

        Parameters
        ----------
        row : int
            Row of one of them.

        Returns
        -------
        dict of str to object
            Values for JSON; ``row`` is the first of them, which stands for all.
        """
        found, samples = self._session.copies(row), self._samples
        rows = found.rows
        given = samples.given[rows]
        best = self._session.best_copy(rows)
        shown = rows[:SHOWN_COPIES].tolist()
        if best is not None and best not in shown:
            shown[-1] = best
        return {
            "row": int(rows[0]),
            "picture": self._has_pictures,
            "text": self._text(int(rows[0]), CHARACTERS_OF_A_COPY),
            "copies": [
                {**self.tile(one, CHARACTERS_OF_A_COPY, "copies"), "leak": self._leak(one)} for one in shown
            ],
            "n_copies": len(rows),
            "n_conflicting": len(np.unique(given[given != MISSING])),
            "best": best,
            "fingerprint": found.fingerprint,
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
            "other_issues": progress.other_issues,
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

    def _annotators(self, row: int) -> dict[str, Any] | None:
        """Who said what about a sample, and whom to ask next; None without several annotators."""
        tables = self._samples.run.annotation
        if tables is None:
            return None
        said = tables.of_sample(row)
        asked = self._samples.run.issues["ask_annotator"].get(row)
        return {
            "said": said[:SHOWN_ANNOTATORS],
            "n_more": max(0, len(said) - SHOWN_ANNOTATORS),
            "ask": asked if isinstance(asked, str) else None,
        }

    def _leak(self, row: int) -> dict[str, Any] | None:
        """The sample of the test set that a sample is a copy of."""
        found = self._session.issues.leak(row)
        if found is None:
            return None
        text = None if found.text is None else found.text[:CHARACTERS_AT_ONCE]
        return {"id": found.id, "label": found.label, "text": text, "picture": found.path is not None}

    def _neighbor(self, neighbor: Neighbor) -> dict[str, Any]:
        return {
            **self.tile(neighbor.row),
            "similarity": _number(neighbor.similarity),
            "weight": _number(neighbor.weight),
            "position": neighbor.position,
        }


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
