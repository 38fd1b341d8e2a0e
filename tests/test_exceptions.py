"""The exception tree in the documentation of ``exceptions`` is complete and true."""

import ast
from pathlib import Path

from laplaceconfidence import exceptions

PACKAGE = Path(exceptions.__file__).parent


def subclasses(root: str) -> dict[str, str]:
    """Every class of the package below ``root`` by its documented name, and the name of its parent."""
    found = {root: ""}
    classes = [
        (path.relative_to(PACKAGE), node)
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    ]
    for _ in range(4):  # a parent may be defined in a later file
        parents = {name.rpartition(".")[2] for name in found}
        for path, node in classes:
            bases = [base.id for base in node.bases if isinstance(base, ast.Name) and base.id in parents]
            if bases:
                module = ".".join(path.with_suffix("").parts)
                name = node.name if module == "exceptions" else f"{module}.{node.name}"
                found[name] = bases[0]
    return found


def documented() -> dict[str, str]:
    """Every name of the tree and the name of its parent, from the indentation."""
    found: dict[str, str] = {}
    path: list[tuple[int, str]] = []
    for line in (exceptions.__doc__ or "").splitlines():
        name = line.lstrip(" │├└─")
        if not line.startswith("    ") or not name:
            continue
        depth = len(line) - len(name)
        path = [(indent, parent) for indent, parent in path if indent < depth]
        found[name.split()[0]] = path[-1][1].rpartition(".")[2] if path else ""
        path.append((depth, name.split()[0]))
    return found


def test_the_documented_tree_is_the_tree() -> None:
    assert documented() == subclasses("LaplaceConfidenceError") | subclasses("LaplaceConfidenceWarning")
