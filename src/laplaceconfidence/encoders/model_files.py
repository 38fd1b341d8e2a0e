"""The files of pretrained models: on the disk first, from the Hugging Face hub if they are not there."""

from __future__ import annotations

import hashlib
import urllib.error
import urllib.request
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

from laplaceconfidence.exceptions import DownloadError, InvalidInputError
from laplaceconfidence.stages import stage
from laplaceconfidence.validation import must_be

Loaded = TypeVar("Loaded")
_SECONDS_TO_REACH = 5
_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth")


def revision_of(model: str) -> str | None:
    """Return what identifies the files of a model besides its weights: tokenizer, pooling, preprocessing.

    Parameters
    ----------
    model : str
        A folder, or a name on the Hugging Face hub.

    Returns
    -------
    str or None
        The digest of the files in the folder, or the commit of the files in the cache of the hub; ``None``
        for a model that is in neither.
    """
    folder = Path(model.removeprefix("local-dir:"))
    if folder.is_dir():
        digest = hashlib.sha256()
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            if path.suffix not in _WEIGHTS:
                digest.update(f"{path.relative_to(folder)}\0".encode(errors="surrogatepass"))
                digest.update(hashlib.sha256(path.read_bytes()).digest())
        return digest.hexdigest()
    if find_spec("huggingface_hub") is None:
        return None
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    for name in (model.removeprefix("hf-hub:"), f"sentence-transformers/{model}"):
        try:
            found = try_to_load_from_cache(name, "config.json")
        except HFValidationError:  # not a name on the hub
            continue
        if isinstance(found, str):
            return Path(found).parent.name
    return None


def from_disk_or_hub(load: Callable[[], Loaded], encoder: str, model: str) -> Loaded:
    """Call a function that loads from the Hugging Face hub: from the disk first, from the network if needed.

    Parameters
    ----------
    load : callable
        Loads the model.
    encoder, model : str
        Names of the encoder and of its model in error messages.

    Returns
    -------
    object
        What ``load`` returned.
    """
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    try:
        constants.HF_HUB_OFFLINE = True
        try:
            return load()
        except (OSError, ValueError, RuntimeError) as error:
            first = error
        if model.startswith(("/", ".", "~")) and not Path(model).is_dir():
            raise must_be("encoder", "a name of a model or an existing folder", encoder) from first
        if Path(model).is_dir():
            raise InvalidInputError(
                f"The encoder {encoder} cannot be loaded from {model}: {first}"
            ) from first
        if before or not is_reachable(constants.ENDPOINT):
            why = "HF_HUB_OFFLINE is set" if before else f"{constants.ENDPOINT} cannot be reached"
            raise DownloadError(
                f"The model {model!r} of the encoder {encoder} is not on this machine, and {why}. Copy the "
                "folder of the model here and name the folder, or run the command once where there is a "
                f"network. (Loading from the disk failed with: {_brief(first)})"
            ) from first
        constants.HF_HUB_OFFLINE = before
        try:
            with stage("downloading"):
                return load()
        except (OSError, ValueError, RuntimeError) as error:
            raise DownloadError(f"The encoder {encoder} cannot be loaded: {_brief(error)}") from error
    finally:
        constants.HF_HUB_OFFLINE = before


def silence_transformers() -> None:
    """Keep transformers from writing progress bars and warnings of its own while it loads a model."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()


def is_reachable(address: str) -> bool:
    """Return whether a server answers within a few seconds.

    Parameters
    ----------
    address : str
        A URL.

    Returns
    -------
    bool
    """
    try:
        with urllib.request.urlopen(address, timeout=_SECONDS_TO_REACH):
            return True
    except urllib.error.HTTPError:
        return True
    except (OSError, ValueError):
        return False


def _brief(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
