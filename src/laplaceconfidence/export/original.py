"""The data of a run, read again from its source, which may have changed since."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from laplaceconfidence.arrays import IntArray
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.identity import are_row_numbers
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.data.readers import read_dataset
from laplaceconfidence.data.sample_search import find_classes, find_samples
from laplaceconfidence.exceptions import DataFormatError, LaplaceConfidenceError
from laplaceconfidence.records.sample_arrays import SampleArrays


@dataclass(frozen=True, eq=False)
class Original:
    """The data that a run audited, as it is now.

    Parameters
    ----------
    dataset : NoisyDataset
        All of the data, or what the run stores of it.
    rows : ndarray of int of shape (n,)
        Where every audited sample is in ``dataset``; ABSENT if it is gone.
    classes : list of int
        Codes in ``dataset`` of the classes of the run; ABSENT where it does not have the class.
    path : pathlib.Path, optional
        Where it was read from.
    options : dict, optional
        The options it was read with.
    lost : str, optional
        Why it could not be read, if it could not.
    """

    dataset: NoisyDataset
    rows: IntArray
    classes: list[int]
    path: Path | None = None
    options: dict[str, Any] | None = None
    lost: str | None = None

    def codes(self, of_run: IntArray) -> IntArray:
        """Convert codes of the classes of the run to codes of ``dataset``.

        Parameters
        ----------
        of_run : ndarray of int
            Codes of labels, MISSING where there is none.

        Returns
        -------
        ndarray of int
        """
        converted: IntArray = np.array([*self.classes, MISSING])[of_run]  # MISSING is -1, the last entry
        return converted


def original_of(samples: SampleArrays) -> Original:
    """Read the data of a run again and find the audited samples in it by their ids.

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
        If the samples of the run cannot be found because their ids are row numbers and the data has changed.
    """
    source = samples.run.record.source.get("source")
    if not isinstance(source, str):
        return _stored_samples(samples, "the run does not record where its data came from")
    inside = samples.run.folder / source
    path = inside if not Path(source).is_absolute() and inside.is_file() else Path(source)
    options = dict(samples.run.record.source.get("options") or {})
    try:
        dataset = read_dataset(source if source == "digits" else path, **options)
    except (LaplaceConfidenceError, OSError) as error:
        return _stored_samples(samples, str(error))
    record = samples.run.record
    classes = find_classes(dataset, record.class_names, record.class_values)
    # A table with a row per label, or a column per annotator, has no column of labels to correct.
    is_table = path.exists() and dataset.annotations is None
    whole = Original(dataset, np.arange(len(samples)), classes, path if is_table else None, options)
    in_data = whole.codes(samples.in_data)
    if record.ids_from in (None, "rows") and dataset.ids is None and are_row_numbers(samples.ids.tolist()):
        if not np.array_equal(in_data, dataset.labels):
            reason = "the run identifies samples by their rows, and the labels in the rows differ"
            raise changed(str(path), reason)
        return whole
    paths = None
    if samples.sources is not None and record.source_kind == "image":
        paths = samples.sources.tolist()
    rows = find_samples(dataset, samples.ids.tolist(), labels=in_data.tolist(), paths=paths)
    return Original(dataset, rows, classes, whole.path, options)


def changed(source: str, how: str) -> DataFormatError:
    """Make the error for data that is too different from what was audited.

    Parameters
    ----------
    source : str
        The data.
    how : str
        What is different.

    Returns
    -------
    DataFormatError
    """
    return DataFormatError(
        f"{source} has changed since the audit: {how}. Restore the data, or run the audit again with "
        "--decisions to reuse the decisions."
    )


def _stored_samples(samples: SampleArrays, lost: str) -> Original:
    """Ids, labels, and texts or paths: all that the tables of a run store."""
    record = samples.run.record
    codes = samples.in_data.tolist()
    labels = [None if code == MISSING else record.class_values[code] for code in codes]
    named = record.class_names != tuple(str(value) for value in record.class_values)
    dataset = NoisyDataset.from_arrays(
        codes if named else labels,
        classes=None if named else list(record.class_values),
        class_names=record.class_names if named else None,
        ids=samples.ids,
        sources=samples.sources,
        source_kind=record.source_kind if samples.sources is not None else None,
    )
    return Original(dataset, np.arange(len(samples)), list(range(len(record.class_names))), lost=lost)
