"""Files of noisy labels, so that another machine can use exactly the same ones."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.transitions import check_transition, empirical_transition
from laplaceconfidence.exceptions import DataFormatError, InvalidInputError
from laplaceconfidence.files import write_json
from laplaceconfidence.validation import check_integer, check_real, check_same_length, must_be

_FORMAT = "laplaceconfidence noise 1"
_CODE = np.dtype("<i4")  # how the codes are stored, on any machine
_FIELDS: dict[str, type | tuple[type, ...]] = {
    "format": str,
    "kind": str,
    "rate": (int, float, type(None)),
    "seed": (int, type(None)),
    "n_samples": int,
    "class_names": list,
    "transition_matrix": list,
    "true_labels_sha256": str,
    "labels_sha256": str,
    "labels": str,
    "sha256": str,
}


@dataclass(frozen=True, slots=True, eq=False)
class NoiseRecord:
    """The noisy labels of a data set and how they were made.

    Parameters
    ----------
    kind : str
        Kind of noise, as in ``add_noise``.
    rate : float or None
        Noise rate.
    seed : int or None
        Seed of the draws.
    class_names : tuple of str
        Names of the classes.
    labels : ndarray of shape (n,)
        Codes of the noisy labels.
    transition_matrix : ndarray of shape (C, C)
        Shares of the labels that were drawn, per true class.
    true_labels_sha256 : str
        Checksum of the clean labels.
    """

    kind: str
    rate: float | None
    seed: int | None
    class_names: tuple[str, ...]
    labels: IntArray
    transition_matrix: FloatArray
    true_labels_sha256: str

    @classmethod
    def of(cls, dataset: NoisyDataset, *, kind: str, rate: float | None, seed: int | None) -> NoiseRecord:
        """Describe the noise in a data set that ``add_noise`` made.

        Parameters
        ----------
        dataset : NoisyDataset
            A data set with ``true_labels``.
        kind : str
            Kind of noise.
        rate : float or None
            Noise rate.
        seed : int or None
            Seed of the draws.

        Returns
        -------
        NoiseRecord
        """
        if dataset.true_labels is None:
            raise must_be("dataset", "one that add_noise made, with 'true_labels'", "one without")
        if seed is not None:
            seed = check_integer(seed, "seed", minimum=0)
        if rate is not None:
            rate = check_real(rate, "rate", at_least=0, at_most=1)
        return cls(
            kind=kind,
            rate=rate,
            seed=seed,
            class_names=dataset.class_names,
            labels=dataset.labels,
            transition_matrix=empirical_transition(dataset.true_labels, dataset.labels, dataset.n_classes),
            true_labels_sha256=_checksum(dataset.true_labels),
        )

    def apply(self, dataset: NoisyDataset) -> NoisyDataset:
        """Return the data set that this noise was made for, with the noisy labels.

        Parameters
        ----------
        dataset : NoisyDataset
            The clean data set.

        Returns
        -------
        NoisyDataset
        """
        clean = dataset.labels if dataset.true_labels is None else dataset.true_labels
        check_same_length("noise", len(self.labels), "dataset", len(dataset))
        if dataset.class_names != self.class_names:
            raise InvalidInputError(
                f"The noise was made for the classes {_few(self.class_names)}; "
                f"the data set has {_few(dataset.class_names)}."
            )
        if _checksum(clean) != self.true_labels_sha256:
            raise InvalidInputError(
                "The noise was made for other labels: the checksum of the data set's clean labels is "
                f"{_checksum(clean)[:12]}..., the noise needs {self.true_labels_sha256[:12]}... "
                "Use the same data in the same order."
            )
        return replace(dataset, labels=self.labels, true_labels=clean)


def write_noise_file(path: str | Path, noise: NoiseRecord) -> None:
    """Write noise as JSON.

    Parameters
    ----------
    path : str or Path
        The file to write or replace.
    noise : NoiseRecord
        The noise.
    """
    packed = base64.b64encode(zlib.compress(noise.labels.astype(_CODE).tobytes(), 9)).decode("ascii")
    content: dict[str, Any] = {
        "format": _FORMAT,
        "kind": noise.kind,
        "rate": noise.rate,
        "seed": noise.seed,
        "n_samples": len(noise.labels),
        "class_names": list(noise.class_names),
        "transition_matrix": noise.transition_matrix.tolist(),
        "true_labels_sha256": noise.true_labels_sha256,
        "labels_sha256": _checksum(noise.labels),
        "labels": packed,
    }
    try:
        write_json(path, {**content, "sha256": _content_checksum(content)})
    except OSError as error:
        rule = "a path in an existing folder that can be written"
        raise must_be("path", rule, str(path), f"({error.strerror})") from error


def read_noise_file(path: str | Path) -> NoiseRecord:
    """Read a file that ``write_noise_file`` wrote, and check its checksums.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    NoiseRecord
    """
    path = Path(path)
    content = _load(path)
    n_classes = len(content["class_names"])
    try:
        transition_matrix = check_transition(content["transition_matrix"], n_classes)
    except ValueError as error:
        raise DataFormatError(f"The transition matrix of {path} is not valid: {error}") from error
    return NoiseRecord(
        kind=content["kind"],
        rate=content["rate"],
        seed=content["seed"],
        class_names=tuple(content["class_names"]),
        labels=_unpack(content, path),
        transition_matrix=transition_matrix,
        true_labels_sha256=content["true_labels_sha256"],
    )


def _load(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise must_be("path", "a path to an existing noise file", str(path))
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataFormatError(f"{path} is truncated, damaged or not a noise file ({error}).") from error
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise DataFormatError(f"{path} is not a noise file: its 'format' must be {_FORMAT!r}.")
    for field, kind in _FIELDS.items():
        if field not in content or not isinstance(content[field], kind):
            raise DataFormatError(
                f"{path} is not a complete noise file: {field!r} is missing or has the wrong type."
            )
    claimed = content.pop("sha256")
    try:
        actual = _content_checksum(content)
    except ValueError as error:  # Python's JSON reader accepts NaN, which is not valid JSON
        raise DataFormatError(f"{path} holds a value that is not a number ({error}).") from error
    if actual != claimed:
        raise DataFormatError(
            f"{path} was changed after it was written: its content does not match its checksum 'sha256'. "
            "Copy the original file again."
        )
    return content


def _unpack(content: dict[str, Any], path: Path) -> IntArray:
    try:
        packed = base64.b64decode(content["labels"], validate=True)
        # Never more bytes than the file claims to hold, whatever the compressed data would expand to.
        unpacked = zlib.decompressobj().decompress(packed, content["n_samples"] * _CODE.itemsize + 1)
        labels = np.frombuffer(unpacked, dtype=_CODE).astype(np.int64)
    except (binascii.Error, zlib.error, ValueError, OverflowError) as error:
        raise DataFormatError(f"The labels of {path} cannot be unpacked: {error}.") from error
    if len(labels) != content["n_samples"] or _checksum(labels) != content["labels_sha256"]:
        raise DataFormatError(f"The labels of {path} do not match their checksum 'labels_sha256'.")
    return labels


def _checksum(codes: IntArray) -> str:
    """The same on every machine: over 64-bit little-endian codes."""
    return hashlib.sha256(codes.astype("<i8").tobytes()).hexdigest()


def _content_checksum(content: dict[str, Any]) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode("utf-8")).hexdigest()


def _few(names: tuple[str, ...], most: int = 5) -> str:
    return f"{len(names)} ({', '.join(names[:most])}{', ...' if len(names) > most else ''})"
