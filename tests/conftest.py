"""Fixtures that the tests of several packages share."""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import settings

# Two workers fill two cores. BLAS threads on top would wait for each other inside tiny matrices: on a
# busy machine small fits took many times as long. Set before numpy loads; subprocesses inherit it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from audited_runs import MakeRun, make_audit

# The same examples in every run; HYPOTHESIS_PROFILE=random searches for new ones.
settings.register_profile("repeatable", derandomize=True)
settings.register_profile("random", max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@pytest.fixture(scope="session", autouse=True)
def _no_cache_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Downloads and cached features of the tests stay in a temporary folder."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("LAPLACECONFIDENCE_DATA", str(tmp_path_factory.mktemp("data")))
        yield


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """``make_run(kind)`` writes an audit; see ``audited_runs.make_audit``."""
    return partial(make_audit, tmp_path)
