"""A function of the user's own as an encoder: ``--encoder package.module:function``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.encoders.batches import encode_in_batches
from laplaceconfidence.encoders.samples import RawSamples, SampleKind
from laplaceconfidence.own_code import import_callable
from laplaceconfidence.validation import check_integer


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
        self._function = import_callable(self.name, "encoder", "function")

    def fit_transform(self, samples: RawSamples) -> FloatArray:
        return self.transform(samples)

    def transform(self, samples: RawSamples) -> FloatArray:
        take: Callable[[slice], Any] = samples.texts if samples.kind == "text" else samples.pictures
        return encode_in_batches(self._function, take, len(samples), self.batch_size, self.name)

    def summary(self) -> str:
        return f"the function {self.name}"

    def describe(self) -> dict[str, Any]:
        return {"name": self.name, "batch_size": self.batch_size}
