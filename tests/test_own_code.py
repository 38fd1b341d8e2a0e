"""Code of the user's own, named by its path."""

import sys
from pathlib import Path

import pytest

from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.own_code import error_in_words, import_callable


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, which is not in the search path, as for an installed command."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry not in ("", str(Path.cwd()))])
    monkeypatch.delitem(sys.modules, "in_current_folder", raising=False)
    return tmp_path


def test_modules_of_the_current_folder_are_found(folder: Path) -> None:
    (folder / "in_current_folder.py").write_text("def double(x):\n    return 2 * x\n")
    assert import_callable("in_current_folder:double", "encoder", "function")(3) == 6
    with pytest.raises(InvalidInputError, match=r"'network' .* 'double'"):
        import_callable("in_current_folder:duble", "network", "factory")


def test_they_hide_no_installed_package(folder: Path) -> None:
    (folder / "ftplib.py").write_text("raise RuntimeError('not this one')\n")
    sys.modules.pop("ftplib", None)
    assert import_callable("ftplib:FTP", "encoder", "function").__name__ == "FTP"


def test_an_error_says_what_and_where(folder: Path) -> None:
    (folder / "in_current_folder.py").write_text(
        "import json\n\n\ndef parse(text):\n    return json.loads(text)\n"
    )
    parse = import_callable("in_current_folder:parse", "encoder", "function")
    with pytest.raises(ValueError, match="Expecting value") as raised:
        parse("\n\nno")
    assert error_in_words(raised.value) == (
        "JSONDecodeError: Expecting value: line 3 column 1 (char 2) (test_own_code.py, line "
        f"{raised.tb.tb_lineno})"
    )
    assert error_in_words(KeyError()) == "KeyError"
