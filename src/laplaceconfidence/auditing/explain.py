"""Why a label has its score: the neighbors that the estimator used, and the labels they have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import IntArray
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.identity import is_digest
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.validation import check_integer, must_be
from laplaceconfidence.wording import counted

if TYPE_CHECKING:
    import pandas as pd

    from laplaceconfidence.auditing.result import AuditResult

MOST_LABELS_NAMED = 3  # by an explanation in words

Position = Literal["agrees", "disagrees", "no label"]


def neighbor_positions(neighbor_labels: Any, *, given: int, suggested: int) -> NDArray[Any]:
    """Compare the labels of the neighbors of a sample with its own.

    Parameters
    ----------
    neighbor_labels : array-like of int of shape (k,)
        Codes of the neighbors' given labels, ``MISSING`` where there is none.
    given : int
        Code of the sample's given label. Where it is ``MISSING``, the neighbors are compared with the
        suggested label.
    suggested : int
        Code of the suggested label.

    Returns
    -------
    ndarray of object of shape (k,)
        "agrees", "disagrees" or "no label".
    """
    codes = np.asarray(neighbor_labels)
    positions = np.where(codes == (suggested if given == MISSING else given), "agrees", "disagrees")
    return np.where(codes == MISSING, "no label", positions).astype(object)


@dataclass(frozen=True, eq=False)
class Explanation:
    """The neighbors of one sample, and whether their labels agree with its own.

    Parameters
    ----------
    row : int
        Row of the sample in the data set.
    id : str
        Id of the sample.
    given_label : object
        Its label as the user wrote it, None where it has none.
    predicted_label : object
        The most probable label.
    predicted_probability : float
        Its probability.
    label_score : float
        Probability that the given label is right, NaN where there is none.
    neighbors : pandas.DataFrame
        One row per neighbor that the estimator used, the one of largest weight first, indexed by its row in
        the data set: ``id``, ``given_label``, ``similarity``, ``weight`` (its share of the weights of all
        neighbors), ``label_score`` (of its own label) and ``position``: "agrees" with the label of the
        sample, "disagrees", or "no label". Where the sample itself has no label, its neighbors are compared
        with the predicted one.
    """

    row: int
    id: str
    given_label: Any
    predicted_label: Any
    predicted_probability: float
    label_score: float
    neighbors: pd.DataFrame

    @property
    def weight_agreeing(self) -> float:
        """float: share of the weights of the neighbors with the same label."""
        return self._weight("agrees")

    @property
    def weight_disagreeing(self) -> float:
        """float: share of the weights of the neighbors with another label."""
        return self._weight("disagrees")

    @property
    def votes(self) -> pd.DataFrame:
        """pandas.DataFrame: per label, the number of neighbors that have it and the sum of their weights."""
        labeled = self.neighbors[self.neighbors["position"] != "no label"]
        by_label = labeled.groupby("given_label", sort=True)["weight"]
        votes = by_label.count().to_frame("n_neighbors").assign(weight=by_label.sum())
        return votes.sort_values("weight", ascending=False, kind="stable")

    def __str__(self) -> str:
        if np.isnan(self.label_score):
            head = f"{self._name} has no label; {self.predicted_label!r} is the most probable one"
        else:
            head = f"{self._name} is labeled {self.given_label!r} with a score of {self.label_score:.2f}"
        if self.neighbors.empty:
            return f"{head}. It has no neighbors."
        votes = self.votes
        parts = [
            f"{count} {'is' if count == 1 else 'are'} labeled {label!r} ({weight:.0%} of the weight)"
            for label, count, weight in zip(votes.index, votes["n_neighbors"], votes["weight"], strict=True)
        ]
        if len(parts) > MOST_LABELS_NAMED:
            n_more = int(votes["n_neighbors"].iloc[MOST_LABELS_NAMED:].sum())
            parts[MOST_LABELS_NAMED:] = [f"{n_more} {'has' if n_more == 1 else 'have'} another label"]
        neighbors = counted(len(self.neighbors), "neighbor")
        return f"{head}. Of its {neighbors}, {', '.join(parts) or 'none has a label'}."

    def __repr__(self) -> str:
        name = f"row {self.row}" if is_digest(self.id) else f"sample {self.id!r}"
        return (
            f"Explanation({name}, {counted(len(self.neighbors), 'neighbor')}: "
            f"{self.weight_agreeing:.0%} of the weight agrees, {self.weight_disagreeing:.0%} disagrees)"
        )

    @property
    def _name(self) -> str:
        return f"Row {self.row}" if is_digest(self.id) else f"Sample {self.id}"

    def _weight(self, position: Position) -> float:
        return float(self.neighbors.loc[self.neighbors["position"] == position, "weight"].sum())


def explain(result: AuditResult, sample: int | str) -> Explanation:
    """List the neighbors that the estimator used for one sample.

    Parameters
    ----------
    result : AuditResult
        A finished audit.
    sample : int or str
        The row of the sample, or its id.

    Returns
    -------
    Explanation
    """
    import pandas as pd

    row = _row_of(result.dataset, sample)
    if result.neighborhood is None:
        raise InvalidInputError(
            f"{result.estimator_name!r} used no neighbors that could explain a label. "
            "Use an estimator of features, such as 'laplace'."
        )
    neighbors, similarities, weights = result.neighborhood.of(row)
    own = {column: _python_value(result.table.at[row, column]) for column in result.table.columns}
    codes: IntArray = result.dataset.labels
    theirs = result.table.loc[neighbors]
    return Explanation(
        row=row,
        id=own["id"],
        given_label=None if codes[row] == MISSING else own["given_label"],
        predicted_label=own["predicted_label"],
        predicted_probability=own["predicted_probability"],
        label_score=own["label_score"],
        neighbors=pd.DataFrame(
            {
                "id": theirs["id"],
                "given_label": theirs["given_label"],
                "similarity": similarities,
                "weight": weights,
                "label_score": theirs["label_score"],
                "position": neighbor_positions(
                    codes[neighbors], given=int(codes[row]), suggested=int(result.predicted[row])
                ),
            },
            index=theirs.index,
        ),
    )


def _python_value(value: Any) -> Any:
    """A NumPy scalar as a Python one, which reads better."""
    return value.item() if isinstance(value, np.generic) else value


def _row_of(dataset: NoisyDataset, sample: int | str) -> int:
    if isinstance(sample, str):
        rows = np.flatnonzero(dataset.sample_ids == sample)
        if len(rows) == 0:
            raise must_be("sample", "the row (int) or the id (str) of a sample", sample)
        return int(rows[0])
    return check_integer(sample, "sample", minimum=0, maximum=len(dataset) - 1)
