"""Checkpoints that are either whole or known not to be.

A checkpoint is what ``torch.save`` writes, followed by a footer with its length and SHA-256; ``torch.load``
can open the file as it is. Only tensors and plain Python values go in, so that loading runs no code.
"""

from __future__ import annotations

import hashlib
import io
import pickle
import struct
from pathlib import Path
from typing import Any

import torch

from laplaceconfidence.exceptions import DataFormatError
from laplaceconfidence.files import replacing

_MARK = b"LAPLACECONFIDENCE-CHECKPOINT-1"
_FOOTER = struct.Struct(f"<{len(_MARK)}sQ32s")


def write_checkpoint(path: Path, content: dict[str, Any]) -> None:
    """Write ``content`` under ``path``, whole or not at all."""
    buffer = io.BytesIO()
    torch.save(content, buffer)
    with replacing(path) as temporary, temporary.open("wb") as file, buffer.getbuffer() as payload:
        file.write(payload)
        file.write(_FOOTER.pack(_MARK, len(payload), hashlib.sha256(payload).digest()))


def read_checkpoint(path: Path) -> dict[str, Any]:
    """What ``write_checkpoint`` wrote, on the CPU; DataFormatError if any of it is missing or changed."""
    stored = path.read_bytes()
    payload, footer = memoryview(stored)[: -_FOOTER.size], stored[-_FOOTER.size :]
    if len(footer) < _FOOTER.size:
        raise DataFormatError(f"The checkpoint {path} is cut off: it has {len(stored)} bytes.")
    mark, length, digest = _FOOTER.unpack(footer)
    if mark != _MARK or length != len(payload):
        raise DataFormatError(f"The checkpoint {path} is cut off or not a checkpoint: its end is missing.")
    if hashlib.sha256(payload).digest() != digest:
        raise DataFormatError(f"The checkpoint {path} is damaged: its checksum does not match.")
    try:
        content: dict[str, Any] = torch.load(io.BytesIO(payload), map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError) as error:
        raise DataFormatError(f"The checkpoint {path} cannot be read: {error}") from error
    return content
