"""Without torch, importing the package says what to install."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("package", ["torch", "safetensors"])
def test_without_a_package_the_message_says_what_to_install(package: str) -> None:
    code = (
        "import sys, importlib.util as u\n"
        "find = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == sys.argv[1] else find(name, *a)\n"
        "try:\n    import laplaceconfidence.training\n"
        "except ImportError as error:\n    assert 'laplaceconfidence[train]' in str(error), error\n"
        "else:\n    raise SystemExit('imported')\n"
    )
    subprocess.run([sys.executable, "-c", code, package], check=True)
