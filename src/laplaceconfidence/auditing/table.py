"""The table of an audit: one row a sample, the least trustworthy label first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.labels import MISSING, encodable

if TYPE_CHECKING:
    import pandas as pd


def ranked_table(
    dataset: NoisyDataset,
    distributions: FloatArray,
    scores: FloatArray,
    predicted: IntArray,
    flagged: BoolArray,
    more: dict[str, Any],
) -> pd.DataFrame:
    """Worst first; equal scores by the probability of the given label, then by row; no label, last.

    ``more`` are further columns, by row.
    """
    import pandas as pd

    rows = np.arange(len(dataset))
    values = dataset.class_values
    columns: dict[str, Any] = {
        "id": encodable(dataset.sample_ids),
        "given_label": _label_column(values, dataset.labels),
        "predicted_label": _label_column(values, predicted),
        "predicted_probability": distributions[rows, predicted].astype(np.float64),
        "label_score": scores,
        "is_label_issue": flagged,
        **more,
    }
    if dataset.sources is not None:
        columns["path" if dataset.source_kind == "image" else "text"] = encodable(dataset.sources)
    missing = dataset.labels == MISSING
    own = distributions[rows, np.maximum(dataset.labels, 0)]
    order = np.lexsort((rows, own, np.where(missing, np.inf, scores)))
    return pd.DataFrame(columns, index=pd.RangeIndex(len(rows), name="row")).take(order)


def _label_column(values: NDArray[Any], codes: IntArray) -> Any:
    """Labels as the user writes them; a gap is missing to pandas, and leaves whole numbers whole."""
    import pandas as pd

    missing = codes == MISSING
    labels = encodable(values)[codes]
    if not missing.any():
        return labels
    column = labels.astype(object)
    column[missing] = None
    kind = {"i": "Int64", "b": "boolean"}.get(values.dtype.kind, "str")
    return pd.Series(column, dtype=kind).array
