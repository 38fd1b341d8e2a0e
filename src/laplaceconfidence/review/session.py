"""One review: the audit, the decisions about it, and what they add up to."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray
from laplaceconfidence.confidence.calibration import LogOddsCalibration
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.records.audit_run import AuditRun
from laplaceconfidence.records.sample_arrays import SampleArrays
from laplaceconfidence.review.decisions import VERDICTS, Decision, Verdict, Wish, decided_label, says_wrong
from laplaceconfidence.review.estimates import (
    NoiseEstimate,
    RandomSample,
    calibration_from,
    noise_estimate,
    random_sample,
)
from laplaceconfidence.review.queues import Queues, Wanted
from laplaceconfidence.review.store import DecisionStore
from laplaceconfidence.validation import check_choice, check_integer, must_be

SHOWN_NEIGHBORS = 8


@dataclass(frozen=True, slots=True, eq=False)
class Progress:
    """How far a review is, and how many errors are expected to be left."""

    n_suspects: int
    n_suspects_decided: int
    by_verdict: dict[str, int]
    expected_left: float  # wrong labels among those that nobody has settled
    noise: NoiseEstimate
    calibration: LogOddsCalibration | None


@dataclass(frozen=True, slots=True, eq=False)
class Bulk:
    """Suggestions that could be taken all at once."""

    rows: IntArray
    fingerprint: str  # of the rows and their versions: what was previewed is what is stored


class ReviewSession:
    """Answers every question of the page and stores every decision. Safe to use from several threads."""

    def __init__(self, run: AuditRun) -> None:
        self.samples = SampleArrays.of(run)
        self.queues = Queues(self.samples)
        self.store = DecisionStore(run.folder, run.record)
        self._lock = threading.RLock()
        self._seen_version = -1
        self._decisions: dict[int, Decision] = {}
        self._verdict: IntArray = np.zeros(
            len(self.samples), dtype=np.int64
        )  # index into VERDICTS, if decided
        self._is_decided: BoolArray = np.zeros(len(self.samples), dtype=bool)
        self._said_wrong: FloatArray = np.full(len(self.samples), np.nan)
        self._in_random: BoolArray = np.zeros(len(self.samples), dtype=bool)
        self._sample_seen = b""
        self._calibration: LogOddsCalibration | None = None
        self._doubts: FloatArray = 1 - self.samples.confidence  # calibrated, by row
        self._refresh()

    def close(self) -> None:
        self.store.close()

    def decision(self, row: int) -> Decision | None:
        """The latest word on a sample, ``None`` where nobody ever decided."""
        with self._lock:
            self._refresh()
            return self._decisions.get(row)

    @property
    def is_decided(self) -> BoolArray:
        with self._lock:
            self._refresh()
            return self._is_decided.copy()

    def check_row(self, row: Any) -> int:
        return check_integer(row, "row", minimum=0, maximum=len(self.samples) - 1)

    def decide(
        self,
        row: int,
        verdict: str,
        *,
        label: int | None,
        expected_version: int,
        who: str,
        queue: str,
    ) -> Decision:
        """Store one decision; raises ``StaleDecisionError`` where somebody else was faster."""
        with self._lock:
            wish = self._wish(self.check_row(row), verdict, label, expected_version)
            return self._stored(self.store.decide([wish], who=who, queue=queue))[0]

    def undo(self, *, who: str) -> list[Decision]:
        with self._lock:
            return self._stored(self.store.undo(who=who))

    def bulk(self, given: int, suggested: int, min_probability: float) -> Bulk:
        """The undecided suspects of a pair whose suggestion has at least this probability, surest first."""
        samples = self.samples
        with self._lock:
            self._refresh()
            rows = self.queues.rows(Wanted(given=given, suggested=suggested), self._is_decided)
            rows = rows[samples.probability[rows] >= min_probability]
            rows = rows[np.argsort(-samples.probability[rows], kind="stable")]
            versions = np.array([self._version(int(row)) for row in rows], dtype=np.int64)
        seen = hashlib.sha256(rows.tobytes() + versions.tobytes()).hexdigest()
        return Bulk(rows, seen)

    def take_bulk(self, bulk: Bulk, *, who: str) -> list[Decision]:
        """Take every suggestion of ``bulk``, as one step that can be undone as one."""
        with self._lock:
            wishes = [self._wish(int(row), "suggestion", None, self._version(int(row))) for row in bulk.rows]
            return self._stored(self.store.decide(wishes, who=who, queue="bulk"))

    def decide_many(
        self, rows: list[tuple[int, int]], verdict: str, *, who: str, queue: str
    ) -> list[Decision]:
        """The same verdict on several samples, given as (row, expected version)."""
        with self._lock:
            if len({row for row, _ in rows}) != len(rows):
                raise must_be("rows", "different from each other", [row for row, _ in rows])
            wishes = [self._wish(self.check_row(row), verdict, None, version) for row, version in rows]
            return self._stored(self.store.decide(wishes, who=who, queue=queue))

    def progress(self) -> Progress:
        samples = self.samples
        with self._lock:
            self._refresh()
            sample = self._random_sample()
            self._calibrate(sample)
            unsettled = samples.is_labeled & np.isnan(self._said_wrong)
            counts = np.bincount(self._verdict[self._is_decided], minlength=len(VERDICTS))
            return Progress(
                n_suspects=len(samples.suspects),
                n_suspects_decided=int(self._is_decided[samples.suspects].sum()),
                by_verdict={str(verdict): int(n) for verdict, n in zip(VERDICTS, counts, strict=True)},
                expected_left=float(self._doubts[unsettled].sum()),
                noise=noise_estimate(sample.wrong),
                calibration=self._calibration,
            )

    def random_sample(self) -> RandomSample:
        """The verdicts that count as drawn at random."""
        with self._lock:
            self._refresh()
            return self._random_sample()

    def _random_sample(self) -> RandomSample:
        order = self.samples.random_order
        return random_sample(order, self._is_decided, self._said_wrong, self._in_random)

    def _calibrate(self, sample: RandomSample) -> None:
        """Correct the doubts by what the random sample says, if it has changed."""
        seen = sample.rows.tobytes() + sample.wrong.tobytes()
        if seen == self._sample_seen:
            return
        stored = self.samples.confidence
        self._sample_seen = seen
        self._calibration = calibration_from(sample, stored)
        self._doubts = 1 - (stored if self._calibration is None else self._calibration(stored))

    def _wish(self, row: int, verdict: str, label: int | None, expected_version: int) -> Wish:
        said: Verdict = check_choice(verdict, "verdict", VERDICTS)  # type: ignore[assignment]
        samples = self.samples
        if said == "other":
            check_integer(label, "label", minimum=0, maximum=len(samples.class_names) - 1)
        elif label is not None:
            raise must_be("label", "left out for every verdict but 'other'", label)
        given, suggested = int(samples.given[row]), int(samples.suggested[row])
        if said == "other" and label in (given, suggested):  # picked from the list, and yet not another one
            said, label = ("keep" if label == given else "suggestion"), None
        if said == "suggestion" and suggested == given:  # nothing is wrong with the given label
            said = "keep"
        confidence = float(samples.confidence[row])
        shown = {
            "given": samples.name(given),
            "suggested": samples.name(suggested),
            "probability": round(float(samples.probability[row]), 6),
            "confidence": None if np.isnan(confidence) else round(confidence, 6),
            "neighbors": [n.row for n in samples.neighbors(row, SHOWN_NEIGHBORS)],
        }
        code = decided_label(said, given=given, suggested=suggested, other=label)
        return Wish(row, str(samples.ids[row]), expected_version, said, code, shown)

    def _version(self, row: int) -> int:
        known = self._decisions.get(row)
        return known.version if known else 0

    def _stored(self, made: list[Decision]) -> list[Decision]:
        for decision in made:
            self._remember(decision)
        return made

    def _refresh(self) -> None:
        """Read all decisions again where another process has written some."""
        version = self.store.data_version()
        if version != self._seen_version:
            for decision in self.store.all():
                self._remember(decision)
            self._seen_version = version

    def _remember(self, decision: Decision) -> None:
        row = decision.row
        self._decisions[row] = decision
        self._is_decided[row] = decision.verdict is not None
        if decision.verdict is not None:
            self._verdict[row] = VERDICTS.index(decision.verdict)
        wrong = says_wrong(decision.verdict)
        has_label = self.samples.given[row] != MISSING
        self._said_wrong[row] = np.nan if wrong is None or not has_label else float(wrong)
        self._in_random[row] = decision.queue == "random" and decision.verdict is not None
