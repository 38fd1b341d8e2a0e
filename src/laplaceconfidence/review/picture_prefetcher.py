"""Pictures made in advance, while the reviewer looks at another sample."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress


class PicturePrefetcher:
    """Makes pictures in a thread before they are requested.

    Parameters
    ----------
    make : callable of int
        Makes the picture of a row.
    """

    def __init__(self, make: Callable[[int], object]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._rows: list[int] = []
        self._is_running = False

    def prefetch(self, rows: Iterable[int]) -> None:
        """Make pictures in the background; those requested before and not made yet are dropped.

        Parameters
        ----------
        rows : iterable of int
            Rows of the samples, the next one first.
        """
        with self._lock:
            self._rows = list(rows)
            if self._is_running or not self._rows:
                return
            self._is_running = True
        threading.Thread(target=self._run, name="picture prefetcher", daemon=True).start()

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._rows:
                    self._is_running = False
                    return
                row = self._rows.pop(0)
            with suppress(OSError):  # the request for this picture reports that it is missing
                self._make(row)
