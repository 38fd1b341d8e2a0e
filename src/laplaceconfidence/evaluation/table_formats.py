"""Tables of a benchmark as Markdown, CSV and LaTeX; the best of a column is bold."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from laplaceconfidence.csv_files import csv_text
from laplaceconfidence.evaluation.tables import Column, Table

BEST, LAST = "best_round_accuracy", "last_rounds_accuracy"
DASH = "–"

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
    """One section per table; published figures are in italics beside the measured ones."""
    parts = []
    for table in tables:
        lines = [["", *_heads(table)], ["---", *["---:"] * len(_heads(table))]]
        for contender in table.contenders:
            cells = []
            for column in table.columns:
                text = table.text(contender, column)
                cells.append(f"**{text}**" if table.is_best(contender, column) else text)
                if table.has_published(column):
                    figure = table.published_text(contender, column)
                    cells.append(figure if figure == DASH else f"*{figure}*")
            lines.append([_for_markdown(contender), *cells])
        body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        sources = "".join(f"\nPublished: {source}.\n" for source in table.published_sources)
        parts.append(f"## {table.title}\n\n{_about(table)}\n\n{body}\n{sources}")
    return "\n".join(parts)


def as_csv(tables: Sequence[Table]) -> str:
    """One line per metric, contender, data set and noise, with unrounded numbers."""
    import pandas as pd

    columns = ["task", "metric", "contender", "data", "noise"]
    columns += ["seeds", "mean", "standard_deviation", "is_best", "published", "published_source"]
    rows = [
        (
            *(table.task, table.metric.name, contender, column.data, column.noise.text),
            *((0, None, None) if found is None else (found.n, found.mean, found.deviation)),
            str(table.is_best(contender, column)).lower(),
            *((None, None) if figure is None else (figure.value, figure.source)),
        )
        for table in tables
        for contender in table.contenders
        for column in table.columns
        for found, figure in ((table.at(contender, column), table.published.get((contender, column))),)
        if found is not None or figure is not None
    ]
    return csv_text(pd.DataFrame(rows, columns=columns))


def as_latex(tables: Sequence[Table]) -> str:
    """One ``table`` per metric, for ``\\usepackage{booktabs}``; best and last rounds in one, as papers do."""
    parts = ["% Needs \\usepackage{booktabs}.\n"]
    by_metric = {table.metric.name: table for table in tables if table.task == "training"}
    if BEST in by_metric and LAST in by_metric:
        parts.append(_best_and_last(by_metric[BEST], by_metric[LAST]))
    for table in tables:
        rows = []
        for contender in table.contenders:
            cells = []
            for column in table.columns:
                cells.append(_latex_cell(table, contender, column))
                if table.has_published(column):
                    cells.append(rf"\textit{{{_for_latex(table.published_text(contender, column))}}}")
            rows.append(_latex_row(_for_latex(contender), *cells))
        head = _latex_row("", *map(_for_latex, _heads(table)))
        caption = f"{table.title}. {_about(table)}"
        parts.append(_latex_table(caption, table, "l" + "r" * len(_heads(table)), [head], rows))
    return "\n".join(parts)


def _best_and_last(best: Table, last: Table) -> str:
    """Both accuracies of every contender in rows, data and noises in columns, as in the paper."""
    rows: list[str] = []
    for contender in best.contenders:
        name = _for_latex(contender)
        for word, table in (("Best", best), ("Last", last)):
            rows.append(_latex_row(name, word, *(_latex_cell(table, contender, c) for c in table.columns)))
            name = ""
        if any(name == contender for name, _ in (*best.published, *last.published)):
            name = r"\quad\textit{published}"
            for word, table in (("Best", best), ("Last", last)):
                figures = (_for_latex(table.published_text(contender, column)) for column in table.columns)
                rows.append(_latex_row(name, word, *(rf"\textit{{{figure}}}" for figure in figures)))
                name = ""
        rows.append(r"\midrule")
    spans = [(data, len(list(group))) for data, group in groupby(best.columns, lambda column: column.data)]
    data = _latex_row("", "", *(rf"\multicolumn{{{n}}}{{c}}{{{_for_latex(name)}}}" for name, n in spans))
    noises = _latex_row("", "", *(_for_latex(column.noise.title) for column in best.columns))
    caption = (
        f"Test accuracy in %. {_seeds(last)}. Last: mean of the last 10 rounds. Best: of the best round, "
        "which was picked by the test set itself, for comparison only."
    )
    return _latex_table(caption, best, "ll" + "r" * len(best.columns), [data, noises], rows[:-1])


def _latex_table(caption: str, table: Table, columns: str, heads: list[str], rows: list[str]) -> str:
    caption += "".join(f" Published: {source}." for source in table.published_sources)
    lines = (
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_for_latex(caption)}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        *heads,
        r"\midrule",
        *rows,
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
        "",
    )
    return "\n".join(lines)


def _latex_row(*cells: str) -> str:
    return " & ".join(cells) + r" \\"


def _latex_cell(table: Table, contender: str, column: Column) -> str:
    text = _for_latex(table.text(contender, column)).replace("±", r"$\pm$")
    return rf"\textbf{{{text}}}" if table.is_best(contender, column) else text


def _heads(table: Table) -> list[str]:
    """Headings of the columns; one of published figures is beside every column that has some."""
    heads = []
    for column in table.columns:
        heads.append(table.head(column))
        if table.has_published(column):
            heads.append("published")
    return heads


def _about(table: Table) -> str:
    note, what = table.metric.note, _seeds(table)
    return f"{note[0].upper()}{note[1:]}. {what}." if note else f"{what}."


def _seeds(table: Table) -> str:
    seeds = sorted({found.n for found in table.entries.values()})
    number = "–".join(str(n) for n in (seeds[:1] + seeds[-1:] if len(seeds) > 1 else seeds)) or "no"
    return "1 seed" if seeds == [1] else f"Mean and standard deviation over {number} seeds"


def _for_markdown(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|")


def _for_latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)
