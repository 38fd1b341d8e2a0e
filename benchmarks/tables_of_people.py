"""The tables of several annotators and of verified labels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from markdown import marked, measured_on, table

METHODS = {
    "ours": "this package",
    "cleanlab": "cleanlab",
    "without_features": "this package, labels alone",
    "majority_vote": "majority vote",
    "dawid_skene": "Dawid-Skene",
    "glad": "GLAD",
    "mace": "MACE",
}
WITH_FEATURES = ("ours", "cleanlab")


def annotators(result: dict[str, Any]) -> str:
    groups: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = {}
    for row in result["rows"]:
        groups.setdefault((row["data"], row["annotators"]), {}).setdefault(row["method"], []).append(row)
    body = []
    for (data, kinds), by_method in groups.items():
        for compared in (WITH_FEATURES, tuple(name for name in METHODS if name not in WITH_FEATURES)):
            means = {name: _means(by_method[name]) for name in compared if name in by_method}
            best = {
                name: max((mean[name] for mean in means.values() if mean[name] is not None), default=0)
                for name in ("consensus_right", "auroc")
            }
            own = "ours" if compared == WITH_FEATURES else "without_features"
            for method, mean in means.items():
                is_behind = method == own and any(
                    mean[name] is not None and round(mean[name], 3) < round(best[name], 3) for name in best
                )
                body.append(
                    [
                        data,
                        f"{kinds} ({len(by_method[method])})",
                        METHODS[method],
                        *(_number(mean[name], best.get(name)) for name in ("consensus_right", "auroc")),
                        _number(mean["calibration_error"]),
                        _number(mean.get("mean_error_of_accuracies")),
                        _number(mean.get("largest_error_of_accuracies")),
                        _number(mean.get("expected_largest_error")),
                        f"{mean['cpu_seconds']:.1f}",
                        "behind" if is_behind else "",
                    ]
                )
    head = [
        "data",
        "annotators (seeds)",
        "",
        "consensus right",
        "AUROC",
        "calibration error",
        "error of accuracies: mean",
        "largest",
        "to be expected",
        "CPU seconds",
        "",
    ]
    return (
        "## Several annotators\n\n"
        f"Simulated annotators of the first {result['n_samples']:,} samples: good ones (90% right), "
        "careless ones (60%), spammers (any class) and confusers (95% right, but two thirds of one class are "
        "taken for another), each labeling all samples or a tenth. AUROC is that of the probability of the "
        "consensus for telling where it is right. This package and cleanlab also use the features, cleanlab "
        "by a 5-fold logistic regression on majority votes; the others use the labels alone. MACE has 3 "
        "restarts in place of its 10. The best of those that know the same is bold; AUROC is empty where a "
        "consensus is right everywhere. The largest error of an annotator's accuracy is the mean over the "
        "seeds; beside it stands what remains of it if the probabilities are exactly right, because a tenth "
        "of the samples are 100 labels. The aim was 0.03; with forty annotators it cannot be reached on the "
        "embeddings.\n\n" + table(head, body) + "\n" + measured_on(result, "scikit-learn", "cleanlab")
    )


def verified_choice(result: dict[str, Any]) -> str:
    groups: dict[tuple[str, str, int], dict[str, list[dict[str, Any]]]] = {}
    for row in result["rows"]:
        groups.setdefault((row["data"], row["noise"], row["n"]), {}).setdefault(row["way"], []).append(row)
    body = []
    for (data, noise, n), by_way in groups.items():
        random = _means(by_way["random"])
        mixed = _means(by_way["mixed"]) if "mixed" in by_way else None
        body.append(
            [
                data,
                f"{noise} ({len(by_way['random'])})",
                str(n),
                *(
                    f"{_number(random[name])} / {'–' if mixed is None else _number(mixed[name])}"
                    for name in ("calibration_error", "error_of_noise_rate", "wrong_after")
                ),
            ]
        )
    head = [
        "data",
        "noise (seeds)",
        "verified",
        "calibration error, random / mixed",
        "error of the noise rate, random / mixed",
        "wrong labels after, random / mixed",
    ]
    return (
        "## Verified labels\n\n"
        f"{result['n_samples']:,} samples. With ambiguity noise the wrong labels are drawn from a weak "
        'model, so that features cannot tell them from right ones. "Random" verifies labels drawn at random, '
        '"mixed" '
        "those that `audit --sample-for-review` chooses: the same up to 50 (100 where the noise is not "
        "identified), beyond that half of them because their answer is least certain. Calibration and noise "
        "rate are those of the labels that nobody verified; the last column counts the most probable label "
        "of every sample.\n\n" + table(head, body) + "\n" + measured_on(result, "scikit-learn")
    )


def _means(rows: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Means over seeds; None where no seed has a value."""
    rows = list(rows)
    found: dict[str, Any] = {}
    for name in {name for row in rows for name, value in row.items() if not isinstance(value, str)}:
        values = [row[name] for row in rows if row.get(name) is not None]
        found[name] = sum(values) / len(values) if values else None
    return found


def _number(value: float | None, best: float | None = None) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if best is None else marked(value, best)
