"""The suggestions of an audit taken, with a trail of what was changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.validation import check_real

if TYPE_CHECKING:
    import pandas as pd

    from laplaceconfidence.auditing.result import AuditResult


@dataclass(frozen=True, eq=False)
class Corrections:
    """Corrected labels and how they came about.

    ``trail`` has one row a changed label, worst first, indexed by the sample's row: ``id``, ``old_label``,
    ``new_label``, ``probability`` of the new one and ``label_score`` of the old one.
    """

    dataset: NoisyDataset  # with the corrected labels
    trail: pd.DataFrame

    @property
    def labels(self) -> NDArray[Any]:
        """The corrected labels as the user writes them; those that did not change exactly as they came."""
        return self.dataset.labels_as_written()

    def __len__(self) -> int:
        return len(self.trail)


def correct(result: AuditResult, *, min_probability: float = 0.0, fill_missing: bool = False) -> Corrections:
    """Take the suggestion for every flagged label.

    ``min_probability`` leaves alone what is suggested with less; ``fill_missing`` also gives a label to the
    samples that have none.
    """
    least = check_real(min_probability, "min_probability", at_least=0, at_most=1)
    table = result.table
    given = result.dataset.labels[table.index]
    predicted = result.predicted[table.index]
    wanted = table["is_label_issue"].to_numpy() | ((given == MISSING) & fill_missing)
    taken = wanted & (predicted != given) & (table["predicted_probability"].to_numpy() >= least)
    trail = table.loc[taken, ["id", "given_label", "predicted_label", "predicted_probability", "label_score"]]
    trail.columns = ["id", "old_label", "new_label", "probability", "label_score"]
    codes = result.dataset.labels.copy()
    codes[trail.index] = result.predicted[trail.index]
    return Corrections(result.dataset.with_labels(np.asarray(codes)), trail)
