"""What the search in blocks scans, and how many lists and candidates: the cheapest that reaches the recall.

Codes are fitted to a sample, and tried on queries whose exact neighbors are known, as the search in memory
does. Times come from a cost model with constants, so the choice depends on data and seed only. It is written
down: a run that was stopped goes on with it.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import IntArray
from laplaceconfidence.blocks.executor import Executor, run_parts
from laplaceconfidence.blocks.lists import SHARDS, Lists, Shards
from laplaceconfidence.blocks.recall_sample import RecallSample, lists_for_recall
from laplaceconfidence.blocks.search import (
    CODES,
    SearchSettings,
    asked_lists,
    code_blocks,
    lists_in_memory,
    vectors_at,
)
from laplaceconfidence.blocks.times import exact_nanoseconds
from laplaceconfidence.blocks.work_folder import Facts, WorkFolder
from laplaceconfidence.graph.list_scan import (
    FINER_FROM,
    MOST_CANDIDATES,
    inner_products,
    nanoseconds,
    scan_lists,
)
from laplaceconfidence.graph.product_codes import AXES_SAMPLE, CODED_FROM, ProductCodes
from laplaceconfidence.graph.recall import Effort

CHOSEN, FITTED, TRIED = "search", "axes of codes", "trials"  # stages
_MORE_LISTS = (1, 1.25, 1.6, 2, 3)  # times the fewest that can reach the recall
_CANDIDATES = {2: FINER_FROM, 1: MOST_CANDIDATES}  # per neighbor, by axes per code


@dataclass(frozen=True, slots=True)
class _Trial:
    """Queries with known neighbors, and what is tried on them.

    Attributes
    ----------
    sample : RecallSample
        The queries.
    asked : ndarray of int32, shape (m, most lists)
        Their nearest lists, nearest first.
    numbers : list of int
        Numbers of lists to try.
    n_candidates : int
        Candidates per query.
    """

    sample: RecallSample
    asked: NDArray[np.int32]
    numbers: list[int]
    n_candidates: int


def choose_search(
    executor: Executor,
    work: WorkFolder,
    lists: Lists,
    shards: Shards,
    sample: RecallSample,
    k: int,
    target: float,
    *,
    at_any_cost: bool,
) -> tuple[SearchSettings | None, float]:
    """Choose how to search; the codes of all samples are written where codes are chosen.

    Parameters
    ----------
    executor : Executor
        Where tasks run.
    work : WorkFolder
        Where the parts are.
    lists : Lists
        The centers.
    shards : Shards
        The blocks.
    sample : RecallSample
        Queries to measure the recall on.
    k : int
        Neighbors per sample.
    target : float
        The recall to reach.
    at_any_cost : bool
        Whether to search lists even if an exact search would be faster, as it is if the samples have no
        structure.

    Returns
    -------
    settings : SearchSettings or None
        ``None`` for an exact search.
    nanoseconds : float
        Rough time per query.
    """
    if not work.is_done(CHOSEN, 0):
        effort, axes_per_code = _cheapest(executor, work, lists, shards, sample, k, target)
        facts = {**asdict(effort), "axes_per_code": axes_per_code}
        work.save(CHOSEN, 0, {}, facts)
        for number in (1, 2):  # what is not used any more
            work.remove(f"{TRIED}-{number}")
            if number != axes_per_code:
                work.remove(f"{CODES}-{number}")
    facts = work.facts(CHOSEN, 0)
    exact = exact_nanoseconds(int(shards.starts[-1]), sample.vectors.shape[1])
    if not at_any_cost and facts["nanoseconds"] > exact:
        return None, exact
    codes = None
    if facts["axes_per_code"] is not None:
        codes = _load_codes(work, facts["axes_per_code"])
        code_blocks(executor, work, lists, shards, codes)
    return SearchSettings(k, facts["n_cells"], facts["n_candidates"], codes), facts["nanoseconds"]


def _cheapest(
    executor: Executor,
    work: WorkFolder,
    lists: Lists,
    shards: Shards,
    sample: RecallSample,
    k: int,
    target: float,
) -> tuple[Effort, int | None]:
    """The effort that reaches the recall in the shortest time, and the axes per code; None for vectors."""
    fewest, d = lists_for_recall(sample, target), sample.vectors.shape[1]
    time = _nanoseconds(shards, fewest, 0, d, None)
    best: tuple[Effort, int | None] = (
        Effort(fewest, 0, float(sample.recall_by_lists[fewest - 1]), time),
        None,
    )
    numbers = sorted({min(len(lists.centers), math.ceil(times * fewest)) for times in _MORE_LISTS})
    own = np.searchsorted(shards.list_starts, sample.positions, side="right") - 1
    asked = asked_lists(lists, lists.coarse(sample.vectors), own, numbers[-1])
    for axes_per_code in (2, 1) if shards.starts[-1] >= CODED_FROM else ():
        run_parts(executor, work, f"{FITTED}-{axes_per_code}", _fit, [(lists, shards, axes_per_code)])
        codes = _load_codes(work, axes_per_code)
        code_blocks(executor, work, lists, shards, codes)
        trial = _Trial(sample, asked, numbers, _CANDIDATES[axes_per_code] * (k + 1))
        efforts = _tried(executor, work, lists, shards, codes, trial, k, target)
        for effort in efforts:
            if effort.merit(target) > best[0].merit(target):
                best = effort, axes_per_code
        if any(effort.recall >= target for effort in efforts):
            break
    return best


def _tried(
    executor: Executor,
    work: WorkFolder,
    lists: Lists,
    shards: Shards,
    codes: ProductCodes,
    trial: _Trial,
    k: int,
    target: float,
) -> list[Effort]:
    """What reaches the recall, or comes nearest to it, for every number of lists."""
    name = f"{TRIED}-{codes.axes_per_code}"
    run_parts(executor, work, name, _try_block, [(lists, shards, codes, trial)] * shards.n_blocks)
    d, efforts = trial.sample.vectors.shape[1], []
    for number, n_lists in enumerate(trial.numbers):
        hits, compared = _by_candidates(work, name, shards, trial, number)
        recall = np.minimum(hits, k).mean(axis=0) / k
        enough = int(np.clip(np.searchsorted(recall, target) + 1, k + 1, trial.n_candidates))
        time = _nanoseconds(shards, n_lists, int(compared[:, enough - 1].mean()), d, codes)
        efforts.append(Effort(n_lists, enough, float(recall[enough - 1]), time))
    return efforts


def _by_candidates(
    work: WorkFolder, name: str, shards: Shards, trial: _Trial, number: int
) -> tuple[IntArray, IntArray]:
    """True neighbors and comparisons of every query, by the number of candidates per block.

    As in the search, the own block comes first, and of the others only what is no farther is compared.
    """
    n_candidates, positions = trial.n_candidates, trial.sample.positions
    hits = np.zeros((len(positions), n_candidates), dtype=np.int64)
    compared = np.zeros_like(hits)
    farthest = np.full(hits.shape, np.inf, dtype=np.float32)
    own_blocks = shards.blocks_of(positions)
    for is_own in (True, False):
        for block in range(shards.n_blocks):
            who, distances, are_true = (
                work.load(name, block, array) for array in ("queries", "distances", "hits")
            )
            for place in np.flatnonzero((own_blocks[who] == block) == is_own).tolist():
                row, found = who[place], distances[number, place]
                no_farther = np.searchsorted(found, farthest[row], side="right")
                kept = np.minimum(no_farther, np.arange(1, n_candidates + 1))
                hits[row] += np.append(0, are_true[number, place].cumsum())[kept]
                compared[row] += kept
                farthest[row] = np.minimum(farthest[row], found)
    return hits, compared


def _try_block(
    work: WorkFolder, block: int, lists: Lists, shards: Shards, codes: ProductCodes, trial: _Trial
) -> Facts:
    """Scan a block for the queries that ask it: distances of candidates, and which are true neighbors."""
    first, last = shards.first_lists[block : block + 2]
    inside = (trial.asked >= first) & (trial.asked < last)
    who = np.flatnonzero(inside.any(axis=1))
    shape = len(trial.numbers), len(who), trial.n_candidates
    distances = np.full(shape, np.inf, dtype=np.float32)
    hits = np.zeros(shape, dtype=bool)
    if len(who):
        index = lists_in_memory(work, block, shards, codes)
        vectors = np.asarray(work.load(SHARDS, block, "vectors"))
        scanned = lists.coarse(trial.sample.vectors[who]) @ codes.axes
        for number, n_lists in enumerate(trial.numbers):
            asked = np.where(inside[who, :n_lists], trial.asked[who, :n_lists] - first, -1)
            distances[number], found = scan_lists(index, scanned, asked, trial.n_candidates)
            similar = inner_products(trial.sample.vectors[who], vectors, found)
            is_other = found + shards.starts[block] != trial.sample.positions[who, None]
            hits[number] = (similar >= trial.sample.accepted[who, None]) & is_other
    arrays: dict[str, NDArray[Any]] = {"queries": who, "distances": distances, "hits": hits}
    return work.save(f"{TRIED}-{codes.axes_per_code}", block, arrays, {})


def _fit(work: WorkFolder, part: int, lists: Lists, shards: Shards, axes_per_code: int) -> Facts:
    n = int(shards.starts[-1])
    sample = vectors_at(work, shards, np.arange(0, n, max(1, n // AXES_SAMPLE)))
    codes = ProductCodes.fitted(lists.coarse(sample), axes_per_code)
    arrays = {"axes": codes.axes, "centroids": codes.centroids}
    return work.save(f"{FITTED}-{axes_per_code}", part, arrays, {})


def _load_codes(work: WorkFolder, axes_per_code: int) -> ProductCodes:
    name = f"{FITTED}-{axes_per_code}"
    return ProductCodes(*(work.load(name, 0, array, mapped=False) for array in ("axes", "centroids")))


def _nanoseconds(
    shards: Shards, n_lists: int, n_candidates: int, d: int, codes: ProductCodes | None
) -> float:
    sizes = np.diff(shards.list_starts)
    n_scanned = n_lists * float((sizes**2).sum()) / float(sizes.sum())
    width = d if codes is None else codes.n_codes
    return nanoseconds(n_lists, n_scanned, width, n_candidates, d, coded=codes is not None)
