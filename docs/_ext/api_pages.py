"""One reference page per public name: whatever stands in ``laplaceconfidence.__all__`` is documented.

Names are grouped by the package that defines them, so that a new public name needs no edit here.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from generated_pages import write_pages
from sphinx.application import Sphinx

import laplaceconfidence

# The package (or module) that defines a name -> the heading of its group. The order is that of the page.
GROUPS = {
    "auditing": "Audit",
    "confidence": "Confidence estimators",
    "data": "Data",
    "training": "Training",
    "evaluation": "Evaluation",
    "records": "Runs on disk",
    "export": "Export",
    "exceptions": "Errors and warnings",
}


def public_names() -> list[str]:
    """Every public name that has a page of its own."""
    return sorted((name for name in laplaceconfidence.__all__ if not name.startswith("__")), key=str.lower)


def home_of(name: str) -> str:
    """The package of ``laplaceconfidence`` that defines a public name."""
    thing = getattr(laplaceconfidence, name)
    module = getattr(thing, "__module__", None) or laplaceconfidence._HOMES[name]
    if not module.startswith("laplaceconfidence."):  # a constant has no module of its own
        module = laplaceconfidence._HOMES[name]
    return str(module).split(".")[1]


def grouped_names() -> dict[str, list[str]]:
    """Public names by the heading of their group, groups in the order of the page."""
    groups: dict[str, list[str]] = {heading: [] for heading in GROUPS.values()}
    for name in public_names():
        home = home_of(name)
        if issubclass_of(name, Exception):
            home = "exceptions"
        groups[GROUPS[home]].append(name)
    return {heading: names for heading, names in groups.items() if names}


def issubclass_of(name: str, base: type) -> bool:
    thing = getattr(laplaceconfidence, name)
    return inspect.isclass(thing) and issubclass(thing, base)


def summary_of(name: str) -> str:
    """The first sentence of the docstring."""
    text = inspect.getdoc(getattr(laplaceconfidence, name)) or ""
    first = " ".join(text.split("\n\n")[0].split())
    return first.replace("``", "`").replace("|", "\\|")


def _page(name: str) -> str:
    thing = getattr(laplaceconfidence, name)
    if issubclass_of(name, BaseException):
        directive = f".. autoexception:: laplaceconfidence.{name}\n   :show-inheritance:\n"
    elif inspect.isclass(thing):
        directive = f".. autoclass:: laplaceconfidence.{name}\n   :members:\n   :inherited-members:\n"
    elif callable(thing):
        directive = f".. autofunction:: laplaceconfidence.{name}\n"
    else:
        directive = f".. autodata:: laplaceconfidence.{name}\n"
    return f"{name}\n{'=' * len(name)}\n\n{directive}"


def _index() -> str:
    parts = [
        "# Python reference\n",
        "Everything below is imported from `laplaceconfidence` itself, for instance",
        "`from laplaceconfidence import audit`. Names load on first use: `import laplaceconfidence` loads neither",
        "torch nor pandas nor matplotlib. What is not listed here is internal and may change.\n",
    ]
    for heading, names in grouped_names().items():
        parts += [f"## {heading}\n", "| name | summary |", "| --- | --- |"]
        parts += [f"| [`{name}`]({name}.rst) | {summary_of(name)} |" for name in names]
        parts += ["", "```{toctree}", ":hidden:", "", *names, "```", ""]
    return "\n".join(parts)


def pages() -> dict[str, str]:
    """File name -> text of every generated page."""
    return {"index.md": _index(), **{f"{name}.rst": _page(name) for name in public_names()}}


def _write(app: Sphinx) -> None:
    write_pages(Path(app.srcdir) / "reference" / "api", pages())


def _skip_members_of_others(
    app: Sphinx, what: str, name: str, member: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out what scikit-learn, torch and Python themselves put into a class."""
    function = inspect.unwrap(member) if callable(member) else getattr(member, "fget", member)
    module = getattr(function, "__module__", None) or getattr(type(function), "__module__", "")
    if name.endswith("_request") or name == "get_metadata_routing":
        return True
    return True if callable(member) and not str(module).startswith("laplaceconfidence") else None


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", _write)
    app.connect("autodoc-skip-member", _skip_members_of_others)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
