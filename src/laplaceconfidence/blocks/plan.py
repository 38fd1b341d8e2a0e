"""How large blocks may be within a memory budget, and what a run will take: the plan that is stated first.

With n samples of d features (d' after PCA), k neighbors, c classes at once and T threads or workers, a
process needs at most about

    base + T * rows * per_row + 24 * n * c + 40 * n + cache

bytes: ``per_row`` is what the largest stage keeps per row of a block, 24 n c are six vectors of the solver,
and 40 n are labels, scores and ranks. On a cluster the vectors are spread over the workers; those of the
blocks that a worker needs are copied to it, in the worst case all of them (4 n c). Where solving for classes
apart takes less time there, and the whole graph fits into every worker, a worker needs instead

    base + T * max(rows * per_row, 44 * n * c) + 16 * n * k + 40 * n
"""

from __future__ import annotations

import math
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from laplaceconfidence.blocks.lists import WIDE
from laplaceconfidence.blocks.times import (
    finishing_seconds,
    preparing_seconds,
    search_range,
    solution_seconds,
)
from laplaceconfidence.confidence.noise_aware.settings import SETTINGS
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.memory import available_memory
from laplaceconfidence.validation import must_be
from laplaceconfidence.wording import counted, duration

SHARE_OF_FREE = 0.5  # of the memory that is free, where no budget is given
BASE_BYTES = 360 * 10**6  # the interpreter with its libraries and one part of the tables, measured
CLASSES_AT_ONCE = 32
MOST_ROWS, FEWEST_ROWS = 262_144, 1_024
MOST_BLOCKS = 2_000  # every block reads from every other one, so more would take long to organize
CACHED_BLOCKS = 2
_VECTORS_APART = 44  # bytes per sample and class of a task that solves alone
_READ_OUT = 64  # bytes per sample of what is read of a chunk of classes

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}

# Of the noise-aware fit on a sample, and of its predictions: bytes and seconds, measured.
_FIT_PER_CLASS, _FIT_PER_FEATURE, _FIT_PER_SAMPLE = 150, 24, 9_500
_FIT_SECONDS, _FIT_SECONDS_PER_CLASS = 3.7e-4, 3.7e-6  # per sample of the fit
_PREDICTION_SECONDS, _PREDICTION_SECONDS_PER_CLASS = 6e-5, 2e-7
_COMPARISON_SECONDS = 5e-11  # per feature of a fitted sample that a prediction is compared with
MOST_BATCH = 16_384  # rows for which posteriors are computed at a time


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """Sizes of blocks, and what the run is expected to take.

    Attributes
    ----------
    memory : int
        The budget in bytes, of this process or of one worker.
    rows_per_block : int
        Samples per block.
    n_blocks : int
        Number of blocks.
    classes_at_once : int
        Classes that are solved for together.
    cache : int
        Bytes of blocks that a process keeps between tasks.
    peak : int
        Expected peak of memory in bytes.
    disk : int
        Expected use of the disk in bytes.
    seconds : float
        Expected time; of a search whose time depends on the data, for data with structure.
    most_seconds : float or None, default=None
        The same for classes that have no structure inside; ``None`` where the data does not matter.
    classes_apart : bool, default=False
        Whether every worker solves for classes of its own on the whole graph, in place of rows of its own.
    """

    memory: int
    rows_per_block: int
    n_blocks: int
    classes_at_once: int
    cache: int
    peak: int
    disk: int
    seconds: float
    most_seconds: float | None = None
    classes_apart: bool = False

    @property
    def statement(self) -> str:
        """str: the plan in one sentence."""
        least, most = (
            duration(max(1.0, seconds)) for seconds in (self.seconds, self.most_seconds or self.seconds)
        )
        time = least if least == most else f"{least} to {most}, by the structure of the features"
        classes = f"{counted(self.classes_at_once, 'class', 'classes')} at once"
        classes += " on each worker" if self.classes_apart else ""
        return (
            f"Plan: {counted(self.n_blocks, 'block')} of about {self.rows_per_block:,} rows, "
            f"{classes}; up to {_size(self.peak)} of memory (allowed: {_size(self.memory)}), "
            f"{_size(self.disk)} of disk, about {time}."
        )


def parse_memory(text: Any, parameter: str = "memory") -> int:
    """Convert an amount of memory to bytes.

    Parameters
    ----------
    text : str or int
        Such as "8GB", "500 MiB", or a number of bytes.
    parameter : str, default="memory"
        Name of the parameter in messages.

    Returns
    -------
    int

    Examples
    --------
    >>> from laplaceconfidence.blocks.plan import parse_memory
    >>> parse_memory("1.5GB")
    1500000000
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", str(text))
    if isinstance(text, bool) or found is None or found[2].lower() not in _UNITS or float(found[1]) <= 0:
        raise must_be(parameter, "an amount of memory such as '8GB'", text)
    return int(float(found[1]) * _UNITS[found[2].lower()])


def default_memory() -> int:
    """Return the budget where none is given: a share of the memory that is free.

    Returns
    -------
    int
    """
    free = available_memory()
    return int(SHARE_OF_FREE * (8 * 10**9 if free is None else free))


def make_plan(
    n: int,
    n_read: int,
    n_features: int,
    n_classes: int,
    n_neighbors: int,
    *,
    memory: int,
    n_threads: int = 1,
    n_processes: int = 1,
    exact: bool = False,
    seconds_per_step: float = 0.0,
) -> BlockPlan:
    """Choose the sizes of blocks.

    Parameters
    ----------
    n : int
        Number of samples.
    n_read : int
        Number of features that are read.
    n_features : int
        Number of features that are searched.
    n_classes : int
        Number of classes.
    n_neighbors : int
        Neighbors per sample.
    memory : int
        Bytes that this process, or one worker, may use.
    n_threads : int, default=1
        Tasks that run in one process at the same time.
    n_processes : int, default=1
        Number of processes.
    exact : bool, default=False
        Whether every query is compared with every sample.
    seconds_per_step : float, default=0.0
        How long an iteration of the solver waits for messages if every worker solves for its rows.

    Returns
    -------
    BlockPlan

    Raises
    ------
    InvalidInputError
        If the memory does not suffice for the smallest blocks; the message has the smallest that does.
    """
    per_row = _bytes_per_row(n_read, n_features, n_neighbors)
    # Lists of codes during the search, blocks of the graph during the solution.
    in_cache = max(math.ceil(0.55 * min(n_features, WIDE)) + 10, 13 * n_neighbors)
    fewest = min(n, max(FEWEST_ROWS, math.ceil(n / MOST_BLOCKS)))

    def peak(rows: int, classes: int) -> int:
        own = BASE_BYTES + n_threads * rows * per_row + CACHED_BLOCKS * rows * in_cache
        return own + 24 * n * classes + 40 * n

    smallest = peak(fewest, 1)
    if smallest > memory:
        raise InvalidInputError(
            f"The 'memory' parameter must be at least {_size(smallest, up=True)} for {n:,} samples of "
            f"{n_features:,} features and {n_neighbors} neighbors with {counted(n_threads, 'thread')}. Got "
            f"{_size(memory)} instead. Allow more, use fewer threads ('n_jobs'), neighbors or features "
            "('n_components'), or share the work with a cluster ('client')."
        )
    classes = min(n_classes, CLASSES_AT_ONCE)
    while classes > 1 and 24 * n * classes > (memory - BASE_BYTES) // 2:
        classes = math.ceil(classes / 2)
    while classes > 1 and peak(fewest, classes) > memory:
        classes = math.ceil(classes / 2)
    free = memory - peak(0, classes)
    rows = min(MOST_ROWS, free // (n_threads * per_row + CACHED_BLOCKS * in_cache))
    # Two blocks per thread, so that none waits long for the last one; one where every block costs messages.
    n_tasks = n_threads * n_processes if n_processes > 1 else 2 * n_threads
    rows = max(fewest, min(rows, math.ceil(n / n_tasks)))
    n_blocks = max(1, round(n / rows))
    used = peak(rows, classes)
    spare = max(0, memory - used) // 2  # for more blocks that are kept, as far as there are more
    cache = CACHED_BLOCKS * rows * in_cache + spare
    used += min(spare, max(0, n - CACHED_BLOCKS * rows) * in_cache)
    n_workers = n_threads * n_processes
    n_turns_apart = math.ceil(n_classes / (CLASSES_AT_ONCE * n_workers))
    apart = math.ceil(n_classes / (n_turns_apart * n_workers))
    # At most 2 k entries per row; without a block in the cache, every product would load it again.
    cache_apart = n * max(in_cache, 16 * n_neighbors + 8 * min(n_blocks, 2 * n_neighbors) + 16)
    used_apart = (
        BASE_BYTES + cache_apart + 40 * n + n_threads * max(rows * per_row, _VECTORS_APART * n * apart)
    )
    n_turns = math.ceil(n_classes / classes)
    seconds_in_turn = solution_seconds(n, n_neighbors, classes, n_turns, n_workers, seconds_per_step)
    seconds_apart = solution_seconds(n, n_neighbors, apart, n_turns_apart)
    # Threads of one process have nothing to wait for.
    classes_apart = seconds_per_step > 0 and used_apart <= memory and seconds_apart < seconds_in_turn
    if classes_apart:
        classes, cache, used = apart, cache_apart, used_apart
    fixed = preparing_seconds(n, n_read, n_features) + finishing_seconds(n, n_neighbors, n_classes)
    searching = search_range(n, n_features, n_neighbors, exact=exact)
    least, most = ((fixed + seconds) / (n_threads * n_processes) for seconds in searching)
    disk = n * (
        8 * n_features + (4 * WIDE if n_features > WIDE else 0) + 12 * n_neighbors + 36 * n_neighbors + 300
    )
    if classes_apart:
        disk += _READ_OUT * n * math.ceil(n_classes / classes)
    return BlockPlan(
        memory=memory,
        rows_per_block=rows,
        n_blocks=n_blocks,
        classes_at_once=classes,
        cache=int(cache),
        peak=int(used),
        disk=int(disk),
        seconds=least,
        most_seconds=None if exact else most,
        classes_apart=classes_apart,
    )


def plan_for_sample(
    n: int,
    n_features: int,
    n_classes: int,
    sample_size: int,
    *,
    memory: int,
    n_threads: int = 1,
    n_processes: int = 1,
    n_blocks: int = 1,
) -> BlockPlan:
    """Plan a fit on a sample, which is applied to all rows in batches.

    Parameters
    ----------
    n : int
        Number of samples.
    n_features : int
        Number of features.
    n_classes : int
        Number of classes.
    sample_size : int
        Number of samples of the fit.
    memory : int
        Bytes that this process, or one worker, may use.
    n_threads : int, default=1
        Tasks that run in one process at the same time.
    n_processes : int, default=1
        Number of processes.
    n_blocks : int, default=1
        Number of pieces that the data is read in.

    Returns
    -------
    BlockPlan

    Raises
    ------
    InvalidInputError
        If the memory does not suffice.
    """
    fit = sample_size * (_FIT_PER_CLASS * n_classes + _FIT_PER_FEATURE * n_features + _FIT_PER_SAMPLE)
    fixed = BASE_BYTES + fit + 40 * n
    per_row = n_threads * (24 * n_features + 48 * n_classes + 400)
    smallest = fixed + FEWEST_ROWS * per_row
    if smallest > memory:
        raise InvalidInputError(
            f"The 'memory' parameter must be at least {_size(smallest, up=True)} for {n:,} samples of "
            f"{n_features:,} features and {n_classes:,} classes. Got {_size(memory)} instead. Allow more, or "
            "use fewer threads ('n_jobs')."
        )
    rows = min(MOST_BATCH, (memory - fixed) // per_row)
    seconds = sample_size * (_FIT_SECONDS + n_classes * _FIT_SECONDS_PER_CLASS)
    seconds += n * (_PREDICTION_SECONDS + n_classes * _PREDICTION_SECONDS_PER_CLASS)
    seconds += n * sample_size * min(n_features, SETTINGS.views.most_axes) * _COMPARISON_SECONDS
    return BlockPlan(
        memory=memory,
        rows_per_block=rows,
        n_blocks=n_blocks,
        classes_at_once=n_classes,
        cache=0,
        peak=int(fixed + rows * per_row),
        disk=n * 400,
        seconds=seconds / (n_threads * n_processes),
    )


def check_disk(folder: Path, plan: BlockPlan, there: int = 0) -> None:
    """Raise if there is too little space for the parts of a run.

    Parameters
    ----------
    folder : Path
        Where they are written.
    plan : BlockPlan
        The plan.
    there : int, default=0
        Bytes that an earlier run has written there.

    Raises
    ------
    InvalidInputError
        If the disk has too little space.
    """
    existing = next(parent for parent in (folder.absolute(), *folder.absolute().parents) if parent.exists())
    free = shutil.disk_usage(existing).free
    if plan.disk - there > free:
        raise InvalidInputError(
            f"The work folder {folder} needs about {_size(plan.disk - there)} of disk, but {_size(free)} are "
            "free there. Free some space, choose a folder on another disk ('work'), or reduce the features "
            "('n_components')."
        )


def _bytes_per_row(n_read: int, n_features: int, k: int) -> int:
    """What the largest stage keeps per row of a block."""
    reading = 16 * n_read + 8 * n_features
    width = min(n_features, WIDE)
    # Own vectors, and those of a block that is asked, mapped and in its lists if codes do not pay; queries
    # along the axes of codes; lists that are asked; and neighbors.
    queries = 4 * width + (4 * width if n_features > WIDE else 0)
    searching = 12 * n_features + queries + 512 + 56 * (k + 1)
    building = 150 * k
    return max(reading, searching, building)


def _size(n_bytes: int, *, up: bool = False) -> str:
    if n_bytes < 10**9:
        return f"{math.ceil(n_bytes / 10**6) if up else round(n_bytes / 10**6):,} MB"
    return f"{math.ceil(n_bytes / 10**8) / 10 if up else n_bytes / 10**9:,.1f} GB"
