"""The result of tuning: which settings predict held-out noisy labels best."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.text import Text

from laplaceconfidence.cli.console import output, plain_table
from laplaceconfidence.cli.tune.request import TuneRequest
from laplaceconfidence.evaluation.contenders import value_text
from laplaceconfidence.files import replacing
from laplaceconfidence.records.bench_run import BenchRun, ContenderRecord
from laplaceconfidence.validation import must_be

TUNED = "tuned.toml"


@dataclass(frozen=True, slots=True, eq=False)
class Tried:
    """One combination of settings and its mean accuracy on the held-out noisy labels over the seeds."""

    contender: ContenderRecord
    accuracy: float
    error: float  # standard error, from the number of labels that were held out


def tried_settings(run: BenchRun) -> list[Tried]:
    """What was tried, in the order of the grid; combinations without a finished run are left out.

    Parameters
    ----------
    run : BenchRun
        The runs.

    Returns
    -------
    list of Tried
    """
    found = []
    for contender in run.record.contenders:
        scores = [
            outcome.scores for cell, outcome in run.outcomes.items() if cell.contender == contender.name
        ]
        accuracies = [
            float(one["validation_accuracy"] or 0) for one in scores if "validation_accuracy" in one
        ]
        if accuracies:
            mean = fmean(accuracies)
            n = sum(float(one.get("n_held_out") or 0) for one in scores)
            found.append(Tried(contender, mean, math.sqrt(mean * (1 - mean) / n) if n else math.nan))
    return found


def show_tuning(run: BenchRun, request: TuneRequest) -> None:
    """Print the accuracies of all combinations, and write the best one as a preset.

    Parameters
    ----------
    run : BenchRun
        The runs.
    request : TuneRequest
        The arguments of the command.
    """
    found = tried_settings(run)
    if not found:
        advice = "Set validation_fraction to a share such as 0.1."
        raise must_be("validation_fraction", "above 0: settings are chosen by held-out labels", 0, advice)
    best = max(found, key=lambda one: one.accuracy)  # the first of equal ones
    console, names = output(), list(best.contender.swept)
    console.print()
    table = plain_table("Accuracy on held-out noisy labels, in %", *names, "accuracy:", "")
    for one in found:
        is_close = one is not best and one.accuracy >= best.accuracy - best.error
        note = "best" if one is best else "within one standard error" if is_close else ""
        accuracy = f"{100 * one.accuracy:.2f} ± {100 * one.error:.2f}"
        values = [Text(value_text(one.contender.swept[name])) for name in names]
        table.add_row(*values, Text(accuracy, style="bold" if one is best else ""), note)
    console.print(table)
    console.print("± is the standard error for this number of held-out labels.", style="dim")
    path = write_tuned(run, best)
    chosen = ", ".join(f"{name}={value_text(value)}" for name, value in best.contender.swept.items())
    console.print()
    console.print(
        Text.assemble("Chosen: ", (chosen, "bold"), f", written as a preset to {path}."), soft_wrap=True
    )
    words = f"laplaceconfidence train {request.source} --preset {path}"
    console.print(Text.assemble("To train with it: ", (words, "bold")), soft_wrap=True)


def write_tuned(run: BenchRun, best: Tried) -> Path:
    """Write the chosen settings as a preset.

    Parameters
    ----------
    run : BenchRun
        The runs.
    best : Tried
        The chosen combination.

    Returns
    -------
    pathlib.Path
        The file.
    """
    (data,) = run.record.data.values()
    (settings,) = best.contender.settings.values()
    method = {name.removeprefix("method."): value for name, value in settings.items() if "." in name}
    training = {name: value for name, value in settings.items() if "." not in name}
    lines = [
        f"description = {json.dumps('Settings chosen by held-out noisy labels')}",
        f"extends = {json.dumps(data['preset'])}",
        "",
        "[training]",
        *(f"{name} = {toml_value(value)}" for name, value in training.items() if value is not None),
        "",
        "[method]",
        f"name = {json.dumps(best.contender.kind)}",
        *(f"{name} = {toml_value(value)}" for name, value in method.items() if value is not None),
    ]
    path = run.folder / TUNED
    with replacing(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def toml_value(value: Any) -> str:
    """A setting as TOML writes it: text, numbers, booleans, lists and tables of them."""
    if isinstance(value, Mapping):
        inner = ", ".join(f"{key} = {toml_value(one)}" for key, one in value.items() if one is not None)
        return f"{{ {inner} }}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(toml_value, value))}]"
    return json.dumps(value, ensure_ascii=False)
