"""The command as users start it: in its own process."""

import subprocess
import sys
from pathlib import Path

import pytest

import laplaceconfidence

SCRIPT = Path(sys.executable).parent / "laplaceconfidence"


def start(*words: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, cwd=folder, timeout=120)


@pytest.mark.parametrize("command", [[str(SCRIPT)], [sys.executable, "-m", "laplaceconfidence"]])
def test_script_and_module_are_the_same(command: list[str]) -> None:
    if not Path(command[0]).exists():
        pytest.skip("the package is not installed with its script")
    done = start(*command, "--version")
    assert done.returncode == 0
    assert done.stdout.strip() == f"laplaceconfidence {laplaceconfidence.__version__}"


def test_without_arguments_help_is_shown() -> None:
    done = start(sys.executable, "-m", "laplaceconfidence")
    assert "audit" in done.stdout + done.stderr
    assert "demo" in done.stdout + done.stderr


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys, laplaceconfidence.cli.app\n"
        "heavy = {'numpy', 'pandas', 'sklearn', 'faiss', 'torch'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    assert start(sys.executable, "-c", code).returncode == 0


def test_an_audit_exits_with_0_and_an_input_error_with_2(tmp_path: Path) -> None:
    command = (sys.executable, "-m", "laplaceconfidence", "audit", "digits", "--out", "run")
    done = start(*command, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "labels" in done.stdout
    assert (tmp_path / "run" / "audit.json").is_file()
    again = start(*command, folder=tmp_path)
    assert again.returncode == 2
    assert again.stderr.startswith("Error: The output folder")
    assert again.stderr.count("\n") == 1
    assert again.stdout == ""
