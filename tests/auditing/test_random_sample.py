"""Labels drawn at random for a person to verify."""

import numpy as np

from laplaceconfidence.auditing.random_sample import draw_for_review
from laplaceconfidence.data.labels import MISSING


def test_the_draw_is_uniform() -> None:
    labels = np.zeros(40, dtype=np.int64)
    labels[:5] = MISSING
    counts = np.zeros(40)
    for seed in range(2_000):
        rows = draw_for_review(labels, 7, seed=seed)
        assert len(set(rows.tolist())) == 7
        counts[rows] += 1
    assert (counts[:5] == 0).all()
    expected = 2_000 * 7 / 35
    statistic = ((counts[5:] - expected) ** 2 / expected).sum()
    assert statistic < 65  # chi square with 34 degrees of freedom: beyond in one of 1,000
