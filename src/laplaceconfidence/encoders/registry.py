"""Encoders by name, and the settings that each takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from laplaceconfidence.encoders.hugging_face import HuggingFaceEncoder
from laplaceconfidence.encoders.onnx_model import OnnxEncoder
from laplaceconfidence.encoders.open_clip_model import OpenClipEncoder
from laplaceconfidence.encoders.own_function import FunctionEncoder
from laplaceconfidence.encoders.patches import PatchEncoder
from laplaceconfidence.encoders.protocol import Encoder
from laplaceconfidence.encoders.sentence_transformer import SentenceTransformerEncoder
from laplaceconfidence.encoders.tfidf import TfidfEncoder
from laplaceconfidence.encoders.timm_model import TimmEncoder
from laplaceconfidence.encoders.torchvision_model import TorchvisionEncoder
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.validation import did_you_mean, must_be

TFIDF, PATCHES = "tfidf", "patches"

BUILT_IN: dict[str, Callable[..., Encoder]] = {TFIDF: TfidfEncoder, PATCHES: PatchEncoder}
"""Encoders that need no model: of texts and of images."""

PRETRAINED: dict[str, Callable[..., Encoder]] = {
    "hf": HuggingFaceEncoder,
    "sentence-transformers": SentenceTransformerEncoder,
    "timm": TimmEncoder,
    "torchvision": TorchvisionEncoder,
    "open_clip": OpenClipEncoder,
}
"""Encoders that are named as PREFIX:MODEL."""

_NO_SETTINGS = {"name", "device", "n_jobs"}  # which have options of their own
_RULE = (
    ", ".join(map(repr, BUILT_IN))
    + ", "
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
        "tfidf" for texts, "patches" for images; "hf:NAME", "sentence-transformers:NAME", "timm:NAME",
        "torchvision:NAME" or "open_clip:NAME";
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
    make = _maker(spec)
    own = _fields(make)
    arguments: dict[str, Any] = {"name": spec} if "name" in own else {}
    if device is not None:
        if "device" not in own:
            raise must_be("device", f"left out for the encoder {spec}, which runs on the CPU", device)
        arguments["device"] = device
    if n_jobs is not None and "n_jobs" in own:
        arguments["n_jobs"] = n_jobs
    free = sorted(own - _NO_SETTINGS)
    for name, value in (settings or {}).items():
        if name not in free:
            listed = ", ".join(map(repr, free))
            raise must_be("encoder_set", f"a setting of the encoder {spec}: {listed}", name)
        arguments[name] = value
    return make(**arguments)


def make_encoders(
    specs: Sequence[str],
    settings: Mapping[str, Any] | None = None,
    *,
    device: str | None = None,
    n_jobs: int | None = None,
) -> list[Encoder]:
    """Make encoders by their names; a setting is that of every one of them that has it.

    Parameters
    ----------
    specs : sequence of str
        As for ``make_encoder``, all different.
    settings : mapping of str to object, optional
        Settings by name, each of at least one of the encoders.
    device, n_jobs : optional
        As for ``make_encoder``.

    Returns
    -------
    list of Encoder
    """
    if len(specs) == 1:
        return [make_encoder(specs[0], settings, device=device, n_jobs=n_jobs)]
    if len(set(specs)) != len(specs):
        twice = next(spec for spec in specs if specs.count(spec) > 1)
        raise must_be("encoder", "different where it is given several times", twice)
    own = [_fields(_maker(spec)) for spec in specs]
    for name in settings or {}:
        if not any(name in names - _NO_SETTINGS for names in own):
            listed = ", ".join(sorted(set().union(*own) - _NO_SETTINGS))
            raise must_be("encoder_set", f"a setting of one of the encoders: {listed}", name)
    if device is not None and not any("device" in names for names in own):
        raise must_be("device", "left out for encoders that all run on the CPU", device)
    return [
        make_encoder(
            spec,
            {name: value for name, value in (settings or {}).items() if name in names},
            device=device if "device" in names else None,
            n_jobs=n_jobs,
        )
        for spec, names in zip(specs, own, strict=True)
    ]


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
    return {name: getattr(encoder, name) for name in sorted(_fields(encoder) - _NO_SETTINGS)}


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


def _maker(spec: str) -> Callable[..., Encoder]:
    prefix, _, rest = spec.partition(":")
    if spec in BUILT_IN:
        return BUILT_IN[spec]
    if prefix in PRETRAINED and rest:
        return PRETRAINED[prefix]
    if spec.lower().endswith(".onnx"):
        return OnnxEncoder
    if rest and prefix.replace(".", "").isidentifier():
        return FunctionEncoder
    raise must_be("encoder", _RULE, spec, did_you_mean(spec, [*BUILT_IN, *PRETRAINED]))


def _fields(encoder: Any) -> set[str]:
    """The arguments of an encoder or of its class."""
    return {one.name for one in fields(encoder) if one.init}


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
