"""Training methods by name, and one of them with its settings."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from laplaceconfidence.training.methods.co_teaching import CoTeaching
from laplaceconfidence.training.methods.cross_entropy import CrossEntropy
from laplaceconfidence.training.methods.dividemix import DivideMix
from laplaceconfidence.training.methods.interface import Method
from laplaceconfidence.training.methods.laplace import Laplace
from laplaceconfidence.validation import must_be

METHODS: dict[str, type[Method]] = {
    "laplace": Laplace,
    "cross_entropy": CrossEntropy,
    "co_teaching": CoTeaching,
    "dividemix": DivideMix,
}


def build_method(
    method: str | Method, changed: Mapping[str, Any], options: Mapping[str, Any] | None
) -> Method:
    """The method of that name, or a method as it is.

    ``changed`` are the classifier's own parameters that differ from their defaults, ``options`` those that
    only this method has. Either kind fails where the method does not know it: none is silently ignored.
    """
    given = {**changed, **(options or {})}
    if isinstance(method, Method):
        for name, value in given.items():
            raise must_be(name, "left alone where 'method' is an object, which has its own settings", value)
        return method
    if method not in METHODS:
        close = difflib.get_close_matches(str(method), METHODS, n=3, cutoff=0.3)
        advice = f"The closest: {', '.join(close)}." if close else ""
        raise must_be("method", f"one of {', '.join(map(repr, METHODS))} or a Method", method, advice)
    kind = METHODS[method]
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    for name, value in given.items():
        if name not in known:
            has = ", ".join(known) if known else "no settings of its own"
            raise must_be(name, f"left out: method {method!r} does not have it", value, f"It has {has}.")
    return kind(**given)
