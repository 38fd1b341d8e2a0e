"""The peak memory of a block, where the system tells, and freed memory that is kept."""

import os
import subprocess
import sys

import numpy as np
import pytest

from laplaceconfidence.memory import PeakMemory

PAGE_FAULTS = """
import resource
import numpy as np
from laplaceconfidence.memory import keep_freed_memory

def page_faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(50):
        np.zeros(500_000).fill(1.0)  # 4 MB
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

asked_of_the_system = page_faults()
restore = keep_freed_memory()
page_faults()
kept = page_faults()
restore()
print(asked_of_the_system, kept, page_faults())
"""


def test_the_peak_counts_what_the_block_used_and_nothing_before_it() -> None:
    def used(n_bytes: int) -> int:
        with PeakMemory() as peak:
            np.ones(n_bytes, dtype=np.uint8)
        if peak.bytes is None:
            pytest.skip("the system does not tell the peak memory")
        return peak.bytes

    small, large, small_again = used(1_000), used(300_000_000), used(1_000)
    assert large - small > 250_000_000
    assert large - small_again > 250_000_000


@pytest.mark.skipif(sys.platform != "linux", reason="page faults are counted as on Linux")
def test_freed_memory_is_used_again_where_the_environment_would_have_it_given_back() -> None:
    environment = {**os.environ, "MALLOC_TRIM_THRESHOLD_": "65536"}  # as Dask sets it for its workers
    run = subprocess.run(
        [sys.executable, "-c", PAGE_FAULTS], env=environment, capture_output=True, text=True, check=True
    )
    asked_of_the_system, kept, restored = map(int, run.stdout.split())
    if asked_of_the_system < 50:
        pytest.skip("the allocator is not glibc's")
    assert kept < asked_of_the_system / 10
    assert restored > asked_of_the_system / 2
