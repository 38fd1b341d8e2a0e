"""The data of a run, read again from its source."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.labels import MISSING, encodable
from laplaceconfidence.data.readers import read_dataset
from laplaceconfidence.exceptions import DataFormatError, LaplaceConfidenceError
from laplaceconfidence.records.sample_arrays import SampleArrays


@dataclass(frozen=True, eq=False)
class Original:
    """The data that a run audited.

    Parameters
    ----------
    dataset : NoisyDataset
        The data, or what the run stores of it.
    path : pathlib.Path, optional
        Where it was read from.
    options : dict, optional
        The options it was read with.
    lost : str, optional
        Why it could not be read, if it could not.
    """

    dataset: NoisyDataset
    path: Path | None = None
    options: dict[str, Any] | None = None
    lost: str | None = None


def original_of(samples: SampleArrays) -> Original:
    """Read the data of a run again.

    Parameters
    ----------
    samples : SampleArrays
        The samples of the audit.

    Returns
    -------
    Original
        What the run itself stores, where the data cannot be read.

    Raises
    ------
    DataFormatError
        If the data has changed since the audit.
    """
    source = samples.run.record.source.get("source")
    if not isinstance(source, str):
        return Original(_stored_samples(samples), lost="the run does not record where its data came from")
    inside = samples.run.folder / source
    path = inside if not Path(source).is_absolute() and inside.is_file() else Path(source)
    options = dict(samples.run.record.source.get("options") or {})
    try:
        dataset = read_dataset(source if source == "digits" else path, **options)
    except (LaplaceConfidenceError, OSError) as error:
        return Original(_stored_samples(samples), lost=str(error))
    row_of = {id: row for row, id in enumerate(encodable(dataset.sample_ids).tolist())}
    if gone := [id for id in samples.ids if id not in row_of]:
        raise _changed(str(path), f"{len(gone)} samples are gone, such as {gone[0]!r}")
    rows = np.array([row_of[id] for id in samples.ids], dtype=np.int64)
    is_whole = np.array_equal(
        rows, np.arange(len(dataset))
    )  # an audit may leave out images that cannot be decoded
    chosen = dataset if is_whole else dataset.subset(rows)
    _check_same(chosen, samples, str(path))
    return Original(chosen, path if path.exists() and (is_whole or path.is_dir()) else None, options)


def _check_same(dataset: NoisyDataset, samples: SampleArrays, source: str) -> None:
    if dataset.class_names != samples.class_names or not np.array_equal(dataset.labels, samples.given):
        raise _changed(source, "its labels are not those that were audited")


def _changed(source: str, how: str) -> DataFormatError:
    return DataFormatError(
        f"{source} has changed since the audit: {how}. Restore the data, or run the audit again with "
        "--decisions to reuse the decisions."
    )


def _stored_samples(samples: SampleArrays) -> NoisyDataset:
    """Ids, labels, and texts or paths: all that the tables of a run store."""
    record = samples.run.record
    labels = [None if code == MISSING else record.class_values[code] for code in samples.given.tolist()]
    named = record.class_names != tuple(str(value) for value in record.class_values)
    if named:
        labels = [MISSING if code == MISSING else int(code) for code in samples.given.tolist()]
    return NoisyDataset.from_arrays(
        labels,
        classes=None if named else list(record.class_values),
        class_names=record.class_names if named else None,
        ids=samples.ids,
        sources=samples.sources,
        source_kind=record.source_kind if samples.sources is not None else None,
    )
