"""The content of the report of an audit."""

from __future__ import annotations

from typing import Any

import numpy as np

from laplaceconfidence.arrays import IntArray
from laplaceconfidence.auditing.statement import EVIDENCE_ALONE, VERIFIED_LABELS, AuditStatement
from laplaceconfidence.auditing.summary import confusion_counts, count_classes, count_pairs
from laplaceconfidence.data.identity import name_of
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.records.audit_run import AuditRecord, AuditRun
from laplaceconfidence.records.other_issues import OtherIssues
from laplaceconfidence.records.sample_arrays import SampleArrays
from laplaceconfidence.records.thumbnails import Thumbnails
from laplaceconfidence.report.annotators import annotators_section
from laplaceconfidence.report.audit_figures import ConfusionMatrix, ScoreHistogram
from laplaceconfidence.report.drawing import Page
from laplaceconfidence.report.other_issues import other_issues
from laplaceconfidence.report.sample_looks import PICTURE, SMALL_PICTURE, look
from laplaceconfidence.wording import shortened_middle, told_apart

SUSPECTS = 48
NEIGHBORS = 6
MOST_ROWS = 200
MOST_PAIRS = 20
LONGEST_ID = 48


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
    statement = record.statement
    listed = samples.first_rows[:SUSPECTS]
    ids = told_apart([str(id) for id in samples.ids[listed]], LONGEST_ID, shortened_middle)
    suspects = [
        {**_suspect(samples, thumbnails, int(row)), "short_id": id}
        for row, id in zip(listed, ids, strict=True)
    ]
    content = {
        "record": record,
        "headline": statement.headline,
        "facts": _facts(samples),
        "statement": statement,
        "n_to_verify": VERIFIED_LABELS,
        "flag_rule": _flag_rule(statement),
        "classes": _classes(samples, suggested)[:MOST_ROWS],
        "n_more_classes": max(0, record.n_classes - MOST_ROWS),
        "pairs": _pairs(samples, suggested)[:MOST_PAIRS],
        "suspects": suspects,
        "evidence_alone": EVIDENCE_ALONE if record.suggests_by_evidence_alone else None,
        "n_listed": len(samples.first_rows),
        "n_suspects": len(samples.suspects),
        "annotators": annotators_section(samples, thumbnails),
        "issues": other_issues(samples, OtherIssues.of(run), thumbnails),
        "not_shown": thumbnails.not_shown(),
        "features": _features(record),
        "settings": sorted(record.settings.items()),
        "timings": sorted(record.timings.items(), key=lambda item: -item[1]),
    }
    return Page("audit.html", drawings, content)


def _flag_rule(statement: AuditStatement) -> str:
    rule = f"Labels are flagged {statement.rule.words}."
    if statement.is_unidentified:
        rule += " These confidences are the middle of the range: only their order counts."
    return rule


def _facts(samples: SampleArrays) -> list[tuple[str, str]]:
    record = samples.run.record
    facts = [("samples", f"{record.n_samples:,}"), ("classes", f"{record.n_classes:,}")]
    if n_missing := record.n_samples - record.n_labeled:
        facts.append(("without a label", f"{n_missing:,}"))
    return facts


def _features(record: AuditRecord) -> list[tuple[str, float | None, str]]:
    """What encoders made of the samples: name, share in the estimate where there are several, and words."""
    encoder = record.source.get("encoder")
    if not isinstance(encoder, dict):
        return []
    weights = record.view_weights or {}
    views = encoder.get("views") or {str(encoder.get("name")): encoder}
    rows = [(name, weights.get(name), str(view.get("summary", ""))) for name, view in views.items()]
    return rows + [(name, share, "") for name, share in weights.items() if name not in views]


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
    for_suggested, for_given = samples.words(row)
    return {
        "id": str(samples.ids[row]),
        "name": name_of(str(samples.ids[row]), row),
        "given": samples.name(int(samples.given[row])),
        "suggested": samples.name(int(samples.offered[row])),
        "probability": float(samples.offered_probability[row]),
        "confidence": float(samples.confidence[row]),
        **look(samples, thumbnails, row, PICTURE),
        "for_suggested": for_suggested,
        "for_given": for_given,
        "neighbors": [
            {
                "name": name_of(str(samples.ids[near.row]), near.row),
                "label": samples.name(int(samples.given[near.row])),
                "position": near.position,
                "similarity": near.similarity,
                **look(samples, thumbnails, near.row, SMALL_PICTURE),
            }
            for near in samples.neighbors(row, NEIGHBORS)
        ],
    }
