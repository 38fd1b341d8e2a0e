"""A package imports only packages to its left in the flow of the data; see docs/decisions/0001."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "laplaceconfidence"

FOUNDATION = {
    "exceptions",
    "arrays",
    "threads",
    "memory",
    "files",
    "csv_files",
    "parquet_files",
    "folder_lock",
    "stages",
    "validation",
    "notebook_html",
    "run_files",
    "wording",
    "own_code",
}
RECORDING = FOUNDATION | {
    "data",
    "encoders",
    "features",
    "graph",
    "solve",
    "confidence",
    "blocks",
    "auditing",
}
MAY_IMPORT = {
    "exceptions": set(),
    "arrays": set(),
    "files": {"exceptions"},
    "csv_files": {"exceptions", "files"},
    "parquet_files": {"files"},
    "stages": set(),
    "run_files": set(),
    "memory": set(),
    "notebook_html": set(),
    "wording": set(),
    "threads": {"exceptions"},
    "folder_lock": {"exceptions"},
    "validation": {"arrays", "exceptions"},
    "own_code": {"validation"},
    "data": FOUNDATION,
    "encoders": FOUNDATION | {"data"},
    "features": FOUNDATION | {"data"},
    "graph": FOUNDATION | {"data", "features"},
    "solve": FOUNDATION | {"data", "features", "graph"},
    "confidence": FOUNDATION | {"data", "features", "graph", "solve"},
    "blocks": FOUNDATION | {"data", "features", "graph", "solve", "confidence"},
    "auditing": FOUNDATION | {"data", "encoders", "features", "graph", "solve", "confidence", "blocks"},
    "training": FOUNDATION | {"data", "encoders", "features", "graph", "solve", "confidence"},
    "evaluation": RECORDING | {"training"},
    "records": RECORDING | {"training", "evaluation"},
    "report": RECORDING | {"evaluation", "records"},
    "review": RECORDING | {"evaluation", "records"},
    "export": RECORDING | {"evaluation", "records", "review"},
    "cli": RECORDING | {"training", "evaluation", "records", "report", "review", "export", "__init__"},
    "__main__": {"cli"},
    "__init__": None,  # lists the public names, wherever they live
}
# Results offer what comes after them: ``AuditResult.save`` writes a run folder, ``plot_*`` draw the figures
# of the report. Only these files may do so, and only inside of functions: importing a package still loads
# nothing to its right.
CONVENIENCES = {"auditing/result.py": {"records", "report"}, "auditing/block_audit.py": {"records"}}
FILES = sorted(PACKAGE.rglob("*.py"))


def package_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_packages(path: Path, *, when_loaded: bool = False) -> set[str]:
    """The packages that a file imports: all of them, or only those that it imports ``when_loaded`` itself."""
    packages = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in _outside_functions(tree) if when_loaded else ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide the package they reach into"
            names = [node.module or ""]
        for name in names:
            parts = name.split(".")
            if parts[0] == "laplaceconfidence":
                packages.add(parts[1] if len(parts) > 1 else "__init__")
    return packages


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child
            yield from _outside_functions(child)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_stay_to_the_left(path: Path) -> None:
    package = package_of(path)
    assert package in MAY_IMPORT, f"{package} is a new package: say here what it may import"
    allowed = MAY_IMPORT[package]
    if allowed is not None:
        offered = CONVENIENCES.get(path.relative_to(PACKAGE).as_posix(), set())
        assert imported_packages(path, when_loaded=True) - {package} <= allowed
        assert imported_packages(path) - {package} <= allowed | offered


def test_conveniences_are_in_use() -> None:
    for name, offered in CONVENIENCES.items():
        assert offered <= imported_packages(PACKAGE / name)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_torch_is_imported_in_encoders_and_training_only(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        if any(name.split(".")[0] == "torch" for name in names):
            assert package_of(path) in ("encoders", "training")
