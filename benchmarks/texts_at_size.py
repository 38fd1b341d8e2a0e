"""Time and memory of ``laplaceconfidence audit texts.csv``, from the CSV file to the folder of the audit.

Banking77 has 10,003 questions of 77 kinds. Larger sets are made of it: a text is one question followed by
another one of the same kind, both drawn at random, so that 100,000 texts have as many words each as two
questions, and hardly ever repeat. A fifth of the labels is replaced by one drawn from all kinds. There is no
cache. CPU time and peak memory are those of the command's process; the stages are wall time, which is longer
where other processes use the same cores. Run ``python benchmarks/texts_at_size.py [SIZE ...] [--threads 1]``.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from measuring import in_fresh_process, save, stored_rows
from texts import TEXTS

SIZES = (10_000, 100_000)


def noisy_frame(questions: pd.DataFrame, n: int, seed: int = 0) -> pd.DataFrame:
    """``n`` texts with 20% symmetric noise among their labels."""
    rng = np.random.default_rng(seed)
    texts, kinds = questions["text"].to_numpy(), questions["category"].to_numpy()
    if n <= len(questions):
        rows = rng.permutation(len(questions))[:n]
        joined = texts[rows]
    else:
        rows = rng.integers(len(questions), size=n)
        of_kind = questions.groupby("category").indices
        others = [rng.choice(of_kind[kind]) for kind in kinds[rows]]
        joined = np.array([f"{one} {two}" for one, two in zip(texts[rows], texts[others], strict=True)])
    labels = kinds[rows].copy()
    is_drawn = rng.random(n) < 0.2
    labels[is_drawn] = rng.choice(np.unique(kinds), size=int(is_drawn.sum()))
    return pd.DataFrame({"text": joined, "category": labels})


def measure(path: Path, n: int, threads: int) -> dict[str, Any]:
    """Run the command once in this process's only child."""
    with tempfile.TemporaryDirectory() as folder:
        noisy_frame(pd.read_csv(path), n).to_csv(Path(folder) / "texts.csv", index=False)
        words = ["audit", "texts.csv", "--label", "category", "--no-cache", "--n-jobs", str(threads)]
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "laplaceconfidence", *words, "--out", "run"],
            cwd=folder,
            check=True,
            capture_output=True,
        )
        seconds = time.perf_counter() - start
        record = json.loads((Path(folder) / "run" / "audit.json").read_text())
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "samples": n,
        "seconds": seconds,
        "cpu_seconds": used.ru_utime + used.ru_stime,
        "peak_mib": used.ru_maxrss / 1024,
        "stages": record["timings"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--texts", type=Path, default=TEXTS, help="Banking77 as CSV")
    parser.add_argument("--one", type=int, help="used by this script")
    options = parser.parse_args()
    if not options.texts.is_file():
        raise SystemExit(f"{options.texts} was not found: name the file with --texts.")
    if options.one:
        print(json.dumps(measure(options.texts.absolute(), options.one, options.threads)))
        return
    rows = stored_rows("texts_at_size")
    for n in options.sizes:
        common = ("--threads", str(options.threads), "--texts", str(options.texts))
        row = in_fresh_process(__file__, "--one", str(n), *common)
        rows = sorted([*(old for old in rows if old["samples"] != n), row], key=lambda one: one["samples"])
        print(json.dumps(row), flush=True)
        save("texts_at_size", {"settings": {"threads": options.threads}, "rows": rows})


if __name__ == "__main__":
    main()
