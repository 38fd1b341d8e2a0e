"""Plans: what fits into a budget, and what is refused."""

import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from laplaceconfidence.blocks.plan import BlockPlan, check_disk, make_plan, parse_memory
from laplaceconfidence.exceptions import InvalidInputError


def plan(n: int = 1_000_000, memory: str = "2GB", **changes: Any) -> BlockPlan:
    sizes = {"n_read": 128, "n_features": 128, "n_classes": 10, "n_neighbors": 20} | changes
    return make_plan(n, memory=parse_memory(memory), **sizes)


@pytest.mark.parametrize(
    ("text", "expected"), [("8GB", 8 * 10**9), ("512 MiB", 2**29), ("1.5gb", 1_500_000_000), (1000, 1000)]
)
def test_amounts_of_memory(text: Any, expected: int) -> None:
    assert parse_memory(text) == expected


@pytest.mark.parametrize("text", ["", "much", "-1GB", "8 GBit", True, "0GB"])
def test_what_is_no_amount_of_memory(text: Any) -> None:
    with pytest.raises(InvalidInputError, match="'8GB'"):
        parse_memory(text)


@pytest.mark.parametrize("n", [1_000, 100_000, 1_000_000, 20_000_000])
@pytest.mark.parametrize("memory", ["2GB", "8GB", "64GB"])
def test_a_plan_stays_within_its_budget(n: int, memory: str) -> None:
    found = plan(n, memory, n_classes=1_000, n_threads=2)
    assert found.peak <= found.memory
    assert found.rows_per_block * (found.n_blocks + 0.5) >= n
    assert 1 <= found.classes_at_once <= 32


def test_more_memory_gives_larger_blocks() -> None:
    assert plan(memory="1GB").rows_per_block < plan(memory="2GB").rows_per_block


def test_classes_are_solved_for_apart_where_messages_take_longer_and_the_graph_fits() -> None:
    cluster: dict[str, Any] = {"n_processes": 2, "seconds_per_step": 0.05}
    found = plan(200_000, **cluster)
    assert found.classes_apart
    assert found.classes_at_once == 5
    assert "5 classes at once on each worker" in found.statement
    assert plan(200_000, n_classes=200, **cluster).classes_at_once == 25  # eight chunks, four for each
    assert not plan(200_000, n_processes=2).classes_apart
    assert not plan(200_000, n_classes=40, n_threads=2).classes_apart
    assert not plan(200_000, "550MB", n_classes=200, **cluster).classes_apart
    assert not plan(2_000_000, n_processes=100, seconds_per_step=0.05).classes_apart  # few classes for them


@pytest.mark.parametrize("n", [1_000, 200_000, 5_000_000])
@pytest.mark.parametrize("n_classes", [2, 10, 1_000])
@pytest.mark.parametrize("n_processes", [1, 3, 50])
def test_plans_for_clusters_stay_within_their_budget(n: int, n_classes: int, n_processes: int) -> None:
    found = plan(n, "2GB", n_classes=n_classes, n_processes=n_processes, seconds_per_step=0.05)
    assert found.peak <= found.memory
    assert found.cache <= found.memory
    assert 1 <= found.classes_at_once <= 32


def test_the_smallest_budget_that_works_is_named_and_works() -> None:
    with pytest.raises(InvalidInputError, match="at least") as refused:
        plan(memory="310MB")
    smallest = re.search(r"at least ([\d,.]+ [MG]B)", str(refused.value))
    assert smallest is not None
    plan(memory=smallest[1].replace(",", ""))


def test_too_little_disk_is_noticed_before(tmp_path: Path) -> None:
    check_disk(tmp_path / "work", plan())
    with pytest.raises(InvalidInputError, match=r"needs about .* of disk, but .* free"):
        check_disk(tmp_path / "work", plan(10**12 // 200, memory="9999GB"))


def test_the_plan_is_stated() -> None:
    text = plan().statement
    assert re.match(r"Plan: \d+ blocks of about [\d,]+ rows, 10 classes at once; up to .* of memory", text)
    assert re.search(r"of disk, about .* to .*, by the structure of the features\.$", text)


def test_the_time_is_a_range_unless_the_search_is_exact() -> None:
    found = plan(n_features=512, n_read=512)
    assert found.most_seconds is not None
    assert found.seconds < found.most_seconds
    assert plan(n_threads=2).seconds == pytest.approx(plan().seconds / 2)
    exact = plan(exact=True)
    assert exact.most_seconds is None
    assert exact.seconds > found.most_seconds
    assert re.search(r"of disk, about [^,]+\.$", exact.statement)


def test_no_search_is_expected_to_take_longer_than_an_exact_one() -> None:
    found = plan(2_000, n_neighbors=100)
    exact = plan(2_000, n_neighbors=100, exact=True)
    assert found.most_seconds is not None
    assert found.most_seconds <= exact.seconds


def test_plans_of_kept_indexes_without_a_range_are_read() -> None:
    stored = {name: value for name, value in asdict(plan()).items() if name != "most_seconds"}
    assert re.search(r"of disk, about [^,]+\.$", BlockPlan(**stored).statement)
