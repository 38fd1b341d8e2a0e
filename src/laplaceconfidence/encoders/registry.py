"""Encoders by name, and the settings that each takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any

from laplaceconfidence.encoders.hugging_face import HuggingFaceEncoder
from laplaceconfidence.encoders.onnx_model import OnnxEncoder
from laplaceconfidence.encoders.open_clip_model import OpenClipEncoder
from laplaceconfidence.encoders.own_function import FunctionEncoder
from laplaceconfidence.encoders.protocol import Encoder
from laplaceconfidence.encoders.sentence_transformer import SentenceTransformerEncoder
from laplaceconfidence.encoders.tfidf import TfidfEncoder
from laplaceconfidence.encoders.timm_model import TimmEncoder
from laplaceconfidence.encoders.torchvision_model import TorchvisionEncoder
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.validation import did_you_mean, must_be

TFIDF = "tfidf"

PRETRAINED: dict[str, Callable[..., Encoder]] = {
    "hf": HuggingFaceEncoder,
    "sentence-transformers": SentenceTransformerEncoder,
    "timm": TimmEncoder,
    "torchvision": TorchvisionEncoder,
    "open_clip": OpenClipEncoder,
}
"""Encoders that are named as PREFIX:MODEL."""

_RULE = (
    f"{TFIDF!r}, "
    + ", ".join(f"'{prefix}:NAME'" for prefix in PRETRAINED)
    + ", a path to an .onnx file, or a function of your own as 'package.module:function'"
)


def make_encoder(
    spec: str,
    settings: Mapping[str, Any] | None = None,
    *,
    device: str | None = None,
    n_jobs: int | None = None,
) -> Encoder:
    """Make an encoder by its name.

    Parameters
    ----------
    spec : str
        "tfidf"; "hf:NAME", "sentence-transformers:NAME", "timm:NAME", "torchvision:NAME" or "open_clip:NAME";
        a path to an .onnx file; or "package.module:function", which is imported.
    settings : mapping of str to object, optional
        Settings of the encoder by name.
    device : str, optional
        Where a network of torch runs; refused for other encoders.
    n_jobs : int, optional
        Number of threads of encoders that run on the CPU only.

    Returns
    -------
    Encoder

    Examples
    --------
    >>> from laplaceconfidence.encoders.registry import make_encoder
    >>> make_encoder("tfidf", {"n_components": 100})
    TfidfEncoder(n_components=100, units='auto', random_state=0, n_jobs=None, name='tfidf', takes=('text',))
    """
    prefix, _, rest = spec.partition(":")
    make: Callable[..., Encoder]
    arguments: dict[str, Any] = {}
    if spec == TFIDF:
        make = TfidfEncoder
    elif prefix in PRETRAINED and rest:
        make, arguments["name"] = PRETRAINED[prefix], spec
    elif spec.lower().endswith(".onnx"):
        make, arguments["name"] = OnnxEncoder, spec
    elif rest and prefix.replace(".", "").isidentifier():
        make, arguments["name"] = FunctionEncoder, spec
    else:
        raise must_be("encoder", _RULE, spec, did_you_mean(spec, [TFIDF, *PRETRAINED]))
    own = {one.name for one in fields(make) if one.init}  # type: ignore[arg-type]
    if device is not None:
        if "device" not in own:
            raise must_be("device", f"left out for the encoder {spec}, which runs on the CPU", device)
        arguments["device"] = device
    if n_jobs is not None and "n_jobs" in own:
        arguments["n_jobs"] = n_jobs
    free = sorted(own - {"name", "device", "n_jobs"})
    for name, value in (settings or {}).items():
        if name not in free:
            listed = ", ".join(map(repr, free))
            raise must_be("encoder_set", f"a setting of the encoder {spec}: {listed}", name)
        arguments[name] = value
    return make(**arguments)


def settings_of(encoder: Encoder) -> dict[str, Any]:
    """Return the settings of an encoder, from which ``make_encoder`` makes it again.

    Parameters
    ----------
    encoder : Encoder
        The encoder.

    Returns
    -------
    dict of str to object
    """
    names = [one.name for one in fields(encoder) if one.init]  # type: ignore[arg-type]
    return {name: getattr(encoder, name) for name in names if name not in ("name", "device", "n_jobs")}


def parse_settings(texts: Iterable[str]) -> dict[str, Any]:
    """Parse settings that were written as KEY=VALUE.

    Parameters
    ----------
    texts : iterable of str
        Such as "size=224" or "mean=0.5,0.5,0.5".

    Returns
    -------
    dict of str to object
        Numbers, booleans and lists of numbers where the values are such, else text.
    """
    found: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise must_be("encoder_set", "KEY=VALUE, such as size=224", text)
        if key.strip() in found:
            raise InvalidInputError(f"'--encoder-set {key.strip()}' is given twice. Give it once.")
        found[key.strip()] = _parsed(value.strip())
    return found


def _parsed(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if "," in text:
        parts = tuple(_parsed(part.strip()) for part in text.split(","))
        return parts if all(isinstance(part, (int, float)) for part in parts) else text
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
