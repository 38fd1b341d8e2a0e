"""The cells of a benchmark and the loop over them; the caller measures each cell.

A cell is one contender, an estimator or a training method with its settings, on one data set under one noise
with one seed. Finished cells are not measured again, so that an interrupted benchmark can be resumed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from laplaceconfidence.exceptions import DataFormatError, InvalidInputError
from laplaceconfidence.validation import must_be

BenchTask = Literal["confidence", "training"]
BENCH_TASKS: tuple[BenchTask, ...] = get_args(BenchTask)

Scores = dict[str, float | None]  # by metric; None if it is not defined


@dataclass(frozen=True, slots=True)
class Cell:
    """One measurement of a benchmark."""

    task: BenchTask
    contender: str  # its name in the bench
    noise: str  # as ``Noise.text`` writes it
    seed: int
    data: str  # its name in the bench


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a cell: its scores, or the message of an error."""

    cell: Cell
    scores: Scores = field(default_factory=dict)
    error: str | None = None
    machine: str = ""  # where it was measured

    def as_line(self) -> dict[str, Any]:
        """The outcome as a dict for a line of JSON."""
        cell = self.cell
        line: dict[str, Any] = {
            "task": cell.task,
            "contender": cell.contender,
            "data": cell.data,
            "noise": cell.noise,
            "seed": cell.seed,
        }
        line |= {"scores": self.scores} if self.error is None else {"error": self.error}
        return line | ({"machine": self.machine} if self.machine else {})

    @classmethod
    def from_line(cls, line: Any) -> Outcome:
        """The outcome of a parsed line of JSON."""
        try:
            cell = Cell(
                line["task"],
                str(line["contender"]),
                str(line["noise"]),
                int(line["seed"]),
                str(line["data"]),
            )
            scores = {
                str(name): None if value is None else float(value)
                for name, value in line.get("scores", {}).items()
            }
            error, machine = line.get("error"), str(line.get("machine", ""))
        except (KeyError, TypeError, ValueError, AttributeError) as found:
            raise DataFormatError(f"A line does not describe a cell of a benchmark: {line!r}.") from found
        if cell.task not in BENCH_TASKS:
            raise DataFormatError(f"A line has the unknown task {cell.task!r}.")
        return cls(cell, scores, None if error is None else str(error), machine)


@dataclass(frozen=True, slots=True)
class Entry:
    """A contender of a grid, and where it is measured."""

    task: BenchTask
    name: str
    where: frozenset[tuple[str, str]]  # pairs of a data set and a noise


@dataclass(frozen=True, slots=True)
class Grid:
    """Data sets with their noises, seeds and contenders, from which the cells follow."""

    noises: Mapping[str, tuple[str, ...]]  # by data set
    seeds: tuple[int, ...]
    entries: tuple[Entry, ...]

    def cells(self) -> list[Cell]:
        """All cells. Those of one data set, noise and seed are consecutive: they share their data."""
        return [
            Cell(entry.task, entry.name, noise, seed, data)
            for data, noise in self.columns
            for seed in self.seeds
            for entry in self.entries
            if (data, noise) in entry.where
        ]

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Every data set with each of its noises."""
        return [(data, noise) for data, noises in self.noises.items() for noise in noises]

    @property
    def tasks(self) -> tuple[BenchTask, ...]:
        """The tasks that have contenders."""
        return tuple(task for task in BENCH_TASKS if any(entry.task == task for entry in self.entries))

    def names(self, task: BenchTask) -> tuple[str, ...]:
        """The contenders of a task."""
        return tuple(entry.name for entry in self.entries if entry.task == task)


@dataclass(frozen=True, slots=True)
class Shard:
    """One of several parts of a bench, which different machines measure at the same time."""

    number: int  # from 1
    count: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Parse a text such as ``2/8``."""
        number, slash, count = text.partition("/")
        if slash and number.strip().isdecimal() and count.strip().isdecimal():
            shard = cls(int(number), int(count))
            if 1 <= shard.number <= shard.count:
                return shard
        raise must_be("shard", "a part and the number of parts, such as 2/8 for the second of eight", text)

    @property
    def name(self) -> str:
        """Name of the folder of this part."""
        return f"{self.number}-of-{self.count}"

    def of(self, cells: Sequence[Cell]) -> list[Cell]:
        """The cells of this part, in their order.

        Every cell is in exactly one part. Cells are assigned by their hash, so that no part gets all cells of
        an expensive contender.
        """
        mixed = sorted(cells, key=_hash_of)
        own = frozenset(mixed[self.number - 1 :: self.count])
        return [cell for cell in cells if cell in own]


def _hash_of(cell: Cell) -> bytes:
    return hashlib.sha256(repr(cell).encode()).digest()


def latest(outcomes: Iterable[Outcome]) -> dict[Cell, Outcome]:
    """Return one outcome per cell: the last one, but never an error for a cell that was measured."""
    found: dict[Cell, Outcome] = {}
    for outcome in outcomes:
        before = found.get(outcome.cell)
        if before is None or before.error is not None or outcome.error is None:
            found[outcome.cell] = outcome
    return found


def run_cells(
    cells: Iterable[Cell],
    measure: Callable[[Cell], Scores],
    *,
    is_done: Callable[[Cell], bool] = lambda cell: False,
    error_text: Callable[[Exception], str | None] = lambda error: (
        str(error) if isinstance(error, InvalidInputError) else None
    ),
) -> Iterator[Outcome]:
    """Measure every cell that is not done.

    Parameters
    ----------
    cells : iterable of Cell
        The cells, in order.
    measure : callable
        From a cell to its scores.
    is_done : callable, optional
        Whether a cell is left out; called when its turn comes.
    error_text : callable, optional
        From an error to the text of the outcome, and the loop continues; ``None`` for an error that ends it.
        By default only invalid input continues.

    Yields
    ------
    Outcome
    """
    for cell in cells:
        if is_done(cell):
            continue
        try:
            outcome = Outcome(cell, measure(cell))
        except Exception as error:
            text = error_text(error)
            if text is None:
                raise
            outcome = Outcome(cell, error=text)
        yield outcome
