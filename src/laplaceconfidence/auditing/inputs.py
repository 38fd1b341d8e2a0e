"""The data set of an audit, read from whatever was passed, and where to read it again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.read_options import ReadOptions
from laplaceconfidence.data.readers import read_dataset
from laplaceconfidence.data.source_paths import full_path, with_full_paths
from laplaceconfidence.encoders.encoding import encode_dataset, encode_views, needs_encoding
from laplaceconfidence.encoders.registry import make_encoder
from laplaceconfidence.stages import stage
from laplaceconfidence.validation import must_be


@dataclass(frozen=True, slots=True, eq=False)
class AuditInputs:
    """What an audit works on.

    Parameters
    ----------
    dataset : NoisyDataset
        The audited data set.
    test : NoisyDataset or None
        The test set, if there is one.
    source : dict
        The file or folder that the data was read from as "source" and the reader's "options"; empty where it
        cannot be read from there again.
    names_features : bool, default=False
        Whether the caller said what the features are.
    """

    dataset: NoisyDataset
    test: NoisyDataset | None
    source: dict[str, Any]
    names_features: bool = False


def audit_inputs(data: Any, test: Any, options: ReadOptions) -> AuditInputs:
    """Read the data of an audit, unless it is a ``NoisyDataset`` already.

    Parameters
    ----------
    data : NoisyDataset or object
        Anything that ``read_dataset`` takes.
    test : NoisyDataset, object or None
        Read with the same options where ``data`` is read.
    options : ReadOptions
        Refused where nothing is read.

    Returns
    -------
    AuditInputs
    """
    given = options.given
    if isinstance(data, NoisyDataset):
        options.allow_only("a NoisyDataset, which is read already")
        return AuditInputs(data, test, {})
    with stage("reading"):
        dataset = read_dataset(data, **given)
        if test is not None and not isinstance(test, NoisyDataset):
            test = read_dataset(test, **given)
    return AuditInputs(dataset, test, _described(data, given), options.features is not None)


def encoded_inputs(inputs: AuditInputs, encoder: Any = None, *, n_jobs: int | None = None) -> AuditInputs:
    """Encode texts or images, where an encoder is given or there are texts without features.

    Parameters
    ----------
    inputs : AuditInputs
        What was read.
    encoder : str, Encoder, sequence of these, or None, default=None
        The encoder, or several, each of which makes a view; ``None`` is TF-IDF for texts without features.
        Features that were named are a view besides them.
    n_jobs : int or None, default=None
        Number of threads.

    Returns
    -------
    AuditInputs
    """
    if encoder is None and not needs_encoding(inputs.dataset):
        return inputs
    if encoder is None:
        dataset, test = encode_dataset(inputs.dataset, test=inputs.test, n_jobs=n_jobs)
        return replace(inputs, dataset=dataset, test=test)
    wanted = list(encoder) if isinstance(encoder, (list, tuple)) else [encoder]
    if not wanted:
        raise must_be("encoder", "at least one encoder", encoder)
    made = [make_encoder(one, n_jobs=n_jobs) if isinstance(one, str) else one for one in wanted]
    dataset, test = encode_views(
        inputs.dataset, made, keep_features=inputs.names_features, test=inputs.test, n_jobs=n_jobs
    )
    return replace(inputs, dataset=dataset, test=test)


def _described(data: Any, given: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(data, (str, Path)):
        return {}
    options = with_full_paths(given)
    if not all(_is_plain(value) for value in options.values()):  # such as an array of features
        return {}
    return {"source": full_path(str(data)), "options": options}


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(_is_plain(part) for part in value)
    return isinstance(value, (str, int, float, bool))
