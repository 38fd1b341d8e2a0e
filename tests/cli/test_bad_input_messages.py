"""Every input error gets exit code 2, a message that names what is wrong, and no traceback."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

N = 30


def features() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(N, 4))


def save(path: Path, **arrays: Any) -> None:
    np.savez(path, **{"features": features(), "labels": np.arange(N) % 3, **arrays})


def with_values(*values: tuple[int, float]) -> np.ndarray:
    changed = features()
    for row, value in values:
        changed[row, 1] = value
    return changed


def table(folder: Path, **columns: Any) -> None:
    frame = pd.DataFrame({"label": np.arange(N) % 3, "a": features()[:, 0], "b": features()[:, 1], **columns})
    frame.to_csv(folder / "d.csv", index=False)


def graph(folder: Path, weights: np.ndarray) -> None:
    save(folder / "d.npz")
    sparse.save_npz(folder / "g.npz", sparse.csr_array(weights))


def cut(path: Path, share: float = 0.5) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])


def parquet(folder: Path) -> None:
    pd.DataFrame({"label": range(N), "a": features()[:, 0]}).to_parquet(folder / "d.parquet")
    cut(folder / "d.parquet")


def npz_cut(folder: Path) -> None:
    save(folder / "d.npz")
    cut(folder / "d.npz")


def images(folder: Path) -> None:
    for name in ("cat", "dog"):
        (folder / "d" / name).mkdir(parents=True)
        (folder / "d" / name / "1.png").write_bytes(b"not looked into")


def taken(folder: Path) -> None:
    save(folder / "d.npz")
    (folder / "thesis").mkdir()
    (folder / "thesis" / "chapter.tex").touch()


def file_in_the_way(folder: Path) -> None:
    save(folder / "d.npz")
    (folder / "file").touch()


Case = tuple[Callable[[Path], object], str, list[str]]
TABLE = "audit d.csv --features a --features b"
ARCHIVE = "audit d.npz"
CASES: dict[str, Case] = {
    "nan": (
        lambda f: save(f / "d.npz", features=with_values((3, np.nan), (9, np.nan))),
        ARCHIVE,
        ["'features'", "2 NaN and 0 infinite", "row 3"],
    ),
    "infinity": (
        lambda f: save(f / "d.npz", features=with_values((5, np.inf))),
        ARCHIVE,
        ["'features'", "0 NaN and 1 infinite", "row 5"],
    ),
    "lengths": (
        lambda f: save(f / "d.npz", labels=np.arange(N + 1) % 3),
        ARCHIVE,
        ["'features' has 30", "'labels' has 31"],
    ),
    "empty archive": (
        lambda f: save(f / "d.npz", features=np.zeros((0, 4)), labels=np.zeros(0, int)),
        ARCHIVE,
        ["at least one"],
    ),
    "empty table": (lambda f: (f / "d.csv").write_text("label,a\n"), "audit d.csv", ["at least one"]),
    "empty file": (lambda f: (f / "d.csv").touch(), "audit d.csv", ["d.csv"]),
    "no columns": (
        lambda f: save(f / "d.npz", features=np.zeros((N, 0))),
        ARCHIVE,
        ["'features'", "at least one row and one column"],
    ),
    "one class": (
        lambda f: save(f / "d.npz", labels=np.full(N, 7)),
        ARCHIVE,
        ["'labels'", "two classes", "[7]"],
    ),
    "no labels": (lambda f: table(f, label=[None] * N), TABLE, ["'labels'", "not missing"]),
    "all alike": (lambda f: save(f / "d.npz", features=np.ones((N, 4))), ARCHIVE, ["30 equal rows"]),
    "alpha 1": (
        lambda f: save(f / "d.npz"),
        f"{ARCHIVE} --estimator laplace --alpha 1",
        ["'alpha'", "below 1", "1.0"],
    ),
    "alpha 0": (
        lambda f: save(f / "d.npz"),
        f"{ARCHIVE} --estimator laplace --alpha 0",
        ["'alpha'", "above 0"],
    ),
    "alpha nan": (lambda f: save(f / "d.npz"), f"{ARCHIVE} --alpha nan", ["'alpha'", "nan"]),
    "alpha word": (lambda f: save(f / "d.npz"), f"{ARCHIVE} --alpha much", ["'alpha'", "'much'"]),
    "no neighbors": (lambda f: save(f / "d.npz"), f"{ARCHIVE} -k 0", ["'n_neighbors'", "at least 1", "0"]),
    "components": (
        lambda f: save(f / "d.npz"),
        f"{ARCHIVE} --n-components 5",
        ["'n_components'", "at most 4", "5"],
    ),
    "search": (lambda f: save(f / "d.npz"), f"{ARCHIVE} --search fast", ["'search'", "'ivf'", "'fast'"]),
    "dtype": (
        lambda f: save(f / "d.npz"),
        f"{ARCHIVE} --estimator laplace --dtype int8",
        ["'dtype'", "'float32'", "'int8'"],
    ),
    "no threads": (lambda f: save(f / "d.npz"), f"{ARCHIVE} --n-jobs 0", ["'n_jobs'", "0"]),
    "seed": (lambda f: save(f / "d.npz"), f"{ARCHIVE} --seed -1", ["--seed", "-1"]),
    "estimator": (
        lambda f: save(f / "d.npz"),
        f"{ARCHIVE} --estimator magic",
        ["'estimator'", "'magic'", "'knn-vote'"],
    ),
    "foreign setting": (
        lambda f: save(f / "d.npz"),
        f"{ARCHIVE} --estimator knn-vote --alpha 0.5",
        ["'alpha'", "'knn-vote'", "n_neighbors"],
    ),
    "threshold": (lambda f: save(f / "d.npz"), f"{ARCHIVE} --threshold 2", ["'threshold'", "2"]),
    "graph shape": (
        lambda f: graph(f, np.ones((N - 1, N - 1))),
        f"{ARCHIVE} --knn-graph g.npz",
        ["'knn_graph'", "(30, 30)", "(29, 29)"],
    ),
    "graph nan": (
        lambda f: graph(f, np.full((N, N), np.nan)),
        f"{ARCHIVE} --knn-graph g.npz",
        ["'knn_graph'", "900 NaN"],
    ),
    "graph negative": (
        lambda f: graph(f, np.full((N, N), -0.5)),
        f"{ARCHIVE} --knn-graph g.npz",
        ["'knn_graph'", "non-negative", "-0.5"],
    ),
    "no graph": (
        lambda f: save(f / "d.npz"),
        f"{ARCHIVE} --knn-graph d.npz",
        ["d.npz is not a CSR graph", "save_npz"],
    ),
    "no graph file": (lambda f: save(f / "d.npz"), f"{ARCHIVE} --knn-graph x.npz", ["'knn_graph'", "x.npz"]),
    "probabilities": (
        lambda f: (save(f / "d.npz"), np.save(f / "p.npy", np.ones((N, 3)))),
        f"{ARCHIVE} --estimator self-confidence --pred-probs p.npy",
        ["'pred_probs'", "summing to 1", "softmax"],
    ),
    "no probabilities": (
        lambda f: save(f / "d.npz"),
        f"{ARCHIVE} --estimator gaussian-mixture",
        ["'pred_probs'", "'gaussian-mixture'"],
    ),
    "no probabilities file": (
        lambda f: save(f / "d.npz"),
        f"{ARCHIVE} --estimator self-confidence --pred-probs p.npy",
        ["'pred_probs'", "p.npy"],
    ),
    "continuous": (
        lambda f: table(f, label=features()[:, 0]),
        TABLE,
        ["'labels'", "classes, not a continuous target"],
    ),
    "missing column": (
        lambda f: table(f),
        "audit d.csv --label class",
        ["'label'", "'class'", "'label', 'a', 'b'"],
    ),
    "missing features": (
        lambda f: table(f),
        "audit d.csv --features emb_*",
        ["'features'", "'emb_*'", "'a', 'b'"],
    ),
    "missing key": (lambda f: save(f / "d.npz"), f"{ARCHIVE} --label y2", ["'y2'", "'features', 'labels'"]),
    "foreign option": (
        lambda f: save(f / "d.npz"),
        f"{ARCHIVE} --split train",
        ["'split'", "left out for an .npz file"],
    ),
    "truncated archive": (npz_cut, ARCHIVE, ["d.npz", "truncated"]),
    "truncated parquet": (parquet, "audit d.parquet", ["d.parquet"]),
    "pickled": (
        lambda f: save(f / "d.npz", labels=np.array(["a", None] * (N // 2), dtype=object)),
        ARCHIVE,
        ["d.npz", "pickled"],
    ),
    "pickle": (lambda f: (f / "d.pkl").write_bytes(b"\x80\x04."), "audit d.pkl", ["d.pkl", "pickle"]),
    "no source": (lambda f: None, "audit nowhere.csv", ["nowhere.csv", "existing"]),
    "unknown kind": (lambda f: (f / "d.docx").touch(), "audit d.docx", ["d.docx", ".parquet"]),
    "images alone": (images, "audit d", ["d/cat/1.png", "cannot be decoded", "--skip-bad"]),
    "folder taken": (taken, f"{ARCHIVE} --out thesis --overwrite", ["thesis", "chapter.tex"]),
    "folder is file": (file_in_the_way, f"{ARCHIVE} --out file", ["output folder", "file"]),
    "folder below file": (file_in_the_way, f"{ARCHIVE} --out file/x", ["cannot be written"]),
    "folder unwritable": (
        lambda f: save(f / "d.npz"),
        f"{ARCHIVE} --out /proc/x",
        ["/proc/x", "cannot be written"],
    ),
    "number": (lambda f: save(f / "d.npz"), f"{ARCHIVE} --suspects -1", ["--suspects", "at least 0", "-1"]),
    "no number": (lambda f: save(f / "d.npz"), f"{ARCHIVE} --threshold low", ["--threshold", "'low'"]),
    "no integer": (lambda f: save(f / "d.npz"), f"{ARCHIVE} --n-jobs 1.5", ["--n-jobs", "'1.5'"]),
    "option": (lambda f: None, "audit d.npz --color red", ["--color"]),
    "command": (lambda f: None, "inspect d.npz", ["inspect"]),
    "demo folder": (taken, "demo --out thesis", ["thesis", "chapter.tex"]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_mistake_gets_a_message_and_exit_code_2(run: Any, tmp_path: Path, name: str) -> None:
    prepare, command, words = CASES[name]
    prepare(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    done = run(*command.split())
    message = " ".join(done.stderr.split())
    assert done.exit_code == 2, done.output
    for word in words:
        assert word in message
    assert "Traceback" not in done.output
    assert done.stdout == ""
    assert sorted(tmp_path.rglob("*")) == before, "nothing is left behind"


def test_a_class_with_one_member_is_noted_by_its_name(run: Any, tmp_path: Path) -> None:
    table(tmp_path, label=["rare"] + ["a", "b"] * 14 + ["a"])
    done = run("audit", "d.csv", "--features", "a", "--features", "b", "-k", "5", "--estimator", "laplace")
    assert done.exit_code == 0
    assert "Note: 1 of 3 classes have a single member (rare)" in done.stderr


def test_bugs_keep_their_traceback(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("laplaceconfidence.cli.audit.run.read_dataset", broken)
    with pytest.raises(ZeroDivisionError):
        run("audit", "d.npz")


def test_errors_about_files_are_reported_as_a_message(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "secret.csv")

    monkeypatch.setattr("laplaceconfidence.cli.audit.run.read_dataset", broken)
    done = run("audit", "d.npz")
    assert done.exit_code == 2
    assert "secret.csv: Permission denied." in done.stderr
