"""A bench on disk: ``bench.json``, ``results.jsonl``, the tables, and the training runs under ``runs``.

``bench.json`` records what is measured on which data; it is written first. ``results.jsonl`` has one line per
finished cell and is only appended to, so that a bench that was stopped or killed continues after its last
line.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from laplaceconfidence.auditing.diagnostics import installed_versions
from laplaceconfidence.evaluation.grid import BenchTask, Cell, Grid, Outcome, latest
from laplaceconfidence.evaluation.table_formats import as_csv, as_latex, as_markdown
from laplaceconfidence.evaluation.tables import Table, build_tables
from laplaceconfidence.exceptions import DataFormatError, RunFolderError
from laplaceconfidence.files import differences, replacing, write_json
from laplaceconfidence.records.run_folder import FORMAT_VERSION, read_record, record_name

KIND: Literal["bench"] = "bench"
RESULTS = "results.jsonl"
RUNS = "runs"
TABLES = ("tables.md", "tables.csv", "tables.tex")


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRecord:
    """The content of ``bench.json``: what is needed to understand a bench and to continue it.

    Parameters
    ----------
    created : str
        Time in UTC, ISO 8601; now by default.
    versions : dict of str to str
        Versions of the packages.
    source : dict
        Where the data came from, how it was read, and its size.
    settings : dict
        What holds for all cells.
    noises : tuple of str
        Kinds and rates of noise.
    seeds : tuple of int
        Seeds.
    estimators, methods : dict of str to dict
        Settings by name.
    kind, format_version :
        Kind of the run and version of its format.
    """

    kind: Literal["bench"] = KIND
    format_version: int = FORMAT_VERSION
    created: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    versions: dict[str, str] = field(default_factory=installed_versions)
    source: dict[str, Any]
    settings: dict[str, Any]
    noises: tuple[str, ...]
    seeds: tuple[int, ...]
    estimators: dict[str, dict[str, Any]]
    methods: dict[str, dict[str, Any]]

    @property
    def grid(self) -> Grid:
        """Grid: the cells that are measured."""
        contenders: dict[BenchTask, tuple[str, ...]] = {
            "confidence": tuple(self.estimators),
            "training": tuple(self.methods),
        }
        return Grid(self.noises, self.seeds, contenders)

    def clashes(self, now: BenchRecord) -> list[str]:
        """List the differences because of which this bench cannot be continued.

        Parameters
        ----------
        now : BenchRecord
            The record of the command that would continue it. It may have more cells.

        Returns
        -------
        list of str
            One line per difference; empty if it can be continued.
        """
        before, after = _plain(self), _plain(now)
        lines = differences(before["source"], after["source"], "source.")
        lines += differences(before["settings"], after["settings"], "settings.")
        for axis in ("estimators", "methods"):
            kept = {name: after[axis][name] for name in before[axis] if name in after[axis]}
            lines += differences(before[axis], kept, f"{axis}.")
        for axis in ("noises", "seeds"):
            if not set(before[axis]) <= set(after[axis]):
                lines.append(f"{axis}: {before[axis]} there, {after[axis]} now")
        return lines


@dataclass(frozen=True, eq=False)
class BenchRun:
    """A bench, finished or not, with the results so far.

    Parameters
    ----------
    folder : pathlib.Path
        Where it is.
    record : BenchRecord
        The content of ``bench.json``.
    outcomes : dict of Cell to Outcome
        The latest outcome per measured cell.
    """

    folder: Path
    record: BenchRecord
    outcomes: dict[Cell, Outcome]

    @cached_property
    def cells(self) -> list[Cell]:
        """list of Cell: all cells of the bench."""
        return self.record.grid.cells()

    @property
    def done(self) -> list[Cell]:
        """list of Cell: the cells that have scores."""
        return [cell for cell in self.cells if cell in self.outcomes and self.outcomes[cell].error is None]

    @property
    def failed(self) -> list[Outcome]:
        """list of Outcome: the outcomes of the cells that raised an error."""
        return [
            self.outcomes[cell] for cell in self.cells if cell in self.outcomes and self.outcomes[cell].error
        ]

    @property
    def is_finished(self) -> bool:
        """bool: whether all cells have scores."""
        return len(self.done) == len(self.cells)

    def tables(self) -> list[Table]:
        """Build the tables of all tasks.

        Returns
        -------
        list of Table
            One table per task and metric.
        """
        grid, outcomes = self.record.grid, list(self.outcomes.values())
        return [
            table
            for task in grid.tasks
            for table in build_tables(outcomes, task, grid.contenders[task], grid.noises)
        ]


def open_bench(folder: str | Path, wanted: BenchRecord) -> BenchRun:
    """Open the bench in a folder, or create it in an empty one.

    Parameters
    ----------
    folder : str or pathlib.Path
        Where the bench is or will be.
    wanted : BenchRecord
        What is to be measured.

    Returns
    -------
    BenchRun

    Raises
    ------
    RunFolderError
        If the bench there was started with other settings, or the folder holds other files.
    """
    target = Path(folder)
    if (target / record_name(KIND)).is_file():
        there = read_bench(target)
        if lines := there.record.clashes(wanted):
            raise RunFolderError(
                f"The bench in {target} was started with other settings and cannot continue with these:\n  "
                + "\n  ".join(lines)
                + "\nUse its settings to continue (noises, seeds, estimators and methods may be added), or "
                "another folder with --out."
            )
        _drop_half_line(target / RESULTS)
        if wanted.grid == there.record.grid:
            return there
        grown = replace(wanted, created=there.record.created)
        _write_record(target, grown)
        return BenchRun(target, grown, there.outcomes)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise RunFolderError(
            f"The folder {target} must be new, empty or hold a bench. It holds other files: choose "
            "another folder with --out."
        )
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunFolderError(f"The folder {target} cannot be created: {error.strerror}.") from error
    _write_record(target, wanted)
    return BenchRun(target, wanted, {})


def read_bench(folder: str | Path) -> BenchRun:
    """Read the bench in a folder; a last line that is still being written is ignored.

    Parameters
    ----------
    folder : str or pathlib.Path
        Where it is.

    Returns
    -------
    BenchRun

    Raises
    ------
    RunFolderError
        If there is no bench, or a damaged one.
    """
    path = Path(folder)
    content = read_record(path, KIND)
    try:
        record = BenchRecord(
            created=str(content["created"]),
            versions=dict(content["versions"]),
            source=dict(content["source"]),
            settings=dict(content["settings"]),
            noises=tuple(content["noises"]),
            seeds=tuple(content["seeds"]),
            estimators=dict(content["estimators"]),
            methods=dict(content["methods"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise RunFolderError(f"{path / record_name(KIND)} is damaged: {error!r}.") from error
    return BenchRun(path, record, latest(_read_outcomes(path / RESULTS)))


def append_outcome(folder: Path, outcome: Outcome) -> None:
    """Append the line of a finished cell in one write, flushed to disk.

    Parameters
    ----------
    folder : pathlib.Path
        The folder of the bench.
    outcome : Outcome
        The result of the cell.
    """
    line = json.dumps(outcome.as_line(), ensure_ascii=False, allow_nan=False) + "\n"
    with (folder / RESULTS).open("ab", buffering=0) as file:
        file.write(line.encode("utf-8"))
        os.fsync(file.fileno())


def write_tables(folder: Path, tables: Sequence[Table]) -> None:
    """Write tables as Markdown, CSV and LaTeX.

    Parameters
    ----------
    folder : pathlib.Path
        The folder of the bench.
    tables : sequence of Table
        The tables.
    """
    for name, write in zip(TABLES, (as_markdown, as_csv, as_latex), strict=True):
        with replacing(folder / name) as temporary:
            temporary.write_text(write(tables), encoding="utf-8")


def _read_outcomes(path: Path) -> list[Outcome]:
    if not path.is_file():
        return []
    try:
        text = path.read_bytes().decode("utf-8", errors="replace")
        whole = text[: text.rfind("\n") + 1]  # a line without its end is incomplete
        return [Outcome.from_line(json.loads(line)) for line in whole.splitlines() if line.strip()]
    except (OSError, ValueError, DataFormatError) as error:
        raise RunFolderError(
            f"{path} cannot be read ({error}): remove the damaged line; its cell is then measured again."
        ) from error


def _drop_half_line(path: Path) -> None:
    """Remove an incomplete last line, which a killed process left."""
    if not path.is_file():
        return
    with path.open("rb+") as file:
        content = file.read()
        end = content.rfind(b"\n") + 1
        if end < len(content):
            file.truncate(end)
            os.fsync(file.fileno())


def _write_record(folder: Path, record: BenchRecord) -> None:
    write_json(folder / record_name(KIND), asdict(record))


def _plain(record: BenchRecord) -> dict[str, Any]:
    """The record as JSON stores it: tuples become lists."""
    plain: dict[str, Any] = json.loads(json.dumps(asdict(record)))
    return plain
