"""Which labels a person is asked to verify: some at random, some whose answer is least certain."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray, sized_row_blocks
from laplaceconfidence.auditing.result import AuditResult
from laplaceconfidence.auditing.statement import VERIFIED_LABELS
from laplaceconfidence.auditing.table import with_support
from laplaceconfidence.auditing.verified import labeled_rows_at_random
from laplaceconfidence.confidence.noise_aware.settings import FEWEST_AUDITED
from laplaceconfidence.validation import check_integer, must_be


@dataclass(frozen=True, slots=True, eq=False)
class ReviewSample:
    """Labels for a person to verify.

    Parameters
    ----------
    at_random : ndarray of int
        Rows drawn uniformly at random: only these calibrate the confidences of all others, and tell how many
        labels are wrong.
    uncertain : ndarray of int
        Rows whose answer is most likely to change, the least certain first.
    """

    at_random: IntArray
    uncertain: IntArray


def choose_for_review(
    result: AuditResult, n: int, *, seed: int, verified: Collection[int] = ()
) -> ReviewSample:
    """Choose labels to verify.

    Up to 50 are drawn at random, as fewer do not calibrate, or up to 100 where the noise is not identified,
    as only a random sample tells how many labels are wrong then. Of more, half are those whose answer is
    least certain.

    Parameters
    ----------
    result : AuditResult
        A finished audit.
    n : int
        How many to choose.
    seed : int
        Seed of the draw.
    verified : collection of int, default=()
        Rows that are verified already and are left out.

    Returns
    -------
    ReviewSample

    Raises
    ------
    InvalidInputError
        If fewer than ``n`` labels are left.
    """
    order = drawn_order(result.dataset.labels, n, seed=seed, verified=verified)
    least = VERIFIED_LABELS if result.statement.is_unidentified else FEWEST_AUDITED
    n_random = max(min(n, least), -(-n // 2))
    rest = np.sort(order[n_random:])
    certainty = answer_certainty(result)[rest]
    return ReviewSample(order[:n_random], rest[np.argsort(certainty, kind="stable")][: n - n_random])


def drawn_order(labels: IntArray, n: int, *, seed: int, verified: Collection[int] = ()) -> IntArray:
    """Return the labeled rows that nobody has verified yet in random order.

    Parameters
    ----------
    labels : ndarray of int of shape (n,)
        Codes of the labels.
    n : int
        How many are to be chosen of them.
    seed : int
        Seed of the order.
    verified : collection of int, default=()
        Rows that are verified already and are left out.

    Returns
    -------
    ndarray of int

    Raises
    ------
    InvalidInputError
        If fewer than ``n`` labels are left.
    """
    check_integer(n, "sample_for_review", minimum=1)
    order = labeled_rows_at_random(labels, seed=seed, leave_out=verified)
    if n > len(order):
        raise must_be("sample_for_review", f"at most the {len(order)} labels that nobody has verified yet", n)
    return order


def answer_certainty(result: AuditResult) -> FloatArray:
    """Probability that verifying a sample would confirm the most probable class.

    Parameters
    ----------
    result : AuditResult
        A finished audit.

    Returns
    -------
    ndarray of shape (n,)
        Where the noise is not identified, by evidence that does not include the given label: with it, nearly
        every given label is taken for right.
    """
    certainty = np.empty(len(result.dataset))
    for block in sized_row_blocks(*result.distributions.shape):
        part = result.distributions[block]
        if result.support is not None:
            part = with_support(part, result.dataset.labels[block], result.support[block])
        certainty[block] = part.max(axis=1)
    return certainty
