"""One reference page per training method: facts, settings with defaults, and published settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from generated_pages import write_pages
from sphinx.application import Sphinx

from laplaceconfidence.training.methods.overview import (
    COST,
    NEEDS,
    MethodOverview,
    describe_methods,
    noise_as_written,
    settings_as_written,
)
from laplaceconfidence.training.methods.published import PublishedSettings

INTRODUCTION = """# Training methods

Every method runs in the same loop, on any data and network, with the same noise and budget:
`RobustClassifier(method="NAME")` in Python, `laplaceconfidence train SOURCE --method NAME` on the command
line. `laplaceconfidence methods` shows this list.
"""


def _cell(text: str) -> str:
    return text.replace("``", "`").replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _published_row(entry: PublishedSettings) -> str:
    cells = (
        entry.data,
        noise_as_written(entry),
        _code(settings_as_written(entry.method, "method.")),
        _code(settings_as_written(entry.training)),
        _cell(entry.note),
        entry.source,
    )
    return f"| {' | '.join(cells)} |"


def method_page(method: MethodOverview) -> str:
    """The page of one method as Markdown."""
    needs = "nothing besides samples and labels" if method.needs == "-" else method.needs
    parts = [
        f"# {method.name}\n",
        f"{_cell(method.summary)}\n",
        f"{_cell(method.description)}\n",
        f"- paper: {_cell(method.paper)}" + ("" if method.year == "-" else f", {method.year}"),
        f"- class: [`{method.class_name}`](../api/{method.class_name}.rst), which explains the settings",
        f"- networks: {method.networks}",
        f"- needs: {needs}",
        f"- cost of a round relative to cross-entropy: {method.cost}",
        "",
    ]
    if method.defaults:
        parts += ["## Settings\n", "| setting | default |", "| --- | --- |"]
        parts += [f"| `method.{name}` | `{default}` |" for name, default in method.defaults.items()]
        parts += [""]
    if method.published:
        parts += ["## Published settings\n"]
        parts += ["Settings of the method that are not listed have the default.\n"]
        parts += [
            "| data | noise | method | training | note | source |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
        parts += [*map(_published_row, method.published), ""]
    return "\n".join(parts)


def _index() -> str:
    methods = describe_methods()
    rows = [
        f"| [`{one.name}`]({one.name}.md) | {one.year} | {one.networks} | {one.needs} | {one.cost} "
        f"| {_cell(one.paper)} |"
        for one in methods
    ]
    return "\n".join(
        [
            INTRODUCTION,
            "| name | year | networks | needs | cost | paper |",
            "| --- | --- | --- | --- | --- | --- |",
            *rows,
            "",
            f"{COST} {NEEDS}",
            "",
            "```{toctree}",
            ":hidden:",
            "",
            *(one.name for one in methods),
            "```",
            "",
        ]
    )


def pages() -> dict[str, str]:
    """File name -> text of every generated page."""
    written = {f"{one.name}.md": method_page(one) for one in describe_methods()}
    return {"index.md": _index(), **written}


def _write(app: Sphinx) -> None:
    write_pages(Path(app.srcdir) / "reference" / "methods", pages())


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", _write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
