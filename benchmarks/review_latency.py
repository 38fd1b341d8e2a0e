"""Response times of the review page with 100,000 suspects, from a decision to the next suspect.

A real server responds over a real connection. The audit is synthetic: 200,000 images of which every second is
flagged; the times depend on the number of suspects, not on their content.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

from laplaceconfidence.records.audit_run import AuditRecord
from measuring import save

N_SAMPLES, N_CLASSES, N_NEIGHBORS = 200_000, 100, 10
N_IMAGES = 500  # files; every sample shows one of them
REPEATS = 200


def write_run(folder: Path) -> None:
    """An audit with 100,000 suspects, as ``write_audit`` would write it."""
    rng = np.random.default_rng(0)
    images = folder / "images"
    images.mkdir(parents=True)
    for number in range(N_IMAGES):
        pixels = rng.integers(0, 256, (360, 480, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(images / f"{number}.jpg")
    given = rng.integers(N_CLASSES, size=N_SAMPLES)
    flagged = np.arange(N_SAMPLES) % 2 == 0
    suggested = np.where(flagged, (given + rng.integers(1, 4, N_SAMPLES)) % N_CLASSES, given)
    score = np.where(flagged, rng.uniform(0, 0.5, N_SAMPLES), rng.uniform(0.5, 1, N_SAMPLES))
    names = tuple(f"class {code:03d}" for code in range(N_CLASSES))
    issues = pd.DataFrame(
        {
            "row": np.arange(N_SAMPLES),
            "id": np.arange(N_SAMPLES).astype(str),
            "given_label": np.array(names)[given],
            "predicted_label": np.array(names)[suggested],
            "predicted_probability": np.where(flagged, 1 - score, score),
            "label_score": score,
            "is_label_issue": flagged,
            "path": [str(images / f"{row % N_IMAGES}.jpg") for row in range(N_SAMPLES)],
        }
    ).sort_values("label_score", kind="stable")
    evidence = pd.DataFrame(
        {
            "top_classes": list(np.stack([suggested, given], axis=1).astype(np.int32)),
            "top_probabilities": list(np.tile(np.float32([0.8, 0.1]), (N_SAMPLES, 1))),
            "neighbors": list(rng.integers(N_SAMPLES, size=(N_SAMPLES, N_NEIGHBORS)).astype(np.int32)),
            "similarities": list(np.full((N_SAMPLES, N_NEIGHBORS), 0.5, np.float32)),
            "weights": list(np.full((N_SAMPLES, N_NEIGHBORS), 0.1, np.float32)),
            "n_neighbors": np.full(N_SAMPLES, N_NEIGHBORS, np.int32),
        }
    )
    record = AuditRecord(
        created="2025-01-01T00:00:00+00:00",
        versions={},
        source={},
        source_kind="image",
        class_names=names,
        class_values=names,
        estimator="laplace",
        settings={"threshold": None},
        n_samples=N_SAMPLES,
        n_labeled=N_SAMPLES,
        n_classes=N_CLASSES,
        n_features=None,
        n_issues=int(flagged.sum()),
        noise_rate=float(1 - score.mean()),
    )
    issues.to_parquet(folder / "issues.parquet", index=False)
    (folder / "issues.csv").write_text("")
    evidence.to_parquet(folder / "evidence.parquet", index=False)
    (folder / "audit.json").write_text(json.dumps(asdict(record)))


class Client:
    """Sends the requests of the page and measures their time."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port)
        self._cookie = ""
        self.request("GET", "/")

    def request(self, method: str, path: str, body: Any = None) -> tuple[float, Any]:
        """Milliseconds until the whole response has arrived, and its content."""
        start = time.perf_counter()
        headers = {"Cookie": self._cookie, "Content-Type": "application/json"}
        self._connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = self._connection.getresponse()
        content = answer.read()
        milliseconds = 1000 * (time.perf_counter() - start)
        if cookie := answer.getheader("Set-Cookie"):
            self._cookie = cookie.split(";")[0]
        assert answer.status == 200, content
        is_json = "json" in (answer.getheader("Content-Type") or "")
        return milliseconds, json.loads(content) if is_json else content


def measure(client: Client) -> dict[str, list[float]]:
    """Milliseconds of everything a reviewer does, many times each."""
    times: dict[str, list[float]] = {name: [] for name in ("decide", "new picture", "kept picture")}
    for view in ("worst", "random"):
        queue = {"view": view}
        _, answer = client.request("POST", "/api/next", queue)
        for number in range(REPEATS):
            sample = answer["sample"]
            body = {"row": sample["row"], "verdict": ("keep", "suggestion")[number % 2], "version": 0}
            spent, answer = client.request("POST", "/api/decisions", body | {"who": "me", "queue": queue})
            times["decide"].append(spent)
            for kind in ("new picture", "kept picture"):
                times[kind].append(client.request("GET", f"/picture/large/{answer['sample']['row']}")[0])
    searched = {"view": "worst", "search": "12345"}
    times["first search"] = [client.request("POST", "/api/next", searched)[0]]
    requests: list[tuple[str, str, str, Any]] = [
        ("search again", "POST", "/api/next", searched),
        ("grid of 50", "POST", "/api/grid?page=900", {"view": "worst"}),
        ("one pair", "POST", "/api/next", {"view": "worst", "given": 3, "suggested": 4}),
        ("list of pairs", "GET", "/api/pairs", None),
        ("bulk preview", "GET", "/api/bulk?given=3&suggested=4&min_probability=0.6", None),
    ]
    for name, method, path, body in requests:
        times[name] = [client.request(method, path, body)[0] for _ in range(30)]
    return times


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        write_run(folder)
        start = time.perf_counter()
        server = subprocess.Popen(
            [sys.executable, "-m", "laplaceconfidence", "review", str(folder), "--no-browser"],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "COLUMNS": "300"},
        )
        try:
            assert server.stdout is not None
            port = next(int(m[1]) for line in server.stdout if (m := re.search(r":(\d+)/", line)))
            started = time.perf_counter() - start
            times = measure(Client(port))
        finally:
            server.kill()
            server.wait()
    rows = {
        name: {
            "n": len(spent),
            "median_ms": round(float(np.median(spent)), 1),
            "p99_ms": round(float(np.quantile(spent, 0.99)), 1),
            "max_ms": round(max(spent), 1),
        }
        for name, spent in times.items()
    }
    for name, row in rows.items():
        print(f"{name:<14}" + "".join(f"  {key} {value:>7}" for key, value in row.items()))
    print(f"started in {started:.1f} s")
    save(
        "review_latency",
        {
            "n_samples": N_SAMPLES,
            "n_suspects": N_SAMPLES // 2,
            "start_seconds": round(started, 1),
            "answers": rows,
        },
    )


if __name__ == "__main__":
    main()
