"""Features as the noise-aware estimator looks at them: half-whitened axes, and graphs of several ranges."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import randomized_svd

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.confidence.settings_search import nested_normalized_graphs
from laplaceconfidence.features.scale import principal_axes, project, unit_length
from laplaceconfidence.graph.neighbors import Neighbors, find_neighbors
from laplaceconfidence.stages import stage
from laplaceconfidence.threads import limited_threads, thread_count
from laplaceconfidence.validation import check_integer, must_be

USUAL_COMPONENTS = 256  # principal axes that are looked at, where there are so many
_WIDEST_COVARIANCE = 4_096  # features; above, the principal axes are found by a randomized decomposition


def half_whitened(
    features: FloatArray, n_components: int | None, *, n_jobs: int | None, rng: np.random.Generator
) -> FloatArray:
    """Principal coordinates (n, ``n_components``), each divided by the root of its deviation.

    Whitening would make noise as loud as signal; left alone, the first few axes would drown the rest. The
    mean square of all entries is 1.
    """
    with stage("features"), limited_threads(thread_count(n_jobs)):
        # Features of any scale: squares of huge or tiny numbers must stay representable in float32.
        largest = np.abs(features).max() or features.dtype.type(1)
        features = (features / largest).astype(np.float32, copy=False)
        n, d = features.shape
        if n_components is not None:
            check_integer(n_components, "n_components", minimum=1, maximum=min(n, d))
        width = n_components or min(USUAL_COMPONENTS, n, d)
        if d <= _WIDEST_COVARIANCE:
            mean, axes, variances = principal_axes(features, width)
            coordinates = project(features, mean, axes)
        else:
            centered = features - features.mean(axis=0, dtype=np.float64).astype(np.float32)
            left, sizes, _ = randomized_svd(centered, width, random_state=int(rng.integers(2**31 - 1)))
            coordinates, variances = left * sizes, sizes**2 / n
        kept = variances > max(float(variances[0]) * 1e-9, 1e-30)
        if not kept.any():
            raise must_be("X", "different between samples in single precision", f"{n} nearly equal rows")
        coordinates = coordinates[:, kept] / np.sqrt(np.sqrt(variances[kept]))
        coordinates /= np.sqrt(np.square(coordinates).mean(dtype=np.float64))
        return np.ascontiguousarray(coordinates, dtype=np.float32)


def nested_graphs(
    coordinates: FloatArray,
    n_neighbors: Sequence[int],
    *,
    search: str,
    target_recall: float,
    n_jobs: int | None,
    rng: np.random.Generator,
) -> tuple[list[sparse.csr_array], Neighbors]:
    """Normalized cosine graphs, one for every number of neighbors, and the one search they come from."""
    unit = unit_length(coordinates)
    neighbors = find_neighbors(
        unit,
        max(n_neighbors),
        search=search,
        target_recall=target_recall,
        n_jobs=n_jobs,
        random_state=rng,
    )
    return list(nested_normalized_graphs(neighbors, n_neighbors).values()), neighbors
