"""Fixtures that several rooms share."""

from functools import partial
from pathlib import Path

import pytest

from audited_runs import MakeRun, make_audit


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """``make_run(kind)`` writes an audit; see ``audited_runs.make_audit``."""
    return partial(make_audit, tmp_path)
