"""Feature vectors that are never whole in memory: .npy files, Parquet files, and folders or lists of them.

A source only holds paths, so that a worker on another machine can open it. Paths are local ones or any that
fsspec understands, such as ``s3://bucket/part-*.parquet``.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, cast

import fsspec
import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import FloatArray, row_blocks
from laplaceconfidence.exceptions import DataFormatError, MissingDependencyError
from laplaceconfidence.validation import check_finite, must_be

if TYPE_CHECKING:
    import pyarrow as pa

NPY, PARQUET = ".npy", ".parquet"
_READ_AHEAD = 2**20  # bytes; a whole column of a row group would be read otherwise
_NUMBERED = re.compile(r"(.*?)(\d+)([^\d]*)")  # a name with a number in it


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows that are read together: a part of an .npy file, or a row group of a Parquet file.

    Attributes
    ----------
    path : str
        The file.
    start, stop : int
        Rows of the whole data set.
    first : int
        The row of the file at which the piece starts.
    row_group : int or None
        Number of the row group in the file; ``None`` for an .npy file.
    """

    path: str
    start: int
    stop: int
    first: int
    row_group: int | None = None


@dataclass(frozen=True, slots=True)
class FeatureSource:
    """Feature vectors in files.

    Attributes
    ----------
    pieces : tuple of Piece
        They cover all rows, in order.
    n_features : int
        Number of features.
    columns : tuple of str
        Columns of Parquet files with the features: one column of lists, or one per feature. Empty for .npy
        files.
    """

    pieces: tuple[Piece, ...]
    n_features: int
    columns: tuple[str, ...] = ()

    @property
    def n_rows(self) -> int:
        """int: number of samples."""
        return self.pieces[-1].stop

    @property
    def paths(self) -> list[str]:
        """list of str: the files, in order."""
        return list(dict.fromkeys(piece.path for piece in self.pieces))

    def described(self) -> dict[str, Any]:
        """Describe the source such that a change of its files is noticed.

        Returns
        -------
        dict of str to object
            Path, size and time of change of every file, and the columns.
        """
        files = []
        for path in self.paths:
            system, name = file_system(path)
            about = system.info(name)
            changed = about.get("mtime") or about.get("LastModified") or about.get("ETag")
            files.append([path, about.get("size"), None if changed is None else str(changed)])
        return {"files": files, "columns": list(self.columns), "n_features": self.n_features}

    def batches(self, piece: Piece, n_rows: int) -> Iterator[tuple[int, FloatArray]]:
        """Read a piece in batches.

        Parameters
        ----------
        piece : Piece
            One of ``pieces``.
        n_rows : int
            Most rows per batch.

        Yields
        ------
        start : int
            The first row of the batch in the whole data set.
        features : ndarray of float32 or float64, shape (m, n_features)
            Finite.
        """
        if piece.row_group is None:
            for rows in row_blocks(piece.stop - piece.start, n_rows):
                part = _read_npy(piece.path, piece.first + rows.start, piece.first + rows.stop)
                yield piece.start + rows.start, _checked(part, piece, piece.start + rows.start)
            return
        start = piece.start
        with open_parquet_file(piece.path) as file:
            for batch in _iter_batches(file, piece, n_rows, list(self.columns)):
                part = _matrix(batch, self.columns, self.n_features, piece.path)
                yield start, _checked(part, piece, start)
                start += len(part)


def open_features(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    columns: Sequence[str] = (),
    *,
    rows_per_piece: int = 65_536,
) -> FeatureSource:
    """Open features without reading them.

    Parameters
    ----------
    source : str, path or sequence of these
        An .npy or .parquet file, a folder of such files, a pattern such as ``part-*.npy``, or a list of
        files; any path that fsspec understands.
    columns : sequence of str, default=()
        Columns of Parquet files with the features.
    rows_per_piece : int, default=65536
        Most rows per piece of an .npy file.

    Returns
    -------
    FeatureSource

    Raises
    ------
    DataFormatError
        If a file is missing from a numbered series, cannot be read, or has another width than the first.
    InvalidInputError
        If there is no such file.
    """
    pieces: list[Piece] = []
    width: int | None = None
    first_path = ""
    for path in files_of(source):
        start = pieces[-1].stop if pieces else 0
        if path.lower().endswith(NPY):
            shape, _, _ = _npy_header(path)
            n, own_width = shape[0], shape[1]
            # Equal pieces: two workers would wait for a last one that is nearly empty, or nearly as large.
            n_rows = math.ceil(n / math.ceil(n / rows_per_piece)) if n else rows_per_piece
            pieces += [Piece(path, start + r.start, start + r.stop, r.start) for r in row_blocks(n, n_rows)]
        else:
            groups, own_width = _row_groups(path, columns)
            for number, n_rows in enumerate(groups):
                if n_rows:
                    pieces.append(Piece(path, start, start + n_rows, 0, number))
                    start += n_rows
        if width is not None and own_width != width:
            raise DataFormatError(
                f"{path} has {own_width} features per sample, but {first_path} has {width}: the files of one "
                "data set must have the same. Write it again, or audit it by itself."
            )
        width, first_path = own_width, first_path or path
    if not pieces or not width:
        raise must_be("source", "feature vectors of at least one sample and one feature", str(source))
    return FeatureSource(tuple(pieces), width, tuple(columns))


def files_of(source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    """List the .npy or .parquet files that a source names, numbers in names in numeric order.

    Parameters
    ----------
    source : str, path or sequence of these
        As for ``open_features``.

    Returns
    -------
    list of str
        Paths for fsspec.

    Raises
    ------
    DataFormatError
        If a file is missing from a numbered series.
    InvalidInputError
        If there are none, or files of both kinds.
    """
    if not isinstance(source, (str, os.PathLike)):
        paths = [os.fspath(path) for path in source]
        for path in paths:
            _check_exists(path)
    else:
        paths = _found(os.fspath(source))
    kinds = {NPY if path.lower().endswith(NPY) else PARQUET for path in paths}
    if not paths or len(kinds) > 1 or not all(path.lower().endswith((NPY, PARQUET, ".pq")) for path in paths):
        rule = "an .npy or .parquet file, or a folder, a pattern or a list of files of one of these kinds"
        raise must_be("source", rule, str(source))
    return paths


def file_system(path: str) -> tuple[Any, str]:
    """Return the file system of a path, and the path on it.

    Parameters
    ----------
    path : str
        A path for fsspec.

    Returns
    -------
    system : fsspec.AbstractFileSystem
    name : str
    """
    try:
        system, name = fsspec.core.url_to_fs(path)
    except ImportError as error:  # the package for this kind of path, such as s3fs
        raise MissingDependencyError(f"{path} cannot be opened: {error}") from error
    except ValueError as error:  # an unknown protocol
        raise must_be("source", "a path that fsspec can open", path, str(error)) from error
    return system, str(name)


def open_parquet_file(path: str) -> Any:
    """Open a Parquet file so that only what is asked for is read.

    Parameters
    ----------
    path : str
        A path for fsspec.

    Returns
    -------
    pyarrow.parquet.ParquetFile
        A context manager.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    system, name = file_system(path)
    try:
        return pq.ParquetFile(
            system.open(name, "rb"),
            buffer_size=_READ_AHEAD,
            pre_buffer=False,
            page_checksum_verification=True,
        )
    except FileNotFoundError:
        raise must_be("source", "an existing file", path) from None
    except (pa.ArrowException, OSError) as error:
        raise _not_readable(path, error) from error


def _found(source: str) -> list[str]:
    """Files of a path, a folder or a pattern."""
    system, name = file_system(source)
    if any(sign in name for sign in "*?["):
        found = [str(path) for path in system.glob(name)]
        place = source
    elif system.isdir(name):
        listed = [str(path) for path in system.ls(name, detail=False)]
        found = [path for path in listed if path.lower().endswith((NPY, PARQUET, ".pq"))]
        place = f"the folder {source}"
    else:
        _check_exists(source)
        return [source]
    found = [path for path in found if os.path.basename(path)[0] not in "._"]  # noqa: PTH119 (may be a URL)
    if not found:
        raise must_be("source", "a folder or pattern with .npy or .parquet files", source)
    found.sort(key=lambda path: re.sub(r"\d+", lambda number: number[0].zfill(20), path))
    _check_series(found, place)
    return [str(system.unstrip_protocol(path)) if "://" in source else path for path in found]


def _check_exists(path: str) -> None:
    system, name = file_system(path)
    if not system.exists(name):
        raise must_be("source", "an existing file or folder, a shard of it included", path)


def _check_series(paths: list[str], place: str) -> None:
    """Raise where a number is missing from files that are numbered one by one, or fewer than 'of-n' says."""
    names = [os.path.basename(path) for path in paths]  # noqa: PTH119 (may be a URL)
    of_total = [re.fullmatch(r"(.+-)(\d+)(-of-(\d+)\..+)", name) for name in names]
    if all(of_total):
        parts = [cast("re.Match[str]", match) for match in of_total]
        prefix, _, suffix, total = parts[0].groups()
        expected = range(int(total))
    else:
        parts = [match for name in names if (match := _NUMBERED.fullmatch(name)) is not None]
        if len(parts) < max(2, len(names)) or len({(match[1], match[3]) for match in parts}) > 1:
            return
        prefix, suffix = parts[0][1], parts[0][3]
        expected = range(int(parts[0][2]), int(parts[-1][2]) + 1)
    there = {int(match[2]) for match in parts}
    if len(there) < len(parts) or not (missing := [number for number in expected if number not in there]):
        return
    if 2 * len(missing) > len(expected):  # numbers that are not a series, such as dates
        return
    width = len(parts[0][2]) if parts[0][2].startswith("0") else 0
    shown = ", ".join(f"{prefix}{number:0{width}d}{suffix}" for number in missing[:5])
    more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
    raise DataFormatError(
        f"{place} lacks {shown}{more}: the other files are numbered as one series. Copy what is missing, or "
        "pass a list of the files that belong to the data set."
    )


def _npy_header(path: str) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Shape, type and position of the numbers of an .npy file."""
    system, name = file_system(path)
    try:
        with cast("IO[bytes]", system.open(name, "rb")) as file:
            version = np.lib.format.read_magic(file)
            read = (
                np.lib.format.read_array_header_1_0
                if version == (1, 0)
                else np.lib.format.read_array_header_2_0
            )
            shape, is_fortran, dtype = read(file)
            offset, size = file.tell(), int(system.info(name)["size"])
    except FileNotFoundError:
        raise must_be("source", "an existing file", path) from None
    except (ValueError, OSError, EOFError) as error:
        raise DataFormatError(
            f"{path} cannot be read: it is empty, truncated, damaged or not a numpy file ({error}). Copy or "
            "write it again."
        ) from error
    if dtype.kind not in "fiub" or dtype.hasobject:
        raise must_be("source", "files of numbers", f"{path} of {dtype}", "Embed or encode texts first.")
    if len(shape) != 2 or 0 in shape or is_fortran:
        rule = "files of matrices with one row per sample, in C order"
        raise must_be("source", rule, f"{path} of shape {shape}{' in Fortran order' * is_fortran}")
    if size < offset + int(np.prod(shape)) * dtype.itemsize:
        raise DataFormatError(f"{path} is truncated: it ends before its last row. Copy or write it again.")
    return shape, dtype, offset


def _read_npy(path: str, start: int, stop: int) -> NDArray[Any]:
    shape, dtype, offset = _npy_header(path)
    system, name = file_system(path)
    row_bytes = shape[1] * dtype.itemsize
    with cast("IO[bytes]", system.open(name, "rb")) as file:
        file.seek(offset + start * row_bytes)
        content = file.read((stop - start) * row_bytes)
    if len(content) < (stop - start) * row_bytes:
        raise DataFormatError(f"{path} is truncated: it ends before row {stop}. Copy or write it again.")
    return np.frombuffer(content, dtype=dtype).reshape(stop - start, shape[1])


def _row_groups(path: str, columns: Sequence[str]) -> tuple[list[int], int]:
    """Rows per row group, and the number of features."""
    with open_parquet_file(path) as file:
        schema = file.schema_arrow
        if not columns:
            raise must_be("features", "given for Parquet files that are read in blocks", None)
        for column in columns:
            if column not in schema.names:
                raise DataFormatError(
                    f"{path} has no column {column!r}. It has {', '.join(map(repr, schema.names[:20]))}. The "
                    "files of one data set must have the same columns."
                )
        groups = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
        kind = schema.field(columns[0]).type
        if len(columns) > 1 or not hasattr(kind, "value_type"):
            return groups, len(columns)
        if hasattr(kind, "list_size"):
            return groups, int(kind.list_size)
        first = next(file.iter_batches(1, columns=list(columns)), None)
        cell = None if first is None else first.column(0)[0].as_py()
        if cell is None:
            raise DataFormatError(f"{path} has no features in its first row. Drop such rows or fill them in.")
        return groups, len(cell)


def _iter_batches(file: Any, piece: Piece, n_rows: int, columns: list[str]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    try:
        yield from file.iter_batches(n_rows, row_groups=[piece.row_group], columns=columns)
    except (pa.ArrowException, OSError) as error:
        raise _not_readable(piece.path, error) from error


def _matrix(batch: pa.RecordBatch, columns: Sequence[str], width: int, path: str) -> NDArray[Any]:
    """A batch of one column of lists, or of columns of numbers, as a matrix."""
    first = batch.column(batch.schema.get_field_index(columns[0]))
    if len(columns) > 1 or not hasattr(first.type, "value_type"):
        arrays = [batch.column(batch.schema.get_field_index(name)) for name in columns]
        return np.stack([np.asarray(array.to_numpy(zero_copy_only=False)) for array in arrays], axis=1)
    if first.null_count:
        raise DataFormatError(f"{path} has {first.null_count} rows without features. Drop or fill them in.")
    values = np.asarray(first.flatten().to_numpy(zero_copy_only=False))
    if not hasattr(first.type, "list_size"):
        lengths = np.diff(np.asarray(first.offsets))
        if (other := np.flatnonzero(lengths != width)).size:
            raise DataFormatError(
                f"{path} has a row with {lengths[other[0]]} features, but others have {width}: all rows must "
                "have the same number. Write it again."
            )
    return values.reshape(len(first), width)


def _checked(part: NDArray[Any], piece: Piece, start: int) -> FloatArray:
    if part.dtype.kind not in "fiub":
        raise must_be("features", "numeric", f"{part.dtype} in {piece.path}")
    if part.dtype not in (np.float32, np.float64):
        part = part.astype(np.float32)
    part = np.ascontiguousarray(part)
    check_finite(part, f"features' from row {start} on, in '{piece.path}")
    return part


def _not_readable(path: str, error: BaseException) -> DataFormatError:
    return DataFormatError(
        f"{path} cannot be read as Parquet: it is truncated, damaged or of another format ({error}). Copy or "
        "write it again."
    )
