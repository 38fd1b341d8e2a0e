"""Progress of long computations.

Computations name their stages by ``with stage("neighbors"): ...``. Observers that were installed with
``observing(...)`` are notified; without one nothing happens. The library itself never prints.
``logging_stages`` installs an observer that writes to Python's log.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol


class StageObserver(Protocol):
    """An object that is notified when a stage starts, advances and finishes."""

    def started(self, name: str, total: int | None) -> None:
        """Called when a stage starts; ``total`` is the number of its steps, if known."""

    def advanced(self, name: str, amount: int) -> None:
        """Called when ``amount`` further steps of a stage are done."""

    def finished(self, name: str, seconds: float) -> None:
        """Called when a stage ends, also by an error; ``seconds`` is how long it took."""


LOGGER = logging.getLogger("laplaceconfidence")

_observers: ContextVar[tuple[StageObserver, ...]] = ContextVar("stage_observers", default=())


@contextmanager
def observing(observer: StageObserver) -> Iterator[None]:
    """Notify ``observer`` of every stage inside the block, in addition to the observers around it.

    Parameters
    ----------
    observer : StageObserver
        The observer.
    """
    token = _observers.set((*_observers.get(), observer))
    try:
        yield
    finally:
        _observers.reset(token)


@contextmanager
def stage(name: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Declare the block as a stage.

    Parameters
    ----------
    name : str
        Name of the stage.
    total : int or None, default=None
        Number of steps, if known.

    Yields
    ------
    callable
        To be called with the number of steps that were just done.
    """
    observers = _observers.get()

    def advance(amount: int) -> None:
        for observer in observers:
            observer.advanced(name, amount)

    for observer in observers:
        observer.started(name, total)
    start = time.perf_counter()
    try:
        yield advance
    finally:
        seconds = time.perf_counter() - start
        for observer in observers:
            observer.finished(name, seconds)


@dataclass(slots=True)
class StageTimer:
    """An observer that sums the seconds per stage.

    Attributes
    ----------
    seconds : dict of str to float
        Seconds per stage.
    """

    seconds: dict[str, float] = field(default_factory=dict)

    def started(self, name: str, total: int | None) -> None:
        """List the stage."""
        self.seconds.setdefault(name, 0.0)

    def advanced(self, name: str, amount: int) -> None:
        """Do nothing: the seconds are known at the end of a stage."""

    def finished(self, name: str, seconds: float) -> None:
        """Add the seconds of the stage."""
        self.seconds[name] += seconds


class StageLogger:
    """An observer that logs when a stage starts and how many seconds it took."""

    def started(self, name: str, total: int | None) -> None:
        """Log that the stage starts."""
        LOGGER.info("%s ...", name)

    def advanced(self, name: str, amount: int) -> None:
        """Do nothing: only start and end are logged."""

    def finished(self, name: str, seconds: float) -> None:
        """Log how long the stage took."""
        LOGGER.info("%s: %.2f s", name, seconds)


@contextmanager
def logging_stages(verbose: int) -> Iterator[None]:
    """Log every stage inside the block as INFO to the logger "laplaceconfidence".

    Parameters
    ----------
    verbose : int
        0 logs nothing.
    """
    if not verbose:
        yield
        return
    with showing_log(), observing(StageLogger()):
        yield


@contextmanager
def showing_log() -> Iterator[None]:
    """Show what is logged as INFO inside the block.

    If no handler of the logger "laplaceconfidence" or of its parents handles INFO, one that writes to
    ``sys.stderr`` is added. Logger and handlers are restored when the block ends.
    """
    level = LOGGER.level
    own: logging.Handler | None = None
    if not _has_handler_for_info():
        own = logging.StreamHandler(sys.stderr)
        own.setFormatter(logging.Formatter("%(message)s"))
        LOGGER.addHandler(own)
    if not LOGGER.isEnabledFor(logging.INFO):
        LOGGER.setLevel(logging.INFO)
    try:
        yield
    finally:
        LOGGER.setLevel(level)
        if own is not None:
            LOGGER.removeHandler(own)


def _has_handler_for_info() -> bool:
    logger: logging.Logger | None = LOGGER
    while logger is not None:
        for handler in logger.handlers:
            if handler.level <= logging.INFO and not isinstance(handler, logging.NullHandler):
                return True
        logger = logger.parent if logger.propagate else None
    return False
