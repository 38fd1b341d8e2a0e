"""What ``import laplaceconfidence`` offers, what it must not load, and that user docs need nothing else."""

import ast
import inspect
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import laplaceconfidence

ROOT = Path(__file__).parents[1]
NEED_TORCH = {
    *(
        "RobustClassifier",
        "Evaluation",
        "Laplace",
        "CrossEntropy",
        "CoTeaching",
        "DivideMix",
        "Bootstrap",
        "MixUpTraining",
        "CoTeachingPlus",
        "Pencil",
        "MCorrection",
        "CurriculumLoss",
        "TopoFilter",
        "D2L",
        "MentorNet",
        "LaplaceNet",
        "Moit",
        "MoitPlus",
        "NGC",
        "AugDesc",
        "NCR",
        "MLNT",
        "INCV",
        "SELFIE",
        "ITLM",
        "ForwardCorrection",
        "load_preset",
        "preset_names",
    ),
    *("WeakAugment", "RandAugment", "AutoAugment", "AugMix"),
    *("Callback", "TrainingContext", "EarlyStopping", "LogRounds", "TensorBoardLogger"),
    *("Stage", "WeightCopy"),
    *("Method", "Phase", "Plan", "Problem", "Step", "Batch", "MethodFacts", "PublishedSettings"),
}
FOR_CONTRIBUTORS = ("docs/decisions/", "docs/contributing")


def test_every_public_name_exists_and_is_listed_once() -> None:
    assert len(set(laplaceconfidence.__all__)) == len(laplaceconfidence.__all__)
    for name in laplaceconfidence.__all__:
        assert getattr(laplaceconfidence, name) is not None
    assert dir(laplaceconfidence) == sorted(laplaceconfidence.__all__)


def test_every_public_name_is_defined_where_it_is_looked_up() -> None:
    for name, home in laplaceconfidence._HOMES.items():
        public = getattr(laplaceconfidence, name)
        assert public.__name__ == name
        assert f"{public.__module__}.".startswith(f"{home}."), name


def test_packages_export_public_names_only() -> None:
    for found in pkgutil.walk_packages(laplaceconfidence.__path__, "laplaceconfidence."):
        if found.ispkg:
            exported = getattr(import_module(found.name), "__all__", ())
            assert set(exported) <= set(laplaceconfidence.__all__), found.name


def test_type_checkers_see_the_same_names() -> None:
    seen = {}
    for node in ast.walk(ast.parse(inspect.getsource(laplaceconfidence))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("laplaceconfidence"):
            seen |= {alias.name: node.module for alias in node.names if alias.asname == alias.name}
    assert seen == laplaceconfidence._HOMES


def test_every_public_name_has_a_docstring() -> None:
    for name in laplaceconfidence._HOMES:
        public = getattr(laplaceconfidence, name)
        assert public.__doc__, name
        assert not public.__doc__.startswith(f"{name}("), f"{name} has only the docstring dataclasses make"


def test_unknown_names_are_refused() -> None:
    assert not hasattr(laplaceconfidence, "no_such_name")
    with pytest.raises(ImportError, match="no_such_name"):
        from laplaceconfidence import no_such_name  # type: ignore[attr-defined]  # noqa: F401


def run(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_importing_the_package_stays_light() -> None:
    run(
        "import sys, laplaceconfidence\n"
        "dir(laplaceconfidence)\n"
        "heavy = {'numpy', 'torch', 'pandas', 'matplotlib', 'sklearn', 'faiss', 'scipy'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )


def test_only_the_listed_names_need_torch_and_none_needs_pandas_or_matplotlib_to_load() -> None:
    # scikit-learn imports pandas where it finds it, so what counts is that nothing needs it.
    run(
        "import sys\n"
        "class Refuse:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name in ('torch', 'pandas', 'matplotlib'): raise ImportError(name)\n"
        "sys.meta_path.insert(0, Refuse())\n"
        "import laplaceconfidence\n"
        f"for name in set(laplaceconfidence.__all__) - {NEED_TORCH!r}: getattr(laplaceconfidence, name)\n"
    )


def test_names_that_need_torch_say_what_to_install() -> None:
    run(
        "import sys\n"
        "sys.modules['torch'] = None\n"
        "import laplaceconfidence\n"
        f"for name in {NEED_TORCH!r}:\n"
        "    try:\n"
        "        getattr(laplaceconfidence, name)\n"
        "    except laplaceconfidence.MissingDependencyError as error:\n"
        "        assert \"pip install 'laplaceconfidence[train]'\" in str(error)\n"
        "    else:\n"
        "        raise AssertionError(f'{name} loads without torch')\n"
    )


def user_code() -> Iterator[tuple[str, str]]:
    """Every Python block of the README and of docs for users, and every example, with where it stands."""
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        where = path.relative_to(ROOT).as_posix()
        if not where.startswith(FOR_CONTRIBUTORS):
            for block in re.findall(r"^```python[^\n]*\n(.*?)^```", path.read_text("utf-8"), re.S | re.M):
                yield where, block
    for path in sorted((ROOT / "examples").glob("*.py")):
        yield path.relative_to(ROOT).as_posix(), path.read_text("utf-8")


def test_user_docs_and_examples_import_public_names_only() -> None:
    inside = re.compile(r"^\s*(?:from|import) laplaceconfidence\.[^\n]*", re.M)
    found = [f"{where}: {line.strip()}" for where, code in user_code() for line in inside.findall(code)]
    assert not found, "import these from laplaceconfidence itself:\n" + "\n".join(found)


def test_user_docs_and_examples_import_names_that_exist() -> None:
    used: dict[str, str] = {}
    for where, code in user_code():
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and node.module == "laplaceconfidence":
                used |= {alias.name: where for alias in node.names}
    assert used, "the docs import something"
    missing = {name: where for name, where in used.items() if name not in laplaceconfidence.__all__}
    assert not missing
