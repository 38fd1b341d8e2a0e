"""What to do with labels that were drawn at random, in plain words."""

from __future__ import annotations

from rich.text import Text

from laplaceconfidence.auditing.verified import VERIFIED_LABEL
from laplaceconfidence.cli.console import count, output
from laplaceconfidence.confidence.verdict import FEWEST_AUDITED
from laplaceconfidence.records import AuditRun
from laplaceconfidence.records.review_sample import REVIEW_SAMPLE


def tell_what_to_do(run: AuditRun) -> None:
    """Two ways to verify the sample, by hand or in the browser, and the way back."""
    n_drawn = len(run.record.review_sample)
    table = run.folder / REVIEW_SAMPLE
    console = output()
    console.print()
    console.print(Text(f"{count(n_drawn, 'label')} drawn at random for you to verify.", style="bold"))
    if n_drawn < FEWEST_AUDITED:
        console.print(f"Fewer than {FEWEST_AUDITED} become certain but do not calibrate the others.")
    for line, style in (
        (
            f"Either fill in the column {VERIFIED_LABEL} of {table}: the right label of every sample, also "
            "where the given one is right; empty only where you cannot tell. Then audit again with",
            "",
        ),
        (f"  --audited {table} --out ANOTHER_FOLDER", "cyan"),
        ("Or decide in the browser, which shows the same sample under 'Random sample':", ""),
        (f"  laplaceconfidence review {run.folder}", "cyan"),
        ("and audit again with", ""),
        (f"  --decisions {run.folder} --out ANOTHER_FOLDER", "cyan"),
    ):
        console.print(Text(line, style=style), soft_wrap=True)
