"""Pictures that are made before anybody asks for them, while the one before them is looked at."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress


class PicturesAhead:
    """Makes pictures in a thread of its own. Only the latest wish counts, so a jump elsewhere is quick."""

    def __init__(self, make: Callable[[int], object]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._wanted: list[int] = []
        self._works = False

    def want(self, rows: Iterable[int]) -> None:
        """Have the pictures of ``rows`` made, in this order, instead of what was wanted so far."""
        with self._lock:
            self._wanted = list(rows)
            if self._works or not self._wanted:
                return
            self._works = True
        threading.Thread(target=self._work, name="pictures ahead", daemon=True).start()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._wanted:
                    self._works = False
                    return
                row = self._wanted.pop(0)
            with suppress(OSError):  # whoever asks for this picture is told that it is gone
                self._make(row)
