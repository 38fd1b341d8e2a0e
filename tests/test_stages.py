import io
import logging
import re

import pytest

from laplaceconfidence.stages import StageTimer, logging_stages, observing, stage


class Listener:
    def __init__(self) -> None:
        self.received: list[tuple[object, ...]] = []

    def started(self, name: str, total: int | None) -> None:
        self.received.append(("started", name, total))

    def advanced(self, name: str, amount: int) -> None:
        self.received.append(("advanced", name, amount))

    def finished(self, name: str, seconds: float) -> None:
        self.received.append(("finished", name, seconds >= 0))


def test_an_observer_hears_stages_inside_its_block_only() -> None:
    listener = Listener()
    with stage("before"):
        pass
    with observing(listener), stage("work", total=3) as advance:
        advance(2)
        advance(1)
    with stage("after"):
        pass
    assert listener.received == [
        ("started", "work", 3),
        ("advanced", "work", 2),
        ("advanced", "work", 1),
        ("finished", "work", True),
    ]


def test_a_stage_ends_even_if_its_work_fails() -> None:
    listener = Listener()
    try:
        with observing(listener), stage("work"):
            raise RuntimeError
    except RuntimeError:
        pass
    assert listener.received[-1][0] == "finished"


def test_observers_nest_and_timers_add_up() -> None:
    outer, inner = StageTimer(), StageTimer()
    with observing(outer):
        with stage("a"):
            pass
        with observing(inner), stage("a"), stage("b"):
            pass
    assert set(outer.seconds) == {"a", "b"}
    assert set(inner.seconds) == {"a", "b"}
    assert outer.seconds["a"] >= inner.seconds["a"]


def bare_logger(monkeypatch: pytest.MonkeyPatch) -> logging.Logger:
    """Our logger as it is in a process that has not set up logging (pytest has)."""
    logger = logging.getLogger("laplaceconfidence")
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr(logging.getLogger(), "level", logging.WARNING)
    monkeypatch.setattr(logger, "handlers", [])
    return logger


def test_a_log_that_nobody_would_see_goes_to_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    logger = bare_logger(monkeypatch)
    with logging_stages(0), stage("silent"):
        pass
    with logging_stages(1), stage("work"):
        pass
    shown = capsys.readouterr()
    assert shown.out == ""
    assert re.fullmatch(r"work \.\.\.\nwork: \d+\.\d\d s\n", shown.err)
    assert logger.handlers == []
    assert logger.level == logging.NOTSET


def test_handlers_that_were_set_up_are_used(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    logger = bare_logger(monkeypatch)
    written = io.StringIO()
    logging.getLogger().addHandler(logging.StreamHandler(written))
    with logging_stages(1), stage("work"):
        pass
    assert written.getvalue().startswith("work ...\nwork: ")
    assert capsys.readouterr().err == ""
    assert not logger.isEnabledFor(logging.INFO)
