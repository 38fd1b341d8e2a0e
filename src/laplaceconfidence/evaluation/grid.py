"""The cells of a bench and how they are worked through; what is measured in a cell is up to the caller.

A cell is one contender, an estimator or a training method, under one noise with one seed. Cells that are done
are not measured again, so that a bench which was stopped goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from laplaceconfidence.exceptions import DataFormatError, InvalidInputError

Task = Literal["confidence", "training"]
TASKS: tuple[Task, ...] = get_args(Task)

Scores = dict[str, float | None]  # by metric; None where the cell does not define one


@dataclass(frozen=True, slots=True)
class Cell:
    """One measurement of a bench."""

    task: Task
    contender: str  # name of the estimator or the method
    noise: str  # as ``Noise.text`` writes it
    seed: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a cell: its scores, or why there are none."""

    cell: Cell
    scores: Scores = field(default_factory=dict)
    error: str | None = None

    def as_line(self) -> dict[str, Any]:
        """The outcome as it stands in a line of JSON."""
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
        """The outcome that a line of JSON tells of."""
        try:
            cell = Cell(line["task"], str(line["contender"]), str(line["noise"]), int(line["seed"]))
            scores = {
                str(name): None if value is None else float(value)
                for name, value in line.get("scores", {}).items()
            }
            error = line.get("error")
        except (KeyError, TypeError, ValueError, AttributeError) as found:
            raise DataFormatError(f"A line does not tell of a cell of a bench: {line!r}.") from found
        if cell.task not in TASKS:
            raise DataFormatError(f"A line tells of the unknown task {cell.task!r}.")
        return cls(cell, scores, None if error is None else str(error))


@dataclass(frozen=True, slots=True)
class Grid:
    """Everything that is crossed with everything."""

    noises: tuple[str, ...]
    seeds: tuple[int, ...]
    contenders: Mapping[Task, tuple[str, ...]]

    def cells(self) -> list[Cell]:
        """All cells. Those of one noise and seed follow each other, so that they can share their data."""
        return [
            Cell(task, contender, noise, seed)
            for noise in self.noises
            for seed in self.seeds
            for task, contenders in self.contenders.items()
            for contender in contenders
        ]

    @property
    def tasks(self) -> tuple[Task, ...]:
        return tuple(task for task in TASKS if self.contenders.get(task))


def latest(outcomes: Iterable[Outcome]) -> dict[Cell, Outcome]:
    """One outcome a cell: where a cell was tried again, the last one counts."""
    return {outcome.cell: outcome for outcome in outcomes}


def run_cells(
    cells: Iterable[Cell],
    measure: Callable[[Cell], Scores],
    *,
    done: Collection[Cell] = (),
    failures: tuple[type[Exception], ...] = (InvalidInputError,),
) -> Iterator[Outcome]:
    """Measure every cell that is not done and yield what came of it, one by one.

    An error of one of the kinds in ``failures`` is the outcome of its cell, and the others go on.
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
