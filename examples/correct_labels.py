"""Accept the suggestions that are nearly certain, and write a trail of what was changed."""

import tempfile
from pathlib import Path

from laplaceconfidence import add_noise, audit, load_digits

digits = add_noise(load_digits(), "pair", 0.2, random_state=0)
corrections = audit(digits, random_state=0).correct(min_probability=0.9)

print(f"{len(corrections.trail)} labels changed")
print(corrections.trail.head(3).to_string(index=False))
before = (digits.labels != digits.true_labels).sum()
after = (corrections.dataset.labels != digits.true_labels).sum()
print(f"wrong labels before: {before}, after: {after}")

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "trail.csv"
    corrections.trail.to_csv(path, index=False)
    print(f"the trail has {len(path.read_text().splitlines()) - 1} lines")
