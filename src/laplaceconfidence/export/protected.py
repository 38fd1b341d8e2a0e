"""The files that an export must never replace: the audited data and the run itself."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from laplaceconfidence.exceptions import RunFolderError
from laplaceconfidence.records.run_folder import record_name
from laplaceconfidence.records.sample_arrays import SampleArrays
from laplaceconfidence.review.store import FILE as DECISIONS


def refuse_originals(samples: SampleArrays, path: Path, trail: Path, *, is_folder: bool) -> None:
    """Raise if an export would replace or change the audited data or a file of its run.

    Files are compared, not names: relative paths, symbolic links and hard links are recognized.

    Parameters
    ----------
    samples : SampleArrays
        The samples of the audit.
    path : pathlib.Path
        The file or folder that is to be written.
    trail : pathlib.Path
        Its table of changes.
    is_folder : bool
        Whether ``path`` is to be a folder.

    Raises
    ------
    RunFolderError
        If one of them is an original.
    """
    run = samples.run
    own = [run.folder / name for name in (*run.record.files, record_name(run.record.kind), DECISIONS)]
    sources = list(_sources(samples))
    for target in (path, trail):
        if any(_is_same(target, file) for file in own):
            raise _refused(target, f"belongs to the run {run.folder}")
        if any(_is_same(target, source) or _is_inside(source, target) for source in sources):
            raise _refused(target, "is or holds the audited data")
        if (target.exists() or (target == path and is_folder)) and any(
            _is_inside(target, source) for source in sources
        ):
            raise _refused(target, "lies within the audited data")
    if path.exists() and run.record.source_kind == "image" and samples.sources is not None:
        images = (Path(source) for source in samples.sources.tolist() if source)
        if any(_is_same(path, image) or _is_inside(image, path) for image in images):
            raise _refused(path, "is or holds an image of the audited data")


def _sources(samples: SampleArrays) -> Iterator[Path]:
    """Files and folders that the data was read from, as far as they are recorded and exist."""
    record = samples.run.record.source
    options = record.get("options") or {}
    source = None if record.get("source") == "digits" else record.get("source")  # not a file
    for name in (source, options.get("labels"), options.get("features"), options.get("samples")):
        for base in (samples.run.folder, Path()) if isinstance(name, str) else ():
            if name and (file := base / name).exists():
                yield file


def _is_same(path: Path, other: Path) -> bool:
    try:
        return os.path.samefile(path, other)  # noqa: PTH121
    except OSError:  # one of them does not exist
        return False


def _is_inside(path: Path, folder: Path) -> bool:
    """Whether a path, or the file that it links to, lies in a folder."""
    if not folder.is_dir():
        return False
    real = folder.resolve()
    return real in path.resolve().parents or real in (path.parent.resolve(), *path.parent.resolve().parents)


def _refused(target: Path, why: str) -> RunFolderError:
    return RunFolderError(f"{target} {why}, which an export never replaces: choose another name with --out.")
