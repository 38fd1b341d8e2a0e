"""The labels of a plan, applied to the data as it is now."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from laplaceconfidence.arrays import BoolArray
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.labels import MISSING, EncodedLabels
from laplaceconfidence.data.sample_search import ABSENT
from laplaceconfidence.export.original import Original, changed, original_of
from laplaceconfidence.export.plan import ExportPlan

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class SourceChanges:
    """How the data differs from what was audited.

    Parameters
    ----------
    n_new : int
        Samples that were not audited; they keep their labels.
    n_skipped : int
        Images that the audit left out because they cannot be decoded; they keep their labels, too.
    n_gone : int
        Audited samples that the data no longer has.
    n_corrected : int
        Labels that are already the corrected ones.
    n_relabeled : int
        Other labels that are not those that were audited; they are kept.
    n_not_applied : int
        Corrections that are not applied because the label is one of these.
    """

    n_new: int = 0
    n_skipped: int = 0
    n_gone: int = 0
    n_corrected: int = 0
    n_relabeled: int = 0
    n_not_applied: int = 0


@dataclass(frozen=True, eq=False)
class Correction:
    """The corrected data set: every sample of the data as it is now, in its order.

    Parameters
    ----------
    original : Original
        The data as it is now.
    dataset : NoisyDataset
        The same with corrected labels.
    is_kept : ndarray of bool of shape (n,)
        Whether the sample stays in the data set.
    trail : pandas.DataFrame
        The changes of the plan that are applied; ``row`` is the row in the data as it is now.
    changes : SourceChanges
        How the data differs from what was audited.
    """

    original: Original
    dataset: NoisyDataset
    is_kept: BoolArray
    trail: pd.DataFrame
    changes: SourceChanges


def correct(plan: ExportPlan) -> Correction:
    """Apply a plan to the data as it is now, whose samples are found by their ids.

    A label that is not the one that was audited was changed since, and the later change stands: neither
    suggestions nor decisions, which were about another label, replace it.

    Parameters
    ----------
    plan : ExportPlan
        The new labels of the audited samples.

    Returns
    -------
    Correction

    Raises
    ------
    DataFormatError
        If most audited samples are gone, or most of their labels were changed.
    """
    samples = plan.samples
    original = original_of(samples)
    place = str(original.path or samples.run.record.source.get("source"))
    is_there = original.rows != ABSENT
    n_gone = int((~is_there).sum())
    if 2 * n_gone > len(samples):
        first = samples.ids[np.flatnonzero(~is_there)[0]]
        raise changed(place, f"{n_gone:,} of {len(samples):,} samples are gone, such as {first!r}")
    original = _with_classes_of(plan, original, is_there, place)
    rows = original.rows[is_there]
    now = original.dataset.labels[rows]
    wanted = original.codes(plan.codes)[is_there]
    kept = plan.is_kept[is_there]
    as_audited = now == original.codes(samples.in_data)[is_there]
    as_corrected = ~as_audited & kept & (now == wanted)
    relabeled = ~as_audited & ~as_corrected
    if 2 * relabeled.sum() > len(rows):
        reason = f"{relabeled.sum():,} of {len(rows):,} labels are not those that were audited"
        raise changed(place, reason)
    codes = original.dataset.labels.copy()
    codes[rows[as_audited]] = wanted[as_audited]
    is_kept = np.ones(len(codes), dtype=bool)
    is_kept[rows[as_audited]] = kept[as_audited]
    is_new = np.ones(len(codes), dtype=bool)
    is_new[rows] = False
    is_skipped = _skipped(plan, original.dataset) & is_new
    is_applied = np.zeros(len(samples), dtype=bool)
    is_applied[np.flatnonzero(is_there)[as_audited]] = True
    is_relabeled = np.zeros(len(samples), dtype=bool)
    is_relabeled[np.flatnonzero(is_there)[relabeled]] = True
    planned = plan.trail["row"].to_numpy(dtype=np.int64)
    trail = plan.trail[is_applied[planned]].reset_index(drop=True)
    return Correction(
        original=original,
        dataset=original.dataset.with_labels(codes),
        is_kept=is_kept,
        trail=trail.assign(row=original.rows[trail["row"].to_numpy(dtype=np.int64)]),
        changes=SourceChanges(
            n_new=int((is_new & ~is_skipped).sum()),
            n_skipped=int(is_skipped.sum()),
            n_gone=n_gone,
            n_corrected=int(as_corrected.sum()),
            n_relabeled=int(relabeled.sum()),
            n_not_applied=int(is_relabeled[planned].sum()),
        ),
    )


def _skipped(plan: ExportPlan, dataset: NoisyDataset) -> BoolArray:
    """Which images the audit or the training left out."""
    source = plan.samples.run.record.source
    learned: dict[str, Any] = source.get("features_learned_by") or source
    skipped = set(learned.get("skipped_images") or ())
    if not skipped or dataset.sources is None:
        return np.zeros(len(dataset), dtype=bool)
    return np.array([str(source) in skipped for source in dataset.sources])


def _with_classes_of(plan: ExportPlan, original: Original, is_there: BoolArray, place: str) -> Original:
    """Add the classes that the plan assigns and the data, as it is now, has no label of."""
    is_assigned = is_there & plan.is_kept & (plan.codes != plan.samples.in_data) & (plan.codes != MISSING)
    assigned = np.unique(plan.codes[is_assigned]).tolist()
    added = [code for code in assigned if original.classes[code] == ABSENT]
    if not added:
        return original
    dataset, record = original.dataset, plan.samples.run.record
    names, values = list(dataset.class_names), dataset.class_values.tolist()
    are_named = dataset.class_names != tuple(str(value) for value in values)
    classes = list(original.classes)
    for code in added:
        value: Any = len(values) if are_named else record.class_values[code]
        if isinstance(values[0], str):
            value = str(value)
        elif type(value) is not type(values[0]):
            raise changed(place, f"its labels are no longer written like {value!r}")
        classes[code] = len(values)
        names.append(record.class_names[code])
        values.append(value)
    given = dataset.given
    encoded = given and EncodedLabels(given.codes, np.array(values), given.given)
    grown = replace(dataset, class_names=tuple(names), given=encoded)
    return replace(original, dataset=grown, classes=classes)
