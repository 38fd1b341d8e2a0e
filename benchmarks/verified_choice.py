"""What verified labels bring: all drawn at random, or some of them chosen because they are least certain.

    python benchmarks/verified_choice.py [--seeds 0 1 2]

The labels of digits and CIFAR-10 embeddings have ambiguity noise (drawn from a weak model, so that features
cannot tell it from truth) or symmetric noise. 0 to 200 labels are verified, either all at random or as
``audit --sample-for-review`` chooses them, and the data is audited again. The calibration error and the error
of the noise rate are those of the labels that nobody verified; "wrong_after" is the share of labels that are
wrong once every sample has its most probable label. What was measured before is kept.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import replace

import numpy as np

from laplaceconfidence import audit
from laplaceconfidence.arrays import IntArray
from laplaceconfidence.auditing.result import AuditResult
from laplaceconfidence.auditing.review_sample import choose_for_review, drawn_order
from laplaceconfidence.evaluation.metrics import expected_calibration_error
from measuring import save, stored_rows
from noise_aware import weak_log_probabilities, with_noise
from real_features import present_sets

N_SAMPLES = 1_000
NOISES = (("ambiguity", 0.3), ("symmetric", 0.3))
NUMBERS = (0, 25, 50, 100, 200)


def verified_rows(first: AuditResult, n: int, way: str, seed: int) -> tuple[IntArray, IntArray]:
    """All verified rows, and those among them that were drawn at random."""
    if way == "random":
        rows = drawn_order(first.dataset.labels, n, seed=seed)[:n]
        return rows, rows
    chosen = choose_for_review(first, n, seed=seed)
    return np.concatenate([chosen.at_random, chosen.uncertain]), chosen.at_random


def measure(first: AuditResult, truth: IntArray, n: int, way: str, seed: int) -> dict[str, float]:
    dataset = first.dataset
    start = time.process_time()
    result, rows = first, np.empty(0, dtype=np.int64)
    if n:
        rows, at_random = verified_rows(first, n, way, seed)
        values = dataset.class_values
        result = audit(
            dataset,
            audited={int(row): values[truth[row]].item() for row in rows},
            audited_at_random=at_random.tolist(),
            random_state=0,
        )
    others = np.setdiff1d(np.arange(len(dataset)), rows)
    is_right = (dataset.labels == truth)[others]
    scores = result.table["label_score"].sort_index().to_numpy()[others]
    return {
        "calibration_error": float(expected_calibration_error(scores, is_right)),
        "error_of_noise_rate": float(abs((1 - scores.mean()) - (1 - is_right.mean()))),
        "wrong_after": float((result.predicted != truth).mean()),
        "cpu_seconds": time.process_time() - start,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = stored_rows("verified_choice")
    for name, data in present_sets():
        if not name.lower().startswith(("digits", "cifar")):
            continue
        clean = replace(data.subset(np.arange(min(N_SAMPLES, len(data)))), given=None)
        clean = replace(clean, true_labels=clean.labels)
        weak = weak_log_probabilities(clean)
        for (noise, rate), seed in ((noise, seed) for seed in options.seeds for noise in NOISES):
            todo = [
                key
                for n in NUMBERS
                for way in ("random", "mixed")
                if n or way == "random"
                for key in [{"data": name, "noise": f"{noise} {rate:.0%}", "seed": seed, "n": n, "way": way}]
                if not any(key.items() <= row.items() for row in rows)
            ]
            if not todo:
                continue
            noisy = replace(with_noise(clean, name, noise, rate, seed, weak), true_labels=None)
            first = audit(noisy, random_state=0)
            for key in todo:
                same = {**key, "way": "random"}  # where none would be chosen for being uncertain
                known = [row for row in rows if same.items() <= row.items()]
                n = int(key["n"])
                if known and not len(choose_for_review(first, n, seed=seed).uncertain):
                    rows.append(known[0] | key)
                else:
                    rows.append(key | measure(first, clean.labels, n, str(key["way"]), seed))
                print(*rows[-1].values())
                save("verified_choice", {"n_samples": N_SAMPLES, "rows": rows})


if __name__ == "__main__":
    main()
