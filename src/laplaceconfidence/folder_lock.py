"""FolderLock: only one process at a time writes into the folder of a run."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from laplaceconfidence.exceptions import RunFolderError

try:
    import fcntl
except ImportError:  # not on Windows, where folders are not locked
    fcntl = None  # type: ignore[assignment]

PATIENCE = 5.0  # seconds; the workers of a killed process may need some time to end
_PAUSE = 0.1


class FolderLock:
    """A lock of a folder, held until ``close`` is called or the process ends.

    An exclusive lock creates the folder if it does not exist. If the folder is replaced while this lock is
    waited for, the new folder is locked.

    Parameters
    ----------
    folder : str or Path
        The folder to lock.
    shared : bool, default=False
        Whether other shared locks are allowed at the same time; an exclusive lock allows none.
    refusal : str, optional
        Message of the error if another process holds the lock.

    Raises
    ------
    RunFolderError
        If another process holds the lock, or the folder cannot be used.
    """

    def __init__(self, folder: str | Path, *, shared: bool = False, refusal: str | None = None) -> None:
        self._descriptor: int | None = None
        self._path = Path(folder)
        self._shared = shared
        give_up = time.monotonic() + PATIENCE
        self._open()
        while not self._has_claimed():
            if time.monotonic() >= give_up:
                self.close()
                raise RunFolderError(
                    refusal
                    or f"Another process is writing into {self._path}. Wait for it, stop it, or choose "
                    "another folder."
                )
            time.sleep(_PAUSE)
            if not self._is_current():
                self.close()
                self._open()

    def close(self) -> None:
        """Release the lock."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self) -> None:
        try:
            if not self._shared:
                self._path.mkdir(parents=True, exist_ok=True)
            if fcntl is not None:
                self._descriptor = os.open(self._path, os.O_RDONLY)
        except FileExistsError as error:
            raise RunFolderError(f"{self._path} must be a folder. There is a file of that name.") from error
        except OSError as error:
            raise RunFolderError(f"The folder {self._path} cannot be used: {error.strerror}.") from error

    def _has_claimed(self) -> bool:
        if self._descriptor is None:
            return True
        kind = fcntl.LOCK_SH if self._shared else fcntl.LOCK_EX
        try:
            fcntl.flock(self._descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks
            return True
        return self._is_current()

    def _is_current(self) -> bool:
        """Whether the opened folder is still the one of this name."""
        if self._descriptor is None:
            return True
        try:
            return os.path.samestat(os.fstat(self._descriptor), self._path.stat())
        except OSError:
            return False
