"""Files are whole or not there."""

import json
import os
import stat
from pathlib import Path

import pytest

from laplaceconfidence.files import differences, replacing, write_json


def test_the_content_appears_at_the_end(tmp_path: Path) -> None:
    target = tmp_path / "table.csv"
    with replacing(target) as temporary:
        assert temporary.parent == tmp_path
        assert temporary.suffix == ".csv"
        temporary.write_text("whole")
        assert not target.exists()
    assert target.read_text() == "whole"
    assert list(tmp_path.iterdir()) == [target]


def test_what_fails_leaves_the_old_file_and_no_trace(tmp_path: Path) -> None:
    target = tmp_path / "table.csv"
    target.write_text("old")

    def fail() -> None:
        with replacing(target) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_permissions_follow_the_mask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with replacing(tmp_path / "file") as temporary:
            temporary.write_text("x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


def test_json_is_readable_and_strict(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    write_json(path, {"name": "Köter", "values": [1, 2.5, None]})
    assert json.loads(path.read_text(encoding="utf-8")) == {"name": "Köter", "values": [1, 2.5, None]}
    assert "Köter" in path.read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(path, {"value": float("nan")})
    assert json.loads(path.read_text(encoding="utf-8"))["name"] == "Köter"


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_json(tmp_path / "nowhere" / "run.json", {})


def test_differences_name_nested_settings() -> None:
    before = {"a": 1, "b": {"c": [1], "d": 2}}
    now = {"a": 1, "b": {"c": [2], "d": 2}, "e": None}
    assert differences(before, now) == ["b.c: [1] there, [2] now", "e: 'not set' there, None now"]
