"""The data that a run samples, read again from where it came."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.data.readers import read_dataset
from laplaceconfidence.exceptions import DataFormatError, LaplaceConfidenceError
from laplaceconfidence.records.sample_arrays import SampleArrays


@dataclass(frozen=True, eq=False)
class Original:
    """The data of a run. ``path`` and ``options`` say where it is; ``lost`` why it could not be read."""

    dataset: NoisyDataset
    path: Path | None = None
    options: dict[str, Any] | None = None
    lost: str | None = None


def original_of(samples: SampleArrays) -> Original:
    """The data with features and all; where it cannot be found, what the run itself remembers of it."""
    source = samples.run.record.source.get("source")
    if not isinstance(source, str):
        return Original(_remembered(samples), lost="the run does not say where its data came from")
    inside = samples.run.folder / source
    path = inside if not Path(source).is_absolute() and inside.is_file() else Path(source)
    options = dict(samples.run.record.source.get("options") or {})
    try:
        dataset = read_dataset(source if source == "digits" else path, **options)
    except (LaplaceConfidenceError, OSError) as error:
        return Original(_remembered(samples), lost=str(error))
    row_of = {
        str(id).encode(errors="backslashreplace").decode(): row for row, id in enumerate(dataset.sample_ids)
    }
    if gone := [id for id in samples.ids if id not in row_of]:
        raise _changed(str(path), f"{len(gone)} samples are gone, such as {gone[0]!r}")
    rows = np.array([row_of[id] for id in samples.ids], dtype=np.int64)
    is_whole = np.array_equal(rows, np.arange(len(dataset)))  # an audit may skip images it cannot decode
    chosen = dataset if is_whole else dataset.subset(rows)
    _check_same(chosen, samples, str(path))
    return Original(chosen, path if path.exists() and (is_whole or path.is_dir()) else None, options)


def _check_same(dataset: NoisyDataset, samples: SampleArrays, source: str) -> None:
    if dataset.class_names != samples.class_names or not np.array_equal(dataset.labels, samples.given):
        raise _changed(source, "its labels are not those that the audit samples")


def _changed(source: str, how: str) -> DataFormatError:
    return DataFormatError(
        f"{source} has changed since the audit: {how}. Put the data back as it was, or make the audit again "
        "with --decisions to carry the decisions over."
    )


def _remembered(samples: SampleArrays) -> NoisyDataset:
    """Ids, labels and texts or paths; features are not kept by a run."""
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
