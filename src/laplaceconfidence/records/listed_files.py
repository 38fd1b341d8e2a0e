"""Which files of a data set may be opened: those below the folder of the data, also if reached by a link.

Reviews, reports and exports follow this one rule: a link that leads out of the folder is not followed.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from laplaceconfidence.records.audit_run import AuditRun


def data_folder(run: AuditRun, which: str = "source") -> Path | None:
    """Return the folder that the data of a run came from.

    Parameters
    ----------
    run : AuditRun
        The audit.
    which : {"source", "test"}, default="source"
        The audited data, or the test set it was compared with.

    Returns
    -------
    pathlib.Path or None
        None if it is not known.
    """
    source = run.record.source.get(which)
    if not isinstance(source, str) or not Path(source).is_absolute():
        return None
    return Path(source) if Path(source).is_dir() else Path(source).parent


def file_within(path: str | Path, root: Path | None) -> Path | None:
    """Resolve a path, if it is a regular file below a folder.

    Parameters
    ----------
    path : str or pathlib.Path
        The path.
    root : pathlib.Path or None
        The folder; that of the file itself where it is None or does not contain the path.

    Returns
    -------
    pathlib.Path or None
        The path without links; None where there is no such file, or a link leads out of the folder.
    """
    listed = Path(os.path.normpath(path))
    base = root if root is not None and listed.is_relative_to(root) else listed.parent
    try:
        real = listed.resolve(strict=True)
        is_regular = stat.S_ISREG(real.stat().st_mode)
        return real if is_regular and real.is_relative_to(base.resolve()) else None
    except (OSError, RuntimeError, ValueError):  # missing, a cycle of links, or an invalid name
        return None
