"""JSON documents and JSON Lines, with errors that say where a file is damaged."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

from laplaceconfidence.exceptions import DataFormatError

JSON_LINES_SUFFIXES = (".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz")


def load_json(path: Path) -> Any:
    """Read a JSON document.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    object
    """
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataFormatError(
            f"{path} cannot be read as JSON: it is missing, truncated or damaged ({error}). Export it again."
        ) from error


def load_json_lines(path: Path) -> list[dict[str, Any]]:
    """Read a file of one JSON object per line; empty lines are skipped.

    Parameters
    ----------
    path : Path
        The file, compressed if its name ends in ``.gz``.

    Returns
    -------
    list of dict
    """
    open_text = gzip.open if path.name.lower().endswith(".gz") else open
    records = []
    try:
        with open_text(path, "rt", encoding="utf-8-sig", newline="\n") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    records.append(_object(line, number, path))
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise DataFormatError(
            f"{path} cannot be read as JSON Lines in UTF-8: it is truncated or damaged ({error}). Export it "
            "again."
        ) from error
    return records


def _object(line: str, number: int, path: Path) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataFormatError(
            f"Line {number} of {path} is not valid JSON ({error}): it is truncated or damaged. Write one "
            'object per line, such as {"text": "...", "label": "..."}.'
        ) from error
    if not isinstance(record, dict):
        raise DataFormatError(
            f"Line {number} of {path} must be a JSON object with names and values. "
            f"Got {type(record).__name__}: {line.strip()[:60]}"
        )
    return record
