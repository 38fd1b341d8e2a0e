"""Blocks that a process keeps in memory between tasks, up to a number of bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any

_kept: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
_lock = Lock()
_limit = 256 * 2**20  # bytes; a plan sets its own


def limit_cache(n_bytes: int) -> None:
    """Set how many bytes of blocks this process keeps, and forget those that are kept.

    Parameters
    ----------
    n_bytes : int
        Number of bytes.
    """
    global _limit
    with _lock:
        _limit = n_bytes
        _kept.clear()


def cached(key: Hashable, load: Callable[..., tuple[Any, int]], *arguments: Any) -> Any:
    """Return a block that is kept, or load it.

    Parameters
    ----------
    key : hashable
        Names the block.
    load : callable
        Returns the block and its bytes.
    *arguments : object
        Arguments of ``load``.

    Returns
    -------
    object
        Not to be changed.
    """
    with _lock:
        if key in _kept:
            _kept.move_to_end(key)
            return _kept[key][0]
    value, n_bytes = load(*arguments)
    with _lock:
        _kept[key] = (value, n_bytes)
        while len(_kept) > 1 and sum(size for _, size in _kept.values()) > _limit:
            _kept.popitem(last=False)
        if n_bytes > _limit:
            _kept.pop(key, None)
    return value
