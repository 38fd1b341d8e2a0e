"""Reader of .xlsx files: the first sheet, with a heading. Needs openpyxl (extra ``excel``)."""

from __future__ import annotations

import warnings
import zipfile
import zlib
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.frame_reader import FrameTable
from laplaceconfidence.data.read_options import ReadOptions
from laplaceconfidence.data.tables import TABLE_OPTIONS, dataset_of_table
from laplaceconfidence.exceptions import DataFormatError, LaplaceConfidenceWarning, MissingDependencyError

if TYPE_CHECKING:
    import pandas as pd

EXCEL_SUFFIXES = (".xlsx", ".xlsm")

_LARGEST_CONTENT = 4 * 2**30  # bytes, not compressed; Excel's limit of 1,048,576 rows is far below


def read_excel(path: Path, options: ReadOptions) -> NoisyDataset:
    """Read the first sheet of an Excel file.

    Parameters
    ----------
    path : Path
        The file.
    options : ReadOptions
        Options of ``read_dataset``.

    Returns
    -------
    NoisyDataset
    """
    options.allow_only("an Excel file", *TABLE_OPTIONS)
    return dataset_of_table(open_excel(path), options)


def open_excel(path: Path) -> FrameTable:
    """Open the first sheet of an Excel file as a table.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    FrameTable
    """
    return FrameTable(load_excel(path), str(path), path.absolute().parent)


def load_excel(path: Path) -> pd.DataFrame:
    """Read the first sheet of an Excel file as a frame; formulas are read as their last results.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    pandas.DataFrame
    """
    if find_spec("openpyxl") is None:
        raise MissingDependencyError(
            f"{path} is an Excel file, and reading it needs openpyxl, which is not installed: pip install "
            "'laplaceconfidence[excel]'. Or save the sheet as CSV in UTF-8."
        )
    import pandas as pd

    try:
        with zipfile.ZipFile(path) as archive:
            if sum(part.file_size for part in archive.infolist()) > _LARGEST_CONTENT:
                raise DataFormatError(f"{path} is larger than 4 GiB when it is unpacked: save it as Parquet.")
        with pd.ExcelFile(path, engine="openpyxl") as file:
            names = [str(name) for name in file.sheet_names]
            frame = pd.read_excel(file, sheet_name=names[0], keep_default_na=False, na_values=[""])
    except (OSError, ValueError, KeyError, IndexError, TypeError, SyntaxError, EOFError) as error:
        raise _damaged(path, error) from error
    except (zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        raise _damaged(path, error) from error
    if len(names) > 1:
        warnings.warn(
            f"{path} has {len(names)} sheets ({', '.join(map(repr, names[:5]))}); the first one is read.",
            LaplaceConfidenceWarning,
            stacklevel=2,
        )
    return frame


def _damaged(path: Path, error: Exception) -> DataFormatError:
    if isinstance(error, DataFormatError):
        return error
    return DataFormatError(
        f"{path} cannot be read as an Excel file (.xlsx): it is truncated, damaged or of another format "
        f"({error}). Save it again, or as CSV in UTF-8."
    )
