"""What all benchmarks share: a description of the machine, wall time, peak memory, and files for results."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from laplaceconfidence.files import write_json
from laplaceconfidence.threads import available_cores

RESULTS = Path(__file__).parent / "results"


def machine() -> dict[str, Any]:
    """Describe the machine, to decide whether two results are comparable."""
    names = ("numpy", "scipy", "scikit-learn", "faiss-cpu", "cleanlab", "torch")
    return {
        "cores": available_cores(),
        "processor": _processor(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in names},
    }


def timed(
    work: Callable[[], Any], repeats: int = 1, clock: Callable[[], float] = time.perf_counter
) -> tuple[float, Any]:
    """Shortest time of ``repeats`` runs, wall time by default, and the last result."""
    best, result = float("inf"), None
    for _ in range(repeats):
        start = clock()
        result = work()
        best = min(best, clock() - start)
    return best, result


def in_fresh_process(script: str, *arguments: str) -> dict[str, Any]:
    """Run a part of a benchmark script in a new process, so that its peak memory is measured alone."""
    done = subprocess.run([sys.executable, script, *arguments], check=True, capture_output=True, text=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def peak_memory_mib() -> float:
    """Peak memory of this process (ru_maxrss would include that of the parent before the fork)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise SystemExit("peak memory is read from /proc/self/status, which this system does not have")


def save(name: str, content: dict[str, Any]) -> None:
    """Write a result with the machine it was measured on."""
    RESULTS.mkdir(exist_ok=True)
    write_json(RESULTS / f"{name}.json", {"benchmark": name, "machine": machine(), **content})
    print(f"-> {RESULTS / f'{name}.json'}")


def stored_rows(name: str, part: str = "rows") -> list[dict[str, Any]]:
    """What earlier runs of a benchmark measured."""
    path = RESULTS / f"{name}.json"
    rows: list[dict[str, Any]] = json.loads(path.read_text())[part] if path.exists() else []
    return rows


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []:
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()
