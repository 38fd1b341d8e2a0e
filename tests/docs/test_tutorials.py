"""Every tutorial runs from its first block to its last."""

import subprocess
import sys
from pathlib import Path

import pytest

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"
PAGES = sorted(path for path in TUTORIALS.glob("*.md") if path.stem != "index")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_tutorial_runs(page: Path, tmp_path: Path) -> None:
    runner = Path(__file__).with_name("tutorial_pages.py")
    done = subprocess.run(
        [sys.executable, runner, page], cwd=tmp_path, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr + done.stdout
    assert done.stdout.strip(), "the page prints nothing"
