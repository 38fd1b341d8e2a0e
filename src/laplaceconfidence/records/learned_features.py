"""Features that a network learned for an audit of images, kept in its run so that they are learned once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from laplaceconfidence.arrays import FloatArray, row_blocks
from laplaceconfidence.data.array_files import load_array
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.exceptions import LaplaceConfidenceError
from laplaceconfidence.records.audit_run import LEARNED_FEATURES, read_audit

LEARNED_BY = "features_learned_by"  # in the source of the record
_FEATURES_DIGEST = "features_digest"
_IMAGES_PER_BLOCK = 256


def data_digest(dataset: NoisyDataset) -> str:
    """Hash everything that features are learned from: images, labels, classes and ids.

    Parameters
    ----------
    dataset : NoisyDataset
        A data set with images in memory or in files.

    Returns
    -------
    str
        Hexadecimal.
    """
    digest = hashlib.sha256(np.ascontiguousarray(dataset.labels).tobytes())
    names = (*dataset.class_names, *dataset.sample_ids.tolist())
    digest.update("\0".join(map(str, names)).encode(errors="surrogatepass"))
    if dataset.images is not None:
        digest.update(repr(dataset.images.shape).encode())
        for rows in row_blocks(len(dataset), _IMAGES_PER_BLOCK):
            digest.update(np.ascontiguousarray(dataset.images[rows]).tobytes())
    elif dataset.sources is not None:
        for path in dataset.sources:
            with Path(str(path)).open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def features_digest(features: FloatArray) -> str:
    """Hash learned features.

    Parameters
    ----------
    features : ndarray of shape (n, d)
        The features.

    Returns
    -------
    str
        Hexadecimal.
    """
    return hashlib.sha256(np.ascontiguousarray(features).tobytes()).hexdigest()


def described_features(learned_by: Mapping[str, Any], features: FloatArray) -> dict[str, Any]:
    """Describe learned features for the record of a run.

    Parameters
    ----------
    learned_by : mapping of str to object
        What they depend on.
    features : ndarray of shape (n, d)
        The features.

    Returns
    -------
    dict of str to object
    """
    return {**learned_by, _FEATURES_DIGEST: features_digest(features)}


def earlier_features(
    folders: Iterable[Path], learned_by: Mapping[str, Any]
) -> tuple[FloatArray, Path] | None:
    """Find features that an earlier audit learned from the same data with the same settings.

    Parameters
    ----------
    folders : iterable of pathlib.Path
        Folders that may hold audits.
    learned_by : mapping of str to object
        What the features depend on: the digest of the data, settings and versions.

    Returns
    -------
    features : ndarray of shape (n, d)
    folder : pathlib.Path
        The audit that learned them. None in place of both if there are none, or if they are damaged.
    """
    for folder in folders:
        try:
            run = read_audit(folder)
            known = run.record.source.get(LEARNED_BY)
            if not isinstance(known, dict) or LEARNED_FEATURES not in run.record.files:
                continue
            if {name: value for name, value in known.items() if name != _FEATURES_DIGEST} != dict(learned_by):
                continue
            features = load_array(folder / LEARNED_FEATURES, "features")
        except LaplaceConfidenceError:
            continue
        if features_digest(features) == known.get(_FEATURES_DIGEST):
            return features, folder
    return None
