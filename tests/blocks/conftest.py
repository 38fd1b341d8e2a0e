"""Parts are small here and many: waiting for the disk after each would take most of the time."""

import pytest

from laplaceconfidence import files


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_flush_to_disk", lambda path: None)
