"""What a run leaves on disk. Every file is written whole or not at all.

settings.json                   every setting as resolved, and what the data was
metrics.jsonl                   one line a round; the same for an interrupted and an uninterrupted run
timings.jsonl                   seconds of each round
confidences/round-0016.parquet  id and the confidence each network was trained with
features/after-warm-up.npz      penultimate features of at most 5,000 training samples after plain training
features/after-training.npz     the same of the chosen networks
checkpoints/last.pt             to go on from; previous.pt is the one before it
checkpoints/best.pt             the weights that did best on the held-out part of the given labels
predictions.parquet             class probabilities of every training sample, and of the test set
refined_labels.parquet          given label, confidence and refined label of every training sample
summary.json                    written last: the run is finished
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.exceptions import DataFormatError, LaplaceConfidenceWarning, RunFolderError
from laplaceconfidence.files import differences, replacing, write_json
from laplaceconfidence.folder_lock import FolderLock
from laplaceconfidence.training.checkpoint import read_checkpoint, write_checkpoint


class RunFolder:
    """The folder of one run, new or with a run of the same settings in it, held for this process alone."""

    def __init__(self, path: str | Path, settings: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self._folder_lock = FolderLock(self.path)
        try:
            self._prepare(json.loads(json.dumps(settings)))  # as read back: tuples become lists
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let other processes go on with the run."""
        self._folder_lock.close()

    def _prepare(self, resolved: dict[str, Any]) -> None:
        with _disk_errors(self.path):
            if (stored := stored_settings(self.path)) is None:
                if not all(map(_is_first_file, self.path.iterdir())):
                    raise RunFolderError(
                        f"The run folder {self.path} must be new, empty or hold a run. It holds something "
                        "else: choose another folder."
                    )
                # Before anything else, so that a run killed right now leaves a folder that it can go on in.
                write_json(self.path / "settings.json", resolved)
            elif changed := differences(stored, resolved):
                raise RunFolderError(
                    f"The run in {self.path} has other settings and cannot be resumed with these:\n  "
                    + "\n  ".join(changed)
                    + "\nUse its settings to go on, or another folder for a new run."
                )
            self._remove_leftovers()
            for part in ("checkpoints", "confidences", "features"):
                (self.path / part).mkdir(exist_ok=True)

    def _remove_leftovers(self) -> None:
        """Files that a killed process was still writing, under their temporary names."""
        for path in self.path.rglob(".*"):
            if path.suffix in (".pt", ".json", ".jsonl", ".parquet", ".npz"):
                path.unlink()

    @property
    def is_finished(self) -> bool:
        return (self.path / "summary.json").exists()

    def save_checkpoint(self, content: dict[str, Any]) -> None:
        """Make ``content`` the last checkpoint; the one that was is kept as the previous."""
        last = self.path / "checkpoints" / "last.pt"
        with _disk_errors(last):
            if last.exists():
                last.replace(last.with_name("previous.pt"))
            write_checkpoint(last, content)

    def load_checkpoint(self) -> dict[str, Any] | None:
        """The newest checkpoint that is whole; ``None`` if there is none and the run starts anew."""
        for name in ("last.pt", "previous.pt"):
            if (content := self._read(name, "The run goes on from the one before it.")) is not None:
                return content
        return None

    def save_best(self, content: dict[str, Any]) -> None:
        with _disk_errors(path := self.path / "checkpoints" / "best.pt"):
            write_checkpoint(path, content)

    def load_best(self) -> dict[str, Any] | None:
        return self._read("best.pt", "The selection starts anew.")

    def write_metrics(self, history: Sequence[Mapping[str, Any]]) -> None:
        """All rounds so far; rewritten as a whole, so that no resumed run doubles a line."""
        self._write_lines("metrics.jsonl", history)

    def write_timings(self, seconds: Sequence[float]) -> None:
        self._write_lines("timings.jsonl", [{"round": i + 1, "seconds": s} for i, s in enumerate(seconds)])

    def write_confidences(self, round: int, columns: Mapping[str, Any]) -> None:
        """One column a network, besides the ids."""
        self.write_table(f"confidences/round-{round + 1:04d}.parquet", columns)

    def write_features(self, moment: str, rows: IntArray, features: FloatArray, *, rounds: int) -> None:
        """What a network made of the samples ``rows`` after so many rounds."""
        path = self.path / "features" / f"{moment}.npz"
        numbers = features.astype(np.float32)
        with _disk_errors(path), replacing(path) as temporary:
            np.savez_compressed(temporary, rows=rows, features=numbers, rounds=np.int64(rounds))

    def write_table(self, name: str, columns: Mapping[str, Any]) -> None:
        with _disk_errors(path := self.path / name), replacing(path) as temporary:
            pq.write_table(pa.table(dict(columns)), temporary)

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        with _disk_errors(path := self.path / "summary.json"):
            write_json(path, summary)

    def _write_lines(self, name: str, lines: Sequence[Mapping[str, Any]]) -> None:
        text = "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines)
        with _disk_errors(path := self.path / name), replacing(path) as temporary:
            temporary.write_text(text, encoding="utf-8")

    def _read(self, name: str, consequence: str) -> dict[str, Any] | None:
        path = self.path / "checkpoints" / name
        if not path.exists():
            return None
        try:
            return read_checkpoint(path)
        except DataFormatError as error:
            warnings.warn(f"{error} {consequence}", LaplaceConfidenceWarning, stacklevel=2)
            return None


def stored_settings(path: str | Path) -> dict[str, Any] | None:
    """The settings of the run in a folder, ``None`` if it holds none."""
    file = Path(path) / "settings.json"
    if not file.is_file():
        return None
    try:
        settings: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise DataFormatError(f"The settings in {file} are not JSON: {error}.") from error
    return settings


def _is_first_file(entry: Path) -> bool:
    """Whether ``entry`` is what is left of a run that was killed while it wrote its settings."""
    return entry.name.startswith(".settings.json.")


@contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except RunFolderError:
        raise
    except OSError as error:
        raise RunFolderError(
            f"Writing {path} failed: {error.strerror or error}. Nothing half-written was left. Make room or "
            "choose another folder; a run that was under way goes on from its last checkpoint."
        ) from error
