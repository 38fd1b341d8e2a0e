"""How many threads a heavy call may use.

faiss, BLAS and torch each bring an OpenMP pool of their own; left alone they over-subscribe the machine.
Every heavy call therefore says how many threads it takes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from laplaceconfidence.exceptions import InvalidInputError


def available_cores() -> int:
    """Cores this process may run on (a container may allow fewer than the machine has)."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_count(n_jobs: int | None) -> int:
    """Threads that ``n_jobs`` asks for: ``None`` and -1 mean every core, -2 all but one, and so on."""
    if n_jobs is None:
        return available_cores()
    if n_jobs == 0:
        raise InvalidInputError("The 'n_jobs' parameter must not be 0: None or -1 takes every core. Got 0.")
    return n_jobs if n_jobs > 0 else max(1, available_cores() + 1 + n_jobs)


@contextmanager
def limited_threads(n_threads: int) -> Iterator[None]:
    """Hold faiss and BLAS to ``n_threads`` inside the block and give back what they had."""
    import faiss
    from threadpoolctl import threadpool_limits

    before = faiss.omp_get_max_threads()
    with threadpool_limits(limits=n_threads):
        faiss.omp_set_num_threads(n_threads)
        try:
            yield
        finally:
            faiss.omp_set_num_threads(before)
