"""Fixtures that the tests of several packages share."""

import os
from functools import partial
from pathlib import Path

import pytest

# Two workers fill two cores. BLAS threads on top would wait for each other inside tiny matrices: on a
# busy machine small fits took many times as long. Set before numpy loads; subprocesses inherit it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from audited_runs import MakeRun, make_audit


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """``make_run(kind)`` writes an audit; see ``audited_runs.make_audit``."""
    return partial(make_audit, tmp_path)
