"""What was fitted on a sample, stored without pickles, and applied to samples and labels that came later."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.blocks.new_samples import NewSamples
from laplaceconfidence.blocks.noise_aware import SampleFit, result_columns
from laplaceconfidence.blocks.results import RESULTS
from laplaceconfidence.blocks.work_folder import WorkFolder
from laplaceconfidence.confidence.noise_aware.stored_predictor import predictor_arrays, restored_predictor
from laplaceconfidence.stages import stage

MODEL = "model"  # stage
_ARRAYS = ("classes", "transition", "rows", "given", "distributions", "confidence")
_FACTS = ("identified", "shift", "n_classes")


def save_fit(work: WorkFolder, fitted: SampleFit) -> None:
    """Write what was fitted on a sample.

    Parameters
    ----------
    work : WorkFolder
        Where the parts are.
    fitted : SampleFit
        The fit.
    """
    arrays, facts = predictor_arrays(fitted.predictor)
    own = {f"fit_{name}": getattr(fitted, name) for name in _ARRAYS}
    about = {"predictor": facts, "arrays": list(arrays), **{name: getattr(fitted, name) for name in _FACTS}}
    work.save(MODEL, 0, {**arrays, **own}, about)


def load_fit(work: WorkFolder, n_jobs: int | None) -> SampleFit:
    """Read what was fitted on a sample.

    Parameters
    ----------
    work : WorkFolder
        Where the parts are.
    n_jobs : int or None
        Number of threads.

    Returns
    -------
    SampleFit
    """
    facts = work.facts(MODEL, 0)
    arrays = {name: work.load(MODEL, 0, name, mapped=False) for name in facts["arrays"]}
    own: dict[str, Any] = {name: work.load(MODEL, 0, f"fit_{name}", mapped=False) for name in _ARRAYS}
    own |= {name: facts[name] for name in _FACTS}
    return SampleFit(predictor=restored_predictor(arrays, facts["predictor"], n_jobs), **own)


def add_results(
    kept: WorkFolder, work: WorkFolder, fitted: SampleFit, new: NewSamples, labels: IntArray, n_before: int
) -> int:
    """Write the results of all samples: those that are known are taken over but for labels that changed.

    Parameters
    ----------
    kept : WorkFolder
        The results of the run, which are not changed.
    work : WorkFolder
        Where all results are written.
    fitted : SampleFit
        What the run fitted.
    new : NewSamples
        The samples that came.
    labels : ndarray of int32, shape (n,)
        Codes of all labels as they are now, by row.
    n_before : int
        Number of samples of the run.

    Returns
    -------
    int
        Number of parts of the results.
    """
    changed = _changed_rows(kept, new)
    wanted = np.sort(np.concatenate([new.added, changed]))
    row_of = np.empty(len(new.data), dtype=np.int64)
    row_of[new.added] = n_before + np.arange(len(new.added))
    row_of[new.known] = new.places
    parts: list[dict[str, NDArray[Any]]] = []
    with stage(RESULTS, total=len(wanted)) as advance:
        for rows, features in new.features(wanted):
            own = row_of[rows]
            p = fitted.probabilities(features)
            inside = np.isin(own, fitted.rows)
            p[inside] = fitted.probabilities_in_sample(np.searchsorted(fitted.rows, own[inside]))
            given = labels[own].astype(np.int64)
            found = result_columns(*fitted.posterior(p, given), given)
            parts.append({"rows": own, "given": given.astype(np.int32), **found})
            advance(len(rows))
    n_parts = len(kept.parts(RESULTS))
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else {}
    for part in range(n_parts):
        _take_part(kept, work, part, columns)
    is_new = columns["rows"] >= n_before if columns else np.zeros(0, dtype=bool)
    if not is_new.any():
        return n_parts
    order = np.flatnonzero(is_new)[np.argsort(columns["rows"][is_new])]
    work.save(RESULTS, n_parts, {name: values[order] for name, values in columns.items()}, {})
    return n_parts + 1


def _changed_rows(kept: WorkFolder, new: NewSamples) -> IntArray:
    """Rows of the new data whose label in the run was another one."""
    n = int(new.places.max(initial=-1)) + 1
    before = np.empty(n, dtype=np.int32)
    for part in kept.parts(RESULTS):
        rows = np.asarray(kept.load(RESULTS, part, "rows"))
        some = rows < n
        before[rows[some]] = kept.load(RESULTS, part, "given")[some]
    changed: IntArray = new.known[before[new.places] != new.data.labels[new.known]]
    return changed


def _take_part(kept: WorkFolder, work: WorkFolder, part: int, columns: dict[str, Any]) -> None:
    """Take over a part of the results, with the rows in it that were computed again."""
    rows = np.asarray(kept.load(RESULTS, part, "rows"))
    inside = np.flatnonzero(np.isin(columns["rows"], rows)) if columns else np.empty(0, dtype=np.int64)
    if not len(inside):
        work.take(kept, RESULTS, part)
        return
    at = np.searchsorted(rows, columns["rows"][inside])
    arrays: dict[str, FloatArray] = {"rows": rows}
    for name in columns.keys() - {"rows"}:
        arrays[name] = kept.load(RESULTS, part, name, mapped=False)
        arrays[name][at] = columns[name][inside]
    work.save(RESULTS, part, arrays, {})
