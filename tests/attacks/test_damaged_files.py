"""Every file that is read, with bytes cut off, changed or added: it is read or refused with a message."""

import gzip
import os
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from scipy import sparse

from audited_runs import make_audit
from laplaceconfidence import read_dataset
from laplaceconfidence.auditing.verified_tables import read_verified
from laplaceconfidence.cli.audit.run import load_graph
from laplaceconfidence.data.array_files import load_array
from laplaceconfidence.data.images import load_image
from laplaceconfidence.exceptions import DataFormatError, InvalidInputError, LaplaceConfidenceError
from laplaceconfidence.records import read_audit
from laplaceconfidence.records.sample_arrays import SampleArrays
from laplaceconfidence.review.decisions import NewDecision
from laplaceconfidence.review.store import DecisionStore, read_decisions

DATA = read_dataset((np.eye(6), ["a", "b"] * 3))
TABLE = pd.DataFrame({"id": range(6), "label": ["a", "b"] * 3, "text": "täxt", "verified_label": "a"})
Read = Callable[[Path], object]


def write_files(folder: Path) -> dict[str, tuple[Path, Read]]:
    """Every kind of file a user may pass, with its reader."""
    TABLE.to_csv(folder / "table.csv", index=False)
    TABLE.to_csv(folder / "table.tsv", index=False, sep="\t")
    (folder / "table.csv.gz").write_bytes(gzip.compress((folder / "table.csv").read_bytes()))
    TABLE.assign(features=list(np.eye(6))).to_parquet(folder / "table.parquet")
    np.savez(folder / "arrays.npz", features=np.eye(6), labels=np.array(["a", "b"] * 3), ids=np.arange(6))
    np.save(folder / "features.npy", np.eye(6))
    (folder / "labels.txt").write_text("a\nb\n" * 3)
    sparse.save_npz(folder / "graph.npz", sparse.csr_array(np.ones((6, 6))))
    rgb = np.random.default_rng(0).integers(0, 256, (16, 16, 3), dtype=np.uint8)
    for suffix in ("png", "jpg", "gif", "tif"):
        Image.fromarray(rgb).save(folder / f"image.{suffix}")
    readers: dict[str, Read] = {
        **dict.fromkeys(
            ("table.csv", "table.tsv", "table.csv.gz", "table.parquet", "arrays.npz"), read_dataset
        ),
        "features.npy": load_array,
        "labels.txt": lambda path: read_dataset(folder / "features.npy", labels=str(path)),
        "graph.npz": load_graph,
        **{f"image.{suffix}": load_image for suffix in ("png", "jpg", "gif", "tif")},
    }
    files = {name: (folder / name, read) for name, read in readers.items()}
    files["audited table"] = (folder / "table.csv", lambda path: read_verified(path, DATA))
    return files


def write_run(folder: Path) -> dict[str, tuple[Path, Read]]:
    """The files of an audit that was reviewed, with what reads them."""
    run = make_audit(folder)
    store = DecisionStore(run.folder, run.record)
    for row in range(5):
        store.decide([NewDecision(row, str(row), 0, "keep", 0, {})], who="ann", queue="worst")
    store.close()

    def read(_: Path) -> None:
        audit = read_audit(run.folder)
        samples = SampleArrays.of(audit)
        assert len(samples) == 90
        read_decisions(audit.folder, audit.record)
        assert len(audit.evidence) == 90

    names = ("audit.json", "issues.parquet", "evidence.parquet", "decisions.sqlite")
    return {name: (run.folder / name, read) for name in names}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Read]]:
    return write_files(tmp_path_factory.mktemp("files")) | write_run(tmp_path_factory.mktemp("reviewed"))


KINDS = (
    *("table.csv", "table.tsv", "table.csv.gz", "table.parquet", "arrays.npz", "features.npy", "labels.txt"),
    *("graph.npz", "image.png", "image.jpg", "image.gif", "image.tif", "audited table"),
    *("audit.json", "issues.parquet", "evidence.parquet", "decisions.sqlite"),
)


@st.composite
def damages(draw: st.DrawFn) -> Callable[[bytes], bytes]:
    where = draw(st.floats(0, 1))
    kind = draw(st.sampled_from(["cut", "change", "change", "insert", "remove"]))
    added = draw(st.binary(min_size=1, max_size=4))

    def damaged(content: bytes) -> bytes:
        at = int(where * len(content))
        tail = {"cut": b"", "change": content[at + len(added) :], "insert": content[at:]}
        return (
            content[:at]
            + (added if kind in ("change", "insert") else b"")
            + tail.get(kind, content[at + 1 :])
        )

    return damaged


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(damage=damages())
def test_damaged_files_are_read_or_refused(
    files: dict[str, tuple[Path, Read]], kind: str, damage: Callable[[bytes], bytes]
) -> None:
    path, read = files[kind]
    content = path.read_bytes()
    try:
        path.write_bytes(damage(content))
        with warnings.catch_warnings(), suppress(LaplaceConfidenceError):
            warnings.simplefilter("ignore")
            read(path)
    finally:
        path.write_bytes(content)
        for copy in path.parent.glob("decisions-copy-*"):
            copy.unlink()


class Payload:
    """Runs a command when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("name", ["p.npy", "p.npz", "p.parquet", "p.csv", "p.pkl"])
def test_no_file_runs_code(tmp_path: Path, name: str) -> None:
    import pickle

    evil = np.array([Payload(tmp_path / "ran")] * 2, dtype=object)
    path = tmp_path / name
    if name == "p.npy":
        np.save(path, evil, allow_pickle=True)
    elif name == "p.npz":
        np.savez(path, features=np.eye(2), labels=evil, allow_pickle=True)
    else:
        path.write_bytes(pickle.dumps(evil))
    with pytest.raises(LaplaceConfidenceError):
        read_dataset(path, labels=["a", "b"] if name == "p.npy" else None)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "features",
    [
        np.ones((4, 2), dtype=complex),
        np.zeros((4, 2), dtype="datetime64[s]"),
        np.full((4, 2), b"x"),
        np.zeros(4, dtype=[("a", float), ("b", int)]),
        np.full((4, 2), np.inf),
        np.zeros((4, 2, 2, 2, 2)),
        np.zeros((0, 2)),
        np.array(1.0),
    ],
    ids=lambda features: f"{features.dtype} {features.shape}",
)
@pytest.mark.parametrize("name", ["data.npz", "data.npy"])
def test_arrays_of_another_type_are_refused(tmp_path: Path, features: np.ndarray, name: str) -> None:
    labels = ["a", "b", "a", "b"]
    if name == "data.npz":
        np.savez(tmp_path / name, features=features, labels=np.array(labels))
    else:
        np.save(tmp_path / name, features)
    with pytest.raises((InvalidInputError, DataFormatError)):
        read_dataset(tmp_path / name, labels=labels if name == "data.npy" else None)
