"""Cells of a bench: every one once, again only where asked, and one that fails does not stop the others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laplaceconfidence.evaluation.grid import Cell, Entry, Grid, Outcome, Scores, Shard, latest, run_cells
from laplaceconfidence.evaluation.noises import Noise
from laplaceconfidence.exceptions import DataFormatError, InvalidInputError

NOISES = {"x": ("symmetric:0.2", "none"), "y": ("none",)}
EVERYWHERE = frozenset((data, noise) for data, noises in NOISES.items() for noise in noises)
GRID = Grid(
    NOISES,
    (0, 1),
    (
        Entry("confidence", "a", EVERYWHERE),
        Entry("confidence", "b", EVERYWHERE),
        Entry("training", "a", frozenset({("x", "none")})),
    ),
)


def test_every_cell_is_there_once_and_those_with_shared_data_follow_each_other() -> None:
    cells = GRID.cells()
    assert len(cells) == len(set(cells)) == 2 * (3 * 2 + 1)
    assert {(cell.data, cell.noise) for cell in cells if cell.task == "training"} == {("x", "none")}
    shared = [(cell.data, cell.noise, cell.seed) for cell in cells]
    assert shared == sorted(shared, key=shared.index)


def test_done_cells_are_not_measured_again() -> None:
    cells = GRID.cells()
    measured: list[Cell] = []

    def measure(cell: Cell) -> Scores:
        measured.append(cell)
        return {"auroc": 0.5}

    outcomes = list(run_cells(cells, measure, is_done=cells[:5].__contains__))
    assert measured == cells[5:]
    assert [outcome.cell for outcome in outcomes] == cells[5:]


def test_a_cell_that_fails_is_an_outcome_and_a_mistake_of_ours_is_raised() -> None:
    cells = GRID.cells()[:2]

    def measure(cell: Cell) -> Scores:
        if cell.contender == "a":
            raise InvalidInputError("too few samples")
        return {"auroc": 1.0}

    failed, fine = run_cells(cells, measure)
    assert failed.error == "too few samples"
    assert not failed.scores
    assert fine.scores == {"auroc": 1.0}

    def broken(cell: Cell) -> Scores:
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError):
        list(run_cells(cells, broken))
    assert [one.error for one in run_cells(cells, broken, error_text=str)] == ["a bug", "a bug"]


@given(st.integers(1, 20))
def test_every_cell_is_in_exactly_one_shard(count: int) -> None:
    cells = GRID.cells()
    parts = [Shard(number, count).of(cells) for number in range(1, count + 1)]
    assert sorted(map(repr, (cell for part in parts for cell in part))) == sorted(map(repr, cells))
    assert all(part == [cell for cell in cells if cell in part] for part in parts)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("text", ["", "2", "0/4", "5/4", "a/b", "1/0", "-1/4"])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="2/8"):
        Shard.parse(text)


def test_lines_are_read_back_as_they_were_written_and_the_last_of_a_cell_counts() -> None:
    cell = GRID.cells()[0]
    tried = Outcome(cell, error="no memory")
    done = Outcome(cell, {"auroc": 0.1, "average_precision": None})
    read = [Outcome.from_line(outcome.as_line()) for outcome in (tried, done)]
    assert read == [tried, done]
    assert latest(read) == latest(reversed(read)) == {cell: done}


@pytest.mark.parametrize(
    "line",
    [
        {},
        [],
        "text",
        {"task": "confidence"},
        Outcome(Cell("confidence", "a", "none", 0, "x")).as_line() | {"task": "x"},
    ],
)
def test_what_is_no_line_of_a_bench_is_refused(line: object) -> None:
    with pytest.raises(DataFormatError):
        Outcome.from_line(line)


@pytest.mark.parametrize(
    ("text", "same", "title"),
    [
        ("symmetric:0.20", "symmetric:0.2", "symmetric 20%"),
        (" pair:.125 ", "pair:0.125", "pair 12.5%"),
        ("none", "none", "as given"),
    ],
)
def test_noises_are_written_in_one_way(text: str, same: str, title: str) -> None:
    noise = Noise.parse(text)
    assert (noise.text, noise.title) == (same, title)
    assert Noise.parse(noise.text) == noise


@pytest.mark.parametrize(
    "text", ["", "symmetric", "symmetric:", "symmetric:1.2", "none:0.2", "matrix:0.2", "x:1"]
)
def test_what_is_no_noise_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="noise"):
        Noise.parse(text)
