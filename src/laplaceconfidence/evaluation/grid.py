"""The cells of a benchmark and the loop over them; the caller measures each cell.

A cell is one contender, an estimator or a training method, under one noise with one seed. Finished cells are
not measured again, so that an interrupted benchmark can be resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from laplaceconfidence.exceptions import DataFormatError, InvalidInputError

BenchTask = Literal["confidence", "training"]
BENCH_TASKS: tuple[BenchTask, ...] = get_args(BenchTask)

Scores = dict[str, float | None]  # by metric; None if it is not defined


@dataclass(frozen=True, slots=True)
class Cell:
    """One measurement of a benchmark."""

    task: BenchTask
    contender: str  # name of the estimator or the method
    noise: str  # as ``Noise.text`` writes it
    seed: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a cell: its scores, or the message of an error."""

    cell: Cell
    scores: Scores = field(default_factory=dict)
    error: str | None = None

    def as_line(self) -> dict[str, Any]:
        """The outcome as a dict for a line of JSON."""
        cell = self.cell
        line: dict[str, Any] = {
            "task": cell.task,
            "contender": cell.contender,
            "noise": cell.noise,
            "seed": cell.seed,
        }
        return line | ({"scores": self.scores} if self.error is None else {"error": self.error})

    @classmethod
    def from_line(cls, line: Any) -> Outcome:
        """The outcome of a parsed line of JSON."""
        try:
            cell = Cell(line["task"], str(line["contender"]), str(line["noise"]), int(line["seed"]))
            scores = {
                str(name): None if value is None else float(value)
                for name, value in line.get("scores", {}).items()
            }
            error = line.get("error")
        except (KeyError, TypeError, ValueError, AttributeError) as found:
            raise DataFormatError(f"A line does not describe a cell of a benchmark: {line!r}.") from found
        if cell.task not in BENCH_TASKS:
            raise DataFormatError(f"A line has the unknown task {cell.task!r}.")
        return cls(cell, scores, None if error is None else str(error))


@dataclass(frozen=True, slots=True)
class Grid:
    """The noises, seeds and contenders, all combinations of which are cells."""

    noises: tuple[str, ...]
    seeds: tuple[int, ...]
    contenders: Mapping[BenchTask, tuple[str, ...]]

    def cells(self) -> list[Cell]:
        """All cells. Those of one noise and seed are consecutive, so that they can share their data."""
        return [
            Cell(task, contender, noise, seed)
            for noise in self.noises
            for seed in self.seeds
            for task, contenders in self.contenders.items()
            for contender in contenders
        ]

    @property
    def tasks(self) -> tuple[BenchTask, ...]:
        """The tasks that have contenders."""
        return tuple(task for task in BENCH_TASKS if self.contenders.get(task))


def latest(outcomes: Iterable[Outcome]) -> dict[Cell, Outcome]:
    """Return one outcome per cell, the last one if a cell was measured several times."""
    return {outcome.cell: outcome for outcome in outcomes}


def run_cells(
    cells: Iterable[Cell],
    measure: Callable[[Cell], Scores],
    *,
    done: Collection[Cell] = (),
    failures: tuple[type[Exception], ...] = (InvalidInputError,),
) -> Iterator[Outcome]:
    """Measure every cell that is not done.

    Parameters
    ----------
    cells : iterable of Cell
        The cells, in order.
    measure : callable
        From a cell to its scores.
    done : collection of Cell, default=()
        Cells to leave out.
    failures : tuple of exception types, default=(InvalidInputError,)
        Errors of these types become outcomes, and the loop continues; other errors end it.

    Yields
    ------
    Outcome
    """
    finished = frozenset(done)
    for cell in cells:
        if cell in finished:
            continue
        try:
            outcome = Outcome(cell, measure(cell))
        except failures as error:
            outcome = Outcome(cell, error=str(error))
        yield outcome
