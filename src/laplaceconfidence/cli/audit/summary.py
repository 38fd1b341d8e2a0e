"""The summary that an audit prints: what it found, where the files are, and what to do next."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from laplaceconfidence.auditing.result import AuditResult
from laplaceconfidence.auditing.summary import headline
from laplaceconfidence.auditing.verified import VERIFIED_LABEL
from laplaceconfidence.cli.console import notices, output, plain_table, shown
from laplaceconfidence.cli.sources import features_line
from laplaceconfidence.confidence.noise_aware.settings import FEWEST_AUDITED
from laplaceconfidence.data.image_files import BadImage
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.records import AuditRun
from laplaceconfidence.records.review_sample import REVIEW_SAMPLE
from laplaceconfidence.wording import counted

MOST_ROWS = 5
MOST_SKIPPED = 10


def show_summary(result: AuditResult, run: AuditRun, *, n_suspects: int, verified: str | None = None) -> None:
    """Headline, worst classes, most confused pairs, first suspects, and where the files are.

    ``verified`` is the sentence about verified labels.
    """
    console = output()
    console.print()
    n_labeled = int((result.dataset.labels != MISSING).sum())
    n_missing = len(result.dataset) - n_labeled
    console.print(Text(headline(result.n_issues, n_labeled, n_missing=n_missing), style="bold"))
    console.print(Text(_background(result, run), style="dim"))
    if (line := features_line(result.dataset)) is not None:
        console.print(line, style="dim", markup=False, soft_wrap=True)
    if verified is not None:
        console.print(verified, markup=False)
    if (comparison := _against_truth(result)) is not None:
        console.print(comparison)
    if (found := _data_issues(result)) is not None:
        console.print(found)
        for line in _where_to_look(result, run):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    if result.n_issues:
        tables = [_class_table(result)]
        tables += [_pair_table(result)] * (len(result.confused_pairs) > 0)
        tables += [_suspect_table(result, n_suspects)] * (n_suspects > 0)
        for table in tables:
            console.print()
            console.print(table)
    console.print()
    show_files(console, run)


def show_skipped(skipped: list[BadImage]) -> None:
    """List the images that were left out."""
    if skipped:
        console = notices()
        console.print(f"{counted(len(skipped), 'image')} left out because of decoding errors:")
        for image in skipped[:MOST_SKIPPED]:
            console.print(f"  {image.path}", markup=False, soft_wrap=True)
        if len(skipped) > MOST_SKIPPED:
            console.print(f"  ... and {len(skipped) - MOST_SKIPPED:,} more, all listed in audit.json")


def show_next_steps(run: AuditRun) -> None:
    """Two ways to verify the labels drawn at random, and how to audit again with them."""
    n_drawn = len(run.record.review_sample)
    table = run.folder / REVIEW_SAMPLE
    console = output()
    console.print()
    console.print(Text(f"{counted(n_drawn, 'label')} drawn at random for you to verify.", style="bold"))
    if n_drawn < FEWEST_AUDITED:
        console.print(f"Fewer than {FEWEST_AUDITED} are taken as certain but do not calibrate the others.")
    for line, style in (
        (
            f"Either fill in the column {VERIFIED_LABEL} of {table} with the right label of every sample, "
            "even where the given one is right; leave it empty only where you are not sure. Then audit "
            "again with",
            "",
        ),
        (f"  --audited {table} --out ANOTHER_FOLDER", "cyan"),
        ("Or decide in the browser, which shows the same sample under 'Random sample':", ""),
        (f"  laplaceconfidence review {run.folder}", "cyan"),
        ("and audit again with", ""),
        (f"  --decisions {run.folder} --out ANOTHER_FOLDER", "cyan"),
    ):
        console.print(Text(line, style=style), soft_wrap=True)


def _data_issues(result: AuditResult) -> str | None:
    """Outliers, near-duplicates and leaks in one sentence; ``None`` where they were not looked for."""
    table = result.table
    if "is_outlier_issue" not in table:
        return None
    n_sets = table["near_duplicate_set"].nunique()
    n_duplicates = int(table["is_near_duplicate_issue"].sum())
    duplicates = f"{counted(n_duplicates, 'sample')} in {counted(n_sets, 'set')} of near-duplicates"
    if n_conflicts := table.loc[table["has_conflicting_duplicate"], "near_duplicate_set"].nunique():
        duplicates += f" ({counted(n_conflicts, 'set')} with conflicting labels)"
    parts = [counted(int(table["is_outlier_issue"].sum()), "outlier"), duplicates]
    if "is_leaked" in table:
        parts.append(f"{counted(int(table['is_leaked'].sum()), 'sample')} also in the test data")
    return f"Other issues: {', '.join(parts)}."


def _where_to_look(result: AuditResult, run: AuditRun) -> list[str]:
    """The commands that show outliers, near-duplicates and leaks, for those that there are."""
    flags = {"copies": "is_near_duplicate_issue", "leaks": "is_leaked", "outliers": "is_outlier_issue"}
    found = [queue for queue, flag in flags.items() if flag in result.table and result.table[flag].any()]
    if not found:
        return []
    others = f" (or {', '.join(found[1:])})" if found[1:] else ""
    return [
        f"  See them: laplaceconfidence report {run.folder}",
        f"  Decide:   laplaceconfidence review {run.folder} --queue {found[0]}{others}",
    ]


def show_files(console: Console, run: AuditRun) -> None:
    """The files of a run, and what each of them holds."""
    console.print(Text.assemble("Written to ", (f"{run.folder}/", "bold"), ":"), soft_wrap=True)
    files = [
        ("issues.csv", "every sample, the least trustworthy label first"),
        ("issues.parquet", "the same table"),
        ("evidence.parquet", "top classes and neighbors of every sample"),
        ("audit.json", "settings, versions, timings"),
    ]
    if run.record.review_sample:
        files.append((REVIEW_SAMPLE, "labels drawn at random for you to verify"))
    for name, meaning in files:
        console.print(f"  [bold]{name:<17}[/bold] {meaning}")


def _background(result: AuditResult, run: AuditRun) -> str:
    threshold = result.settings["threshold"]
    rule = (
        "flagged where another class is more probable than the given one"
        if threshold is None
        else f"flagged where the score is below {threshold:g}"
    )
    timings = result.timings
    slowest = max((name for name in timings if name != "total"), key=lambda name: timings[name])
    parts = [
        f"Estimator: {result.estimator_name!r}; labels are {rule}",
        f"expected share of wrong labels: {result.noise_rate:.1%}",
        f"{timings['total']:.1f} s, most of it {slowest}",
    ]
    if run.record.search == "ivf" and run.record.recall is not None:
        parts.append(f"the approximate search found {run.record.recall:.1%} of the neighbors")
    return "; ".join(parts) + "."


def _against_truth(result: AuditResult) -> str | None:
    """How many flags are right, where the data set comes with true labels."""
    from laplaceconfidence.evaluation.metrics import auroc

    truth, given = result.dataset.true_labels, result.dataset.labels
    if truth is None:
        return None
    known = (truth != MISSING) & (given != MISSING)
    by_row = result.table.sort_index()
    flagged = by_row["is_label_issue"].to_numpy()[known]
    wrong = (truth != given)[known]
    if not wrong.any():
        return f"According to the true labels, none is wrong; false alarms: {int(flagged.sum()):,}."
    hits = int((flagged & wrong).sum())
    area = auroc(by_row["label_score"].to_numpy()[known], ~wrong)
    return (
        f"According to the true labels, {int(wrong.sum()):,} are wrong: {hits / wrong.sum():.1%} of them are "
        f"flagged, and {hits / max(1, flagged.sum()):.1%} of the flags are right (AUROC {area:.3f})."
    )


def _class_table(result: AuditResult) -> Table:
    name_of = dict(zip(result.class_summary["label"], result.class_summary["name"], strict=True))
    table = plain_table("Worst classes", "class", "labels:", "look wrong:", "share:", "usual suggestion")
    for row in result.class_summary.head(MOST_ROWS).to_dict("records"):
        if row["n_issues"]:
            table.add_row(
                shown(row["name"]),
                f"{row['n_given']:,}",
                f"{row['n_issues']:,}",
                f"{row['issue_share']:.1%}",
                shown(name_of.get(row["usual_suggestion"], "")),
            )
    return table


def _pair_table(result: AuditResult) -> Table:
    table = plain_table(
        "Most confused", "given", "probably", "labels:", "share of class:", "mean probability:"
    )
    for row in result.confused_pairs.head(MOST_ROWS).to_dict("records"):
        table.add_row(
            shown(row["given_name"]),
            shown(row["suggested_name"]),
            f"{row['n_issues']:,}",
            f"{row['issue_share']:.1%}",
            f"{row['mean_probability']:.2f}",
        )
    return table


def _suspect_table(result: AuditResult, n_suspects: int) -> Table:
    names = result.dataset.class_names
    look_at = next((column for column in ("text", "path") if column in result.table.columns), None)
    neighborhood = result.neighborhood
    headings = ["id", "given", "probably", "probability:", "score:"]
    headings += ["neighbors that agree"] * (neighborhood is not None) + ([look_at] if look_at else [])
    table = plain_table("First suspects", *headings)
    flagged = result.table[result.table["is_label_issue"]].head(n_suspects)
    for row, sample in zip(flagged.index, flagged.to_dict("records"), strict=True):
        cells: list[Any] = [
            shown(sample["id"], 24),
            shown(names[result.dataset.labels[row]], 24),
            shown(names[result.predicted[row]], 24),
            f"{sample['predicted_probability']:.2f}",
            _score(sample["label_score"]),
        ]
        if neighborhood is not None:
            neighbors = neighborhood.of(int(row)).rows
            n_agree = int(np.sum(result.dataset.labels[neighbors] == result.predicted[row]))
            cells.append(f"{n_agree} of {len(neighbors)}")
        if look_at is not None:
            cells.append(shown(sample[look_at], 48))
        table.add_row(*cells)
    return table


def _score(score: float) -> str:
    return "<0.001" if score < 0.001 else f"{score:.3f}"
