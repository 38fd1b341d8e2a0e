"""Code of the user's own, named as "package.module:name" on the command line or in settings."""

from __future__ import annotations

import sys
import sysconfig
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from laplaceconfidence.validation import did_you_mean, must_be


def import_callable(path: str, parameter: str, kind: str) -> Callable[..., Any]:
    """Import a function or class by its path, also from the current folder.

    Parameters
    ----------
    path : str
        "package.module:name". The module is imported, which runs its code.
    parameter : str
        The parameter that has the path, in error messages.
    kind : str
        What it must be, such as "function".

    Returns
    -------
    callable
    """
    module_name, _, name = path.partition(":")
    rule = f"'package.module:{kind}' of a module that can be imported and a {kind} in it"
    if (folder := str(Path.cwd())) not in sys.path and "" not in sys.path:
        sys.path.append(folder)  # as "python -m" does; last, so that it hides no package
    try:
        module = import_module(module_name)
    except Exception as error:  # the module is the user's code, which may raise anything
        advice = f"Importing {module_name!r} failed: {error_in_words(error)}."
        if isinstance(error, ModuleNotFoundError) and error.name == module_name.partition(".")[0]:
            advice += " Run the command in the folder that holds it, or add that folder to PYTHONPATH."
        raise must_be(parameter, rule, path, advice) from error
    found = getattr(module, name, None)
    if not callable(found):
        advice = f"{module_name} has no function {name!r}. {did_you_mean(name, dir(module))}"
        raise must_be(parameter, rule, path, advice)
    named: Callable[..., Any] = found
    return named


def error_in_words(error: BaseException) -> str:
    """Return what an error says, on one line, and where the user's code raised it.

    Parameters
    ----------
    error : BaseException
        The error.

    Returns
    -------
    str
        Such as "KeyError: 'vocabulary' (encoder.py, line 3)".
    """
    text = " ".join(str(error).split())
    said = f"{type(error).__name__}: {text}" if text else type(error).__name__
    if isinstance(error, SyntaxError):  # which names file and line itself
        return said
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_of_user(frame.filename)]
    if not frames:
        return said
    line = [frame.lineno for frame in frames if frame.filename == frames[0].filename][-1]
    return f"{said} ({Path(frames[0].filename).name}, line {line})"


def _is_of_user(file: str) -> bool:
    """Whether a file belongs neither to this package nor to an installed one nor to Python."""
    path = Path(file)
    others = (Path(__file__).parent, sysconfig.get_path("stdlib"))
    is_other = any(path.is_relative_to(folder) for folder in others) or "site-packages" in path.parts
    return not is_other and not file.startswith("<")  # such as <frozen importlib._bootstrap>
