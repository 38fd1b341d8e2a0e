"""The evidence behind an audit, small enough to keep: top classes and loudest neighbors of every sample."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.auditing.explain import asks_neighbors
from laplaceconfidence.auditing.result import AuditResult

if TYPE_CHECKING:
    import pandas as pd

TOP_CLASSES = 5
TOP_NEIGHBORS = 10
ROWS_AT_ONCE = 8_192


def evidence_of(result: AuditResult) -> pd.DataFrame:
    """One row a sample in the order of the data.

    ``top_classes`` (codes) with ``top_probabilities``; and, where neighbors were asked, the loudest
    ``neighbors`` (rows) with ``similarities`` and ``weights`` (shares of all that was said), and
    ``n_neighbors``, how many there were.
    """
    import pandas as pd

    classes, probabilities = top_classes(result.distributions)
    columns = {"top_classes": list(classes), "top_probabilities": list(probabilities)}
    if not asks_neighbors(result.estimator, result.dataset):
        return pd.DataFrame(columns)
    heard = [result.voices.of(row) for row in range(len(result.dataset))]
    return pd.DataFrame(
        {
            **columns,
            "neighbors": [rows[:TOP_NEIGHBORS].astype(np.int32) for rows, _, _ in heard],
            "similarities": [values[:TOP_NEIGHBORS].astype(np.float32) for _, values, _ in heard],
            "weights": [weights[:TOP_NEIGHBORS].astype(np.float32) for _, _, weights in heard],
            "n_neighbors": np.array([len(rows) for rows, _, _ in heard], dtype=np.int32),
        }
    )


def top_classes(distributions: FloatArray) -> tuple[IntArray, FloatArray]:
    """(n, m) codes of the most probable classes, best first, and their probabilities."""
    n, n_classes = distributions.shape
    m = min(TOP_CLASSES, n_classes)
    codes = np.empty((n, m), dtype=np.int32)
    probabilities = np.empty((n, m), dtype=np.float32)
    for start in range(0, n, ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        part = distributions[rows]
        best = np.argpartition(-part, m - 1, axis=1)[:, :m]
        values = np.take_along_axis(part, best, axis=1)
        order = np.lexsort((best, -values), axis=1)
        codes[rows] = np.take_along_axis(best, order, axis=1)
        probabilities[rows] = np.take_along_axis(values, order, axis=1)
    return codes, probabilities
