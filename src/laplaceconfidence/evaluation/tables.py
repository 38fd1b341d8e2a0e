"""Tables of the outcomes of a benchmark: mean and deviation over seeds, contenders by data and noises."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from laplaceconfidence.evaluation.bench_metrics import METRICS, Metric
from laplaceconfidence.evaluation.grid import BenchTask, Grid, Outcome
from laplaceconfidence.evaluation.noises import Noise
from laplaceconfidence.evaluation.published_results import PublishedResult

TASK_TITLES: dict[BenchTask, str] = {"confidence": "Estimators", "training": "Training methods"}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: one data set under one noise."""

    data: str
    noise: Noise

    @property
    def title(self) -> str:
        """Data and noise in words."""
        return f"{self.data}, {self.noise.title}"


Published = Callable[[str, Column, str], PublishedResult | None]


@dataclass(frozen=True, slots=True)
class Summary:
    """A metric over the seeds of one contender and noise."""

    mean: float
    deviation: float | None  # of the sample; None for a single seed
    n: int


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """One metric of all contenders on all data under all noises."""

    task: BenchTask
    metric: Metric
    contenders: tuple[str, ...]
    columns: tuple[Column, ...]
    entries: dict[tuple[str, Column], Summary]  # by contender and column, if there are results
    published: dict[tuple[str, Column], PublishedResult] = field(default_factory=dict)

    def with_published(self, published: Published) -> Table:
        """The table with the published figures of its cells."""
        found = {
            (contender, column): figure
            for contender in self.contenders
            for column in self.columns
            if (figure := published(contender, column, self.metric.name)) is not None
        }
        return replace(self, published=found)

    @property
    def title(self) -> str:
        """Heading of the table."""
        return f"{TASK_TITLES[self.task]}: {self.metric.title}"

    @property
    def has_several_data(self) -> bool:
        """Whether the columns are of more than one data set."""
        return len({column.data for column in self.columns}) > 1

    def head(self, column: Column) -> str:
        """Heading of a column: the data are named if there are several."""
        return column.title if self.has_several_data else column.noise.title

    def at(self, contender: str, column: Column) -> Summary | None:
        """The results of a contender in a column."""
        return self.entries.get((contender, column))

    def text(self, contender: str, column: Column, plus_minus: str = " ± ") -> str:
        """Format ``mean ± deviation``, or a dash if there are no results."""
        found = self.at(contender, column)
        if found is None:
            return "–"
        shown = self.metric.shown(found.mean)
        return shown if found.deviation is None else shown + plus_minus + self.metric.shown(found.deviation)

    def has_published(self, column: Column) -> bool:
        """Whether papers state figures for a column."""
        return any(place == column for _, place in self.published)

    def published_text(self, contender: str, column: Column) -> str:
        """The published figure with its own digits, or a dash if there is none."""
        found = self.published.get((contender, column))
        scale = 100 if self.metric.unit == "percent" else 1
        return "–" if found is None else f"{scale * found.value:.4g}"

    @property
    def published_sources(self) -> list[str]:
        """Where the published figures stand."""
        return list(dict.fromkeys(found.source for found in self.published.values()))

    def best(self, column: Column) -> frozenset[str]:
        """The best contenders of a column; several if they are equal, none if there is only one."""
        means = {name: found.mean for name in self.contenders if (found := self.at(name, column)) is not None}
        if len(means) < 2:
            return frozenset()
        choose = max if self.metric.best == "highest" else min
        lead = self.metric.rounded(choose(means.values()))
        return frozenset(name for name, mean in means.items() if self.metric.rounded(mean) == lead)

    def is_best(self, contender: str, column: Column) -> bool:
        """Whether a contender is among the best of a column."""
        return contender in self.best(column)

    @property
    def n_compared(self) -> int:
        """Number of columns with at least two contenders."""
        return sum(bool(self.best(column)) for column in self.columns)

    def wins(self) -> dict[str, int]:
        """Number of columns in which each contender is best, alone or with others, largest first."""
        best = [self.best(column) for column in self.columns]
        counts = {name: sum(name in names for names in best) for name in self.contenders}
        return dict(sorted(counts.items(), key=lambda item: -item[1]))


def summarize_seeds(values: Iterable[float]) -> Summary | None:
    """Mean and sample standard deviation of the finite values; ``None`` if there are none."""
    known = [value for value in values if math.isfinite(value)]
    if not known:
        return None
    deviation = statistics.stdev(known) if len(known) > 1 else None
    return Summary(statistics.fmean(known), deviation, len(known))


def build_tables(
    outcomes: Sequence[Outcome], task: BenchTask, grid: Grid, published: Published | None = None
) -> list[Table]:
    """Make one table per metric of the task that was measured, from one outcome per cell.

    Parameters
    ----------
    outcomes : sequence of Outcome
        What was measured.
    task : {"confidence", "training"}
        The task.
    grid : Grid
        The cells.
    published : callable, optional
        From a contender, a column and the name of a metric to the published figure, or None.

    Returns
    -------
    list of Table
    """
    columns = {(data, noise): Column(data, Noise.parse(noise)) for data, noise in grid.columns}
    own = [outcome for outcome in outcomes if outcome.cell.task == task]
    tables: list[Table] = []
    for metric in _metrics(task, own):
        values: dict[tuple[str, Column], list[float]] = {}
        for outcome in own:
            value = outcome.scores.get(metric.name)
            column = columns.get((outcome.cell.data, outcome.cell.noise))
            if value is not None and column is not None:
                values.setdefault((outcome.cell.contender, column), []).append(value)
        entries = {key: found for key, all_ in values.items() if (found := summarize_seeds(all_)) is not None}
        if entries or not tables:
            table = Table(task, metric, grid.names(task), tuple(columns.values()), entries)
            tables.append(table if published is None else table.with_published(published))
    return tables


def chosen_tables(tables: Sequence[Table], metrics: Sequence[str]) -> list[Table]:
    """The tables of some metrics in their order, on every test set; all tables if none is named.

    Parameters
    ----------
    tables : sequence of Table
        The tables of a task.
    metrics : sequence of str
        Names of metrics.

    Returns
    -------
    list of Table
        All tables but those of optional metrics where none is of these metrics.
    """
    found = [table for name in metrics for table in tables if table.metric.name.partition("@")[0] == name]
    return found or [table for table in tables if not table.metric.is_optional]


def _metrics(task: BenchTask, outcomes: Sequence[Outcome]) -> list[Metric]:
    """The metrics of a task; those of accuracy again for every further test set."""
    scores = [name.partition("@") for outcome in outcomes for name in outcome.scores]
    tests = dict.fromkeys(test for _, _, test in scores if test)
    further = {name for name, _, test in scores if test}
    metrics = []
    for metric in METRICS[task]:
        metrics.append(metric)
        if metric.name in further:
            metrics += [metric.on_test(test) for test in tests]
    return metrics


def leader_sentence(table: Table) -> str:
    """State in a sentence which contender is best in how many columns."""
    n = table.n_compared
    wins = {name: count for name, count in table.wins().items() if count}
    if not wins:
        alone = len(table.contenders) == 1
        return (
            f"{table.contenders[0]} is the only contender." if alone else "There is nothing to compare yet."
        )
    most = max(wins.values())
    leaders = [name for name, count in wins.items() if count == most]
    what = "combinations of data and noise" if table.has_several_data else "noises"
    where = f"all {n} {what}" if most == n > 1 else f"{most} of {n} {what}" if n > 1 else "the one noise"
    by = f"by {_lower(table.metric.title)}"
    if len(leaders) == 1:
        return f"{leaders[0]} is best under {where} {by}."
    listed = ", ".join(leaders[:-1]) + f" and {leaders[-1]}"
    return f"{listed} are best under {where}{'' if most == n else ' each'} {by}."


def _lower(title: str) -> str:
    return title if title.isupper() else title[0].lower() + title[1:]
