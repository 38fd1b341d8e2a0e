"""Time to write the report of an audit of 50,000 samples, beyond the audit itself, and its size.

Ten blobs of 64 features with 32 x 32 color images, 20% of the labels wrong.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from laplaceconfidence.auditing.issues import audit
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.records import write_audit
from laplaceconfidence.report import write_report
from measuring import save, timed

N, N_CLASSES = 50_000, 10


def noisy_data() -> NoisyDataset:
    rng = np.random.default_rng(0)
    true = rng.integers(N_CLASSES, size=N)
    features = rng.normal(size=(N_CLASSES, 64))[true] + 0.8 * rng.normal(size=(N, 64))
    given = np.where(rng.random(N) < 0.2, rng.integers(N_CLASSES, size=N), true)
    images = rng.integers(0, 256, (N, 32, 32, 3), dtype=np.uint8)
    return NoisyDataset.from_arrays(given, features.astype(np.float32), images=images)


def main() -> None:
    dataset = noisy_data()
    seconds, result = timed(lambda: audit(dataset, random_state=0))
    print(f"audit   {seconds:6.1f} s")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        writing, _ = timed(lambda: write_audit(result, folder))
        print(f"writing {writing:6.1f} s")
        reporting, report = timed(lambda: write_report(folder, figures=folder.with_name("figures")))
        megabytes = report.path.stat().st_size / 1e6
    print(f"report  {reporting:6.1f} s, {megabytes:.1f} MB")
    save(
        "report_time",
        {
            "n_samples": N,
            "audit_seconds": round(seconds, 1),
            "writing_seconds": round(writing, 1),
            "report_seconds": round(reporting, 1),
            "report_megabytes": round(megabytes, 2),
        },
    )


if __name__ == "__main__":
    main()
