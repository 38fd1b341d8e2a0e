"""Why a run ends before its last round: somebody asked for it, or it makes no sense to go on."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from laplaceconfidence.exceptions import LaplaceConfidenceError


class Interrupted(LaplaceConfidenceError):  # noqa: N818 (nothing went wrong)
    """A run was asked to stop and has saved where it was; the message says how to go on."""

    def __init__(self, round: int, folder: Path) -> None:
        super().__init__(
            f"Stopped in round {round + 1} as asked; everything so far is saved in {folder}. "
            "To go on, start the same run with the same settings and the same folder."
        )
        self.folder = folder


class TrainingStopped(LaplaceConfidenceError):  # noqa: N818 (as StopIteration)
    """Training cannot go on in a way that makes sense; the message says what to change."""


@dataclass(slots=True)
class StopRequest:
    """Whether the run was asked to stop."""

    pending: bool = False


@contextmanager
def stop_on_signals(active: bool = True) -> Iterator[StopRequest]:
    """Turn the first SIGINT or SIGTERM inside the block into a request; a second one acts at once.

    Does nothing outside the main thread, where Python allows no handlers.
    """
    request = StopRequest()
    if not active or threading.current_thread() is not threading.main_thread():
        yield request
        return

    def asked_to_stop(number: int, frame: FrameType | None) -> None:
        request.pending = True
        signal.signal(number, before[signal.Signals(number)])

    before = {number: signal.signal(number, asked_to_stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
