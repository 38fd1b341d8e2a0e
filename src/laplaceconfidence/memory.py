"""The memory that this process can still use, the most that it used in a block, and what it keeps."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

_CONTROL_GROUP = Path("/sys/fs/cgroup")
_MEMINFO = Path("/proc/meminfo")
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_RESET_PEAK = "5"
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of glibc's mallopt
_GLIBC_DEFAULT = 128 * 1024
_KEPT_BYTES, _KEPT_ARRAY_BYTES = 128 * 2**20, 32 * 2**20  # the latter is the most that glibc allows


def available_memory() -> int | None:
    """Return how many bytes this process can allocate without swapping, in a container within its limit.

    Returns
    -------
    int or None
        ``None`` where the system does not tell.
    """
    known = [number for number in (_of_the_machine(), _of_the_container()) if number is not None]
    return min(known, default=None)


def keep_freed_memory() -> Callable[[], None]:
    """Keep freed memory for the next arrays of this process, where its allocator is glibc's.

    Workers of Dask are started with ``MALLOC_TRIM_THRESHOLD_``, which also makes glibc fetch every array
    above 128 kB from the system and give it back at once: short tasks then spend most of their time on page
    faults.

    Returns
    -------
    callable
        Gives the memory back, and restores the thresholds of the environment or glibc's defaults.
    """
    try:
        libc = ctypes.CDLL(None)
        set_threshold, give_back = libc.mallopt, libc.malloc_trim
    except (OSError, TypeError, AttributeError):  # another allocator
        return lambda: None
    set_threshold(_M_MMAP_THRESHOLD, _KEPT_ARRAY_BYTES)
    set_threshold(_M_TRIM_THRESHOLD, _KEPT_BYTES)

    def restore() -> None:
        set_threshold(_M_MMAP_THRESHOLD, _bytes_of("MALLOC_MMAP_THRESHOLD_"))
        set_threshold(_M_TRIM_THRESHOLD, _bytes_of("MALLOC_TRIM_THRESHOLD_"))
        give_back(0)

    return restore


def _bytes_of(variable: str) -> int:
    value = os.environ.get(variable, "")
    return int(value) if value.isdigit() else _GLIBC_DEFAULT


def _of_the_machine() -> int | None:
    try:
        for line in _MEMINFO.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:  # not on Linux: all that is installed
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _of_the_container() -> int | None:
    try:
        limit = int((_CONTROL_GROUP / "memory.max").read_text(encoding="ascii"))  # "max" if there is none
        used = int((_CONTROL_GROUP / "memory.current").read_text(encoding="ascii"))
        lines = (_CONTROL_GROUP / "memory.stat").read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return None
    files = sum(int(line.split()[1]) for line in lines if line.startswith("inactive_file "))
    return max(0, limit - (used - files))  # cached files make room when memory is needed


@dataclass(slots=True)
class PeakMemory:
    """Measures the most memory that this process had in use inside of a ``with`` block.

    Attributes
    ----------
    bytes : int or None
        The memory, known after the block; ``None`` where the system does not tell.
    """

    bytes: int | None = None
    _is_reset: bool = False

    def __enter__(self) -> Self:
        try:
            _CLEAR.write_text(_RESET_PEAK, encoding="ascii")
            self._is_reset = True
        except OSError:  # not Linux, or not allowed
            self._is_reset = False
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._is_reset:
            return
        try:
            for line in _STATUS.read_text(encoding="ascii").splitlines():
                if line.startswith("VmHWM:"):
                    self.bytes = int(line.split()[1]) * 1024
        except (OSError, ValueError, IndexError):
            pass
