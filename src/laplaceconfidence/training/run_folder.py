"""The folder of a run on disk (``laplaceconfidence.run_files`` lists its files), and what is kept in it.

Every file is written whole or not at all. A checkpoint is what ``torch.save`` writes, followed by a footer
with its length and SHA-256; ``torch.load`` can open the file as it is. Only tensors and plain Python values
go in, so that loading runs no code.
"""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import struct
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.exceptions import DataFormatError, LaplaceConfidenceWarning, RunFolderError
from laplaceconfidence.files import differences, replacing, write_json
from laplaceconfidence.folder_lock import FolderLock
from laplaceconfidence.parquet_files import write_parquet
from laplaceconfidence.run_files import (
    BEST_CHECKPOINT,
    CHECKPOINTS,
    CONFIDENCES,
    FEATURES,
    LAST_CHECKPOINT,
    METRICS,
    PREVIOUS_CHECKPOINT,
    SETTINGS,
    SUMMARY,
    TIMINGS,
    confidences_of,
)
from laplaceconfidence.training.methods.interface import Method
from laplaceconfidence.training.seeds import derived_generator

MOST_SAMPLES = 5_000  # whose features are kept
_MARK = b"LAPLACECONFIDENCE-CHECKPOINT-1"
_FOOTER = struct.Struct(f"<{len(_MARK)}sQ32s")


class RunFolder:
    """The folder of one run, new or with a run of the same settings in it, locked for this process.

    Parameters
    ----------
    path : str or Path
        The folder; it is made if it does not exist.
    settings : mapping of str to Any
        The settings of the run, as text and numbers.

    Raises
    ------
    RunFolderError
        If the folder holds something else, or a run with other settings.
    """

    def __init__(self, path: str | Path, settings: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self._folder_lock = FolderLock(self.path)
        try:
            self._prepare(json.loads(json.dumps(settings)))  # as read back: tuples become lists
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Release the folder for other processes."""
        self._folder_lock.close()

    def _prepare(self, resolved: dict[str, Any]) -> None:
        with _disk_errors(self.path):
            if (stored := stored_settings(self.path)) is None:
                if not all(map(_is_first_file, self.path.iterdir())):
                    raise RunFolderError(
                        f"The run folder {self.path} must be new, empty or hold a run. It holds something "
                        "else: choose another folder."
                    )
                # Written first, so that a run that is killed leaves a folder in which it can be resumed.
                write_json(self.path / SETTINGS, resolved)
            elif changed := differences(stored, resolved):
                raise RunFolderError(
                    f"The run in {self.path} has other settings and cannot be resumed with these:\n  "
                    + "\n  ".join(changed)
                    + "\nUse its settings to resume it, or another folder for a new run."
                )
            self._remove_leftovers()
            for part in (CHECKPOINTS, CONFIDENCES, FEATURES):
                (self.path / part).mkdir(exist_ok=True)

    def _remove_leftovers(self) -> None:
        """Remove the temporary files of a process that was killed while it wrote."""
        for path in self.path.rglob(".*"):
            if path.suffix in (".pt", ".json", ".jsonl", ".parquet", ".npz"):
                path.unlink()

    @property
    def is_finished(self) -> bool:
        return (self.path / SUMMARY).exists()

    def save_checkpoint(self, content: dict[str, Any]) -> None:
        """Write ``content`` as the last checkpoint; the one before it is kept as the previous one."""
        last = self.path / CHECKPOINTS / LAST_CHECKPOINT
        with _disk_errors(last):
            if last.exists():
                last.replace(last.with_name(PREVIOUS_CHECKPOINT))
            write_checkpoint(last, content)

    def load_checkpoint(self) -> dict[str, Any] | None:
        """The newest complete checkpoint; ``None`` if there is none, and the run starts at round 1."""
        return self._first_whole(
            (LAST_CHECKPOINT, PREVIOUS_CHECKPOINT),
            if_none="No other checkpoint is left: the run starts over at round 1.",
        )

    def save_best(self, content: dict[str, Any]) -> None:
        with _disk_errors(path := self.path / CHECKPOINTS / BEST_CHECKPOINT):
            write_checkpoint(path, content)

    def load_best(self) -> dict[str, Any] | None:
        return self._first_whole((BEST_CHECKPOINT,), if_none="The choice of the best round starts over.")

    def write_metrics(self, history: Sequence[Mapping[str, Any]]) -> None:
        """Write the measurements of all rounds so far; the file is replaced, so that no line is repeated."""
        self._write_lines(METRICS, history)

    def write_timings(self, seconds: Sequence[float]) -> None:
        self._write_lines(TIMINGS, [{"round": i + 1, "seconds": s} for i, s in enumerate(seconds)])

    def write_confidences(self, round: int, columns: Mapping[str, Any]) -> None:
        """Write the confidences of a round: one column per network, besides the ids."""
        self.write_table(confidences_of(round + 1), columns)

    def write_features(self, name: str, rows: IntArray, features: FloatArray, *, rounds: int) -> None:
        """Write the features of the samples ``rows`` after ``rounds`` rounds."""
        path = self.path / FEATURES / name
        numbers = features.astype(np.float32)
        with _disk_errors(path), replacing(path) as temporary:
            np.savez_compressed(temporary, rows=rows, features=numbers, rounds=np.int64(rounds))

    def write_table(self, name: str, columns: Mapping[str, Any]) -> None:
        with _disk_errors(path := self.path / name):
            write_parquet(path, pa.table(dict(columns)))

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        with _disk_errors(path := self.path / SUMMARY):
            write_json(path, summary)

    def _write_lines(self, name: str, lines: Sequence[Mapping[str, Any]]) -> None:
        text = "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines)
        with _disk_errors(path := self.path / name), replacing(path) as temporary:
            temporary.write_text(text, encoding="utf-8")

    def _first_whole(self, names: Sequence[str], *, if_none: str) -> dict[str, Any] | None:
        """The first checkpoint that is there and not damaged; a warning tells of those before it."""
        damaged: list[str] = []
        content: dict[str, Any] | None = None
        for path in (self.path / CHECKPOINTS / name for name in names):
            if content is None and path.exists():
                try:
                    content = read_checkpoint(path)
                except DataFormatError as error:
                    damaged.append(str(error))
        if damaged:
            consequence = if_none if content is None else "The run is resumed from the one before it."
            warnings.warn(f"{' '.join(damaged)} {consequence}", LaplaceConfidenceWarning, stacklevel=3)
        return content


def stored_settings(path: str | Path) -> dict[str, Any] | None:
    """The settings of the run in a folder, ``None`` if it holds none."""
    file = Path(path) / SETTINGS
    if not file.is_file():
        return None
    try:
        settings: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise DataFormatError(f"The settings in {file} are not JSON: {error}.") from error
    return settings


def _is_first_file(entry: Path) -> bool:
    """Whether ``entry`` is what is left of a run that was killed while it wrote its settings."""
    return entry.name.startswith(f".{SETTINGS}.")


@contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except RunFolderError:
        raise
    except OSError as error:
        raise RunFolderError(
            f"Writing {path} failed: {error.strerror or error}. No partial file was left. Free some space or "
            "choose another folder; the run can be resumed from its last checkpoint."
        ) from error


def write_checkpoint(path: Path, content: dict[str, Any]) -> None:
    """Write ``content`` under ``path``, whole or not at all."""
    buffer = io.BytesIO()
    torch.save(content, buffer)
    with replacing(path) as temporary, temporary.open("wb") as file, buffer.getbuffer() as payload:
        file.write(payload)
        file.write(_FOOTER.pack(_MARK, len(payload), hashlib.sha256(payload).digest()))


def read_checkpoint(path: Path) -> dict[str, Any]:
    """What ``write_checkpoint`` wrote, on the CPU; DataFormatError if any of it is missing or changed."""
    stored = path.read_bytes()
    payload, footer = memoryview(stored)[: -_FOOTER.size], stored[-_FOOTER.size :]
    if len(footer) < _FOOTER.size:
        raise DataFormatError(f"The checkpoint {path} is cut off: it has {len(stored)} bytes.")
    mark, length, digest = _FOOTER.unpack(footer)
    if mark != _MARK or length != len(payload):
        raise DataFormatError(f"The checkpoint {path} is cut off or not a checkpoint: its end is missing.")
    if hashlib.sha256(payload).digest() != digest:
        raise DataFormatError(f"The checkpoint {path} is damaged: its checksum does not match.")
    try:
        content: dict[str, Any] = torch.load(io.BytesIO(payload), map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError) as error:
        raise DataFormatError(f"The checkpoint {path} cannot be read: {error}") from error
    return content


def end_of_plain_training(method: Method, rounds: int) -> tuple[int, int] | None:
    """Round and phase in which ``method`` first uses outputs of the networks on the training set.

    Until then it can only have trained on the labels as they were given: that is the end of the warm-up,
    whatever the method calls its phases. ``None`` if there is no round before it.
    """
    positions = ((round, number) for round in range(rounds) for number in _with_evidence(method, round))
    first = next(positions, None)
    return None if first == (0, 0) else first


def shown_rows(train_rows: Tensor, seed: int) -> Tensor:
    """The training samples whose features are kept: at most 5,000, the same ones throughout a run, sorted."""
    order = torch.randperm(len(train_rows), generator=derived_generator(seed, "shown features"))
    return train_rows[order[:MOST_SAMPLES].sort().values]


def _with_evidence(method: Method, round: int) -> list[int]:
    return [number for number, phase in enumerate(method.phases(round)) if phase.evidence]
