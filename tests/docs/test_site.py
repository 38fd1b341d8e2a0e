"""What the documentation promises: complete references, links that resolve, nothing loaded from elsewhere."""

import re
from pathlib import Path

import pytest

import laplaceconfidence
from laplaceconfidence.training.methods.registry import METHODS, settings_of

pytest.importorskip("sphinx", reason="the dependency group docs is not installed")

import api_pages
import command_pages
import method_pages

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BUILT = DOCS / "_build" / "html"
GENERATED = (DOCS / "_build", *(DOCS / "reference" / name for name in ("api", "commands", "methods")))
PAGES = sorted(
    [
        *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
        *(
            page
            for page in DOCS.rglob("*.md")
            if not any(page.is_relative_to(folder) for folder in GENERATED)
        ),
    ]
)


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def test_the_reference_has_a_page_for_every_public_name_and_no_other() -> None:
    pages = {Path(name).stem for name in api_pages.pages()} - {"index"}
    assert pages == {name for name in laplaceconfidence.__all__ if name != "__version__"}
    listed = [name for names in api_pages.grouped_names().values() for name in names]
    assert sorted(listed) == sorted(pages)


@pytest.mark.parametrize("name", api_pages.public_names())
def test_every_public_name_has_a_docstring(name: str) -> None:
    assert api_pages.summary_of(name), f"{name} has no docstring"


@pytest.mark.parametrize("name", command_pages.commands())
def test_every_option_is_in_the_command_reference(name: str) -> None:
    command = command_pages.commands()[name]
    page = command_pages.command_page(name, command)
    for option in command_pages.options_of(command):
        for spelling in [*option.opts, *option.secondary_opts]:
            assert f"`{spelling}`" in page


def test_every_command_is_in_the_command_reference() -> None:
    pages = command_pages.pages()
    assert set(pages) == {"index.md", *(f"{name}.md" for name in command_pages.commands())}
    for name in command_pages.commands():
        assert f"({name}.md)" in pages["index.md"]


def test_every_training_method_has_a_page_with_its_settings() -> None:
    pages = method_pages.pages()
    assert set(pages) == {"index.md", *(f"{name}.md" for name in METHODS)}
    for name, kind in METHODS.items():
        assert f"({name}.md)" in pages["index.md"]
        assert all(f"`method.{setting}`" in pages[f"{name}.md"] for setting in settings_of(name))
        assert kind.__name__ in laplaceconfidence.__all__  # the page links to the class


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_lines_end_before_column_120(page: Path) -> None:
    lines = without_code(page.read_text(encoding="utf-8")).splitlines()
    assert [line for line in lines if len(line) >= 120 and not line.startswith("|")] == []


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_relative_links_resolve(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", without_code(page.read_text(encoding="utf-8")))
    for target in targets:
        if target.startswith(("http://", "https://")):
            continue
        path = (page.parent / target).resolve()
        generated = {"api": api_pages, "commands": command_pages, "methods": method_pages}
        if path.parent.name in generated and path.parent.parent == DOCS / "reference":
            pages = generated[path.parent.name].pages()
            assert path.name in pages, f"{page.name} links to {target}"
        else:
            assert path.exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_decisions_referred_to_exist(page: Path) -> None:
    numbers = {int(path.name[:4]) for path in (DOCS / "decisions").glob("0*.md")}
    text = page.read_text(encoding="utf-8")
    assert {int(number) for number in re.findall(r"\bdecisions? (\d+)\b", text, re.IGNORECASE)} <= numbers
    for number, target in re.findall(r"\[(?:decision )?(\d+)\]\([^)]*?(\d{4})-[^)]*\)", text, re.IGNORECASE):
        assert int(number) == int(target)


def test_decisions_are_numbered_as_their_files_are() -> None:
    for path in (DOCS / "decisions").glob("0*.md"):
        assert path.read_text(encoding="utf-8").startswith(f"# {int(path.name[:4])}. ")


def test_source_refers_to_documents_that_exist() -> None:
    for path in [*(ROOT / "src").rglob("*.py"), *(ROOT / "benchmarks").glob("*.py")]:
        for document in re.findall(r"\bdocs/[\w/.-]+\.(?:md|png)", path.read_text(encoding="utf-8")):
            assert (ROOT / document).exists(), f"{path.relative_to(ROOT)} refers to {document}"


def test_the_walks_name_files_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## Four walks through the code")[1]
    walks = re.split(r"^\*\*.*\*\*$", text, flags=re.MULTILINE)[1:]
    assert len(walks) == 4
    for walk in walks:
        files = re.findall(r"^\d+\. `([^`]+)`", walk, flags=re.MULTILINE)
        assert 5 <= len(files) <= 12
        for file in files:
            assert (ROOT / "src" / "laplaceconfidence" / file).exists(), f"CONTRIBUTING.md names {file}"


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


@pytest.mark.skipif(not BUILT.exists(), reason="the site has not been built: make docs")
def test_the_built_site_loads_nothing_from_elsewhere() -> None:
    loaded = re.compile(
        r"<(?:script|img|iframe|source|video|audio|embed)\b[^>]*\bsrc=[\"'](?:https?:)?//"
        r"|<link\b[^>]*\bhref=[\"'](?:https?:)?//"
        r"|url\([\"']?(?:https?:)?//|@import\s+[\"'](?:https?:)?//"
    )
    for path in [*BUILT.rglob("*.html"), *BUILT.rglob("*.css")]:
        found = loaded.search(path.read_text(encoding="utf-8", errors="replace"))
        assert found is None, f"{path.relative_to(BUILT)} loads {found and found[0]}"


@pytest.mark.skipif(not BUILT.exists(), reason="the site has not been built: make docs")
def test_formulas_are_mathml() -> None:
    page = (BUILT / "concepts" / "method.html").read_text(encoding="utf-8")
    assert page.count("<math ") > 20
    assert not re.search(r"<script[^>]*(?:mathjax|katex)", page, re.IGNORECASE)
