"""Every example and every Python block of the README runs as it stands; every benchmark can be started."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README_BLOCKS = re.findall(
    r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL
)


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_examples_run_and_say_something(path: Path, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, path], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.parametrize("code", README_BLOCKS, ids=range(len(README_BLOCKS)))
def test_readme_blocks_run(code: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr


def test_benchmarks_use_names_that_exist() -> None:
    """They are too slow to be run here; names that they import from the package are checked at least."""
    scripts = sorted((ROOT / "benchmarks").glob("*.py"))
    modules = "\n".join(f"import {path.stem}" for path in scripts)
    done = subprocess.run(
        [sys.executable, "-c", modules], cwd=scripts[0].parent, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
