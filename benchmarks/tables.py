"""Write docs/benchmarks.md from the results that the other scripts wrote to benchmarks/results."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from laplaceconfidence.files import replacing
from markdown import marked, measured_on, table, wrapped
from measuring import RESULTS
from tables_of_noise import mixed_noise, noise_aware
from tables_of_people import annotators, verified_choice
from tables_of_practice import (
    automatic_cost,
    data_issues,
    many_classes,
    photographs,
    report_time,
    review_latency,
    texts,
    texts_at_size,
)
from tables_of_training import accuracies, overhead, resume

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
PEERS = ("faiss-cpu", "scikit-learn", "cleanlab")
HEAD = """# Benchmarks

Written by `benchmarks/tables.py` from `benchmarks/results/*.json`; `make bench` measures again. This
package and its peers run in the same process on the same machine. The best of a column is bold; cells in
which a peer is better stay.

Not all of it is of one state of the code. Decisions 39 and 40 changed the noise-aware estimator last, and
decision 44 for more than 50 classes. All tables of it were measured after those that touch them, but for
photographs as files. Training tables say where they are older.
"""


def speed(result: dict[str, Any]) -> str:
    n = result["settings"]["n"]
    rows = [
        [
            name,
            f"{row['seconds']:.2f}",
            f"{row['times_faster_than_reference']:.1f}x",
            f"{row['recall']:.3f}" if "recall" in row else "",
            f"{row['spearman']:.4f}" if "spearman" in row else "",
        ]
        for name, row in result["rows"].items()
    ]
    return (
        f"## Speed: one estimate at {n:,} x {result['settings']['d']}\n\n"
        "The reference way is the paper's: exact faiss plus one scipy conjugate gradient per class. Spearman "
        "compares the confidences of this package with the exact ones on the same (reduced) features. This "
        "package is the best of 3 runs; the others ran once.\n\n"
        + table(["", "seconds", "against the reference way", "recall", "Spearman"], rows)
        + "\n"
        + measured_on(result, *PEERS)
    )


def growth(result: dict[str, Any]) -> str:
    rows = [
        [
            f"{row['n']:,}",
            f"{row['classes']:,}",
            f"{row['seconds']:.2f}",
            f"{row['input_mib']:.0f}",
            f"{row['peak_mib']:.0f}",
            f"{row['recall']:.3f}",
        ]
        for row in result["rows"]
    ]
    return (
        "## Growth: time and memory\n\n"
        "Peak memory is that of a whole process of its own, Python and libraries (about 190 MiB) included. "
        f"Time grows as n^{result['exponent']:.2f} from 25,000 to 200,000 points.\n\n"
        + table(["points", "classes", "seconds", "input MiB", "peak MiB", "recall"], rows)
        + "\n"
        + measured_on(result, *PEERS)
    )


def quality(result: dict[str, Any]) -> str:
    rows = result["rows"]
    parts = [
        "## Quality: separating right from wrong labels\n\n"
        f"Mean of seeds {result['settings']['seeds']}. Estimators on probabilities or losses get those of a "
        "5-fold logistic regression on the same features. `laplace` is the paper's fixed setting, k=50 and "
        "alpha=0.99.\n"
    ]
    titles = {
        "auroc": "AUROC of the confidence",
        "average_precision": "Average precision of finding wrong labels",
        "f1_wrong": "F1 of finding wrong labels at confidence 0.5",
        "calibration_error": "Calibration error (15 bins; lower is better)",
    }
    for set_name in dict.fromkeys(row["set"] for row in rows):
        chosen = [row for row in rows if row["set"] == set_name]
        cells = list(dict.fromkeys((row["noise"], row["rate"]) for row in chosen))
        parts.append(f"### {set_name}\n")
        for metric, title in titles.items():
            value = {(row["estimator"], row["noise"], row["rate"]): row[metric] for row in chosen}
            best = {
                cell: (min if metric == "calibration_error" else max)(
                    v for k, v in value.items() if k[1:] == cell
                )
                for cell in cells
            }
            body = [
                [name, *(marked(value[(name, *cell)], best[cell]) for cell in cells)]
                for name in dict.fromkeys(row["estimator"] for row in chosen)
            ]
            parts.append(f"{title}:\n\n" + table(["", *(f"{kind} {rate:.0%}" for kind, rate in cells)], body))
    return "\n".join([*parts, measured_on(result, *PEERS)])


def training() -> str:
    """The section about training, as far as it was measured."""
    photographs_setting = (
        "The preset `image-folder-small` against cross-entropy with the same network, weak views, label "
        "smoothing, schedule and number of passes, one per round. The preset has 40 rounds; runs of 10,000 "
        "images had 24. Every run had one core of a shared machine; two take about half the time."
    )
    sections = {
        "training_digits": (
            "Digits, small CNN",
            "1,437 of scikit-learn's digits to train on, 360 to test. The settings were chosen by test "
            "accuracy, so this shows what the method can reach, and is not a fair comparison.",
        ),
        "training_embeddings": (
            "CIFAR-10 embeddings, MLP",
            "10,000 embeddings to train on, 2,000 to test; the preset `embeddings-mlp`; 28 passes per "
            "network.",
        ),
        "training_fashion": (
            "Fashion-MNIST, small CNN",
            "10,000 images to train on, 10,000 to test; the preset `fashion-small`, in bfloat16. "
            "Cross-entropy makes as many passes; on weak views it sees the same crops and flips. Every run "
            "had one core of a shared machine.",
        ),
        "training_photographs_3000": (
            "3,000 photographs, small residual network",
            f"{photographs_setting} 3,000 of CIFAR-10's images to train on, 2,000 to test. With the "
            "paper's estimator it did not end with weak views yet (decision 21).",
        ),
        "training_photographs_10000": (
            "10,000 photographs, small residual network",
            f"{photographs_setting} 10,000 of CIFAR-10's images to train on, 2,000 to test. There is also a "
            "cross-entropy that predicts with the moving average of its weights, as ours does. The paper's "
            "estimator and other methods are in [small tables](small-tables.md).",
        ),
    }
    parts = [
        "## Training on noisy labels\n\n"
        "Test accuracy in percent. No run uses it to choose anything: the round is chosen by held-out given "
        "labels. The paper's sizes (CIFAR, Mini-WebVision) were not run. All but 3,000 clean and 10,000 "
        "noisy photographs was measured before decision 39, which hardly changes estimates of ten classes "
        "with many labels each. The run at 10,000 and 20% noise was halted for an hour, which its time "
        "includes.\n"
    ]
    parts += [accuracies(*sections[name], result) for name in sections if (result := read(name))]
    if costs := [
        result for path in sorted(RESULTS.glob("training_overhead_*.json")) if (result := read(path.stem))
    ]:
        parts.append(overhead(costs))
    if killed := read("training_resume"):
        parts.append(resume(killed))
    return "\n".join(parts)


SECTIONS: dict[str, Callable[[dict[str, Any]], str]] = {
    "speed": speed,
    "growth": growth,
    "quality": quality,
    "noise_aware": noise_aware,
    "mixed_noise": mixed_noise,
    "many_classes": many_classes,
    "texts": texts,
    "texts_at_size": texts_at_size,
    "photographs": photographs,
    "annotators": annotators,
    "verified_choice": verified_choice,
    "automatic_cost": automatic_cost,
    "data_issues": data_issues,
    "report_time": report_time,
    "review_latency": review_latency,
}


def read(name: str) -> dict[str, Any] | None:
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def main() -> None:
    parts = [HEAD, *(section(result) for name, section in SECTIONS.items() if (result := read(name)))]
    parts.append(training())
    with replacing(PAGE) as temporary:
        temporary.write_text(wrapped("\n".join(parts)), encoding="utf-8")
    print(f"-> {PAGE}")


if __name__ == "__main__":
    main()
