"""Limits on the number of threads.

faiss, BLAS and torch each have an OpenMP thread pool of their own; together they would run more threads than
there are cores. Every expensive call therefore sets the number of threads it uses.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from laplaceconfidence.exceptions import InvalidInputError


def available_cores() -> int:
    """Return the number of cores this process may use, which may be fewer than the machine has.

    Returns
    -------
    int
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_count(n_jobs: int | None) -> int:
    """Convert ``n_jobs`` to a number of threads.

    Parameters
    ----------
    n_jobs : int or None
        ``None`` and -1 mean all cores, -2 all but one, and so on.

    Returns
    -------
    int
    """
    if n_jobs is None:
        return available_cores()
    if n_jobs == 0:
        raise InvalidInputError("The 'n_jobs' parameter must not be 0: None or -1 uses all cores. Got 0.")
    return n_jobs if n_jobs > 0 else max(1, available_cores() + 1 + n_jobs)


@contextmanager
def limited_threads(n_threads: int) -> Iterator[None]:
    """Limit faiss and BLAS to ``n_threads`` threads inside the block.

    Parameters
    ----------
    n_threads : int
        Number of threads.
    """
    import faiss
    from threadpoolctl import threadpool_limits

    before = faiss.omp_get_max_threads()
    with threadpool_limits(limits=n_threads):
        faiss.omp_set_num_threads(n_threads)
        try:
            yield
        finally:
            faiss.omp_set_num_threads(before)
