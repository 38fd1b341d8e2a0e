"""The folder of a training run as the command line sees it: new, to go on in, finished, to be replaced."""

from __future__ import annotations

import shutil
from pathlib import Path

from laplaceconfidence.exceptions import RunFolderError
from laplaceconfidence.folder_lock import FolderLock
from laplaceconfidence.training.run_folder import stored_settings
from laplaceconfidence.validation import must_be

SOURCE_FILE = "source.json"
SKIPPED_FILE = "skipped_images.txt"
TENSORBOARD_FOLDER = "tensorboard"

_OWN = {
    "settings.json",
    "metrics.jsonl",
    "timings.jsonl",
    "confidences",
    "checkpoints",
    "predictions.parquet",
    "test_predictions.parquet",
    "refined_labels.parquet",
    "summary.json",
    SOURCE_FILE,
    SKIPPED_FILE,
    TENSORBOARD_FOLDER,
    "truth.parquet",
    "features",
    "features.npz",  # of runs by earlier versions
    "report.html",
}


def settle_folder(folder: Path, *, resume: bool, overwrite: bool) -> bool:
    """Make ``folder`` ready for a run; whether a run in it goes on. What is no run is never touched."""
    if resume and overwrite:
        raise must_be("resume", "left out where --overwrite starts anew", resume)
    holds_run = stored_settings(folder) is not None
    if resume and not holds_run:
        raise RunFolderError(
            f"The folder {folder} holds no run to resume: leave out --resume to start one, or name the "
            "folder of the run with --out."
        )
    if not holds_run:
        return False
    if overwrite:
        with FolderLock(folder):
            _remove_run(folder)
        return False
    if (folder / "summary.json").exists():
        raise RunFolderError(
            f"The run in {folder} is finished. Choose another folder for a new one with --out, or replace "
            "the run with --overwrite."
        )
    return True


def _remove_run(folder: Path) -> None:
    entries = [entry for entry in folder.iterdir() if not entry.name.startswith(".")]
    if foreign := sorted(entry.name for entry in entries if entry.name not in _OWN):
        raise RunFolderError(
            f"The folder {folder} holds something that is not part of the run ({', '.join(foreign[:5])}) and "
            "would be lost: choose another folder, or move it away."
        )
    shutil.rmtree(folder)
