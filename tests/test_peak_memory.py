"""The peak memory of a block, where the system tells."""

import numpy as np
import pytest

from laplaceconfidence.memory import PeakMemory


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
