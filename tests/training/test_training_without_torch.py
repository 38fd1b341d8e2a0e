"""Without torch, importing the package says what to install."""

import subprocess
import sys


def test_without_torch_the_message_says_what_to_install() -> None:
    code = (
        "import sys, importlib.util as u\n"
        "find = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'torch' else find(name, *a)\n"
        "try:\n    import laplaceconfidence.training\n"
        "except ImportError as error:\n    assert 'laplaceconfidence[train]' in str(error), error\n"
        "else:\n    raise SystemExit('imported')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
