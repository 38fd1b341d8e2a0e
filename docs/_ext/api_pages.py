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
    "graph": "Confidence estimators",
    "data": "Data",
    "encoders": "Data",
    "training": "Training",
    "evaluation": "Evaluation",
    "records": "Runs, reports and exports",
    "report": "Runs, reports and exports",
    "review": "Runs, reports and exports",
    "export": "Runs, reports and exports",
    "exceptions": "Errors and warnings",
}

INTRODUCTION = """# Python reference

Everything below is imported from `laplaceconfidence` itself: `from laplaceconfidence import audit`. Names
load on first use: `import laplaceconfidence` loads neither torch nor pandas nor matplotlib. What is not
listed here is internal and may change. Estimators also have scikit-learn's `get_params` and `set_params`.
"""


def public_names() -> list[str]:
    """Every public name that has a page of its own."""
    return sorted((name for name in laplaceconfidence.__all__ if not name.startswith("__")), key=str.lower)


def group_of(name: str) -> str:
    """The heading under which a public name is listed."""
    module = laplaceconfidence._HOMES[name]
    return GROUPS["exceptions" if _is_exception(name) else module.split(".")[1]]


def grouped_names() -> dict[str, list[str]]:
    """Public names by the heading of their group, groups in the order of the page."""
    groups: dict[str, list[str]] = {heading: [] for heading in GROUPS.values()}
    for name in public_names():
        groups[group_of(name)].append(name)
    return {heading: names for heading, names in groups.items() if names}


def _is_exception(name: str) -> bool:
    thing = getattr(laplaceconfidence, name)
    return inspect.isclass(thing) and issubclass(thing, BaseException)


def summary_of(name: str) -> str:
    """The first sentence of the docstring."""
    text = inspect.getdoc(getattr(laplaceconfidence, name)) or ""
    first = " ".join(text.split("\n\n")[0].split())
    return first.replace("``", "`").replace("|", "\\|")


def _page(name: str) -> str:
    thing = getattr(laplaceconfidence, name)
    if _is_exception(name):
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
        INTRODUCTION,
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
    """Leave out the methods that scikit-learn, torch and Python put into a class."""
    module = str(getattr(member, "__module__", None))
    foreign = callable(member) and not module.startswith("laplaceconfidence")
    return True if foreign else None


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", _write)
    app.connect("autodoc-skip-member", _skip_members_of_others)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
