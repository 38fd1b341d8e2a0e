"""Stopping a run before its last round on SIGINT or SIGTERM."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


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
