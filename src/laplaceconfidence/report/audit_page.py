"""What the report of an audit says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from laplaceconfidence.arrays import IntArray
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.records.audit_run import AuditRun
from laplaceconfidence.records.judgments import Judgments
from laplaceconfidence.records.thumbnails import Thumbnails
from laplaceconfidence.report.audit_figures import ConfusionMatrix, ScoreHistogram, flagged_counts
from laplaceconfidence.report.drawing import Drawing

SUSPECTS = 48
NEIGHBORS = 6
PICTURE, SMALL_PICTURE = 224, 80  # pixels of the longer side
SHORT_TEXT = 280
LONG_TEXT = 20_000
MOST_ROWS = 200


@dataclass(frozen=True, eq=False)
class AuditPage:
    """Everything the template of an audit is filled with."""

    drawings: list[Drawing]
    content: dict[str, Any]


def audit_page(run: AuditRun) -> AuditPage:
    judged = Judgments.of(run)
    thumbnails = Thumbnails(judged, cache=False)
    drawings = [ScoreHistogram(judged.confidence, judged.flagged).drawing()]
    if len(judged.suspects):
        drawings.append(ConfusionMatrix(_counts(judged), judged.class_names).drawing())
    record = run.record
    suspects = [_suspect(judged, thumbnails, int(row)) for row in judged.suspects[:SUSPECTS]]
    n_lost = thumbnails.n_lost()
    content = {
        "record": record,
        "headline": headline(judged),
        "facts": _facts(judged),
        "classes": _classes(judged)[:MOST_ROWS],
        "n_more_classes": max(0, record.n_classes - MOST_ROWS),
        "pairs": _pairs(judged)[:20],
        "suspects": suspects,
        "n_suspects": len(judged.suspects),
        "n_lost": n_lost,
        "settings": sorted(record.settings.items()),
        "timings": sorted(record.timings.items(), key=lambda item: -item[1]),
    }
    return AuditPage(drawings, content)


def headline(judged: Judgments) -> str:
    """How many labels are probably wrong, of how many, and how far to believe it."""
    n_labeled, n_flagged = int(judged.is_labeled.sum()), len(judged.suspects)
    if n_flagged == 0:
        return f"None of {n_labeled:,} labels looks wrong."
    verb = "is" if n_flagged == 1 else "are"
    sentence = f"{n_flagged:,} of {n_labeled:,} labels ({n_flagged / n_labeled:.1%}) {verb} probably wrong"
    return f"{sentence}; of those, {judged.expected_precision:.0%} are expected to be really wrong."


def _facts(judged: Judgments) -> list[tuple[str, str]]:
    record = judged.run.record
    n_missing = record.n_samples - record.n_labeled
    facts = [
        ("samples", f"{record.n_samples:,}"),
        ("classes", f"{record.n_classes:,}"),
        ("flagged", f"{record.n_issues:,}"),
        ("mean doubt", f"{record.noise_rate:.1%}"),
    ]
    if n_missing:
        facts.append(("without a label", f"{n_missing:,}"))
    return facts


def _counts(judged: Judgments) -> IntArray:
    return flagged_counts(judged.given, judged.suggested, judged.flagged, len(judged.class_names))


def _classes(judged: Judgments) -> list[dict[str, Any]]:
    """One row a class, the largest share of flagged labels first."""
    counts = _counts(judged)
    n_given = np.bincount(judged.given[judged.is_labeled], minlength=len(judged.class_names))
    sums = np.bincount(
        judged.given[judged.is_labeled],
        weights=judged.confidence[judged.is_labeled],
        minlength=len(judged.class_names),
    )
    moved = counts.copy()
    np.fill_diagonal(moved, 0)
    rows = []
    for code, name in enumerate(judged.class_names):
        given, flagged = int(n_given[code]), int(counts[code].sum())
        rows.append(
            {
                "name": name,
                "given": given,
                "flagged": flagged,
                "share": flagged / given if given else 0.0,
                "confidence": sums[code] / given if given else None,
                "rather": judged.class_names[int(moved[code].argmax())] if moved[code].any() else None,
                "gains": int(moved[:, code].sum()),
            }
        )
    return sorted(rows, key=lambda row: -row["share"])


def _pairs(judged: Judgments) -> list[dict[str, Any]]:
    counts = _counts(judged)
    np.fill_diagonal(counts, 0)
    order = np.argsort(-counts, axis=None, kind="stable")[: int((counts > 0).sum())]
    pairs = zip(*np.unravel_index(order, counts.shape), strict=True)
    names = judged.class_names
    return [{"given": names[old], "suggested": names[new], "n": int(counts[old, new])} for old, new in pairs]


def _suspect(judged: Judgments, thumbnails: Thumbnails, row: int) -> dict[str, Any]:
    return {
        "rank_id": str(judged.ids[row]),
        "given": judged.name(int(judged.given[row])),
        "suggested": judged.name(int(judged.suggested[row])),
        "probability": float(judged.probability[row]),
        "confidence": float(judged.confidence[row]),
        **_look(judged, thumbnails, row, PICTURE),
        "neighbors": [
            {
                "id": str(judged.ids[near.row]),
                "label": judged.name(int(judged.given[near.row])),
                "agrees": judged.given[near.row] != MISSING and judged.given[near.row] == judged.given[row],
                "similarity": near.similarity,
                **_look(judged, thumbnails, near.row, SMALL_PICTURE),
            }
            for near in judged.neighbors(row, NEIGHBORS)
        ],
    }


def _look(judged: Judgments, thumbnails: Thumbnails, row: int, longest: int) -> dict[str, Any]:
    """Picture or text of a sample; a picture that is gone leaves a note."""
    picture = thumbnails.of(row, longest) if thumbnails.are_pictures else None
    text = None
    if judged.run.record.source_kind == "text" and judged.sources is not None:
        text = str(judged.sources[row])
    return {
        "picture": None if picture is None else picture.data_uri,
        "coarse": picture is not None and picture.is_coarse,
        "lost": thumbnails.are_pictures and picture is None,
        "text": None if text is None else text[:SHORT_TEXT],
        "long_text": text[:LONG_TEXT] if text is not None and len(text) > SHORT_TEXT else None,
        "n_characters": 0 if text is None else len(text),
    }
