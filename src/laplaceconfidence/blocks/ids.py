"""Ids of samples that have none in the data, equal to those that ``ContentIds`` gives data in memory.

A sample is identified by its path, else by a digest of its text, else of its features. Samples that share a
path or text but not their features get a digest of these as well, and copies are numbered.
"""

from __future__ import annotations

import numpy as np

from laplaceconfidence.blocks.executor import Executor, run_parts
from laplaceconfidence.blocks.inputs import BlockData, cells
from laplaceconfidence.blocks.sources import Piece
from laplaceconfidence.blocks.work_folder import Facts, WorkFolder
from laplaceconfidence.data.identity import text_digests
from laplaceconfidence.stages import stage

KEYS, IDS = "identities", "ids"  # stages


def derive_ids(executor: Executor, data: BlockData, work: WorkFolder, digests: str) -> None:
    """Find out which samples share their content, so that ``ids_of`` can tell them apart.

    Parameters
    ----------
    executor : Executor
        Where tasks run.
    data : BlockData
        The data, without ids of its own.
    work : WorkFolder
        Where the parts are.
    digests : str
        The stage that kept digests of the features.
    """
    pieces = data.features.pieces
    run_parts(executor, work, KEYS, _keys_of_piece, [(data, piece, digests) for piece in pieces])
    if work.is_done(IDS, 0):
        return
    with stage(IDS):
        keys = np.concatenate([work.load(KEYS, part, "keys") for part in range(len(pieces))])
        others = np.concatenate([work.load(KEYS, part, "others") for part in range(len(pieces))])
        order = np.lexsort((np.arange(len(keys)), others, keys))
        new_key = np.concatenate([[True], keys[order][1:] != keys[order][:-1]])
        new_content = new_key | np.concatenate([[True], others[order][1:] != others[order][:-1]])
        group = np.cumsum(new_key) - 1
        told_apart = np.empty(len(keys), dtype=bool)
        told_apart[order] = (np.bincount(group, weights=new_content) > 1)[group]
        starts = np.flatnonzero(new_content)
        number = np.empty(len(keys), dtype=np.int64)
        number[order] = np.arange(len(keys)) - np.repeat(starts, np.diff([*starts, len(keys)])) + 1
        work.save(IDS, 0, {"told_apart": told_apart, "number": number}, {})


def ids_of(work: WorkFolder, data: BlockData, pieces: list[Piece]) -> list[str]:
    """Return the ids of consecutive pieces.

    Parameters
    ----------
    work : WorkFolder
        Where the parts are.
    data : BlockData
        The data.
    pieces : list of Piece
        The pieces.

    Returns
    -------
    list of str
    """
    if data.has_ids:
        return [cell or "" for cell in cells(data, "id", pieces)]
    start, stop = pieces[0].start, pieces[-1].stop
    places = [part for part, piece in enumerate(data.features.pieces) if start <= piece.start < stop]
    keys = np.concatenate([work.load(KEYS, part, "keys") for part in places]).astype(str)
    others = np.concatenate([work.load(KEYS, part, "others") for part in places]).astype(str)
    told_apart = work.load(IDS, 0, "told_apart")[start:stop]
    numbers = work.load(IDS, 0, "number")[start:stop]
    paths = cells(data, "path", pieces) if "path" in data.columns else [None] * (stop - start)
    ids = []
    for path, key, other, apart, number in zip(
        paths, keys.tolist(), others.tolist(), told_apart.tolist(), numbers.tolist(), strict=True
    ):
        id = (path or key) + (f"-{other}" if apart else "")
        ids.append(id if number == 1 else f"{id}-{number}")
    return ids


def _keys_of_piece(work: WorkFolder, part: int, data: BlockData, piece: Piece, digests: str) -> Facts:
    keys, others = np.array(work.load(digests, part, "digests")).T
    role = next((role for role in ("path", "text") if role in data.columns), None)
    if role is not None:
        own = np.array(text_digests(cells(data, role, [piece])), dtype="S16")
        keys = np.where(own == b"", keys, own)
    return work.save(KEYS, part, {"keys": keys, "others": others}, {})
