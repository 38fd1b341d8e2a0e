"""The single labels of several annotators beside an export: which of them agree with the exported labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.export.plan import ExportPlan
from laplaceconfidence.review.decisions import SETTLES_LABEL
from laplaceconfidence.review.store import read_decisions

if TYPE_CHECKING:
    import pandas as pd


def label_verdicts(plan: ExportPlan) -> pd.DataFrame:
    """Compare every single label with the exported label of its sample.

    Parameters
    ----------
    plan : ExportPlan
        The new labels of a run with several annotators.

    Returns
    -------
    pandas.DataFrame
        One row per label, the least trustworthy first: ``id``, ``annotator``, ``given_label``,
        ``label_score`` (the probability that it is right), ``exported_label`` (empty where the sample is left
        out or has no label), ``verdict`` ("right" or "wrong", by that label) and ``verdict_by`` ("review"
        where a person settled the label of the sample, else "estimate").
    """
    samples, run = plan.samples, plan.samples.run
    assert run.annotation is not None
    labels = run.annotation.labels
    rows = labels["row"].to_numpy(dtype=np.int64)
    values = np.array([*(str(value) for value in run.record.class_values), None], dtype=object)
    exported = values[np.where(plan.is_kept, plan.codes, MISSING)[rows]]
    settled = samples.given != samples.in_data
    for decision in read_decisions(run.folder, run.record):
        if decision.subject == "label" and decision.verdict in SETTLES_LABEL:
            settled[decision.row] = True
    has_label = (plan.is_kept & (plan.codes != MISSING))[rows]
    is_right = labels["given_label"].astype(str).to_numpy() == exported
    table = labels[["id", "annotator", "given_label", "label_score"]].copy()
    table["exported_label"] = exported
    table["verdict"] = np.where(has_label, np.where(is_right, "right", "wrong"), "")
    table["verdict_by"] = np.where(has_label, np.where(settled[rows], "review", "estimate"), "")
    return table
