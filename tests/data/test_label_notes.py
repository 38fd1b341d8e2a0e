"""Labels and tables that are probably not meant as they are written are read with a warning."""

import gzip
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laplaceconfidence import NoisyDataset
from laplaceconfidence.data.readers import read_dataset
from laplaceconfidence.exceptions import LaplaceConfidenceWarning


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (
            [3, -1, 5, -1],
            r"'-1' is a class of its own \(2 labels\).*--missing-label -1,.*missing_label=-1",
        ),
        (["cat", "dog", "unknown"], "'unknown' is a class of its own .1 label.*--missing-label unknown,"),
        (["cat", "dog", "?"], r"--missing-label '\?', or in Python missing_label='\?'"),
        (["cat", "dog", "cat "], "differ only in blanks .*: 'cat' and 'cat '"),
        (["cat", "dog", "Cat", "cat\u00a0"], "'Cat' and 'cat' and 'cat\\\\xa0'"),
    ],
)
def test_classes_that_are_probably_not_meant(labels: list[Any], message: str) -> None:
    with pytest.warns(LaplaceConfidenceWarning, match=message):
        assert NoisyDataset.from_arrays(labels).n_classes == len(set(labels))


@pytest.mark.parametrize(
    ("labels", "options"),
    [
        ([-1, 1, -1], {}),
        ([-2, -1, 0, 1], {}),
        ([3, -1, 5], {"missing_label": -1}),
        (["cat", "?", "dog"], {"missing_label": "?"}),
        ([0, -1, 1], {"class_names": ["cat", "dog"]}),
        ([3, -1, 5], {"classes": [-1, 3, 5]}),
        (["cat", "cats", ""], {}),
    ],
)
def test_classes_without_a_warning(labels: list[Any], options: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        NoisyDataset.from_arrays(labels, **options)


@pytest.mark.parametrize("column", ["x,text,label", "label,text,x", "x,label,text"])
def test_short_rows_are_counted(tmp_path: Path, column: str) -> None:
    rows = [("1", "a", "b"), ("1",), ("2", "c", "d"), ("3", "e")]
    content = "\n".join([column, *(",".join(row) for row in rows)])
    (tmp_path / "data.csv").write_text(content)
    (tmp_path / "data.csv.gz").write_bytes(gzip.compress(content.encode()))
    for name in ("data.csv", "data.csv.gz"):
        with pytest.warns(LaplaceConfidenceWarning, match=r"2 rows of .* fewer cells .* first in row 1"):
            assert len(read_dataset(tmp_path / name)) == 4


def test_empty_cells_are_no_short_rows(tmp_path: Path) -> None:
    long = "x" * 200_000
    (tmp_path / "data.csv").write_text(f'x,label,text,y\n1,a,"{long}\n",\n2,b,c,4\n\n3,a,d,\n')
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(read_dataset(tmp_path / "data.csv")) == 3


def test_an_id_column_with_duplicates_is_told(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("id,x,label\n7,1,a\n7,2,b\n,3,a\n")
    message = r"'id' of .* does not identify the samples \(1 of its 3 cells repeat .*, 1 are empty\)"
    with pytest.warns(LaplaceConfidenceWarning, match=message):
        data = read_dataset(tmp_path / "data.csv", features="x")
    assert data.ids is None
    np.testing.assert_array_equal(data.features, [[1], [2], [3]])
