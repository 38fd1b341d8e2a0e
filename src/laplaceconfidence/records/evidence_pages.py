"""Evidence in several Parquet files, of which only the pages that are looked at are read."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np

from laplaceconfidence.exceptions import RunFolderError

_PAGES_KEPT = 32


class EvidencePages:
    """The top classes and main neighbors of samples, read page by page (row group by row group).

    Parameters
    ----------
    paths : list of pathlib.Path
        The files, in the order of the data.
    n_rows : int
        Number of samples.

    Raises
    ------
    RunFolderError
        If a file cannot be read, or they do not have as many rows.
    """

    def __init__(self, paths: list[Path], n_rows: int) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._pages: list[tuple[Path, int]] = []
        lengths = []
        for path in paths:
            try:
                about = pq.read_metadata(path)
            except (OSError, pa.ArrowException) as error:
                raise _damaged(path, error) from error
            for group in range(about.num_row_groups):
                self._pages.append((path, group))
                lengths.append(about.row_group(group).num_rows)
        self._starts = np.concatenate([[0], np.cumsum(lengths)])
        if self._starts[-1] != n_rows:
            raise _damaged(paths[0].parent, f"{self._starts[-1]} rows of evidence, not {n_rows}")
        self._kept: OrderedDict[int, dict[str, Any]] = OrderedDict()

    def of(self, row: int) -> dict[str, Any]:
        """Return the evidence of a sample.

        Parameters
        ----------
        row : int
            Row of the sample.

        Returns
        -------
        dict of str to object
            Arrays, and the number of neighbors.
        """
        page = int(np.searchsorted(self._starts, row, side="right")) - 1
        if page not in self._kept:
            self._kept[page] = self._read(page)
            if len(self._kept) > _PAGES_KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(page)
        return {name: column[row - self._starts[page]] for name, column in self._kept[page].items()}

    def _read(self, page: int) -> dict[str, Any]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        path, group = self._pages[page]
        try:
            with pq.ParquetFile(path, page_checksum_verification=True) as file:
                table = file.read_row_group(group).to_pandas()
        except (OSError, ValueError, pa.ArrowException) as error:
            raise _damaged(path, error) from error
        return {str(name): table[name].to_numpy() for name in table.columns}


def _damaged(path: Path, error: object) -> RunFolderError:
    return RunFolderError(f"{path} cannot be read ({error}): the run is damaged. Run the audit again.")
