"""Whether the refined labels of a run are better than the given ones, judged on labels it was not trained on.

A network shows in the features of a sample the label that it was trained on, right or wrong. Features of
held-out samples do not, so the noise-aware estimate is honest there: it says how many of the given labels,
and how many of the refined ones, are right.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.confidence.inputs import at_given_labels
from laplaceconfidence.confidence.noise_aware import NoiseAwareConfidence
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.training.methods.confidences import fit_on_features
from laplaceconfidence.training.methods.interface import Evidence

FEWEST_LABELS = 100  # held out; the standard error of the comparison is then below five points
FROM_METHOD, FROM_AUDIT, GIVEN = "method", "audit", "given"


@dataclass(frozen=True, slots=True)
class LabelCheck:
    """Expected shares of right labels among the held-out ones, and which labels were written.

    Parameters
    ----------
    n_labels : int
        Held-out labels that were judged.
    given, method : float
        Expected share of right labels, as given and as refined by the method.
    audit : float or None
        The same for the labels that the noise-aware audit of the learned features suggests; ``None`` where
        the method's are no worse than the given ones.
    chosen : {"method", "audit", "given"}
        Which of them are the refined labels: those of the method, unless they are expected to be worse than
        the given ones; then the better of the two others.
    """

    n_labels: int
    given: float
    method: float
    audit: float | None
    chosen: str

    def as_dict(self) -> dict[str, Any]:
        """For the summary of the run."""
        return asdict(self)

    @property
    def sentence(self) -> str:
        """What was found, for people."""
        text = (
            f"Judged on {self.n_labels:,} held-out labels, {self.method:.1%} of the method's labels and "
            f"{self.given:.1%} of the given ones are expected to be right."
        )
        if self.chosen == FROM_METHOD:
            return text
        instead = "the given ones"
        if self.chosen == FROM_AUDIT:
            instead = f"those of a noise-aware audit of the learned features ({self.audit:.1%})"
        return f"{text} The refined labels are therefore {instead}, the confidences those of the audit."


@dataclass(frozen=True, slots=True, eq=False)
class CheckedLabels:
    """The refined labels and confidences of a run, after the check.

    Parameters
    ----------
    refined : ndarray of int of shape (n_samples,)
        Codes of the refined labels.
    confidence : ndarray of shape (n_samples,)
        Confidences of the given labels, NaN where there is none.
    check : LabelCheck or None
        ``None`` if too few labels were held out, or if the audit of their features cannot tell wrong labels
        from overlapping classes; the labels and confidences are then those of the method.
    """

    refined: IntArray
    confidence: FloatArray
    check: LabelCheck | None


def check_labels(
    evidence: Evidence, held_out: IntArray, refined: IntArray, confidence: FloatArray
) -> CheckedLabels:
    """Replace the refined labels of a method where they are expected to be worse than the given ones.

    Parameters
    ----------
    evidence : Evidence
        Outputs of the predicting networks for all samples.
    held_out : ndarray of int
        Rows that the networks were not trained on.
    refined : ndarray of int of shape (n_samples,)
        The labels that the method suggests.
    confidence : ndarray of shape (n_samples,)
        Its confidences.

    Returns
    -------
    CheckedLabels
    """
    labels = evidence.labels
    rows = held_out[labels[held_out] != MISSING]
    if len(rows) < FEWEST_LABELS or len(np.unique(labels[rows])) < 2:
        return CheckedLabels(refined, confidence, None)
    judged, is_identified = _audited(evidence, rows)
    if not is_identified:
        return CheckedLabels(refined, confidence, None)

    def expected(codes: IntArray) -> float:
        return float(judged[np.arange(len(rows)), codes[rows]].mean())

    right, given = expected(refined), expected(labels)
    if right >= given:
        return CheckedLabels(refined, confidence, LabelCheck(len(rows), given, right, None, FROM_METHOD))
    labeled = np.flatnonzero(labels != MISSING)
    audited, _ = _audited(evidence, labeled)
    suggested = refined.copy()
    suggested[labeled] = audited.argmax(axis=1)
    of_audit = expected(suggested)
    chosen = FROM_AUDIT if of_audit > given else GIVEN
    if chosen == GIVEN:
        suggested[labeled] = labels[labeled]
    found = np.full(len(labels), np.nan)
    found[labeled] = at_given_labels(audited, labels[labeled])
    return CheckedLabels(suggested, found, LabelCheck(len(rows), given, right, of_audit, chosen))


def _audited(evidence: Evidence, rows: IntArray) -> tuple[FloatArray, bool]:
    """(n_rows, C) class probabilities by the audit of each network's features, averaged over networks.

    Besides, whether the noise was identified by the features of every network: of few labels, most of them
    wrong, an audit may only say what it assumes.
    """
    mean, is_identified = np.zeros((len(rows), evidence.problem.n_classes)), True
    for network in evidence.networks:
        audit = fit_on_features(NoiseAwareConfidence(), evidence, network, rows)
        mean[:, audit.classes_] += np.asarray(audit.label_distributions_) / len(evidence.networks)
        is_identified = is_identified and audit.identifiable_ and audit.fallback_ is None
    return mean, is_identified
