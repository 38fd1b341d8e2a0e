"""Batches: every sample as often as promised, in an order that the seed decides."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from laplaceconfidence.training.methods.interface import Phase, Plan
from laplaceconfidence.training.phase_steps import index_batches, split_into_batches


def batches_of(streams: dict[str, int], size: int, *, passes: int = 1) -> dict[str, list[Tensor]]:
    plan = Plan({name: torch.arange(n) for name, n in streams.items()})
    return index_batches(Phase("training", trains=(0,), passes=passes), plan, size, seed=3)


@given(st.integers(1, 200), st.integers(1, 40), st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_every_pass_holds_every_sample_once_in_another_order(n: int, size: int, passes: int) -> None:
    batches = batches_of({"samples": n}, size, passes=passes)["samples"]
    rows = torch.cat(batches)
    assert torch.equal(rows.bincount(minlength=n), torch.full((n,), passes))
    if n > 20 and passes > 1:
        assert not torch.equal(rows[:n], rows[n : 2 * n])
    if n > 1 and size > 1:
        assert min(len(batch) for batch in batches) >= 2
    again = batches_of({"samples": n}, size, passes=passes)["samples"]
    assert all(torch.equal(a, b) for a, b in zip(batches, again, strict=True))


def test_a_short_last_batch_joins_the_one_before() -> None:
    assert [len(batch) for batch in split_into_batches(torch.arange(130), 64)] == [64, 66]
    assert [len(batch) for batch in split_into_batches(torch.arange(140), 64)] == [64, 64, 12]


def test_an_endless_stream_goes_round_as_often_as_needed() -> None:
    batches = batches_of({"first": 32, "second": 10}, 4)["second"]
    assert len(batches) == 8
    assert torch.cat(batches[:3]).sort().values.tolist() == list(range(10))
