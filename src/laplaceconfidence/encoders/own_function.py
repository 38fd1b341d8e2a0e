"""A function of the user's own as an encoder: ``--encoder package.module:function``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, ClassVar

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.encoders.batches import encode_in_batches
from laplaceconfidence.encoders.samples import RawSamples, SampleKind
from laplaceconfidence.validation import check_integer, did_you_mean, must_be


@dataclass(slots=True, eq=False)
class FunctionEncoder:
    """Calls a function with lists of texts, or of RGB images of Pillow; it returns one row for each.

    Its features are never cached, as its name says nothing about its code, which may have changed.

    Parameters
    ----------
    name : str
        "package.module:function". The module is imported, which runs its code.
    batch_size : int, default=256
        Samples per call.
    """

    learns: ClassVar[bool] = False
    is_cached: ClassVar[bool] = False

    name: str
    batch_size: int = 256
    takes: tuple[SampleKind, ...] = field(default=("text", "image"), init=False)
    _function: Callable[[Any], Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_integer(self.batch_size, "batch_size", minimum=1)
        self._function = _imported(self.name)

    def fit_transform(self, samples: RawSamples) -> FloatArray:
        return self.transform(samples)

    def transform(self, samples: RawSamples) -> FloatArray:
        take: Callable[[slice], Any] = samples.texts if samples.kind == "text" else samples.pictures
        return encode_in_batches(
            lambda rows: self._function(take(rows)), len(samples), self.batch_size, self.name
        )

    def summary(self) -> str:
        return f"the function {self.name}"

    def describe(self) -> dict[str, Any]:
        return {"name": self.name, "batch_size": self.batch_size}


def _imported(path: str) -> Callable[[Any], Any]:
    module_name, _, function_name = path.partition(":")
    rule = "'package.module:function' of a module that can be imported and a function in it"
    try:
        module = import_module(module_name)
    except (ImportError, ValueError) as error:
        raise must_be("encoder", rule, path, f"Importing {module_name!r} failed: {error}.") from error
    function = getattr(module, function_name, None)
    if not callable(function):
        closest = did_you_mean(function_name, dir(module))
        advice = f"{module_name} has no function {function_name!r}. {closest}"
        raise must_be("encoder", rule, path, advice)
    found: Callable[[Any], Any] = function
    return found
