"""Why a label is trusted or not: the neighbors that speak for it and against it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scipy import sparse

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.confidence.inputs import unit_features
from laplaceconfidence.confidence.protocol import ConfidenceEstimator
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.graph.affinity import degrees, normalized
from laplaceconfidence.graph.neighbors import find_neighbors
from laplaceconfidence.validation import check_integer, must_be

if TYPE_CHECKING:
    import pandas as pd

    from laplaceconfidence.auditing.result import AuditResult


USUAL_NEIGHBORS = 30
MOST_SAID = 3  # labels that an explanation in words names


@dataclass(frozen=True, slots=True, eq=False)
class Voices:
    """Who speaks to whom, how similar they are and how loud they are."""

    similarity: sparse.csr_array  # (n, n) row i: the neighbors of i
    loudness: sparse.csr_array  # (n, n) same entries, as the estimator weighs them

    def of(self, row: int) -> tuple[IntArray, FloatArray, FloatArray]:
        """Neighbors of ``row``, the loudest first: rows, similarities and shares of all that is said."""
        span = slice(self.similarity.indptr[row], self.similarity.indptr[row + 1])
        neighbors = self.similarity.indices[span].astype(np.int64)
        loudness = self.loudness.data[span].astype(np.float64)
        order = np.lexsort((neighbors, -loudness))
        weights = loudness[order] / max(float(loudness.sum()), np.finfo(np.float64).tiny)
        return neighbors[order], self.similarity.data[span][order].astype(np.float64), weights


@dataclass(frozen=True, eq=False)
class Explanation:
    """What the neighbors of one sample say about its label.

    ``neighbors`` has one row a neighbor, the loudest first, indexed by its row in the data set: ``id``,
    ``given_label``, ``similarity``, ``weight`` (its share of all that is said), ``label_score`` (how far its
    own label is trusted) and ``speaks``: "for" the label, "against" it, or "silent" where it has no label.
    Where the sample itself has no label, they speak about the predicted one.
    """

    row: int
    id: str
    given_label: Any
    predicted_label: Any
    predicted_probability: float
    label_score: float
    neighbors: pd.DataFrame

    @property
    def weight_for(self) -> float:
        """Share of all that is said that is for the label."""
        return self._weight("for")

    @property
    def weight_against(self) -> float:
        """Share of all that is said that is against the label."""
        return self._weight("against")

    @property
    def votes(self) -> pd.DataFrame:
        """Per label: the number of neighbors that carry it and their weight together, the largest first."""
        spoken = self.neighbors[self.neighbors["speaks"] != "silent"]
        by_label = spoken.groupby("given_label", sort=True)["weight"]
        votes = by_label.count().to_frame("n_neighbors").assign(weight=by_label.sum())
        return votes.sort_values("weight", ascending=False, kind="stable")

    def __str__(self) -> str:
        if np.isnan(self.label_score):
            head = f"Sample {self.id} has no label; {self.predicted_label!r} is the most probable one"
        else:
            head = f"Sample {self.id} is labeled {self.given_label!r} with a score of {self.label_score:.2f}"
        if self.neighbors.empty:
            return f"{head}. It has no neighbors."
        votes = self.votes
        said = [
            f"{count} say {label!r} ({weight:.0%} of the weight)"
            for label, count, weight in zip(votes.index, votes["n_neighbors"], votes["weight"], strict=True)
        ]
        if len(said) > MOST_SAID:
            said[MOST_SAID:] = [f"{votes['n_neighbors'].iloc[MOST_SAID:].sum()} say something else"]
        return f"{head}. Of its {len(self.neighbors)} neighbors, {', '.join(said) or 'none has a label'}."

    def _weight(self, speaks: str) -> float:
        return float(self.neighbors.loc[self.neighbors["speaks"] == speaks, "weight"].sum())


def explain(result: AuditResult, sample: int | str) -> Explanation:
    """The neighbors of one sample, given by its row (int) or its id (str), and what they say."""
    import pandas as pd

    row = _row_of(result.dataset, sample)
    neighbors, similarities, weights = result.voices.of(row)
    judged = {column: _plain(result.table.at[row, column]) for column in result.table.columns}
    codes = result.dataset.labels
    about = result.predicted[row] if codes[row] == MISSING else codes[row]
    speaks = np.where(codes[neighbors] == about, "for", "against").astype(object)
    speaks[codes[neighbors] == MISSING] = "silent"
    theirs = result.table.loc[neighbors]
    return Explanation(
        row=row,
        id=judged["id"],
        given_label=None if codes[row] == MISSING else judged["given_label"],
        predicted_label=judged["predicted_label"],
        predicted_probability=judged["predicted_probability"],
        label_score=judged["label_score"],
        neighbors=pd.DataFrame(
            {
                "id": theirs["id"],
                "given_label": theirs["given_label"],
                "similarity": similarities,
                "weight": weights,
                "label_score": theirs["label_score"],
                "speaks": speaks,
            },
            index=theirs.index,
        ),
    )


def _plain(value: Any) -> Any:
    """A number of numpy as one of Python, which reads better."""
    return value.item() if isinstance(value, np.generic) else value


def asks_neighbors(estimator: ConfidenceEstimator, dataset: NoisyDataset) -> bool:
    """Whether the estimator judged a sample by others that are like it, and can still say by which."""
    by_neighbors = estimator.evidence == "features"
    return by_neighbors and (dataset.features is not None or _kept_graph(estimator) is not None)


def listen(estimator: ConfidenceEstimator, name: str, dataset: NoisyDataset) -> Voices:
    """The neighbors that ``estimator`` asked, each as loud as it heard them."""
    if not asks_neighbors(estimator, dataset):
        raise InvalidInputError(
            f"{name!r} asked no neighbors that could explain a label: it judged by class probabilities. "
            "Use an estimator of features, such as 'laplace'."
        )
    affinity = _kept_graph(estimator)
    if affinity is not None:  # labels spread over the normalized graph, in which hubs speak softly
        return Voices(affinity, normalized(affinity, degrees(affinity)))
    similarity = _asked_neighbors(estimator, dataset)
    return Voices(similarity, similarity)


def _kept_graph(estimator: ConfidenceEstimator) -> sparse.csr_array | None:
    return getattr(getattr(estimator, "laplace_", estimator), "affinity_", None)


def _asked_neighbors(estimator: Any, dataset: NoisyDataset) -> sparse.csr_array:
    """The same search again, for estimators that do not keep whom they asked."""
    settings = estimator.get_params()
    features = cast(FloatArray, dataset.features)
    n_components = settings.get("n_components")
    if n_components is not None and n_components >= min(features.shape):
        n_components = None  # an estimator may allow for more axes than there are
    found = find_neighbors(
        unit_features(features, n_components),
        min(_neighbor_count(estimator, settings), len(features) - 1),
        search=settings.get("search", "auto"),
        n_jobs=settings.get("n_jobs"),
        random_state=settings.get("random_state"),
    )
    spoken = found.similarities > 0
    ends = np.concatenate([[0], np.cumsum(spoken.sum(axis=1))])
    shape = (len(features), len(features))
    return sparse.csr_array((found.similarities[spoken], found.indices[spoken], ends), shape=shape)


def _neighbor_count(estimator: Any, settings: dict[str, Any]) -> int:
    """As many as the estimator asked; a usual number where it has chosen several or does not say."""
    for count in (getattr(estimator, "n_neighbors_", None), settings.get("n_neighbors")):
        if isinstance(count, int):
            return count
    return USUAL_NEIGHBORS


def _row_of(dataset: NoisyDataset, sample: int | str) -> int:
    if isinstance(sample, str):
        rows = np.flatnonzero(dataset.sample_ids == sample)
        if len(rows) == 0:
            raise must_be("sample", "the row (int) or the id (str) of a sample", sample)
        return int(rows[0])
    return check_integer(sample, "sample", minimum=0, maximum=len(dataset) - 1)
