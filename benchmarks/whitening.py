"""Whether whitening and the number of axes should be chosen for every data set by held-out labels.

    python benchmarks/whitening.py [--seeds 51 52 53]

The estimator with other exponents of its whitened graph (0.5 divides every axis by the root of its standard
deviation, 1 by the deviation itself) and with fewer axes, on 2,000 samples of four sets; "by likelihood"
takes, cell by cell, the variant under which held-out given labels are most likely.
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np

from laplaceconfidence.confidence.noise_aware import NoiseAwareConfidence, views
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.threads import limited_threads
from many_classes import banking
from measuring import save
from noise_aware import CONFUSED, weak_log_probabilities, with_noise
from noise_aware_ablation import scores_of
from real_features import Absent, quality_sets

N_SAMPLES = 2_000
NOISE = (("symmetric", 0.4), ("asymmetric", 0.4), ("instance", 0.4), ("ambiguity", 0.25))
AS_IT_IS = "exponent 0.5, up to 256 axes"
EXPONENTS = {"exponent 0.25": 0.25, "exponent 0.75": 0.75, "exponent 1": 1.0}
AXES = {"128 axes": 128, "64 axes": 64, "32 axes": 32}
BY_LIKELIHOOD = "by likelihood"


def data_sets() -> dict[str, NoisyDataset | Absent]:
    found: dict[str, NoisyDataset | Absent] = dict(quality_sets())
    made = banking()
    if isinstance(made, Absent):
        return found | {"banking": made}
    features, codes = made
    names = tuple(map(str, range(codes.max() + 1)))
    return found | {"banking": NoisyDataset(codes, names, features, true_labels=codes)}


def whitened_by(exponent: float) -> Callable[..., Any]:
    compute = views.principal_coordinates

    def changed(*arguments: Any, **options: Any) -> Any:
        coordinates, axes = compute(*arguments, **options)
        # Only the direction of a whitened vector counts, so that a common factor does not matter.
        return coordinates, replace(axes, half_whitening=axes.half_whitening ** (2 * exponent))

    return changed


def measure(data: NoisyDataset, variant: str, seed: int) -> dict[str, Any]:
    changed = whitened_by(EXPONENTS.get(variant, 0.5))
    width = AXES.get(variant)
    if width is not None:
        width = min(width, *data.features.shape)
    with patch.object(views, "principal_coordinates", changed), limited_threads(1):
        model = NoiseAwareConfidence(n_components=width, n_jobs=1, random_state=seed)
        model.fit(data.features, data.labels)
    held_out = max(one["held_out_log_likelihood"] for one in model.rounds_ if "candidates" in one)
    return scores_of(model, data) | {"held_out": held_out}


def show(rows: list[dict[str, Any]]) -> None:
    """Differences from the estimator as it is, over all cells and by data set."""
    cells: dict[Any, dict[str, dict[str, Any]]] = defaultdict(dict)
    for row in rows:
        cells[row["data"], row["noise"], row["seed"]][row["variant"]] = row
    for variants in cells.values():
        variants[BY_LIKELIHOOD] = max(variants.values(), key=lambda row: row["held_out"])
    for variant in (*EXPONENTS, *AXES, BY_LIKELIHOOD):
        print(variant)
        for name in (None, *dict.fromkeys(data for data, _, _ in cells)):
            own = [each for key, each in cells.items() if name in (None, key[0]) and variant in each]
            shown = []
            for score in ("auroc", "average_precision", "calibration_error", "held_out"):
                gaps = np.array([each[variant][score] - each[AS_IT_IS][score] for each in own])
                shown.append(f"{score} {gaps.mean():+.4f} ({gaps.std(ddof=1) / np.sqrt(len(gaps)):.4f})")
            print(f"  {name or 'all':20s} {len(own):3d} cells: " + ", ".join(shown), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=[51, 52, 53])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows: list[dict[str, Any]] = []
    for name, found in data_sets().items():
        if isinstance(found, Absent):
            print(f"{found.name} was not found: {found.advice}")
            continue
        for seed in options.seeds:
            drawn = np.random.default_rng(seed).permutation(len(found))[:N_SAMPLES]
            data = found.subset(drawn)
            for kind, rate in NOISE:
                if kind == "asymmetric" and name not in CONFUSED:
                    kind, rate = "pair", 0.3
                weak = weak_log_probabilities(data) if kind == "ambiguity" else np.empty(0)
                noisy = with_noise(data, name, kind, rate, seed, weak)
                for variant in (AS_IT_IS, *EXPONENTS, *AXES):
                    key = {"data": name, "noise": f"{kind} {rate:g}", "seed": seed, "variant": variant}
                    rows.append(key | measure(noisy, variant, seed))
                save("whitening", {"samples": N_SAMPLES, "rows": rows})
        show(rows)


if __name__ == "__main__":
    main()
