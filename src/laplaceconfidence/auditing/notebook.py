"""What a notebook shows of an audit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laplaceconfidence.auditing.diagnostics import fit_diagnostics
from laplaceconfidence.auditing.summary import headline
from laplaceconfidence.data.identity import name_of
from laplaceconfidence.data.labels import MISSING
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
from laplaceconfidence.wording import counted

if TYPE_CHECKING:
    from laplaceconfidence.auditing.result import AuditResult

N_SUSPECTS = 10
N_PAIRS = 8
SIDE = 48  # pixels of a picture


def audit_html(result: AuditResult) -> str:
    """Show an audit as HTML: how many labels look wrong, the worst of them, and the most confused classes.

    Parameters
    ----------
    result : AuditResult
        A finished audit.

    Returns
    -------
    str
    """
    parts = []
    if result.n_issues:
        heading = "Flagged labels, the least trustworthy first"
        if result.n_issues > N_SUSPECTS:
            heading += f" ({N_SUSPECTS} of {result.n_issues:,})"
        parts.append(section(heading, _suspects(result)))
    if len(result.confused_pairs):
        parts.append(section("Most confused classes", _pairs(result)))
    parts.append(_further())
    n_labeled = int((result.dataset.labels != MISSING).sum())
    return panel(headline(result.n_issues, n_labeled), *parts, note=_facts(result))


def _facts(result: AuditResult) -> str:
    facts = [f"estimated share of wrong labels: {result.noise_rate:.1%}"]
    bracket = fit_diagnostics(result.estimator).noise_rate_bracket
    if bracket is not None:
        facts[0] += f" (between {bracket[0]:.1%} and {bracket[1]:.1%})"
    if n_missing := int((result.dataset.labels == MISSING).sum()):
        facts.append(f"{counted(n_missing, 'sample')} without a label")
    for column, what in (
        ("is_outlier_issue", "outlier"),
        ("is_near_duplicate_issue", "near-duplicate"),
    ):
        if column in result.table and (n := int(result.table[column].sum())):
            facts.append(counted(n, what))
    if "is_leaked" in result.table and (n := int(result.table["is_leaked"].sum())):
        facts.append(f"{counted(n, 'sample')} also in the test set")
    return "; ".join([*facts, f"estimator: {result.estimator_name}"])


def _suspects(result: AuditResult) -> Html:
    dataset, names = result.dataset, result.dataset.class_names
    worst = result.table[result.table["is_label_issue"]].head(N_SUSPECTS)
    rows: list[tuple[object, ...]] = []
    for row, listed in zip(worst.index.tolist(), worst.to_dict("records"), strict=True):
        cells = (
            shortened(name_of(str(listed["id"]), row), LONGEST_NAME),
            shortened(names[int(dataset.labels[row])], LONGEST_NAME),
            element("b", shortened(names[int(result.predicted[row])], LONGEST_NAME)),
            _decimals(listed["predicted_probability"]),
            _decimals(listed["label_score"]),
        )
        if are_pictures(dataset):
            rows.append((sample_html(dataset, row, SIDE), *cells))
        else:
            rows.append((*cells, sample_html(dataset, row)) if dataset.sources is not None else cells)
    headings: tuple[str, ...] = ("id", "given", "predicted", "probability", "score")
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
