"""Thread counts: what n_jobs asks for, and that the limit holds and is given back."""

import os

import faiss
import pytest
from threadpoolctl import threadpool_info

from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.threads import available_cores, limited_threads, thread_count


def test_what_n_jobs_asks_for() -> None:
    cores = available_cores()
    assert 1 <= cores <= (os.cpu_count() or 1)
    assert thread_count(None) == thread_count(-1) == cores
    assert thread_count(3) == 3
    assert thread_count(-2) == max(1, cores - 1)
    assert thread_count(-1000) == 1


def test_zero_threads_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"'n_jobs' parameter must not be 0.*Got 0"):
        thread_count(0)


def test_the_limit_holds_inside_and_is_given_back() -> None:
    faiss_before, blas_before = faiss.omp_get_max_threads(), threadpool_info()
    with limited_threads(1):
        assert faiss.omp_get_max_threads() == 1
        assert {pool["num_threads"] for pool in threadpool_info()} == {1}
    assert faiss.omp_get_max_threads() == faiss_before
    assert [pool["num_threads"] for pool in threadpool_info()] == [
        pool["num_threads"] for pool in blas_before
    ]


def test_the_limit_is_given_back_after_an_error() -> None:
    before = faiss.omp_get_max_threads()

    def fail() -> None:
        with limited_threads(1):
            raise RuntimeError("inside")

    with pytest.raises(RuntimeError, match="inside"):
        fail()
    assert faiss.omp_get_max_threads() == before
