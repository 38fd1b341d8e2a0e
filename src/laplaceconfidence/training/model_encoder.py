"""The encoder of a model that was trained on texts, images or columns: part of the folder of the model.

What an encoder learned is stored as JSON and safetensors. Of a pretrained model only the name, the settings
and the digest of the weights are; a function of the user's own is imported only if the caller names it.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Literal

import safetensors
import safetensors.numpy
from pydantic import BaseModel, ConfigDict, ValidationError

from laplaceconfidence.encoders.own_function import FunctionEncoder
from laplaceconfidence.encoders.protocol import Encoder
from laplaceconfidence.encoders.registry import make_encoder, settings_of
from laplaceconfidence.encoders.table_columns import ColumnsEncoder
from laplaceconfidence.encoders.tfidf import TfidfEncoder
from laplaceconfidence.exceptions import DataFormatError
from laplaceconfidence.validation import must_be

TERMS, ARRAYS = "encoder.json", "encoder.safetensors"

_LEARNING: dict[str, Any] = {"tfidf": TfidfEncoder, "columns": ColumnsEncoder}


class EncoderRecord(BaseModel):
    """The encoder in ``model.json``."""

    model_config = ConfigDict(extra="forbid", strict=True)

    kind: Literal["tfidf", "columns", "named", "function"]
    name: str
    settings: dict[str, Any]
    described: dict[str, Any]
    sha256: dict[str, str]  # of the files beside model.json


def encoder_files(encoder: Encoder) -> tuple[EncoderRecord, dict[str, bytes]]:
    """Describe an encoder, and write what it learned.

    Parameters
    ----------
    encoder : Encoder
        A fitted encoder.

    Returns
    -------
    record : EncoderRecord
        For ``model.json``.
    files : dict of str to bytes
        The files beside it, by name.
    """
    files: dict[str, bytes] = {}
    kind: Any = "function" if isinstance(encoder, FunctionEncoder) else "named"
    if isinstance(encoder, (TfidfEncoder, ColumnsEncoder)):
        kind = encoder.name
        learned, arrays = encoder.state()
        files[TERMS] = json.dumps(learned, ensure_ascii=False).encode(errors="surrogatepass")
        files[ARRAYS] = safetensors.numpy.save(arrays)
    record = EncoderRecord(
        kind=kind,
        name=encoder.name,
        settings=json.loads(json.dumps(settings_of(encoder))),
        described=json.loads(json.dumps(encoder.describe())),
        sha256={name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
    )
    return record, files


def read_encoder(place: Path, record: EncoderRecord, named: str | None) -> Encoder:
    """Make the encoder of a model.

    Parameters
    ----------
    place : Path
        The folder of the model.
    record : EncoderRecord
        What ``model.json`` says.
    named : str or None
        The encoder that the caller named; needed for a function of the user's own.

    Returns
    -------
    Encoder
        Ready to ``transform``.
    """
    if named is not None and named != record.name:
        raise must_be("encoder", f"{record.name!r}, as in training, or left out", named)
    if record.kind in _LEARNING:
        learned = json.loads(_content(place / TERMS, record).decode(errors="surrogatepass"))
        try:
            arrays = safetensors.numpy.load(_content(place / ARRAYS, record))
        except safetensors.SafetensorError as error:
            raise DataFormatError(f"{place / ARRAYS} is not a safetensors file: {error}.") from error
        if not isinstance(learned, dict):
            raise DataFormatError(f"The model is damaged: {place / TERMS} does not hold an encoder.")
        found: Encoder = _LEARNING[record.kind].from_state(learned, arrays)
        return found
    if record.kind == "function" and named is None:
        advice = f"Importing it runs its code: if you trust it, pass --encoder {record.name}."
        rule = f"given, as the model in {place} was trained with a function of your own, {record.name!r}"
        raise must_be("encoder", rule, None, advice)
    settings = {
        name: tuple(value) if isinstance(value, list) else value for name, value in record.settings.items()
    }
    return _checked(make_encoder(record.name, settings), record, place)


def parse_record(content: Any, place: Path) -> EncoderRecord:
    """Check the description of an encoder.

    Parameters
    ----------
    content : object
        What ``model.json`` has.
    place : Path
        The folder of the model.

    Returns
    -------
    EncoderRecord
    """
    try:
        return EncoderRecord.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise DataFormatError(
            f"The encoder of the model in {place} is damaged: {where}: {first['msg']}."
        ) from error


def _checked(encoder: Encoder, record: EncoderRecord, place: Path) -> Encoder:
    """Raise unless the weights of an encoder are those of the training."""
    now, then = encoder.describe(), record.described
    for key in ("weights_sha256", "revision", "sha256"):
        if now.get(key) != then.get(key):
            raise DataFormatError(
                f"The encoder {record.name} has other files than when the model in {place} was trained: "
                "its features would mean something else. Use the files of then, or train again."
            )
    return encoder


def _content(path: Path, record: EncoderRecord) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataFormatError(
            f"The model is not complete: {path} cannot be read ({error.strerror or error})."
        ) from error
    if hashlib.sha256(content).hexdigest() != record.sha256.get(path.name):
        raise DataFormatError(
            f"The model is damaged: the SHA-256 of {path} is not the one in model.json. Copy both again."
        )
    return content
