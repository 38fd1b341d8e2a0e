"""The content of the report of an audit."""

from __future__ import annotations

from typing import Any

import numpy as np

from laplaceconfidence.arrays import IntArray
from laplaceconfidence.auditing.summary import confusion_counts, count_classes, count_pairs, headline
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.records.audit_run import AuditRun
from laplaceconfidence.records.other_issues import OtherIssues
from laplaceconfidence.records.sample_arrays import SampleArrays
from laplaceconfidence.records.thumbnails import Thumbnails
from laplaceconfidence.report.audit_figures import ConfusionMatrix, ScoreHistogram
from laplaceconfidence.report.drawing import Page
from laplaceconfidence.report.other_issues import other_issues
from laplaceconfidence.report.sample_looks import PICTURE, SMALL_PICTURE, look

SUSPECTS = 48
NEIGHBORS = 6
MOST_ROWS = 200
MOST_PAIRS = 20


def audit_page(run: AuditRun) -> Page:
    """Build the report of an audit.

    Parameters
    ----------
    run : AuditRun
        The audit.

    Returns
    -------
    Page
    """
    samples = SampleArrays.of(run)
    suggested = np.where(samples.flagged, samples.suggested, MISSING)
    thumbnails = Thumbnails(samples, cache=False)
    drawings = [ScoreHistogram(samples.confidence, samples.flagged).drawing()]
    if len(samples.suspects):
        counts = confusion_counts(samples.given, suggested, len(samples.class_names))
        drawings.append(ConfusionMatrix(counts, samples.class_names).drawing())
    record = run.record
    suspects = [_suspect(samples, thumbnails, int(row)) for row in samples.suspects[:SUSPECTS]]
    content = {
        "record": record,
        "headline": headline(
            record.n_issues, record.n_labeled, expected_precision=samples.expected_precision
        ),
        "facts": _facts(samples),
        "flag_rule": _flag_rule(record.settings),
        "classes": _classes(samples, suggested)[:MOST_ROWS],
        "n_more_classes": max(0, record.n_classes - MOST_ROWS),
        "pairs": _pairs(samples, suggested)[:MOST_PAIRS],
        "suspects": suspects,
        "n_suspects": len(samples.suspects),
        "issues": other_issues(samples, OtherIssues.of(run), thumbnails),
        "n_lost": thumbnails.n_lost(),
        "settings": sorted(record.settings.items()),
        "timings": sorted(record.timings.items(), key=lambda item: -item[1]),
    }
    return Page("audit.html", drawings, content)


def _flag_rule(settings: dict[str, Any]) -> str:
    """Which labels are flagged, in a sentence."""
    if settings.get("target_precision") is not None:
        share = settings["target_precision"]
        return f"The flagged ones were chosen such that {share:.0%} of them are expected to be wrong."
    if settings.get("threshold") is not None:
        return f"Those with a confidence below {settings['threshold']:g} are flagged."
    return "Those for which another class is more probable are flagged."


def _facts(samples: SampleArrays) -> list[tuple[str, str]]:
    record = samples.run.record
    n_missing = record.n_samples - record.n_labeled
    facts = [
        ("samples", f"{record.n_samples:,}"),
        ("classes", f"{record.n_classes:,}"),
        ("flagged", f"{record.n_issues:,}"),
        ("expected noise rate", f"{record.noise_rate:.1%}"),
    ]
    if n_missing:
        facts.append(("without a label", f"{n_missing:,}"))
    return facts


def _classes(samples: SampleArrays, suggested: IntArray) -> list[dict[str, Any]]:
    """One row per class, the largest share of flagged labels first."""
    counts = count_classes(samples.given, suggested, samples.confidence, len(samples.class_names))
    rows = [
        {
            "name": name,
            "given": int(counts.n_given[code]),
            "flagged": int(counts.n_issues[code]),
            "share": float(counts.issue_share[code]) if counts.n_given[code] else 0.0,
            "confidence": float(counts.mean_score[code]) if counts.n_given[code] else None,
            "usual": samples.name(int(counts.usual[code])),
            "suggested": int(counts.n_suggested[code]),
        }
        for code, name in enumerate(samples.class_names)
    ]
    return sorted(rows, key=lambda row: -row["share"])


def _pairs(samples: SampleArrays, suggested: IntArray) -> list[dict[str, Any]]:
    names = samples.class_names
    pairs = count_pairs(samples.given, suggested, len(names))
    return [{"given": names[old], "suggested": names[new], "n": n} for old, new, n in pairs]


def _suspect(samples: SampleArrays, thumbnails: Thumbnails, row: int) -> dict[str, Any]:
    return {
        "id": str(samples.ids[row]),
        "given": samples.name(int(samples.given[row])),
        "suggested": samples.name(int(samples.suggested[row])),
        "probability": float(samples.probability[row]),
        "confidence": float(samples.confidence[row]),
        **look(samples, thumbnails, row, PICTURE),
        "neighbors": [
            {
                "id": str(samples.ids[near.row]),
                "label": samples.name(int(samples.given[near.row])),
                "position": near.position,
                "similarity": near.similarity,
                **look(samples, thumbnails, near.row, SMALL_PICTURE),
            }
            for near in samples.neighbors(row, NEIGHBORS)
        ],
    }
