"""Write docs/small-tables.md from the small benches that were measured.

    python benchmarks/small_tables.py [FOLDER ...]

Folders of finished or unfinished benches (``laplaceconfidence bench small-table --out FOLDER``) are first
copied to ``benchmarks/results/benches``: what was measured on what and the scores of every cell, those of
all shards in one file, but not the runs. A bench that finds these two files in its folder goes on from there.
Remarks are in ``small_tables.toml``.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import tomllib
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from laplaceconfidence.files import replacing
from laplaceconfidence.wording import counted
from markdown import table, wrapped
from measuring import RESULTS

STORED = RESULTS / "benches"
PAGE = Path(__file__).parents[1] / "docs" / "small-tables.md"
TEXTS = Path(__file__).with_suffix(".toml")
DESCRIPTION, SCORES = "bench.json", "results.jsonl"
METRICS = {
    "last_rounds_accuracy": "Test accuracy, mean of the last ten rounds",
    "chosen_round_accuracy": "Test accuracy of the round chosen by held-out given labels",
}
# Named before anything is measured: the better of two variants would be chosen by the test set.
JUDGED = "laplace, noise-aware"
PAPERS = "laplace"
PLAIN = "cross_entropy"
HEAD = """# Small tables

The paper's comparison at a size that two cores finish: every method under its published settings, with as
many passes over the data for each. Written by `benchmarks/small_tables.py` from the benches in
`benchmarks/results/benches`; the command that makes a bench stands above its tables. Means in % over the
seeds, with the standard deviation; where all cells were measured, the best of a column is bold. "laplace" is
the paper's method with the settings that it was published with for that noise, "laplace, noise-aware" that of
the preset, with the noise-aware estimator. The test set chooses nothing.
"""

Column = tuple[str, str]  # data and noise


@dataclass(frozen=True)
class Bench:
    """The scores of a bench: contender and column to those of every seed."""

    name: str
    title: str
    n_test: int
    expected: list[tuple[str, Column, int]]
    cells: dict[tuple[str, Column], list[dict[str, float]]]
    machines: list[str]

    @property
    def contenders(self) -> list[str]:
        return list(dict.fromkeys(contender for contender, _, _ in self.expected))

    @property
    def columns(self) -> list[Column]:
        return list(dict.fromkeys(column for _, column, _ in self.expected))

    @property
    def n_measured(self) -> int:
        return sum(map(len, self.cells.values()))

    @property
    def n_missing(self) -> int:
        return len(self.expected) - self.n_measured

    def values(self, contender: str, column: Column, metric: str) -> list[float]:
        return [100 * scores[metric] for scores in self.cells.get((contender, column), ())]

    def standard_error(self, values: list[float]) -> float:
        """That of the mean over the seeds; of one seed, that of a share of the test samples."""
        if len(values) > 1:
            return stdev(values) / math.sqrt(len(values))
        return math.sqrt(values[0] * (100 - values[0]) / self.n_test)


def read(folder: Path) -> Bench:
    description = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
    cells: dict[tuple[str, Column], list[dict[str, float]]] = defaultdict(list)
    machines = set()
    for line in (folder / SCORES).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if "scores" in row:
            cells[row["contender"], (row["data"], row["noise"])].append(row["scores"])
            machines.add(row["machine"])
    expected = [
        (contender["name"], (data, noise), seed)
        for contender in description["contenders"]
        for data, facts in description["data"].items()
        for noise in facts["noises"]
        if f"{data}, {noise}" in contender["settings"]
        for seed in description["seeds"]
    ]
    tests = next(iter(description["data"].values()))["tests"]
    n_test = int(next(iter(tests.values())).split(" ")[0].replace(",", ""))
    return Bench(folder.name, description["title"], n_test, expected, dict(cells), sorted(machines))


def noise_name(noise: str) -> str:
    kind, _, rate = noise.partition(":")
    return f"{kind} {float(rate):.0%}" if rate else kind


def scores_table(bench: Bench, metric: str) -> str:
    several = len({data for data, _ in bench.columns}) > 1
    names = [
        f"{data}, {noise_name(noise)}" if several else noise_name(noise) for data, noise in bench.columns
    ]
    best = {}
    for column in bench.columns:
        means = [mean(v) for c in bench.contenders if (v := bench.values(c, column, metric))]
        best[column] = max(means, default=math.nan)
    rows = []
    measured = [
        c for c in bench.contenders if any(bench.values(c, column, metric) for column in bench.columns)
    ]
    for contender in measured:
        row = [contender]
        for column in bench.columns:
            values = bench.values(contender, column, metric)
            if not values:
                row.append("")
                continue
            shown = f"{mean(values):.1f}" + (f" ± {stdev(values):.1f}" if len(values) > 1 else "")
            row.append(f"**{shown}**" if not bench.n_missing and mean(values) == best[column] else shown)
        rows.append(row)
    return table(["", *names], rows)


def verdicts(bench: Bench, metric: str) -> list[str]:
    """In which columns the noise-aware variant is first or within one standard error, and where it is not."""
    lines, near, n_compared, below = [], 0, 0, []
    for column in bench.columns:
        values = {c: v for c in bench.contenders if (v := bench.values(c, column, metric))}
        others = {c: mean(v) for c, v in values.items() if not c.startswith(PAPERS)}
        if JUDGED not in values or not others:
            continue
        n_compared += 1
        own, first = mean(values[JUDGED]), max(others, key=others.get)
        name = f"{column[0]}, {noise_name(column[1])}"
        if own >= others[first] - bench.standard_error(values[first]):
            near += 1
        else:
            lines.append(f"{name}: {first} {others[first]:.1f}, {JUDGED} {own:.1f}")
        if PLAIN in others and own < others[PLAIN]:
            below.append(f"{name} ({others[PLAIN]:.1f} against {own:.1f})")
    if not n_compared:
        return []
    said = [
        f"{METRICS[metric]}: first or within one standard error of the first in {near} of {n_compared} "
        "columns."
    ]
    if lines:
        said.append("Behind: " + "; ".join(lines) + ".")
    said.append("Below cross-entropy: " + ("; ".join(below) if below else "nowhere") + ".")
    return said


def section(bench: Bench, text: dict[str, Any]) -> str:
    missing = f"; {bench.n_missing} were not measured yet" if bench.n_missing else ""
    state = counted(bench.n_measured, "cell") + missing
    parts = [
        f"## {bench.title}",
        f"`laplaceconfidence bench {bench.name}`: {state}; {' and '.join(bench.machines)}.",
    ]
    metrics = [metric for metric in METRICS if any(metric in s[0] for s in bench.cells.values())]
    for metric in metrics:
        parts += [f"### {METRICS[metric]}", scores_table(bench, metric).rstrip()]
    if not bench.n_missing:
        parts += [
            " ".join(verdicts(bench, metric)) for metric in metrics if text.get("compares_methods", True)
        ]
    parts += [" ".join(paragraph.split()) for paragraph in text.get("remarks", [])]
    return "\n\n".join(part for part in parts if part)


def store(folder: Path) -> None:
    """Copy what was measured in the folder of a bench to those that are committed."""
    kept = STORED / folder.name
    kept.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(folder / DESCRIPTION, kept / DESCRIPTION)
    parts = [path for path in (folder / SCORES, *sorted(folder.glob(f"shards/*/{SCORES}"))) if path.exists()]
    with replacing(kept / SCORES) as temporary:
        temporary.write_text("".join(path.read_text(encoding="utf-8") for path in parts), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="*", type=Path, help="folders of benches whose results are new")
    options = parser.parse_args()
    for folder in options.folders:
        store(folder)
    texts = tomllib.loads(TEXTS.read_text(encoding="utf-8"))
    sections = [
        section(read(STORED / name), text) for name, text in texts.items() if (STORED / name).exists()
    ]
    sections = sections or ["No bench has been measured yet, so there are no tables here."]
    with replacing(PAGE) as temporary:
        temporary.write_text(wrapped("\n".join([HEAD, "\n\n".join(sections)])) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
