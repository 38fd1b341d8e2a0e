"""The summary that an audit prints: what it found, where the files are, and what to do next."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from laplaceconfidence.arrays import BoolArray, FloatArray
from laplaceconfidence.auditing.diagnostics import fit_diagnostics
from laplaceconfidence.auditing.result import AuditResult
from laplaceconfidence.auditing.statement import EVIDENCE_ALONE, VERIFIED_LABELS, AuditStatement
from laplaceconfidence.auditing.verified_tables import VERIFIED_LABEL
from laplaceconfidence.cli.audit.annotators import annotator_table
from laplaceconfidence.cli.console import notices, one_line, output, plain_table, shown
from laplaceconfidence.cli.sources import ImageFeatures, features_line
from laplaceconfidence.confidence.noise_aware.settings import FEWEST_AUDITED
from laplaceconfidence.data.identity import is_digest
from laplaceconfidence.data.image_files import BadImage
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.records import AuditRun
from laplaceconfidence.records.audit_run import LEARNED_FEATURES
from laplaceconfidence.records.review_sample import REVIEW_SAMPLE
from laplaceconfidence.wording import counted, percent, shortened_left, shortened_middle, told_apart

if TYPE_CHECKING:
    import pandas as pd

_OTHER_FLAGS = {
    "is_image_issue": ("odd image",),
    "is_empty_issue": ("empty text",),
    "is_missing_value_issue": ("sample with most values missing", "samples with most values missing"),
    "is_rare_class_issue": ("sample of a rare class", "samples of rare classes"),
    "is_group_issue": (
        "sample in a group with many wrong labels",
        "samples in groups with many wrong labels",
    ),
}
MOST_ROWS = 5
MOST_SKIPPED = 10


def show_summary(
    result: AuditResult,
    run: AuditRun,
    *,
    n_suspects: int,
    verified: str | None = None,
    command: tuple[str, ...] = (),
) -> None:
    """Headline, estimate, flags, worst classes, most confused pairs, first labels, and where the files are.

    ``verified`` is the sentence about verified labels, ``command`` the words of the command, so that a
    command that goes on from it can be copied.
    """
    console = output()
    console.print()
    statement = result.statement
    console.print(Text(statement.headline, style="bold"))
    console.print(_facts_table(statement))
    console.print(Text(_background(result, run), style="dim"))
    weights = fit_diagnostics(result.estimator).view_weights
    if (line := features_line(result.dataset, weights=weights)) is not None:
        console.print(line, style="dim", markup=False, soft_wrap=True)
    if result.annotation is not None:
        for line in result.annotation.summary.sentences:
            console.print(line, markup=False, highlight=False)
    if verified is not None:
        console.print(verified, markup=False)
    truth, given = result.dataset.true_labels, result.dataset.labels
    if truth is not None:
        by_row, is_known = result.table.sort_index(), (truth != MISSING) & (given != MISSING)
        scores, flagged = (by_row[name].to_numpy()[is_known] for name in ("label_score", "is_label_issue"))
        console.print(against_truth((truth != given)[is_known], flagged, scores))
    if (found := _data_issues(result)) is not None:
        console.print(found)
        for line in _where_to_look(result, run):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    if (missing := _missing_values(result)) is not None:
        console.print(missing, markup=False, highlight=False)
    if result.row_order is not None and result.row_order.statement is not None:
        console.print(result.row_order.statement, markup=False, highlight=False)
    if statement.verifying is not None:
        console.print()
        console.print(Text(statement.verifying, style="bold"))
        if run.record.review_sample:
            console.print("A random sample was drawn; how to verify it is at the end.")
        else:
            _show_how_to_verify(console, run, command)
    tables = [] if result.annotation is None else [annotator_table(result.annotation)]
    tables += [_class_table(result)] * (result.n_issues > 0)
    tables += [_pair_table(result)] * (len(result.confused_pairs) > 0)
    if min(n_suspects, len(result.first_rows)) > 0:
        list_suspects = _suspect_texts if result.dataset.source_kind == "text" else _suspect_table
        tables.append(list_suspects(result, n_suspects, console.width))
    for table in tables:
        console.print()
        console.print(table)
    if n_suspects and result.support is not None:
        console.print(Text(EVIDENCE_ALONE, style="dim"))
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


def show_reused(folder: Path | None) -> None:
    """Say that the features of an earlier audit were used again."""
    if folder is not None:
        text = f"Features not learned again: those in {folder} are of the same data and settings."
        notices().print(Text(text), soft_wrap=True)


def show_encoders(found: ImageFeatures) -> None:
    """Say that a pretrained network would describe images better than one that these labels trained."""
    if found.described:
        text = (
            "The features were learned from these images and labels alone. Those of a pretrained network "
            "usually tell far more: --encoder timm:NAME, hf:NAME, torchvision:NAME or a model.onnx, for "
            "example after pip install 'laplaceconfidence[timm]'."
        )
        notices().print(Text(text), soft_wrap=True)


def show_next_steps(run: AuditRun) -> None:
    """Two ways to verify the labels drawn at random, and how to audit again with them."""
    n_drawn = len(run.record.review_sample)
    table = run.folder / REVIEW_SAMPLE
    console = output()
    console.print()
    n_uncertain = len(run.record.review_uncertain)
    more = f", and {n_uncertain:,} whose answer is least certain," if n_uncertain else ""
    console.print(Text(f"{counted(n_drawn, 'label')} drawn at random{more} for you to verify.", style="bold"))
    console.print(run.record.statement.error_of_sample(n_drawn), markup=False, highlight=False)
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


def _facts_table(statement: AuditStatement) -> Table:
    """Expected, flagged and listed labels, one below the other."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in statement.facts:
        table.add_row(f"{name}:", Text(text))
    return table


def _show_how_to_verify(console: Console, run: AuditRun, command: tuple[str, ...]) -> None:
    """The commands for drawing a random sample and for auditing again with what a person found."""
    again = shlex.join(["laplaceconfidence", *command])
    folder = shlex.quote(str(run.folder))
    verified = shlex.quote(f"{run.folder}-verified")
    table = shlex.quote(str(run.folder / REVIEW_SAMPLE))
    lines = [
        (f"  {again} --sample-for-review {VERIFIED_LABELS} --out {folder} --overwrite", "cyan"),
        (f"Fill in {VERIFIED_LABEL} in {table}, and audit again:", ""),
        (f"  {again} --audited {table} --out {verified}", "cyan"),
    ]
    if "--decisions" not in command:  # which takes those of one review only
        lines += [
            ("Or decide in the browser, which shows a random sample first, and audit again:", ""),
            (f"  laplaceconfidence review {folder}", "cyan"),
            (f"  {again} --decisions {folder} --out {verified}", "cyan"),
        ]
    for line, style in lines:
        console.print(Text(line, style=style), soft_wrap=style == "cyan")


def _data_issues(result: AuditResult) -> str | None:
    """What was found besides wrong labels in one sentence; ``None`` where nothing was looked for."""
    table = result.table
    parts = [
        counted(int(table[flag].sum()), *noun)
        for flag, noun in _OTHER_FLAGS.items()
        if flag in table and table[flag].any()
    ]
    if "is_outlier_issue" not in table:
        return f"Other issues: {', '.join(parts)}." if parts else None
    n_sets = table["near_duplicate_set"].nunique()
    n_duplicates = int(table["is_near_duplicate_issue"].sum())
    duplicates = f"{counted(n_duplicates, 'sample')} in {counted(n_sets, 'set')} of near-duplicates"
    if n_conflicts := table.loc[table["has_conflicting_duplicate"], "near_duplicate_set"].nunique():
        duplicates += f" ({counted(n_conflicts, 'set')} with conflicting labels)"
    first = [counted(int(table["is_outlier_issue"].sum()), "outlier"), duplicates]
    if "is_leaked" in table:
        first.append(f"{counted(int(table['is_leaked'].sum()), 'sample')} also in the test data")
    parts = first + parts
    return f"Other issues: {', '.join(parts)}."


def _missing_values(result: AuditResult) -> str | None:
    """The columns with most empty cells, in one sentence; ``None`` where there are none."""
    if result.dataset.columns is None:
        return None
    n, counts = len(result.dataset), result.dataset.columns.n_empty()
    found = sorted(((name, count) for name, count in counts.items() if count), key=lambda item: -item[1])
    if not found:
        return None
    shown = ", ".join(f"{name} {count:,} ({percent(count / n)})" for name, count in found[:MOST_ROWS])
    others = f" and {len(found) - MOST_ROWS} more columns" if len(found) > MOST_ROWS else ""
    return f"Missing values: {shown}{others}."


def _where_to_look(result: AuditResult, run: AuditRun) -> list[str]:
    """The commands that show what was found besides wrong labels, for what there is."""
    flags = {
        "copies": "is_near_duplicate_issue",
        "leaks": "is_leaked",
        "outliers": "is_outlier_issue",
        "images": "is_image_issue",
        "empty": "is_empty_issue",
        "missing": "is_missing_value_issue",
        "groups": "is_group_issue",
        "rare": "is_rare_class_issue",
        "order": "is_row_order_issue",
    }
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
        ("audit.json", "what was found, settings, versions, timings"),
    ]
    if run.record.annotation is not None:
        files += [
            ("labels.csv", "every single label, the least trustworthy first"),
            ("annotators.csv", "every annotator: accuracy, what they confuse, whom they copy"),
            ("questions.csv", "which labels to ask for next, and whom"),
        ]
    if LEARNED_FEATURES in run.record.files:
        files.append((LEARNED_FEATURES, "what the network learned; used again by audits of the same data"))
    if run.record.review_sample:
        files.append((REVIEW_SAMPLE, "labels drawn at random for you to verify"))
    for name, meaning in files:
        console.print(f"  [bold]{name:<20}[/bold] {meaning}")


def _background(result: AuditResult, run: AuditRun) -> str:
    timings = result.timings
    slowest = max((name for name in timings if name != "total"), key=lambda name: timings[name])
    parts = [f"Estimator: {result.estimator_name!r}", f"{timings['total']:.1f} s, most of it {slowest}"]
    if run.record.search == "ivf" and run.record.recall is not None:
        parts.append(f"the approximate search found {run.record.recall:.1%} of the neighbors")
    return "; ".join(parts) + "."


def against_truth(wrong: BoolArray, flagged: BoolArray, scores: FloatArray) -> str:
    """Say how many flags are right, where the data come with true labels.

    Parameters
    ----------
    wrong : ndarray of bool, shape (n,)
        Which given labels are not the true ones.
    flagged : ndarray of bool, shape (n,)
        Which are flagged.
    scores : ndarray of shape (n,)
        Probabilities that they are right.

    Returns
    -------
    str
    """
    from laplaceconfidence.evaluation.metrics import auroc

    if not wrong.any():
        return f"According to the true labels, none is wrong; false alarms: {int(flagged.sum()):,}."
    hits = int((flagged & wrong).sum())
    area = auroc(scores, ~wrong)
    return (
        f"According to the true labels, {int(wrong.sum()):,} are wrong: {hits / wrong.sum():.1%} of them are "
        f"flagged, and {hits / max(1, flagged.sum()):.1%} of the flags are right (AUROC {area:.3f})."
    )


def _class_table(result: AuditResult) -> Table:
    name_of = dict(zip(result.class_summary["label"], result.class_summary["name"], strict=True))
    table = plain_table("Worst classes", "class", "labels:", "flagged:", "share:", "usual suggestion")
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


def _suspect_texts(result: AuditResult, n_suspects: int, width: int) -> Table:
    """Every text below its labels, as it says more than all columns together, and needs the width."""
    names, neighborhood = result.dataset.class_names, result.neighborhood
    listed = result.table.loc[result.first_rows[:n_suspects]]
    has_digests = any(is_digest(one_line(id)) for id in listed["id"])
    is_mixed = listed["is_label_issue"].nunique() > 1
    table = plain_table(
        "To look at first", "row:" if has_digests else "id", "given and suggested label, text"
    )
    table.columns[0].no_wrap = True
    for row, sample in zip(listed.index, listed.to_dict("records"), strict=True):
        code, probability = result.suggestion(int(row))
        facts = [f"probability {probability:.2f}"]
        facts += [f"score {_score(sample['label_score'])}"] * (result.support is None)
        if neighborhood is not None:
            facts.append(f"{_agreement(result, int(row), code)} neighbors agree")
        facts += ["flagged"] * bool(is_mixed and sample["is_label_issue"])
        cell = Text.assemble(
            shown(names[result.dataset.labels[row]]),
            " → ",
            shown(names[code]).append(f"  {', '.join(facts)}", style="dim"),
            "\n",
            shown(sample["text"], max(120, 2 * (width - 12))),
        )
        name = str(row) if has_digests else shortened_middle(one_line(sample["id"]), 24)
        table.add_row(Text(name, style="dim"), cell)
    return table


def _agreement(result: AuditResult, row: int, code: int) -> str:
    """How many neighbors have a label, as words."""
    assert result.neighborhood is not None
    neighbors = result.neighborhood.of(row).rows
    return f"{int(np.sum(result.dataset.labels[neighbors] == code))} of {len(neighbors)}"


def _suspect_table(result: AuditResult, n_suspects: int, width: int) -> Table:
    names = result.dataset.class_names
    listed = result.table.loc[result.first_rows[:n_suspects]]
    ids = [one_line(id) for id in listed["id"]]
    look_at = "path" if "path" in listed else None
    ids_are_paths = look_at == "path" and all(
        str(path).endswith(str(id)) for path, id in zip(listed["path"], listed["id"], strict=True)
    )
    if ids_are_paths:
        look_at = None  # the id says the same in fewer words
    neighborhood = result.neighborhood
    has_digests = any(map(is_digest, ids))
    has_scores = result.support is None
    headings = [*["row:"] * has_digests, "id", "given", "suggested", "probability:", *["score:"] * has_scores]
    is_mixed = listed["is_label_issue"].nunique() > 1
    headings += ["flagged"] * is_mixed
    headings += ["neighbors that agree"] * (neighborhood is not None) + ([look_at] if look_at else [])
    table = plain_table("To look at first", *headings)
    for column in table.columns[: 4 + has_scores + has_digests]:
        column.no_wrap = True
    table.columns[-1].overflow = "fold"  # a path that is cut to the width of the terminal may tell nothing
    short_ids = told_apart(ids, max(16, width // 5), shortened_middle)
    if ids_are_paths:
        short_ids = told_apart(ids, max(48, width // 3), shortened_left)
    looks = _looks(listed, look_at, max(48, width // 3))
    for place, (row, sample) in enumerate(zip(listed.index, listed.to_dict("records"), strict=True)):
        code, probability = result.suggestion(int(row))
        cells: list[Any] = [
            *[str(row)] * has_digests,
            Text(short_ids[place]),
            shown(names[result.dataset.labels[row]], 24),
            shown(names[code], 24),
            f"{probability:.2f}",
            *[_score(sample["label_score"])] * has_scores,
        ]
        cells += ["yes" if sample["is_label_issue"] else ""] * is_mixed
        if neighborhood is not None:
            cells.append(_agreement(result, int(row), code))
        if look_at is not None:
            cells.append(Text(looks[place]))
        table.add_row(*cells)
    return table


def _looks(listed: pd.DataFrame, look_at: str | None, most: int) -> list[str]:
    """The paths from their end."""
    if look_at is None:
        return []
    return told_apart([one_line(path) for path in listed[look_at]], most, shortened_left)


def _score(score: float) -> str:
    return "<0.001" if score < 0.001 else f"{score:.3f}"
