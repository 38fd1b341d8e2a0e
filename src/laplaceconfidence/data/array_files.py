"""Arrays in .npy and .npz files. Pickled objects are never loaded: unpickling can run any code."""

from __future__ import annotations

import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.exceptions import DataFormatError
from laplaceconfidence.validation import check_features, must_be

# What numpy, zipfile and zlib raise on damaged files; a damaged header may also request too much memory.
_DAMAGE = (
    ValueError,
    KeyError,
    EOFError,
    OSError,
    MemoryError,
    NotImplementedError,
    RuntimeError,
    SyntaxError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


class Archive:
    """The arrays of an open .npz file, loaded one at a time on request.

    Parameters
    ----------
    arrays : numpy.lib.npyio.NpzFile
        The open file.
    path : Path
        Its path, for error messages.

    Attributes
    ----------
    keys : list of str
        Names of the arrays.
    """

    def __init__(self, arrays: NpzFile, path: Path) -> None:
        self._arrays = arrays
        self._path = path
        self.keys: list[str] = list(arrays.files)

    def load(self, key: str) -> NDArray[Any]:
        """Load an array.

        Parameters
        ----------
        key : str
            Its name, one of ``keys``.

        Returns
        -------
        ndarray
        """
        with _reported(self._path):
            return np.asarray(self._arrays[key])


@contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """Open an .npz file for the duration of a ``with`` block.

    Parameters
    ----------
    path : Path
        The file.

    Yields
    ------
    Archive
    """
    with _opened(path) as file:
        arrays = _load(file, path)
        if not isinstance(arrays, NpzFile):
            raise DataFormatError(f"{path} is a single array under an .npz name: rename it to .npy.")
        with arrays:
            yield Archive(arrays, path)


def load_array(path: str | Path, parameter: str = "source") -> NDArray[Any]:
    """Load the array of an .npy file.

    Parameters
    ----------
    path : str or Path
        The file.
    parameter : str, default="source"
        Name of the parameter in error messages.

    Returns
    -------
    ndarray
    """
    path = Path(path)
    if not path.is_file():
        raise must_be(parameter, "a path to an existing file", str(path))
    with _opened(path) as file:
        array = _load(file, path)
    if isinstance(array, NpzFile):
        raise DataFormatError(f"{path} is an .npz archive under an .npy name: rename it to .npz.")
    return np.asarray(array)


def load_features(features: Any) -> FloatArray:
    """Load features from an .npy file, or check those that were passed.

    Parameters
    ----------
    features : str, Path or array-like of shape (n, d)
        A path to an .npy file, or feature vectors.

    Returns
    -------
    ndarray of shape (n, d)
    """
    if not isinstance(features, (str, Path)):
        return check_features(features)
    if Path(features).suffix.lower() != ".npy":
        raise must_be("features", "a path to an .npy file, or an array", str(features))
    return check_features(load_array(features, "features"))


def _opened(path: Path) -> IO[bytes]:
    with _reported(path):
        return path.open("rb")


def _load(file: IO[bytes], path: Path) -> Any:
    with _reported(path):
        return np.load(file, allow_pickle=False)


@contextmanager
def _reported(path: Path) -> Iterator[None]:
    """Turn the errors that damaged files cause into ``DataFormatError``, which names the file."""
    try:
        yield
    except _DAMAGE as error:
        reason = str(error)
        if "pickle" in reason or "Object arrays" in reason:
            raise DataFormatError(
                f"{path} holds pickled Python objects, which are never loaded because they can run code: "
                "save plain arrays, such as np.savez(path, features=X, labels=np.asarray(y, dtype=str))."
            ) from error
        raise DataFormatError(
            f"{path} cannot be read: it is empty, truncated, damaged or not a numpy file ({reason}). "
            "Copy or write it again."
        ) from error
