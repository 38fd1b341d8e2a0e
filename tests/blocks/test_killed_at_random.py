"""Audits in blocks that are killed at ten random moments and started again give identical results."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

KILLS = 10
SCRIPT = """
import sys
from pathlib import Path
from laplaceconfidence import audit, files
from laplaceconfidence.auditing import block_fits
from laplaceconfidence.blocks import plan

estimator, folder = sys.argv[1], Path(sys.argv[2])
plan.MOST_ROWS, block_fits.SAMPLE_SIZE = 1_500, 800
files._flush_to_disk = lambda path: None  # what a killed process wrote is not lost with it
settings = {"estimator": estimator, "n_jobs": 1, "random_state": 0}
if estimator == "laplace":
    settings |= {"n_neighbors": 10, "search": "ivf"}
source, labels = (str(folder.parent / name) for name in ("x.npy", "y.npy"))
print("begins", flush=True)
result = audit(source, labels=labels, memory="1GB", work=folder / "work", **settings)
result.save(folder / "run", overwrite=True)  # it may have been killed after it was written
"""


def start(estimator: str, folder: Path) -> subprocess.Popen[str]:
    """A process that has begun its audit."""
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-c", SCRIPT, estimator, str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ)
    assert process.stdout is not None
    assert process.stdout.readline() == "begins\n"
    return process


def tables(folder: Path) -> list[bytes]:
    paths = sorted((folder / "run").glob("*-0*.parquet"))
    assert paths
    return [path.read_bytes() for path in paths]


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["laplace", "noise-aware"])
def test_killed_at_ten_random_moments(tmp_path: Path, estimator: str) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 20, 4_000)
    features = 2 * rng.normal(size=(20, 24))[y] + rng.normal(size=(4_000, 24))
    np.save(tmp_path / "x.npy", features.astype(np.float32))
    np.save(tmp_path / "y.npy", np.where(rng.random(4_000) < 0.2, rng.integers(0, 20, 4_000), y))
    began = time.monotonic()
    assert start(estimator, tmp_path / "whole").wait() == 0
    seconds = time.monotonic() - began
    expected = tables(tmp_path / "whole")
    n_killed, attempt = 0, 0
    while n_killed < KILLS:
        folder = tmp_path / f"killed-{attempt}"
        process = start(estimator, folder)
        try:
            assert process.wait(rng.uniform(0, 0.4 * seconds)) == 0
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            n_killed += 1
            continue
        assert tables(folder) == expected
        attempt += 1
    folder = tmp_path / f"killed-{attempt}"
    assert start(estimator, folder).wait() == 0
    assert tables(folder) == expected
