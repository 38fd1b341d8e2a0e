"""The most probable classes and the neighbors of largest weight of every sample, as a run stores them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray, sized_row_blocks
from laplaceconfidence.auditing.result import AuditResult
from laplaceconfidence.auditing.table import with_support

if TYPE_CHECKING:
    import pandas as pd

TOP_CLASSES = 5
TOP_NEIGHBORS = 10


def evidence_table(result: AuditResult) -> pd.DataFrame:
    """Build the table that is stored as ``evidence.parquet``.

    Parameters
    ----------
    result : AuditResult
        A finished audit.

    Returns
    -------
    pandas.DataFrame
        One row per sample in the order of the data: ``top_classes`` (codes) with ``top_probabilities``, where
        the noise is not identified by evidence that does not include the given label; and,
        where the estimator used neighbors, the ``neighbors`` (rows) of largest weight with ``similarities``
        and ``weights`` (shares of the weights of all neighbors), and ``n_neighbors``, how many there were.
    """
    import pandas as pd

    classes, probabilities = top_classes(result.distributions, result.dataset.labels, result.support)
    columns: dict[str, Any] = {"top_classes": list(classes), "top_probabilities": list(probabilities)}
    if result.neighborhood is not None:
        ranked = [result.neighborhood.of(row) for row in range(len(result.dataset))]
        columns |= {
            "neighbors": [found.rows[:TOP_NEIGHBORS].astype(np.int32) for found in ranked],
            "similarities": [found.similarities[:TOP_NEIGHBORS].astype(np.float32) for found in ranked],
            "weights": [found.shares[:TOP_NEIGHBORS].astype(np.float32) for found in ranked],
            "n_neighbors": np.array([len(found.rows) for found in ranked], dtype=np.int32),
        }
    return pd.DataFrame(columns)


def top_classes(
    distributions: FloatArray, given: IntArray | None = None, support: FloatArray | None = None
) -> tuple[IntArray, FloatArray]:
    """Return the most probable classes of every sample, the most probable first.

    Parameters
    ----------
    distributions : ndarray of shape (n, C)
        Probability of every class.
    given, support : ndarray of shape (n,), optional
        Codes of the given labels, and probabilities of them to be used in place of those of
        ``distributions``.

    Returns
    -------
    codes : ndarray of shape (n, m)
        At most ``TOP_CLASSES`` codes per sample.
    probabilities : ndarray of shape (n, m)
        Their probabilities.
    """
    n, n_classes = distributions.shape
    m = min(TOP_CLASSES, n_classes)
    codes = np.empty((n, m), dtype=np.int32)
    probabilities = np.empty((n, m), dtype=np.float32)
    for rows in sized_row_blocks(n, n_classes):
        part = distributions[rows]
        if given is not None and support is not None:
            part = with_support(part, given[rows], support[rows])
        best = np.argpartition(-part, m - 1, axis=1)[:, :m]
        values = np.take_along_axis(part, best, axis=1)
        order = np.lexsort((best, -values), axis=1)
        codes[rows] = np.take_along_axis(best, order, axis=1)
        probabilities[rows] = np.take_along_axis(values, order, axis=1)
    return codes, probabilities
