"""A bench on disk: ``bench.json``, ``results.jsonl``, the tables, and the training runs under ``runs``.

``bench.json`` records what is measured on which data; it is written first. ``results.jsonl`` has one line per
finished cell and is only appended to, so that a bench that was stopped or killed continues after its last
line. Where several machines share the folder, each writes a file of its own: ``shards/2-of-8/results.jsonl``.
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
from laplaceconfidence.evaluation.grid import BenchTask, Cell, Entry, Grid, Outcome, Shard, latest
from laplaceconfidence.evaluation.published_results import PublishedResult, published_results
from laplaceconfidence.evaluation.table_formats import as_csv, as_latex, as_markdown
from laplaceconfidence.evaluation.tables import Column, Table, build_tables, chosen_tables
from laplaceconfidence.exceptions import DataFormatError, RunFolderError
from laplaceconfidence.files import differences, replacing, write_json
from laplaceconfidence.records.run_folder import FORMAT_VERSION, read_record, record_name

KIND: Literal["bench"] = "bench"
RESULTS = "results.jsonl"
RUNS = "runs"
SHARDS = "shards"
FIGURES = "figures"
TABLES = ("tables.md", "tables.csv", "tables.tex")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContenderRecord:
    """A contender in ``bench.json``.

    Parameters
    ----------
    task : {"confidence", "training"}
        What is measured.
    name : str
        Its name in tables.
    kind : str
        Name of the estimator or the method.
    settings : dict of str to dict
        Its settings by the data set and the noise ("digits, symmetric:0.2") of every column in which it is
        measured.
    group : str
        What the contenders of one sweep share.
    swept : dict
        The settings that the sweep varies.
    published_as : str or None
        Its row in the published tables.
    """

    task: BenchTask
    name: str
    kind: str
    settings: dict[str, dict[str, Any]]
    group: str = ""
    swept: dict[str, Any] = field(default_factory=dict)
    published_as: str | None = None

    def entry(self, columns: Sequence[tuple[str, str]]) -> Entry:
        """The contender as an entry of a grid."""
        where = frozenset(column for column in columns if column_key(*column) in self.settings)
        return Entry(self.task, self.name, where)


def column_key(data: str, noise: str) -> str:
    """How ``bench.json`` writes a data set under a noise."""
    return f"{data}, {noise}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRecord:
    """The content of ``bench.json``: what is needed to understand a bench and to continue it.

    Parameters
    ----------
    title : str
        What the bench shows.
    created : str
        Time in UTC, ISO 8601; now by default.
    versions : dict of str to str
        Versions of the packages.
    data : dict of str to dict
        By name: where the data came from, how they were read, their size, the noises and the test sets.
    seeds : tuple of int
        Seeds.
    contenders : tuple of ContenderRecord
        What is compared.
    metrics : tuple of str, default=()
        Metrics of the tables, in their order; empty for all.
    figures : tuple of str, default=()
        Figures of the report besides those of the tables.
    kind, format_version :
        Kind of the run and version of its format.
    """

    kind: Literal["bench"] = KIND
    format_version: int = FORMAT_VERSION
    title: str = ""
    created: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    versions: dict[str, str] = field(default_factory=installed_versions)
    data: dict[str, dict[str, Any]]
    seeds: tuple[int, ...]
    contenders: tuple[ContenderRecord, ...]
    metrics: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()

    @property
    def grid(self) -> Grid:
        """Grid: the cells that are measured."""
        noises = {name: tuple(table["noises"]) for name, table in self.data.items()}
        columns = Grid(noises, self.seeds, ()).columns
        return Grid(noises, self.seeds, tuple(one.entry(columns) for one in self.contenders))

    def contender(self, task: BenchTask, name: str) -> ContenderRecord:
        """Return the record of a contender.

        Parameters
        ----------
        task : {"confidence", "training"}
            What is measured.
        name : str
            Its name.

        Returns
        -------
        ContenderRecord
        """
        return next(one for one in self.contenders if (one.task, one.name) == (task, name))

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
        lines = []
        for name, table in before["data"].items():
            there, here = dict(table), dict(after["data"].get(name, {}))
            old, new = there.pop("noises"), here.pop("noises", [])
            lines += differences(there, here, f"data.{name}.")
            if not set(old) <= set(new):
                lines.append(f"data.{name}.noises: {old} there, {new} now")
        if not set(before["seeds"]) <= set(after["seeds"]):
            lines.append(f"seeds: {before['seeds']} there, {after['seeds']} now")
        by_name = {(one["task"], one["name"]): one["settings"] for one in after["contenders"]}
        for one in before["contenders"]:
            settings = by_name.get((one["task"], one["name"]), {})
            kept = {column: settings[column] for column in one["settings"] if column in settings}
            lines += differences(one["settings"], kept, f"contender.{one['name']}.")
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
        tables = []
        for task in grid.tasks:
            published = self._published if task == "training" else None
            own = build_tables(outcomes, task, grid, published)
            tables += chosen_tables(own, self.record.metrics)
        return tables

    def _published(self, contender: str, column: Column, metric: str) -> PublishedResult | None:
        """The figure that a paper states for a cell, if it has the same data, noise, method and metric."""
        data = self.record.data[column.data].get("published_as")
        row = self.record.contender("training", contender).published_as
        return published_results().get((str(data), column.noise.text, str(row), metric))


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
                + "\nUse its settings to continue (data, noises, seeds and contenders may be added), or "
                "another folder with --out."
            )
        drop_half_line(target)
        if replace(wanted, created=there.record.created, versions=there.record.versions) == there.record:
            return there
        grown = replace(wanted, created=there.record.created)
        _write_record(target, grown)
        return BenchRun(target, grown, there.outcomes)
    if target.exists() and (not target.is_dir() or any(entry.name != SHARDS for entry in target.iterdir())):
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
    if "data" not in content and "source" in content:
        raise RunFolderError(
            f"The bench in {path} was written by an earlier version of laplaceconfidence. Measure it again "
            "in another folder (--out)."
        )
    try:
        record = BenchRecord(
            created=str(content["created"]),
            versions=dict(content["versions"]),
            title=str(content.get("title", "")),
            data={str(name): _data_table(table) for name, table in content["data"].items()},
            seeds=tuple(content["seeds"]),
            contenders=tuple(ContenderRecord(**one) for one in content["contenders"]),
            metrics=tuple(content.get("metrics", ())),
            figures=tuple(content.get("figures", ())),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RunFolderError(f"{path / record_name(KIND)} is damaged: {error!r}.") from error
    return BenchRun(path, record, read_outcomes(path))


def read_outcomes(folder: Path) -> dict[Cell, Outcome]:
    """Read the outcomes of a bench, those of all shards included.

    Parameters
    ----------
    folder : pathlib.Path
        The folder of the bench.

    Returns
    -------
    dict of Cell to Outcome
        The latest outcome per measured cell.
    """
    shards = sorted((folder / SHARDS).glob(f"*/{RESULTS}"))
    return latest(outcome for path in (folder / RESULTS, *shards) for outcome in _read_outcomes(path))


def shard_folder(folder: Path, shard: Shard) -> Path:
    """Return the folder in which a shard writes its results.

    Parameters
    ----------
    folder : pathlib.Path
        The folder of the bench.
    shard : Shard
        The shard.

    Returns
    -------
    pathlib.Path
    """
    return folder / SHARDS / shard.name


def append_outcome(folder: Path, outcome: Outcome) -> None:
    """Append the line of a finished cell in one write, flushed to disk.

    Parameters
    ----------
    folder : pathlib.Path
        The folder of the bench, or of the shard.
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


def drop_half_line(folder: Path) -> None:
    """Remove an incomplete last line of results, which a killed process left.

    Parameters
    ----------
    folder : pathlib.Path
        The folder of the bench, or of the shard; no other process may be writing there.
    """
    path = folder / RESULTS
    if not path.is_file():
        return
    with path.open("rb+") as file:
        content = file.read()
        end = content.rfind(b"\n") + 1
        if end < len(content):
            file.truncate(end)
            os.fsync(file.fileno())


def _data_table(table: Any) -> dict[str, Any]:
    return {**table, "noises": list(table["noises"])}


def _write_record(folder: Path, record: BenchRecord) -> None:
    write_json(folder / record_name(KIND), asdict(record))


def _plain(record: BenchRecord) -> dict[str, Any]:
    """The record as JSON stores it: tuples become lists."""
    plain: dict[str, Any] = json.loads(json.dumps(asdict(record)))
    return plain
