"""Training methods by name, and one of them with its settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.training.methods.augdesc import AugDesc
from laplaceconfidence.training.methods.bootstrap import Bootstrap
from laplaceconfidence.training.methods.co_teaching import CoTeaching
from laplaceconfidence.training.methods.co_teaching_plus import CoTeachingPlus
from laplaceconfidence.training.methods.cross_entropy import CrossEntropy
from laplaceconfidence.training.methods.curriculum import CurriculumLoss
from laplaceconfidence.training.methods.d2l import D2L
from laplaceconfidence.training.methods.dividemix import DivideMix
from laplaceconfidence.training.methods.forward_correction import ForwardCorrection
from laplaceconfidence.training.methods.incv import INCV
from laplaceconfidence.training.methods.interface import Method
from laplaceconfidence.training.methods.itlm import ITLM
from laplaceconfidence.training.methods.laplace import Laplace
from laplaceconfidence.training.methods.laplacenet import LaplaceNet
from laplaceconfidence.training.methods.m_correction import MCorrection
from laplaceconfidence.training.methods.mentornet import MentorNet
from laplaceconfidence.training.methods.mixup import MixUpTraining
from laplaceconfidence.training.methods.mlnt import MLNT
from laplaceconfidence.training.methods.moit import Moit
from laplaceconfidence.training.methods.moit_plus import MoitPlus
from laplaceconfidence.training.methods.ncr import NCR
from laplaceconfidence.training.methods.ngc import NGC
from laplaceconfidence.training.methods.pencil import Pencil
from laplaceconfidence.training.methods.selfie import SELFIE
from laplaceconfidence.training.methods.topofilter import TopoFilter
from laplaceconfidence.validation import did_you_mean, must_be

METHODS: dict[str, type[Method]] = {
    "laplace": Laplace,
    "cross_entropy": CrossEntropy,
    "co_teaching": CoTeaching,
    "dividemix": DivideMix,
    "bootstrap": Bootstrap,
    "mixup": MixUpTraining,
    "co_teaching_plus": CoTeachingPlus,
    "pencil": Pencil,
    "m_correction": MCorrection,
    "curriculum": CurriculumLoss,
    "topofilter": TopoFilter,
    "d2l": D2L,
    "mentornet": MentorNet,
    "laplacenet": LaplaceNet,
    "moit": Moit,
    "moit_plus": MoitPlus,
    "ngc": NGC,
    "augdesc": AugDesc,
    "ncr": NCR,
    "forward_correction": ForwardCorrection,
    "itlm": ITLM,
    "selfie": SELFIE,
    "incv": INCV,
    "mlnt": MLNT,
}
"""Every training method by the name that presets and the command line use."""


def build_method(method: str | Method, settings: Mapping[str, Any] | None = None) -> Method:
    """A training method from its name and settings, or a method as it is.

    Parameters
    ----------
    method : str or Method
        A name of ``METHODS``, or a method, which keeps its own settings.
    settings : mapping of str to Any, optional
        Settings of a method given by name. The others keep the defaults of the method's class.

    Returns
    -------
    Method

    Raises
    ------
    InvalidInputError
        If there is no such method, or if it does not have one of the settings; the message names the
        settings that it has.
    """
    if isinstance(method, Method):
        return method
    kind = METHODS[check_method_name(method)]
    for name in settings or {}:
        _check_setting(method, kind, name)
    return kind(**(settings or {}))


def change_method(method: str | Method, changes: Mapping[str, Any]) -> Method:
    """A method with some of its settings changed.

    Parameters
    ----------
    method : str or Method
        The method, by name or as an object.
    changes : mapping of str to Any
        New values by the names of its settings.

    Returns
    -------
    Method
    """
    if method == "auto":
        rule = "given by name or as an object where its settings are changed"
        raise must_be("method", rule, method)
    before = build_method(method)
    for name in changes:
        _check_setting(type(before).__name__, type(before), name)
    return replace(before, **changes)  # type: ignore[type-var]


def check_method_name(name: Any) -> str:
    """Check the name of a method.

    Parameters
    ----------
    name : Any
        The name.

    Returns
    -------
    str
        The name, if there is a method of that name.
    """
    if not isinstance(name, str) or name not in METHODS:
        rule = f"one of {', '.join(map(repr, METHODS))} or a Method"
        raise must_be("method", rule, name, did_you_mean(name, METHODS))
    return name


def settings_of(method: str | type[Method]) -> tuple[str, ...]:
    """The names of a method's settings: the fields of its dataclass.

    Parameters
    ----------
    method : str or type
        A name of ``METHODS``, or a class.

    Returns
    -------
    tuple of str
    """
    kind = METHODS[method] if isinstance(method, str) else method
    return tuple(field.name for field in fields(kind))  # type: ignore[arg-type]


def _check_setting(method: str, kind: type[Method], setting: str) -> None:
    """Raise, naming the settings that the method has, unless ``setting`` is one of them."""
    valid = settings_of(kind)
    if setting not in valid:
        has = f"It has {', '.join(valid)}." if valid else "It has no settings."
        hint = did_you_mean(setting, valid)
        parts = (f"The method {method!r} has no setting {setting!r}.", hint, has)
        raise InvalidInputError(" ".join(part for part in parts if part))
