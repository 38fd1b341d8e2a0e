"""Whatever is in its cells: a table comes back whole from audits and exports, or is refused."""

import csv
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from laplaceconfidence import NoisyDataset, audit, read_dataset
from laplaceconfidence.csv_files import unguarded
from laplaceconfidence.exceptions import LaplaceConfidenceError, LaplaceConfidenceWarning
from laplaceconfidence.export import plan_export, write_export
from laplaceconfidence.records import AuditRun, write_audit

SNIPPETS = ("\0", "\r", "\n", "\r\n", '"', "'", ",", "\t", ";", "=1+1", "+", "-", "@SUM(A1)", "\\", "\ufeff")
NUMBERS = ("0", "-1", "1.0", "01", "1e400", "9" * 40, "-0", "nan", "NaN", "inf", "None", "NA", "true", "0x1f")
OTHERS = (
    "猫",
    "🐈",
    "e\u0301",
    "\u2028",
    "\x85",
    "\x1c",
    "\u200b",
    "\u202e",
    "\ud7ff",
    "x" * 3000,
    " ",
    "",
    "a",
)
texts = st.lists(st.sampled_from([*SNIPPETS, *NUMBERS, *OTHERS]), max_size=3).map("".join)
encodable_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
cells = texts | encodable_texts
classes = st.lists(cells.filter(bool), min_size=2, max_size=4, unique=True)
headings = st.sampled_from(["text", "label", "comment"]) | cells

WITH_MARKS = {  # byte order marks, which readers remove at the beginning of a file
    "\ufefftext": ["\ufeff", "\ufeffb", "c", "1"],
    "label": ["x", "\ufeffy", "", "x"],
    "\ufeffcomment": ["\ufeff1", "2", '"', "\r"],
}


@st.composite
def tables(draw: st.DrawFn) -> dict[str, list[str]]:
    """Columns of cells: a text, a label, and one that is only carried along, under any name."""
    n = draw(st.integers(4, 9))
    names = draw(st.lists(headings, min_size=3, max_size=3, unique_by=unguarded))
    given_labels = draw(classes)
    labels = st.lists(st.sampled_from([*given_labels, ""]), min_size=n - 2, max_size=n - 2)
    column = st.lists(cells, min_size=n, max_size=n)
    return dict(zip(names, (draw(column), [*given_labels[:2], *draw(labels)], draw(column)), strict=True))


def write_table(path: Path, table: dict[str, list[str]]) -> None:
    if path.suffix == ".parquet":
        pq.write_table(pa.table(table), path)
        return
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))


def cells_of(path: Path) -> list[list[str]]:
    """Heading and rows as another program reads them, without the apostrophes that guard formulas."""
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        columns = [table.column(position).to_pylist() for position in range(table.num_columns)]
        return [table.column_names, *(list(row) for row in zip(*columns, strict=True))]
    with path.open(newline="", encoding="utf-8") as file:
        return [[unguarded(cell) for cell in row] for row in csv.reader(file)]


def audited(source: Path, options: dict[str, Any], folder: Path) -> tuple[NoisyDataset, AuditRun]:
    data = read_dataset(source, **options)
    described = {"source": str(source), "options": options}
    return data, write_audit(audit(data, estimator="knn-vote", n_neighbors=2), folder, source=described)


def labels_of(data: NoisyDataset) -> list[str | None]:
    return [None if code < 0 else data.class_names[code] for code in data.labels.tolist()]


def check_export(run: AuditRun, data: NoisyDataset, out: Path) -> None:
    try:
        exported = write_export(plan_export(run), out)
    except LaplaceConfidenceError:
        return
    if out.suffix == ".jsonl":
        return  # compared with the data when it was written, and not a source
    options: dict[str, Any] = {} if out.suffix == ".npz" else {"features": "feature*"}
    back = read_dataset(exported.path, **options)
    assert back.sources is not None
    assert data.sources is not None
    assert back.sources.tolist() == data.sources.tolist()
    assert labels_of(back) == labels_of(data)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    table=tables(),
    suffix=st.sampled_from([".csv", ".parquet"]),
    out=st.sampled_from([".npz", ".parquet", ".csv", ".jsonl"]),
)
@example(table=WITH_MARKS, suffix=".csv", out=".npz")
@example(table=WITH_MARKS, suffix=".parquet", out=".csv")
@example(table={"\ufeff": list("abcd"), "b": list("xyxy"), "": list("1234")}, suffix=".csv", out=".npz")
def test_every_cell_comes_back_or_the_table_is_refused(
    table: dict[str, list[str]], suffix: str, out: str
) -> None:
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore", LaplaceConfidenceWarning)
        folder = Path(name)
        source = folder / f"table{suffix}"
        write_table(source, table)
        text, label, _ = table
        known = unguarded if suffix == ".csv" else str
        n = len(table[text])
        np.save(folder / "features.npy", np.random.default_rng(0).normal(size=(n, 2)))
        options = {"text": known(text), "label": known(label), "features": str(folder / "features.npy")}
        try:
            data, run = audited(source, options, folder / "run")
        except LaplaceConfidenceError:
            return
        assert data.sources is not None
        assert data.sources.tolist() == [known(cell) for cell in table[text]]
        if data.class_values.dtype.kind == "U":  # not where "1" and "1.0" are one number
            assert labels_of(data) == [known(cell) if cell.strip() else None for cell in table[label]]
        with (run.folder / "issues.csv").open(newline="", encoding="utf-8") as file:
            rows = {int(row["row"]): unguarded(row["text"]) for row in csv.DictReader(file)}
        assert [rows[row] for row in range(n)] == data.sources.tolist()
        assert run.issues.sort_index()["text"].tolist() == data.sources.tolist()
        exported = write_export(plan_export(run), folder / f"same{suffix}")
        assert cells_of(exported.path) == cells_of(source)
        if out != suffix:
            check_export(run, data, folder / f"other{out}")
