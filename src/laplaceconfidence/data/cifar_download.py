"""Download of the archives of CIFAR-10 and CIFAR-100, with checksums."""

from __future__ import annotations

import hashlib
import os
import shutil
import urllib.error
import urllib.request
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from laplaceconfidence.exceptions import DataFormatError, DownloadError
from laplaceconfidence.files import replacing
from laplaceconfidence.stages import stage
from laplaceconfidence.validation import check_choice, check_real

DATA_VARIABLE = "LAPLACECONFIDENCE_DATA"
"""Environment variable with the folder for downloads."""

_CHUNK = 1024 * 1024


@dataclass(frozen=True, slots=True)
class PublishedArchive:
    """A published archive.

    Attributes
    ----------
    url : str
        Its address.
    n_bytes : int
        Its size.
    md5, sha256 : str
        Its checksums; the MD5 is the one that the publisher states.
    """

    url: str
    n_bytes: int
    md5: str
    sha256: str

    @property
    def name(self) -> str:
        """Name of the file."""
        return self.url.rpartition("/")[2]


CIFAR_ARCHIVES: dict[str, PublishedArchive] = {
    "cifar10": PublishedArchive(
        url="https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
        n_bytes=170_498_071,
        md5="c58f30108f718f92721af3b95e74349a",
        sha256="6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
    ),
    "cifar100": PublishedArchive(
        url="https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
        n_bytes=169_001_437,
        md5="eb9058c3a382ffc7106e4002c42a8d85",
        sha256="85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7",
    ),
}


def data_folder() -> Path:
    """Return the folder for downloads: LAPLACECONFIDENCE_DATA, or else the user's cache folder.

    Returns
    -------
    Path
    """
    if chosen := os.environ.get(DATA_VARIABLE):
        return Path(chosen)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "laplaceconfidence"


def cifar_archive(name: str, folder: str | Path | None = None, *, timeout: float = 30) -> Path:
    """Return the path of an archive, which is downloaded unless ``folder`` has it already.

    A download whose checksum differs from the published one is deleted.

    Parameters
    ----------
    name : {"cifar10", "cifar100"}
        Which archive.
    folder : str, Path or None, default=None
        Where it is stored; ``None`` uses ``data_folder()``.
    timeout : float, default=30
        Seconds without data after which the download fails.

    Returns
    -------
    Path
        ``read_dataset`` reads the archive without unpacking it.
    """
    archive = CIFAR_ARCHIVES[check_choice(name, "name", tuple(CIFAR_ARCHIVES))]
    check_real(timeout, "timeout", above=0)
    target = (data_folder() if folder is None else Path(folder)) / archive.name
    if target.is_file():
        _check_existing(target, archive)
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _check_free_space(target.parent, archive)
        with replacing(target) as temporary:
            _fetch(archive, temporary, timeout)
    except (urllib.error.URLError, HTTPException, TimeoutError, ConnectionError) as error:
        raise DownloadError(_without_network(archive, target, error)) from error
    except DownloadError:
        raise
    except OSError as error:
        raise DownloadError(
            f"{archive.name} cannot be stored in {target.parent}: {error.strerror or error}. "
            f"Set another folder with the environment variable {DATA_VARIABLE}."
        ) from error
    return target


def _check_existing(path: Path, archive: PublishedArchive) -> None:
    """Check that an existing file, perhaps copied by hand, is the published one."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != archive.sha256:
        raise DataFormatError(
            f"{path} ({path.stat().st_size:,} bytes) is not {archive.name} as published "
            f"({archive.n_bytes:,} bytes): its SHA-256 is {found}. Delete it and start again."
        )


def _fetch(archive: PublishedArchive, path: Path, timeout: float) -> None:
    request = urllib.request.Request(archive.url, headers={"User-Agent": "laplaceconfidence"})
    with (
        urllib.request.urlopen(request, timeout=timeout) as response,
        path.open("wb") as file,
        stage("downloading", total=archive.n_bytes) as advance,
    ):
        md5, sha256 = hashlib.md5(usedforsecurity=False), hashlib.sha256()
        n_bytes = 0
        while chunk := response.read(_CHUNK):
            n_bytes += len(chunk)
            if n_bytes > archive.n_bytes:
                break
            md5.update(chunk)
            sha256.update(chunk)
            file.write(chunk)
            advance(len(chunk))
    if n_bytes != archive.n_bytes:
        found = f"more than {archive.n_bytes:,}" if n_bytes > archive.n_bytes else f"{n_bytes:,}"
        raise DownloadError(
            f"The download of {archive.url} has {found} bytes instead of {archive.n_bytes:,} and was "
            "deleted. Try again."
        )
    if (md5.hexdigest(), sha256.hexdigest()) != (archive.md5, archive.sha256):
        raise DownloadError(
            f"The file from {archive.url} is not the published archive and was deleted: its SHA-256 is "
            f"{sha256.hexdigest()}, it must be {archive.sha256}. Try again, or use another network."
        )


def _check_free_space(folder: Path, archive: PublishedArchive) -> None:
    free = shutil.disk_usage(folder).free
    if free < archive.n_bytes:
        raise DownloadError(
            f"{archive.name} needs {archive.n_bytes / 1e6:.0f} MB in {folder}, where {free / 1e6:.0f} MB are "
            f"free. Free some space, or set another folder with the environment variable {DATA_VARIABLE}."
        )


def _without_network(archive: PublishedArchive, target: Path, error: Exception) -> str:
    reason = getattr(error, "reason", None) or error
    return (
        f"{archive.url} cannot be reached ({reason}). On a machine with network access, download that file "
        f"({archive.n_bytes / 1e6:.0f} MB, MD5 {archive.md5}) and copy it to {target}; or pass the path of "
        "the archive, or of the folder it unpacks into, as the source."
    )
