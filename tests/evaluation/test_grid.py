"""Cells of a bench: every one once, again only where asked, and one that fails does not stop the others."""

import pytest

from laplaceconfidence.evaluation.grid import Cell, Grid, Outcome, Scores, latest, run_cells
from laplaceconfidence.evaluation.noises import Noise
from laplaceconfidence.exceptions import DataFormatError, InvalidInputError

GRID = Grid(("symmetric:0.2", "none"), (0, 1), {"confidence": ("a", "b"), "training": ("a",)})


def test_every_cell_is_there_once_and_those_with_shared_data_follow_each_other() -> None:
    cells = GRID.cells()
    assert len(cells) == len(set(cells)) == 2 * 2 * 3
    shared = [(cell.noise, cell.seed) for cell in cells]
    assert shared == sorted(shared, key=shared.index)


def test_done_cells_are_not_measured_again() -> None:
    cells = GRID.cells()
    measured: list[Cell] = []

    def measure(cell: Cell) -> Scores:
        measured.append(cell)
        return {"auroc": 0.5}

    outcomes = list(run_cells(cells, measure, done=cells[:5]))
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


def test_lines_are_read_back_as_they_were_written_and_the_last_of_a_cell_counts() -> None:
    cell = GRID.cells()[0]
    tried = Outcome(cell, error="no memory")
    done = Outcome(cell, {"auroc": 0.1, "average_precision": None})
    read = [Outcome.from_line(outcome.as_line()) for outcome in (tried, done)]
    assert read == [tried, done]
    assert latest(read) == {cell: done}


@pytest.mark.parametrize(
    "line",
    [
        {},
        [],
        "text",
        {"task": "confidence"},
        Outcome(Cell("confidence", "a", "none", 0)).as_line() | {"task": "x"},
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
