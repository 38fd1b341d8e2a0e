"""Safe reader of the pickled batches of CIFAR.

Unpickling can run arbitrary code. This unpickler builds only numbers, strings, lists and dicts; numpy arrays
are built by replacement classes that check the bytes and call nothing else; all other classes raise an error.
"""

from __future__ import annotations

import pickle
import re
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.exceptions import DataFormatError

_NUMBER_TYPE = re.compile(r"[iuf][1248]")

# What the unpickler raises on damaged bytes.
_DAMAGE = (
    pickle.UnpicklingError,
    EOFError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    OverflowError,
    MemoryError,
)


def load_batch(file: IO[bytes], name: str) -> dict[str, Any]:
    """Load the dict of a pickled CIFAR batch or meta file.

    Parameters
    ----------
    file : binary file
        The pickle.
    name : str
        Name of the file in error messages.

    Returns
    -------
    dict of str to object
        Strings, lists of numbers or strings, and arrays.
    """
    try:
        batch = _BatchUnpickler(file, encoding="bytes").load()
    except DataFormatError as error:
        raise DataFormatError(f"{name} {error}") from error
    except _DAMAGE as error:
        raise DataFormatError(
            f"{name} is truncated, damaged or not a CIFAR batch ({error}): download it again."
        ) from error
    if not isinstance(batch, dict):
        found = type(batch).__name__
        raise DataFormatError(f"{name} must hold a dict, as CIFAR's batches do; it holds a {found}.")
    return {_text(key): _plain(value, name) for key, value in batch.items()}


class _DtypeReplacement:
    """Replacement of numpy.dtype: stores its arguments and the byte order."""

    def __init__(self, kind: Any, *_: Any) -> None:
        self._kind = _text(kind)
        self._order = "="

    def __setstate__(self, state: Any) -> None:
        self._order = _text(state[1])

    def dtype(self) -> np.dtype[Any]:
        if not _NUMBER_TYPE.fullmatch(self._kind) or self._order not in ("<", ">", "|", "="):
            raise DataFormatError(
                f"holds an array of type {self._kind!r}; only numbers are read, never objects."
            )
        return np.dtype(self._order + self._kind)


class _ArrayReplacement:
    """Replacement of an array: stores its state (version, shape, dtype, Fortran order, bytes)."""

    def __init__(self) -> None:
        self._state: tuple[Any, ...] = ()

    def __setstate__(self, state: Any) -> None:
        self._state = state

    def array(self) -> NDArray[Any]:
        complete = isinstance(self._state, tuple) and len(self._state) == 5
        if not complete or not isinstance(self._state[2], _DtypeReplacement):
            raise DataFormatError("holds an array that is not complete: download it again.")
        _, shape, dtype, fortran, content = self._state
        if not isinstance(content, bytes):
            raise DataFormatError("holds an array of objects; only numbers are read.")
        try:
            array = np.frombuffer(content, dtype.dtype()).reshape(shape, order="F" if fortran else "C")
        except (ValueError, TypeError) as error:
            raise DataFormatError(f"holds an array whose size does not fit its bytes ({error}).") from error
        return array


def _reconstruct(subtype: Any, *_: Any) -> _ArrayReplacement:
    if subtype is not _ArrayReplacement:
        raise DataFormatError("contains an array of an unknown kind, which is not loaded.")
    return _ArrayReplacement()


def _encode(text: Any, encoding: Any = "latin1") -> bytes:
    """Replacement of ``_codecs.encode``, which newer Pythons use for bytes in old pickle protocols."""
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise DataFormatError("uses an unusual encoding, which is not loaded.")
    return text.encode("latin1")


_ALLOWED = {
    ("numpy", "ndarray"): _ArrayReplacement,
    ("numpy", "dtype"): _DtypeReplacement,
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("_codecs", "encode"): _encode,
}


class _BatchUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise DataFormatError(
                f"refers to {module}.{name}, which no CIFAR batch needs and which could run code: "
                "it was not loaded. Download the file from its publisher."
            )
        return _ALLOWED[module, name]

    def persistent_load(self, pid: Any) -> Any:
        raise DataFormatError("refers to objects outside of the file, which are not loaded.")


def _text(value: Any) -> str:
    return value.decode("latin1") if isinstance(value, bytes) else str(value)


def _plain(value: Any, name: str) -> Any:
    try:
        if isinstance(value, _ArrayReplacement):
            return value.array()
    except DataFormatError as error:
        raise DataFormatError(f"{name} {error}") from error
    if isinstance(value, list):
        return [_text(item) if isinstance(item, bytes) else item for item in value]
    return _text(value) if isinstance(value, bytes) else value
