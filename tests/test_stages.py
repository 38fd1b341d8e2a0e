from laplaceconfidence.stages import StageTimer, observing, stage


class Listener:
    def __init__(self) -> None:
        self.heard: list[tuple[object, ...]] = []

    def started(self, name: str, total: int | None) -> None:
        self.heard.append(("started", name, total))

    def advanced(self, name: str, amount: int) -> None:
        self.heard.append(("advanced", name, amount))

    def finished(self, name: str, seconds: float) -> None:
        self.heard.append(("finished", name, seconds >= 0))


def test_an_observer_hears_stages_inside_its_block_only() -> None:
    listener = Listener()
    with stage("before"):
        pass
    with observing(listener), stage("work", total=3) as advance:
        advance(2)
        advance(1)
    with stage("after"):
        pass
    assert listener.heard == [
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
    assert listener.heard[-1][0] == "finished"


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
