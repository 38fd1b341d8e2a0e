"""CPU time of the neighbor search by this package, and by inverted files, HNSW and NN-descent of faiss.

    python benchmarks/search_methods.py [--kinds images mixture] [--sizes 50000 200000] [--folder SCRATCH]

128 features, 20 neighbors without the sample itself, one thread. Inverted files with lists of about 256
samples, plain and with 4-bit product codes (8 candidates per neighbor are compared exactly), are searched in
1, 2, 4, ... lists; HNSW (16 links, construction 40) with 32, 64, ... candidates; NN-descent builds graphs of
32, 64, ... neighbors; until the recall on 500 samples is 0.95 or the last setting was tried. The time is that
of building and of the last setting alone, as if it had been known. Ours includes finding its setting.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any

import faiss
import numpy as np
from sklearn.preprocessing import normalize

from laplaceconfidence.graph.neighbors import find_neighbors
from laplaceconfidence.threads import limited_threads
from large_features import prepared
from measuring import save, stored_rows, timed

K, WIDTH, TARGET, N_CHECKED, POOL = 20, 128, 0.95, 500, 1_000_000
LEAST_ROUNDS = 10

Found = tuple[dict[str, Any], float, np.ndarray]  # setting, CPU seconds, neighbors of the checked samples


def ours(points: np.ndarray, checked: np.ndarray) -> Iterator[Found]:
    seconds, found = timed(
        lambda: find_neighbors(points, K, target_recall=TARGET, n_jobs=1, random_state=0), clock=process_time
    )
    yield {}, seconds, found.indices[checked]


def inverted_file(points: np.ndarray, checked: np.ndarray) -> Iterator[Found]:
    yield from lists_asked(f"IVF{len(points) // 256},Flat", points, checked)


def coded_inverted_file(points: np.ndarray, checked: np.ndarray) -> Iterator[Found]:
    yield from lists_asked(f"IVF{len(points) // 256},PQ{WIDTH // 2}x4fs,RFlat", points, checked)


def lists_asked(description: str, points: np.ndarray, checked: np.ndarray) -> Iterator[Found]:
    """An index of faiss by its description, searched in more and more lists."""
    index = faiss.index_factory(WIDTH, description, faiss.METRIC_INNER_PRODUCT)
    building, _ = timed(lambda: (index.train(points), index.add(points)), clock=process_time)
    settings = faiss.ParameterSpace()
    if description.endswith("RFlat"):
        settings.set_index_parameter(index, "k_factor_rf", 8)
    for n_lists in (1, 2, 4, 8, 16, 32, 64, 128):
        settings.set_index_parameter(index, "nprobe", n_lists)
        seconds, found = time_of_all(index, points, checked)
        yield {"lists": n_lists}, building + seconds, found


def hnsw(points: np.ndarray, checked: np.ndarray) -> Iterator[Found]:
    index = faiss.IndexHNSWFlat(WIDTH, 16, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = 40
    building, _ = timed(lambda: index.add(points), clock=process_time)
    for candidates in (32, 64, 128, 256, 512):
        index.hnsw.efSearch = candidates
        seconds, found = time_of_all(index, points, checked)
        yield {"candidates": candidates}, building + seconds, found


def time_of_all(index: Any, points: np.ndarray, checked: np.ndarray) -> tuple[float, np.ndarray]:
    """The time of searching all points, told from 20,000 of them, and what is found for the checked ones."""
    some = points[:: max(1, len(points) // 20_000)]
    seconds, _ = timed(lambda: index.search(some, K + 1), clock=process_time)
    found = without_itself(index.search(points[checked], K + 1)[1], checked)
    return seconds * len(points) / len(some), found


def nn_descent(points: np.ndarray, checked: np.ndarray) -> Iterator[Found]:
    for neighbors in (32, 64, 96):
        index = faiss.IndexNNDescentFlat(WIDTH, neighbors, faiss.METRIC_L2)  # unit rows: the same order
        index.nndescent.iter = LEAST_ROUNDS
        index.nndescent.L = neighbors + 50
        seconds, _ = timed(lambda index=index: index.add(points), clock=process_time)
        graph = faiss.vector_to_array(index.nndescent.final_graph).reshape(len(points), neighbors)
        found = graph[checked]
        similarity = np.einsum("nkd,nd->nk", points[found], points[checked])
        best = np.argsort(-similarity, axis=1)[:, :K]
        yield {"neighbors": neighbors}, seconds, np.take_along_axis(found, best, axis=1)


METHODS: dict[str, Callable[[np.ndarray, np.ndarray], Iterator[Found]]] = {
    "ours": ours,
    "IVF": inverted_file,
    "IVF, 4-bit codes": coded_inverted_file,
    "HNSW": hnsw,
    "NN-descent": nn_descent,
}


def without_itself(found: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The first K of K + 1 neighbors that are not the sample."""
    return np.array(
        [[other for other in some if other != row][:K] for some, row in zip(found, rows, strict=True)]
    )


def recall(found: np.ndarray, exact: np.ndarray) -> float:
    shared = [
        len(set(some) & set(all_of)) for some, all_of in zip(found.tolist(), exact.tolist(), strict=True)
    ]
    return float(np.sum(shared)) / exact.size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kinds", nargs="+", default=["images", "mixture"])
    parser.add_argument("--sizes", nargs="+", type=int, default=[50_000, 200_000])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()) / "laplaceconfidence-scale"
    )
    parser.add_argument("--pool", type=int, default=POOL, help="samples that are prepared per kind")
    options = parser.parse_args()
    rows = {(row["kind"], row["n"], row["method"]): row for row in stored_rows("search_methods")}
    for kind in options.kinds:
        features = np.load(prepared(kind, options.folder, options.pool, WIDTH)[0], mmap_mode="r")
        for n in options.sizes:
            points = normalize(np.asarray(features[:n]))
            checked = np.sort(np.random.default_rng(0).choice(n, N_CHECKED, replace=False))
            exact = without_itself(
                faiss.knn(points[checked], points, K + 1, faiss.METRIC_INNER_PRODUCT)[1], checked
            )
            for method in options.methods:
                with limited_threads(1):
                    for setting, seconds, found in METHODS[method](points, checked):
                        row = {"kind": kind, "n": n, "method": method, "setting": setting}
                        row |= {"cpu_seconds": seconds, "recall": recall(found, exact)}
                        if row["recall"] >= TARGET:
                            break
                rows[kind, n, method] = row
                print("  ".join(f"{name} {value}" for name, value in row.items()), file=sys.stderr)
                save(
                    "search_methods",
                    {"settings": {"k": K, "features": WIDTH, "threads": 1}, "rows": list(rows.values())},
                )


if __name__ == "__main__":
    main()
