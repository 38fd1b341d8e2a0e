"""Labels corrected by the suggestions of an audit, with a trail of what was changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.validation import check_real

if TYPE_CHECKING:
    import pandas as pd

    from laplaceconfidence.auditing.result import AuditResult


@dataclass(frozen=True, eq=False)
class Corrections:
    """Corrected labels, and what was changed.

    Parameters
    ----------
    dataset : NoisyDataset
        The data set with the corrected labels.
    trail : pandas.DataFrame
        One row per changed label, worst first, indexed by the sample's row: ``id``, ``old_label``,
        ``new_label``, ``probability`` of the new one and ``label_score`` of the old one.
    """

    dataset: NoisyDataset
    trail: pd.DataFrame

    @property
    def labels(self) -> NDArray[Any]:
        """ndarray of shape (n,): the labels as the user writes them, unchanged ones exactly as they came."""
        return self.dataset.labels_as_written()

    def __len__(self) -> int:
        return len(self.trail)

    def __repr__(self) -> str:
        return f"Corrections({len(self)} of {len(self.dataset)} labels changed)"


def accepted_suggestions(
    *,
    flagged: BoolArray,
    given: IntArray,
    suggested: IntArray,
    probability: FloatArray,
    min_probability: float = 0.0,
    fill_missing: bool = False,
) -> BoolArray:
    """Select the suggestions that replace the given labels.

    Parameters
    ----------
    flagged : ndarray of bool of shape (n,)
        Labels that are probably wrong.
    given, suggested : ndarray of int of shape (n,)
        Codes of the labels.
    probability : ndarray of shape (n,)
        Probability of the suggested labels.
    min_probability : float, default=0.0
        Suggestions with a lower probability are not accepted.
    fill_missing : bool, default=False
        Whether samples without a label get the suggested one.

    Returns
    -------
    ndarray of bool of shape (n,)
    """
    wanted = flagged | ((given == MISSING) & fill_missing)
    accepted: BoolArray = wanted & (suggested != given) & (probability >= min_probability)
    return accepted


def correct(result: AuditResult, *, min_probability: float = 0.0, fill_missing: bool = False) -> Corrections:
    """Replace every flagged label with the suggested one.

    Parameters
    ----------
    result : AuditResult
        A finished audit.
    min_probability : float, default=0.0
        Labels whose suggestion has a lower probability stay as they are.
    fill_missing : bool, default=False
        Whether samples without a label get the suggested one.

    Returns
    -------
    Corrections
    """
    least = check_real(min_probability, "min_probability", at_least=0, at_most=1)
    table = result.table
    accepted = accepted_suggestions(
        flagged=table["is_label_issue"].to_numpy(),
        given=result.dataset.labels[table.index],
        suggested=result.predicted[table.index],
        probability=table["predicted_probability"].to_numpy(),
        min_probability=least,
        fill_missing=fill_missing,
    )
    columns = ["id", "given_label", "predicted_label", "predicted_probability", "label_score"]
    trail = table.loc[accepted, columns]
    trail.columns = ["id", "old_label", "new_label", "probability", "label_score"]
    codes = result.dataset.labels.copy()
    codes[trail.index] = result.predicted[trail.index]
    return Corrections(result.dataset.with_labels(np.asarray(codes)), trail)
