"""Tables of a benchmark as Markdown, CSV and LaTeX; the best of a column is bold."""

from __future__ import annotations

from collections.abc import Sequence

from laplaceconfidence.csv_files import csv_text
from laplaceconfidence.evaluation.tables import Table

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "–": "--",
}


def as_markdown(tables: Sequence[Table]) -> str:
    """One section per table."""
    parts = []
    for table in tables:
        heads = [table.head(column) for column in table.columns]
        lines = [["", *heads], ["---", *["---:"] * len(heads)]]
        for contender in table.contenders:
            cells = [
                f"**{text}**" if table.is_best(contender, column) else text
                for column in table.columns
                for text in (table.text(contender, column),)
            ]
            lines.append([_for_markdown(contender), *cells])
        body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        parts.append(f"## {table.title}\n\n{_about(table)}\n\n{body}\n")
    return "\n".join(parts)


def as_csv(tables: Sequence[Table]) -> str:
    """One line per metric, contender, data set and noise, with unrounded numbers."""
    import pandas as pd

    columns = ["task", "metric", "contender", "data", "noise"]
    columns += ["seeds", "mean", "standard_deviation", "is_best"]
    rows = [
        (
            *(table.task, table.metric.name, contender, column.data, column.noise.text),
            *(found.n, found.mean, found.deviation),
            str(table.is_best(contender, column)).lower(),
        )
        for table in tables
        for contender in table.contenders
        for column in table.columns
        if (found := table.at(contender, column)) is not None
    ]
    return csv_text(pd.DataFrame(rows, columns=columns))


def as_latex(tables: Sequence[Table]) -> str:
    """One ``table`` per metric, for ``\\usepackage{booktabs}``."""
    parts = ["% Needs \\usepackage{booktabs}.\n"]
    for table in tables:
        rows = []
        for contender in table.contenders:
            cells = []
            for column in table.columns:
                text = _for_latex(table.text(contender, column)).replace("±", r"$\pm$")
                cells.append(rf"\textbf{{{text}}}" if table.is_best(contender, column) else text)
            rows.append(" & ".join([_for_latex(contender), *cells]) + r" \\")
        head = " & ".join(["", *(_for_latex(table.head(column)) for column in table.columns)]) + r" \\"
        parts.append(
            "\n".join(
                (
                    r"\begin{table}",
                    r"\centering",
                    rf"\caption{{{_for_latex(f'{table.title}. {_about(table)}')}}}",
                    rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
                    r"\toprule",
                    head,
                    r"\midrule",
                    *rows,
                    r"\bottomrule",
                    r"\end{tabular}",
                    r"\end{table}",
                    "",
                )
            )
        )
    return "\n".join(parts)


def _about(table: Table) -> str:
    seeds = sorted({found.n for found in table.entries.values()})
    number = "–".join(str(n) for n in (seeds[:1] + seeds[-1:] if len(seeds) > 1 else seeds)) or "no"
    what = "1 seed" if seeds == [1] else f"Mean and standard deviation over {number} seeds"
    note = table.metric.note
    return f"{note[0].upper()}{note[1:]}. {what}." if note else f"{what}."


def _for_markdown(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|")


def _for_latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)
