"""Expected times of an audit in blocks, in seconds of one core.

The constants were measured by ``benchmarks/planning.py`` and ``benchmarks/out_of_core.py``. Before the search
has seen the data, its time is a range: from data with structure, such as features of images, to classes that
are Gaussians, inside of which there is none. Data without any structure takes up to an exact search.
"""

from __future__ import annotations

from laplaceconfidence.blocks.lists import WIDE
from laplaceconfidence.graph.inverted_file import EXACT_NANOSECONDS

_PREPARING, _PER_FEATURE = 1e-5, 4e-8  # per sample; per feature that is read or searched
_MERGING = 8e-6  # per query, beyond what the cost model of the search counts
_FINISHING, _PER_NEIGHBOR, _PER_EDGE = 5e-6, 6e-7, 2.5e-8  # per sample; per neighbor; and per class of it
_SOLVING, _SOLVING_PER_CLASS = 1.4e-7, 1.2e-8  # per edge and chunk of classes; and per class of it
_STEPS = 30  # iterations of the solver that are expected
_GROWTH = 0.25, 0.45  # of the time per query with the number of samples, from 50,000 on


def preparing_seconds(n: int, n_read: int, n_features: int) -> float:
    """Estimate the time until samples can be searched.

    Parameters
    ----------
    n : int
        Number of samples.
    n_read : int
        Number of features that are read.
    n_features : int
        Number of features that are searched.

    Returns
    -------
    float
    """
    return n * (_PREPARING + _PER_FEATURE * (n_read + n_features))


def search_range(n: int, d: int, k: int, *, exact: bool) -> tuple[float, float]:
    """Estimate the time of a search that is not chosen yet.

    Parameters
    ----------
    n : int
        Number of samples.
    d : int
        Number of features.
    k : int
        Neighbors per sample.
    exact : bool
        Whether every query is compared with every sample.

    Returns
    -------
    least, most : float
        For data with structure, and for classes without any inside. Both are the same for an exact search.
    """
    most = search_seconds(n, exact_nanoseconds(n, d))
    if exact:
        return most, most
    per_query = 1 + 0.4 * k + min(d, WIDE) / 32 + d / 120, 6 + 0.5 * k + min(d, WIDE) / 32 + d / 80
    least, usual = (
        1e-6 * n * microseconds * max(1, n / 50_000) ** growth
        for microseconds, growth in zip(per_query, _GROWTH, strict=True)
    )
    return min(least, most), min(usual, most)


def search_seconds(n: int, nanoseconds: float) -> float:
    """Estimate the time of a search.

    Parameters
    ----------
    n : int
        Number of samples.
    nanoseconds : float
        Time of a query, by the cost model of the search.

    Returns
    -------
    float
    """
    return n * (_MERGING + 1e-9 * nanoseconds)


def exact_nanoseconds(n: int, d: int) -> float:
    """Estimate the time of a query that is compared with all samples.

    Parameters
    ----------
    n : int
        Number of samples.
    d : int
        Number of features.

    Returns
    -------
    float
    """
    return EXACT_NANOSECONDS * n * d


def finishing_seconds(n: int, k: int, n_classes: int) -> float:
    """Estimate the time of what comes after the search: graph, solution and tables.

    Parameters
    ----------
    n : int
        Number of samples.
    k : int
        Neighbors per sample.
    n_classes : int
        Number of classes.

    Returns
    -------
    float
    """
    return n * (_FINISHING + _PER_NEIGHBOR * k + _PER_EDGE * k * n_classes)


def solution_seconds(
    n: int, k: int, classes_at_once: int, n_chunks: int, n_workers: int = 1, seconds_per_step: float = 0.0
) -> float:
    """Estimate the time of the solution alone.

    Parameters
    ----------
    n : int
        Number of samples.
    k : int
        Neighbors per sample.
    classes_at_once : int
        Classes of a chunk.
    n_chunks : int
        Chunks that are solved for one after another.
    n_workers : int, default=1
        Workers that share the samples of a chunk.
    seconds_per_step : float, default=0.0
        How long each iteration waits for messages.

    Returns
    -------
    float
    """
    computing = n * k * (_SOLVING + _SOLVING_PER_CLASS * classes_at_once)
    return n_chunks * (computing / n_workers + _STEPS * seconds_per_step)
