"""An export that does not read back as it was written never gets its name."""

import errno
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from test_plan import reviewed

from audited_runs import MakeRun
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.readers import read_dataset
from laplaceconfidence.exceptions import DataFormatError
from laplaceconfidence.export import plan_export, write_export
from laplaceconfidence.parquet_files import write_parquet
from laplaceconfidence.records.data_archive import write_archive


def spoil_parquet(monkeypatch: pytest.MonkeyPatch) -> None:
    write = pq.write_table
    monkeypatch.setattr(pq, "write_table", lambda table, path, **_: write(table.slice(1), path))


def spoil_npz(monkeypatch: pytest.MonkeyPatch) -> None:
    write = np.savez_compressed

    def without_one(path: Path, **arrays: Any) -> None:
        write(path, **arrays | {"labels": np.roll(arrays["labels"], 1)})

    monkeypatch.setattr(np, "savez_compressed", without_one)


def spoil_jsonl(monkeypatch: pytest.MonkeyPatch) -> None:
    write = json.dumps
    monkeypatch.setattr(json, "dumps", lambda line, **options: write(line | {"label": "other"}, **options))


def spoil_png(monkeypatch: pytest.MonkeyPatch) -> None:
    write = Image.fromarray
    monkeypatch.setattr(Image, "fromarray", lambda pixels: write(pixels ^ 1))


def spoil_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(source: Path, target: Path) -> None:
        target.write_bytes(source.read_bytes()[:-1])

    monkeypatch.setattr("laplaceconfidence.export.export_folder.shutil.copy2", cut)


@pytest.mark.parametrize(
    ("kind", "name", "spoil", "options"),
    [
        ("csv", "out.parquet", spoil_parquet, {}),
        ("csv", "out.npz", spoil_npz, {}),
        ("csv", "out.jsonl", spoil_jsonl, {}),
        ("digits", "out", spoil_png, {}),
        ("folder", "out", spoil_copies, {"copy": True}),
    ],
)
def test_what_reads_back_differently_never_gets_its_name(
    make_run: MakeRun,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    name: str,
    spoil: Any,
    options: dict[str, Any],
) -> None:
    plan = plan_export(make_run(kind))
    (tmp_path / "place").mkdir()
    with monkeypatch.context() as patch:
        spoil(patch)
        with pytest.raises(DataFormatError, match="was not written: read back"):
            write_export(plan, tmp_path / "place" / name, **options)
    assert list((tmp_path / "place").iterdir()) == []
    write_export(plan, tmp_path / "place" / name, **options)


def test_a_parquet_file_that_was_cut_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = pq.write_table

    def cut(table: pa.Table, path: Path, **_: object) -> None:
        write(table, path)
        path.write_bytes(path.read_bytes()[:-20])

    monkeypatch.setattr(pq, "write_table", cut)
    with pytest.raises(DataFormatError, match="cannot be read"):
        write_parquet(tmp_path / "table.parquet", pa.table({"a": [1, 2, 3]}))
    assert list(tmp_path.iterdir()) == []


def test_cells_that_arrow_compares_otherwise_are_the_same(tmp_path: Path) -> None:
    table = pa.table(
        {
            "gaps": [1.0, float("nan"), None],
            "lists": [[1.0, float("nan")], None, []],
            "seconds": pa.array([1, 2, None], pa.timestamp("s")),
            "codes": pa.array(["a", "b", "a"]).dictionary_encode(),
            "bytes": [b"\0", b"", None],
        }
    )
    write_parquet(tmp_path / "table.parquet", table)
    assert pq.read_table(tmp_path / "table.parquet").num_rows == 3


def test_a_text_that_an_archive_cannot_hold_is_refused(tmp_path: Path) -> None:
    data = NoisyDataset.from_arrays(["a", "b"], sources=["fine", "ends\0"], source_kind="text")
    with pytest.raises(DataFormatError, match="NUL"):
        write_archive(tmp_path / "data.npz", data)
    assert list(tmp_path.iterdir()) == []


def test_names_that_are_not_text_come_back_from_json_lines(make_run: MakeRun, tmp_path: Path) -> None:
    texts = [f"\udcff text {row}\u2028\x85\x1c" for row in range(90)]
    texts = [text.encode(errors="backslashreplace").decode() for text in texts]
    run = make_run("csv", texts=texts)
    plan = plan_export(run)
    exported = write_export(plan, tmp_path / "out.jsonl")
    lines = exported.path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    assert [json.loads(line)["text"] for line in lines] == texts


@pytest.mark.parametrize("code", [errno.EXDEV, errno.EPERM, errno.EMLINK])
def test_a_folder_without_hard_links_is_exported_reviewed_and_exported_again(
    make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    run = make_run("folder")
    reviewed(run, "suggestion")

    def refused(*_: object) -> None:
        raise OSError(code, "no hard links here")

    monkeypatch.setattr(Path, "hardlink_to", refused)
    exported = write_export(plan_export(run), tmp_path / "sorted")
    assert exported.n_copied_files == 90
    data = read_dataset(exported.path)
    assert len(data) == 90
    assert data.sources is not None
    assert not any(Path(path).is_symlink() for path in data.sources)
