"""The tables of training: accuracies, the cost of a round, and resuming after an interruption."""

from __future__ import annotations

import statistics
from typing import Any

from laplaceconfidence.training.methods.overview import describe_methods
from markdown import marked, measured_on, table

TITLES = {overview.name: overview.title for overview in describe_methods()}

VARIANTS = {
    "cross_entropy_weak_views": "cross-entropy on weak views",
    "cross_entropy_averaged": "cross-entropy, moving average of the weights",
    "laplace_one_network": "LaplaceConfidence, one network",
    "laplace_loss_mixture": "LaplaceConfidence, loss mixture instead of the graph",
    "laplace_noise_aware": "LaplaceConfidence, noise-aware estimator instead of the paper's",
    "laplace_paper_estimator": "LaplaceConfidence, the paper's estimator instead of the noise-aware one",
    "paper": "the same, confidences from the peer network, as in the paper",
    "paper_one_network": "as in the paper, one network",
    "paper_loss_mixture": "as in the paper, loss mixture instead of the graph",
    "paper_noise_aware": "as in the paper, noise-aware estimator instead of its own",
}

# The method and the baseline come first, then their variants, then the other methods.
NAMES = {
    **{name: TITLES[name] for name in ("laplace", "cross_entropy")},
    **VARIANTS,
    **TITLES,
    "co_teaching": f"{TITLES['co_teaching']} (given the noise rate)",
}

OPTIONAL = {"refined_right": ("refined labels right", 100), "rounds": ("rounds", 1)}
"""Measurements that only some tables have, with their titles and scales."""


def accuracies(title: str, about: str, result: dict[str, Any]) -> str:
    """Mean and standard deviation over the seeds of the last rounds; with the best and the chosen round."""
    rows = result["rows"]
    optional = {name: about for name, about in OPTIONAL.items() if any(name in row for row in rows)}
    parts = [f"### {title}\n\n{about}\n"]
    for cell in sorted({(row["noise"], row["rate"]) for row in rows}, key=_by_kind):
        of_cell = [row for row in rows if (row["noise"], row["rate"]) == cell]
        runs = {name: [row for row in of_cell if row["method"] == name] for name in NAMES}
        runs = {name: group for name, group in runs.items() if group}
        last = {name: 100 * statistics.mean(run["last"] for run in group) for name, group in runs.items()}
        body = [
            [
                NAMES[name],
                marked(last[name], max(last.values()), 1) + _spread(group),
                f"{100 * statistics.mean(run['chosen'] for run in group):.1f}",
                f"{100 * statistics.mean(run['best'] for run in group):.1f}",
                *(_mean(group, name, scale) for name, (_, scale) in optional.items()),
                str(len(group)),
                f"{statistics.mean(run['seconds'] for run in group):.0f}",
            ]
            for name, group in runs.items()
        ]
        head = [
            "",
            "last 10 rounds",
            "chosen round",
            "best round (comparison only)",
            *(title for title, _ in optional.values()),
            "seeds",
            "seconds",
        ]
        name_of_cell = f"{cell[0]} noise, {cell[1]:.0%}" if cell[1] else "labels as they are"
        parts.append(f"{name_of_cell}:\n\n" + table(head, body))
    return "\n".join([*parts, measured_on(result, "torch")])


def _by_kind(cell: tuple[str, float]) -> tuple[bool, str, float]:
    """Symmetric noise first, by its rate."""
    kind, rate = cell
    return kind != "symmetric", kind, rate


def _mean(runs: list[dict[str, Any]], name: str, scale: int) -> str:
    known = [scale * run[name] for run in runs if name in run]
    return f"{statistics.mean(known):.{1 if scale > 1 else 0}f}" if known else ""


def _spread(runs: list[dict[str, Any]]) -> str:
    """Standard deviation over the seeds, empty for one seed."""
    return f" ± {100 * statistics.stdev(run['last'] for run in runs):.1f}" if len(runs) > 1 else ""


def overhead(results: list[dict[str, Any]]) -> str:
    body = [
        [
            f"`{row['preset']}`" if row.get("preset") else "the paper",
            row["network"],
            f"{row['samples']:,}",
            str(row["threads"]),
            f"{row['seconds_of_a_round']:.2f}",
            f"{row['seconds_of_bare_passes']:.2f}",
            f"{row['ratio']:.2f}x",
        ]
        for row in results
    ]
    return (
        "### What a round costs\n\n"
        "A round as users run it (feature extraction, graph, solve, augmentation, selection, logging, "
        "checkpoint) against the bare forward and backward passes it consists of, on batches that are ready; "
        "both alternate in one run.\n\n"
        + table(
            ["settings", "network", "images", "threads", "seconds per round", "bare passes", "ratio"], body
        )
        + "\n"
        + measured_on(results[0], "torch")
    )


def resume(result: dict[str, Any]) -> str:
    differing = ", ".join(result["differing"]) or "nothing"
    return (
        "### Killed and resumed\n\n"
        f"A run of {result['rounds']} rounds on digits, killed with SIGKILL at {result['kills']} random "
        f"moments and started again each time, against one never interrupted: {differing} differs, bit for "
        "bit, in weights, confidences and metrics.\n"
    )
