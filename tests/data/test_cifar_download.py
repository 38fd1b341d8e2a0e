"""Fetching CIFAR: what is kept is what was published, and failures explain themselves."""

import hashlib
import http.server
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from laplaceconfidence.data import cifar_download
from laplaceconfidence.data.cifar_download import CIFAR_ARCHIVES, PublishedArchive, cifar_archive, data_folder
from laplaceconfidence.data.readers import has_published_test, read_dataset
from laplaceconfidence.exceptions import DataFormatError, DownloadError, InvalidInputError

CONTENT = bytes(range(256)) * 9_000  # more than one chunk


@pytest.fixture(scope="module")
def publisher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A web server on this machine with an archive, one that is cut off and one that was tampered with."""
    folder = tmp_path_factory.mktemp("published")
    (folder / "whole.tar.gz").write_bytes(CONTENT)
    (folder / "cut.tar.gz").write_bytes(CONTENT[:-1])
    (folder / "longer.tar.gz").write_bytes(CONTENT + b"!")
    (folder / "other.tar.gz").write_bytes(b"!" + CONTENT[1:])

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: object) -> None:
            super().__init__(*args, directory=str(folder))  # type: ignore[arg-type]

        def log_message(self, *_: object) -> None:
            """Nothing on the console of the tests."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def archive(publisher: str, monkeypatch: pytest.MonkeyPatch) -> PublishedArchive:
    """``cifar10`` stands for the small archive of the server above."""
    small = PublishedArchive(
        url=f"{publisher}/whole.tar.gz",
        n_bytes=len(CONTENT),
        md5=hashlib.md5(CONTENT).hexdigest(),
        sha256=hashlib.sha256(CONTENT).hexdigest(),
    )
    monkeypatch.setitem(CIFAR_ARCHIVES, "cifar10", small)
    return small


def test_the_archive_is_fetched_once(archive: PublishedArchive, tmp_path: Path) -> None:
    path = cifar_archive("cifar10", tmp_path / "new" / "folder")
    assert path.read_bytes() == CONTENT
    before = path.stat().st_mtime_ns
    assert cifar_archive("cifar10", path.parent) == path
    assert path.stat().st_mtime_ns == before
    assert [entry.name for entry in path.parent.iterdir()] == ["whole.tar.gz"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cut.tar.gz", r"has 2,303,999 bytes instead of 2,304,000 and was deleted\. Try again"),
        ("longer.tar.gz", r"has more than 2,304,000 bytes"),
        ("other.tar.gz", r"is not the published archive and was deleted: its SHA-256 is [0-9a-f]{64}"),
        ("absent.tar.gz", r"cannot be reached \(File not found\)"),
    ],
)
def test_what_was_not_published_is_not_kept(
    archive: PublishedArchive, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, message: str
) -> None:
    url = archive.url.replace("whole.tar.gz", name)
    monkeypatch.setitem(CIFAR_ARCHIVES, "cifar10", replace(archive, url=url))
    with pytest.raises(DownloadError, match=message):
        cifar_archive("cifar10", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_without_network_it_says_what_to_do(
    archive: PublishedArchive, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    unreachable = replace(archive, url="http://127.0.0.1:9/cifar-10-python.tar.gz")
    monkeypatch.setitem(CIFAR_ARCHIVES, "cifar10", unreachable)
    with pytest.raises(DownloadError) as caught:
        cifar_archive("cifar10", tmp_path, timeout=2)
    message = str(caught.value)
    assert "http://127.0.0.1:9/cifar-10-python.tar.gz cannot be reached (" in message
    assert f"copy it to {tmp_path / 'cifar-10-python.tar.gz'}" in message
    assert archive.md5 in message


def test_a_damaged_copy_is_noticed(archive: PublishedArchive, tmp_path: Path) -> None:
    (tmp_path / archive.name).write_bytes(CONTENT[:100])
    with pytest.raises(DataFormatError, match=r"\(100 bytes\) is not whole.tar.gz as published"):
        cifar_archive("cifar10", tmp_path)


def test_a_full_disk_is_noticed_before(
    archive: PublishedArchive, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    usage = type("Usage", (), {"free": 1_000_000})()
    monkeypatch.setattr(cifar_download.shutil, "disk_usage", lambda _: usage)
    with pytest.raises(DownloadError, match=r"needs 2 MB in .* where 1 MB are free"):
        cifar_archive("cifar10", tmp_path)


def test_a_place_that_cannot_be_written_is_named(archive: PublishedArchive, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DownloadError, match=r"cannot be stored in .*file.*LAPLACECONFIDENCE_DATA"):
        cifar_archive("cifar10", tmp_path / "file")


def test_where_downloads_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("LAPLACECONFIDENCE_DATA", raising=False)
    assert data_folder() == tmp_path / "cache" / "laplaceconfidence"
    monkeypatch.setenv("LAPLACECONFIDENCE_DATA", str(tmp_path / "mine"))
    assert data_folder() == tmp_path / "mine"


def test_read_dataset_knows_the_names(
    archive: PublishedArchive, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAPLACECONFIDENCE_DATA", str(tmp_path / "kept"))
    with pytest.raises(DataFormatError, match=r"whole\.tar\.gz cannot be read as an archive"):
        read_dataset("cifar10")  # fetched, and then not an archive: the content is made up
    assert has_published_test("cifar10")
    assert not has_published_test("digits")


def test_the_published_checksums() -> None:
    assert set(CIFAR_ARCHIVES) == {"cifar10", "cifar100"}
    for published in CIFAR_ARCHIVES.values():
        assert published.url.startswith("https://www.cs.toronto.edu/~kriz/cifar-")
        assert (len(published.md5), len(published.sha256)) == (32, 64)
    with pytest.raises(InvalidInputError, match="'name' parameter must be one of 'cifar10', 'cifar100'"):
        cifar_archive("cifar1000")
