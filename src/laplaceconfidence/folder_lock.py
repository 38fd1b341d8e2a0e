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
    """An exclusive lock of a folder, held until ``close`` is called or the process ends.

    The folder is created if it does not exist.

    Parameters
    ----------
    folder : str or Path
        The folder to lock.

    Raises
    ------
    RunFolderError
        If another process holds the lock, or the folder cannot be used.
    """

    def __init__(self, folder: str | Path) -> None:
        self._descriptor: int | None = None
        path = Path(folder)
        try:
            path.mkdir(parents=True, exist_ok=True)
            if fcntl is not None:
                self._descriptor = os.open(path, os.O_RDONLY)
        except FileExistsError as error:
            raise RunFolderError(f"{path} must be a folder. There is a file of that name.") from error
        except OSError as error:
            raise RunFolderError(f"The folder {path} cannot be used: {error.strerror}.") from error
        give_up = time.monotonic() + PATIENCE
        while not self._has_claimed():
            if time.monotonic() >= give_up:
                self.close()
                raise RunFolderError(
                    f"Another process is writing into {path}. Wait for it, stop it, or choose another folder."
                )
            time.sleep(_PAUSE)

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

    def _has_claimed(self) -> bool:
        if self._descriptor is None:
            return True
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks
            return True
        return True
