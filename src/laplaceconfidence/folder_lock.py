"""One process at a time writes into a run's folder."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from laplaceconfidence.exceptions import RunFolderError

try:
    import fcntl
except ImportError:  # Windows cannot lock folders; two processes are the user's own care there
    fcntl = None  # type: ignore[assignment]

PATIENCE = 5.0  # seconds that a killed process's workers may need to end
_PAUSE = 0.1


class FolderLock:
    """Holds a folder, which is made if need be, until it is closed or the process ends, however it ends.

    Raises RunFolderError if another process holds it.
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
        """Let others write."""
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
