"""The time left: rounds of each kind take what they took, others what their phases state."""

import pytest

from laplaceconfidence.training.methods.cross_entropy import CrossEntropy
from laplaceconfidence.training.methods.laplace import Laplace
from laplaceconfidence.training.time_left import TimeLeft, time_left


def test_rounds_that_were_measured_take_what_they_took() -> None:
    method = Laplace(warmup=3)
    left = time_left(method, 10, [2.0, 1.0, 1.0, 8.0, 9.0, 8.5])
    assert left == TimeLeft(pytest.approx(4 * 8.5), is_measured=True)
    assert str(left) == "34 s left"
    assert time_left(CrossEntropy(), 5, [3.0] * 5).seconds == 0


def test_a_warm_up_does_not_promise_that_the_rest_is_as_quick() -> None:
    """Two passes with a forward pass of both networks in each step, and a look at all samples before it."""
    left = time_left(Laplace(warmup=3, passes=2), 13, [60.0, 60.0])
    per_network = 30 * (2 * (1 + 2 / 3) + 1 / 3)
    assert left.seconds == pytest.approx(60 + 10 * 2 * per_network)
    assert str(left) == "about 38 min left"


def test_it_follows_a_machine_that_becomes_slower() -> None:
    assert time_left(CrossEntropy(), 20, [1.0] * 5 + [3.0] * 5).seconds == 30
