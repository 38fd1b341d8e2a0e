"""What a run keeps so that another audit can go on from it: the folder ``index`` of a run.

For the paper's estimator these are the centers of the lists, and block by block the unit vectors, neighbors,
graph and solution; for the noise-aware one, what was fitted on the sample, and the results. A part is stored
with checksums, as in a work folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.blocks.work_folder import Facts, WorkFolder
from laplaceconfidence.exceptions import RunFolderError

INDEX = "index"  # folder in a run
KEPT = "kept"  # stage of one part: labels, and what the others are
FORMAT = 1


@dataclass(frozen=True, slots=True)
class KeptIndex:
    """The parts that a run keeps.

    Attributes
    ----------
    work : WorkFolder
        Where they are.
    facts : dict of str to object
        What describes them.
    """

    work: WorkFolder
    facts: Facts

    @property
    def labels(self) -> NDArray[Any]:
        """ndarray of int32, shape (n,): codes of the given labels, by row."""
        return self.work.load(KEPT, 0, "labels", mapped=False)

    @property
    def stages(self) -> list[str]:
        """list of str: the stages whose parts are kept."""
        return [KEPT, *self.facts["stages"]]

    def damage(self) -> str | None:
        """Compare all parts with their checksums.

        Returns
        -------
        str or None
            What is wrong; ``None`` where all parts are as they were written.
        """
        for name, n_parts in zip(self.stages, [1, *self.facts["n_parts"]], strict=True):
            for part in range(n_parts):
                if (found := self.work.damage(name, part)) is not None:
                    return found
        return None


def keep_index(work: WorkFolder, labels: NDArray[Any], stages: Sequence[str], facts: Facts) -> None:
    """Mark parts of a finished audit as those to keep.

    Parameters
    ----------
    work : WorkFolder
        Where the parts are.
    labels : ndarray of int, shape (n,)
        Codes of the given labels, by row.
    stages : sequence of str
        The stages to keep.
    facts : dict of str to object
        What another audit needs to know.
    """
    n_parts = [len(work.parts(name)) for name in stages]
    described = {**facts, "format": FORMAT, "stages": list(stages), "n_parts": n_parts}
    work.save(KEPT, 0, {"labels": labels.astype(np.int32)}, described)


def copy_index(work: WorkFolder, run: Path) -> None:
    """Put what a finished audit keeps into the folder of its run; files are linked where that is possible.

    Parameters
    ----------
    work : WorkFolder
        Where the parts are.
    run : Path
        The folder of the run.
    """
    target = WorkFolder(run / INDEX)
    for name in KeptIndex(work, work.facts(KEPT, 0)).stages:
        for part in work.parts(name):
            target.take(work, name, part, without=("coarse",))


def open_index(run: Path) -> KeptIndex:
    """Open what a run keeps.

    Parameters
    ----------
    run : Path
        The folder of the run.

    Returns
    -------
    KeptIndex

    Raises
    ------
    RunFolderError
        If there is no run, or it keeps nothing.
    """
    if not run.is_dir():
        raise RunFolderError(f"{run} is not a run folder: there is no such folder.")
    work = WorkFolder(run / INDEX)
    try:
        facts = work.facts(KEPT, 0)
    except (OSError, ValueError, KeyError, TypeError):
        raise RunFolderError(
            f"{run} keeps no index that an audit could go on from. Run its audit again with --keep-index "
            "(keep_index=True); audits with --since keep one anyway."
        ) from None
    if facts["format"] != FORMAT:
        raise RunFolderError(
            f"The index in {run} has format {facts['format']}; this version reads format {FORMAT}. Run its "
            "audit again with --keep-index."
        )
    return KeptIndex(work, facts)
