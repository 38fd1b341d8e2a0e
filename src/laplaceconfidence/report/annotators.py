"""Several annotators in the report of an audit: who they are, what is doubted, and where they differ."""

from __future__ import annotations

from typing import Any

from laplaceconfidence.data.identity import name_of
from laplaceconfidence.records.annotation_tables import AnnotationTables
from laplaceconfidence.records.sample_arrays import SampleArrays
from laplaceconfidence.records.thumbnails import Thumbnails
from laplaceconfidence.report.sample_looks import PICTURE, look

MOST_ANNOTATORS = 50
MOST_LABELS = 20
MOST_SAMPLES = 12
MOST_QUESTIONS = 10
MOST_SAID = 12  # labels of one sample


def annotators_section(samples: SampleArrays, thumbnails: Thumbnails) -> dict[str, Any] | None:
    """Collect what the report shows about annotators.

    Parameters
    ----------
    samples : SampleArrays
        The samples of the audit.
    thumbnails : Thumbnails
        Their pictures.

    Returns
    -------
    dict of str to object or None
        ``None`` for an audit without several annotators.
    """
    tables = samples.run.annotation
    if tables is None:
        return None
    annotators = tables.annotators
    listed = samples.disputed[:MOST_SAMPLES].tolist()
    return {
        "sentences": tables.summary.sentences,
        "annotators": [_annotator(row) for row in annotators.head(MOST_ANNOTATORS).to_dict("records")],
        "n_annotators": len(annotators),
        "labels": [
            {**row, "name": name_of(str(row["id"]), int(row["row"]))}
            for row in tables.labels.head(MOST_LABELS).to_dict("records")
        ],
        "n_labels": len(tables.labels),
        "disputed": [_disputed(samples, tables, thumbnails, row) for row in listed],
        "n_disputed": len(samples.disputed),
        "questions": [
            {**row, "name": name_of(str(row["id"]), int(row["row"]))}
            for row in tables.questions.head(MOST_QUESTIONS).to_dict("records")
        ],
    }


def _annotator(row: dict[Any, Any]) -> dict[str, Any]:
    """One annotator; missing values as None."""
    known: dict[str, Any] = {
        name: None if value is None or value != value else value for name, value in row.items()
    }
    error = None
    if known.get("true_class") is not None:
        error = (known["true_class"], known["confused_with"], float(known["confused_share"]))
    return {**known, "error": error}


def _disputed(
    samples: SampleArrays, tables: AnnotationTables, thumbnails: Thumbnails, row: int
) -> dict[str, Any]:
    said = tables.of_sample(row)
    asked = samples.run.issues["ask_annotator"].get(row)
    return {
        "id": str(samples.ids[row]),
        "name": name_of(str(samples.ids[row]), row),
        "consensus": samples.name(int(samples.suggested[row])),
        "probability": float(samples.probability[row]),
        "said": said[:MOST_SAID],
        "n_more": max(0, len(said) - MOST_SAID),
        "ask": asked if isinstance(asked, str) else None,
        **look(samples, thumbnails, row, PICTURE),
    }
