"""The blocks of a tutorial page, and how they are run: Python in one namespace, commands in between."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page: Path) -> list[tuple[str, str]]:
    """(language, code) of the Python and console blocks of a page, in order."""
    found = _FENCE.findall(page.read_text(encoding="utf-8"))
    return [(language, code) for language, code in found if language in ("python", "console")]


def _run_command(line: str) -> None:
    words = shlex.split(line)
    environment = dict(os.environ)
    while "=" in words[0]:
        name, value = words.pop(0).split("=", 1)
        environment[name] = os.pathsep.join([value, *filter(None, [environment.get(name)])])
    if words[0] not in ("laplaceconfidence", "python"):
        raise SystemExit(f"{words[0]!r} cannot be run in a tutorial's console block.")
    module = ["-m", "laplaceconfidence"] if words[0] == "laplaceconfidence" else []
    command = [sys.executable, *module, *words[1:]]
    done = subprocess.run(command, env=environment, text=True, capture_output=True)
    if done.returncode:
        raise SystemExit(f"{line}\nended with {done.returncode}:\n{done.stdout}{done.stderr}")


def run(page: Path) -> None:
    """Run every block of a page in the current folder."""
    sys.path.insert(0, "")
    namespace: dict[str, object] = {"__name__": "__main__"}
    for number, (language, code) in enumerate(blocks(page), start=1):
        file_name = re.match(r"# (\w+\.py)\n", code)
        if language == "console":
            for line in code.splitlines():
                _run_command(line.removeprefix("$ "))
        elif file_name:
            Path(file_name[1]).write_text(code, encoding="utf-8")
        else:
            exec(compile(code, f"{page.name}, block {number}", "exec"), namespace)


if __name__ == "__main__":
    run(Path(sys.argv[1]))
