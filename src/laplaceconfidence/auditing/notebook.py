"""What a notebook shows of an audit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laplaceconfidence.auditing.statement import EVIDENCE_ALONE
from laplaceconfidence.data.identity import name_of
from laplaceconfidence.data.notebook import LONGEST_NAME, are_pictures, sample_html
from laplaceconfidence.notebook_html import (
    ORANGE,
    Html,
    bar,
    element,
    panel,
    section,
    shortened,
    table,
)
from laplaceconfidence.wording import counted, shortened_middle, told_apart

if TYPE_CHECKING:
    from laplaceconfidence.auditing.result import AuditResult

N_SUSPECTS = 10
N_PAIRS = 8
SIDE = 48  # pixels of a picture


def audit_html(result: AuditResult) -> str:
    """Show an audit as HTML: how many labels may be wrong, the worst of them, and the most confused classes.

    Parameters
    ----------
    result : AuditResult
        A finished audit.

    Returns
    -------
    str
    """
    parts = []
    statement = result.statement
    parts.append(table(("", ""), statement.facts))
    if statement.verifying is not None:
        parts.append(element("div", statement.verifying, class_="lc-note"))
    if n_listed := len(result.first_rows):
        heading = "Labels to look at first"
        if n_listed > N_SUSPECTS:
            heading += f" ({N_SUSPECTS} of {n_listed:,})"
        parts.append(section(heading, _suspects(result)))
        if result.support is not None:
            parts.append(element("div", EVIDENCE_ALONE, class_="lc-note"))
    if len(result.confused_pairs):
        parts.append(section("Most confused classes", _pairs(result)))
    parts.append(_further())
    return panel(statement.headline, *parts, note=_facts(result))


def _facts(result: AuditResult) -> str:
    facts = [f"estimator: {result.estimator_name}"]
    for column, what in (
        ("is_outlier_issue", "outlier"),
        ("is_near_duplicate_issue", "near-duplicate"),
    ):
        if column in result.table and (n := int(result.table[column].sum())):
            facts.append(counted(n, what))
    if "is_leaked" in result.table and (n := int(result.table["is_leaked"].sum())):
        facts.append(f"{counted(n, 'sample')} also in the test set")
    return "; ".join(facts)


def _suspects(result: AuditResult) -> Html:
    dataset, names = result.dataset, result.dataset.class_names
    worst = result.table.loc[result.first_rows[:N_SUSPECTS]]
    ids = worst["id"].astype(str).tolist()
    names_of_samples = [name_of(id, int(row)) for id, row in zip(ids, worst.index, strict=True)]
    short_names = told_apart(names_of_samples, LONGEST_NAME, shortened_middle)
    has_scores = result.support is None
    rows: list[tuple[object, ...]] = []
    for position, (row, listed) in enumerate(zip(worst.index, worst.to_dict("records"), strict=True)):
        code, probability = result.suggestion(int(row))
        cells = (
            element("span", short_names[position], title=ids[position]),
            shortened(names[int(dataset.labels[row])], LONGEST_NAME),
            element("b", shortened(names[code], LONGEST_NAME)),
            _decimals(probability),
            *[_decimals(listed["label_score"])] * has_scores,
        )
        if are_pictures(dataset):
            rows.append((sample_html(dataset, row, SIDE), *cells))
        else:
            rows.append((*cells, sample_html(dataset, row)) if dataset.sources is not None else cells)
    headings: tuple[str, ...] = ("id", "given", "suggested", "probability", *["score"] * has_scores)
    if are_pictures(dataset):
        headings = ("", *headings)
    elif dataset.sources is not None:
        headings = (*headings, "text")
    return table(headings, rows, numbers=("probability", "score"))


def _decimals(share: float) -> str:
    """Three decimals; what is nearly 0 or nearly 1 is not rounded to it."""
    if 0 < share < 0.0005:
        return "< 0.001"
    return "> 0.999" if 0.9995 <= share < 1 else f"{share:.3f}"


def _pairs(result: AuditResult) -> Html:
    pairs = result.confused_pairs
    most = int(pairs["n_issues"].max())
    rows = [
        (
            shortened(pair["given_name"], LONGEST_NAME),
            shortened(pair["suggested_name"], LONGEST_NAME),
            f"{pair['n_issues']:,}",
            f"{pair['issue_share']:.1%}",
            bar(pair["n_issues"] / most, ORANGE),
        )
        for pair in pairs.head(N_PAIRS).to_dict("records")
    ]
    headings = ("given", "predicted", "labels", "of the class", "")
    return table(headings, rows, numbers=("labels", "of the class"))


def _further() -> Html:
    names = (".table", ".explain(id)", ".plot_scores()", ".corrected_labels()", ".save(folder)")
    return element("div", "More: ", ", ".join(names), class_="lc-note", style="margin-top:6px")
