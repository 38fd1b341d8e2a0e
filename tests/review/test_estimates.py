"""The noise rate and the calibration from a random sample of verdicts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from laplaceconfidence.review.estimates import calibration_from, noise_estimate, random_sample


@given(n=st.integers(1, 300), share=st.floats(0, 1))
@settings(max_examples=60, deadline=None)
def test_the_interval_is_that_of_clopper_and_pearson(n: int, share: float) -> None:
    k = round(share * n)
    found = noise_estimate(np.arange(n) < k)
    assert found.low <= found.rate <= found.high
    if k > 0:
        assert binom.sf(k - 1, n, found.low) == pytest.approx(0.025, abs=1e-6)
    if k < n:
        assert binom.cdf(k, n, found.high) == pytest.approx(0.025, abs=1e-6)


def test_no_verdicts_say_nothing() -> None:
    found = noise_estimate(np.zeros(0, bool))
    assert (found.low, found.high, found.n_verdicts) == (0.0, 1.0, 0)


def sample_of(order: list[int], decided: dict[int, float], random: set[int]) -> list[int]:
    n = len(order)
    said = np.array([decided.get(row, np.nan) for row in range(n)])
    is_decided = np.array([row in decided for row in range(n)])
    in_random = np.array([row in random for row in range(n)])
    return random_sample(np.array(order), is_decided, said, in_random).rows.tolist()


def test_suspects_met_on_the_way_count() -> None:
    assert sample_of([3, 1, 0, 2], {3: 0.0, 1: 1.0, 0: 0.0}, {3, 0}) == [3, 1, 0]


def test_suspects_beyond_the_last_random_verdict_do_not_count() -> None:
    assert sample_of([3, 1, 0, 2], {3: 0.0, 1: 1.0}, {3}) == [3]


def test_a_skipped_sample_ends_the_random_sample() -> None:
    assert sample_of([3, 1, 0, 2], {3: 0.0, 0: 1.0}, {3, 0}) == [3]


def test_unsure_verdicts_are_left_out() -> None:
    assert sample_of([3, 1, 0, 2], {3: 0.0, 1: float("nan"), 0: 1.0}, {3, 1, 0}) == [3, 0]


def test_reviewing_suspects_alone_is_no_random_sample() -> None:
    assert sample_of([3, 1, 0, 2], {3: 1.0, 1: 1.0}, set()) == []


def test_fifty_verdicts_calibrate() -> None:
    rng = np.random.default_rng(0)
    n = 4000
    truth = rng.random(n)
    right = rng.random(n) < truth
    stored = 1 / (1 + ((1 - truth) / np.maximum(truth, 1e-9)) * np.e**2)  # far too doubtful
    order = rng.permutation(n)

    def calibration(m: int):  # type: ignore[no-untyped-def]
        rows = order[:m]
        decided = np.isin(np.arange(n), rows)
        said = np.where(decided, ~right, np.nan).astype(float)
        return calibration_from(random_sample(order, decided, said, decided), stored)

    assert calibration(49) is None
    better = calibration(400)(stored)
    assert np.abs(better - truth).mean() < 0.5 * np.abs(stored - truth).mean()
    assert better.mean() == pytest.approx(right.mean(), abs=0.06)
