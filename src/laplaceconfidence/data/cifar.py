"""Readers of CIFAR-10 and CIFAR-100 as published: pickled or binary, in a folder or in their archive."""

from __future__ import annotations

import io
import tarfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from laplaceconfidence.arrays import ByteImages, IntArray
from laplaceconfidence.data.array_files import load_features
from laplaceconfidence.data.cifar_classes import CIFAR10_CLASSES, CIFAR100_CLASSES, CIFAR100_SUPERCLASSES
from laplaceconfidence.data.cifar_pickle import load_batch
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.read_options import ReadOptions
from laplaceconfidence.exceptions import DataFormatError
from laplaceconfidence.validation import check_choice

Contents = dict[str, Callable[[], bytes]]  # functions that read the files of a folder or archive, by name

_PIXELS = 3 * 32 * 32  # per image: the red, the green and the blue channel
_MOST_MEMBERS = 12  # the published archives have at most 9 files and folders
_LARGEST_FILE = 256 * 1024**2  # the largest published one has 148 MB


@dataclass(frozen=True, slots=True)
class Layout:
    """One of the four published formats.

    Attributes
    ----------
    folder : str
        The folder in the published archive.
    train, test : tuple of str
        Files of the training and of the test part.
    pickled : bool
        Whether the files are pickled, or else binary.
    label_kinds : tuple of str
        Kinds of labels in the order of their bytes before a binary image: "coarse" and "fine" for CIFAR-100,
        "" for CIFAR-10.
    names_files : tuple of str
        Files with the names of the classes, one per kind of label.
    """

    folder: str
    train: tuple[str, ...]
    test: tuple[str, ...]
    pickled: bool
    label_kinds: tuple[str, ...]
    names_files: tuple[str, ...]


_BATCHES = tuple(f"data_batch_{number}" for number in range(1, 6))
LAYOUTS = (
    Layout(
        folder="cifar-10-batches-py",
        train=_BATCHES,
        test=("test_batch",),
        pickled=True,
        label_kinds=("",),
        names_files=("batches.meta",),
    ),
    Layout(
        folder="cifar-10-batches-bin",
        train=tuple(f"{batch}.bin" for batch in _BATCHES),
        test=("test_batch.bin",),
        pickled=False,
        label_kinds=("",),
        names_files=("batches.meta.txt",),
    ),
    Layout(
        folder="cifar-100-python",
        train=("train",),
        test=("test",),
        pickled=True,
        label_kinds=("coarse", "fine"),
        names_files=("meta", "meta"),
    ),
    Layout(
        folder="cifar-100-binary",
        train=("train.bin",),
        test=("test.bin",),
        pickled=False,
        label_kinds=("coarse", "fine"),
        names_files=("coarse_label_names.txt", "fine_label_names.txt"),
    ),
)
_PUBLISHED_NAMES = {
    "": CIFAR10_CLASSES,
    "fine": CIFAR100_CLASSES,
    "coarse": tuple(CIFAR100_SUPERCLASSES),
}


def is_cifar_folder(folder: Path) -> bool:
    """Return whether a folder holds batches of CIFAR, or the published folder that does.

    Parameters
    ----------
    folder : Path
        The folder.

    Returns
    -------
    bool
    """
    return _layout_of(_folder_contents(folder)) is not None


def read_cifar_folder(folder: Path, options: ReadOptions) -> NoisyDataset:
    """Read CIFAR from the folder that its archive unpacks into, or from its parent folder.

    Parameters
    ----------
    folder : Path
        The folder.
    options : ReadOptions
        Options of ``read_dataset``.

    Returns
    -------
    NoisyDataset
    """
    return _read(_folder_contents(folder), str(folder), options)


def is_cifar_archive(path: Path) -> bool:
    """Return whether an archive holds batches of CIFAR; only its first files are looked at.

    Parameters
    ----------
    path : Path
        The archive.

    Returns
    -------
    bool
    """
    published = {name for layout in LAYOUTS for name in (*layout.train, *layout.test, *layout.names_files)}
    try:
        with tarfile.open(path, "r:*") as archive:
            for _, member in zip(range(_MOST_MEMBERS), archive, strict=False):
                if Path(member.name).name in published:
                    return True
    except (tarfile.TarError, EOFError, OSError, zlib.error):
        return False  # the reader reports what is wrong with it
    return False


def read_cifar_archive(path: Path, options: ReadOptions) -> NoisyDataset:
    """Read CIFAR from its archive without unpacking it to disk.

    Parameters
    ----------
    path : Path
        The archive.
    options : ReadOptions
        Options of ``read_dataset``.

    Returns
    -------
    NoisyDataset
    """
    return _read(_archive_contents(path), str(path), options)


def _read(contents: Contents, origin: str, options: ReadOptions) -> NoisyDataset:
    layout = _layout_of(contents)
    if layout is None:
        published = ", ".join(layout.folder for layout in LAYOUTS)
        raise DataFormatError(f"{origin} holds CIFAR in none of its published formats ({published}).")
    allowed = ("features", "split", "label") if len(layout.label_kinds) > 1 else ("features", "split")
    options.allow_only(layout.folder, *allowed)
    split = check_choice(options.split or "train", "split", ("train", "test", "all"))
    kind = layout.label_kinds[-1]
    if options.label is not None:
        kind = check_choice(options.label, "label", ("fine", "coarse"))
    names = _class_names(contents, layout, kind, origin)
    parts = ("train", "test") if split == "all" else (split,)
    images, labels = zip(*(_part(contents, layout, part, kind, origin) for part in parts), strict=True)
    codes = np.concatenate(labels)
    if len(codes) and not 0 <= codes.min() <= codes.max() < len(names):
        raise DataFormatError(
            f"{origin} has labels from {codes.min()} to {codes.max()} for {len(names)} classes: "
            "it is damaged or of another format."
        )
    return NoisyDataset.from_arrays(
        codes,
        None if options.features is None else load_features(options.features),
        class_names=names,
        images=images[0] if len(parts) == 1 else np.concatenate(images),
        ids=[
            f"{part}/{row}"
            for part, of_part in zip(parts, labels, strict=True)
            for row in range(len(of_part))
        ],
    )


def _part(
    contents: Contents, layout: Layout, part: str, kind: str, origin: str
) -> tuple[ByteImages, IntArray]:
    """Read the images and label codes of the training or the test part."""
    batches = []
    for file in layout.train if part == "train" else layout.test:
        name = f"{file!r} of {origin}"
        if file not in contents:
            raise DataFormatError(f"{name} is missing: unpack or download the archive again.")
        read = _read_pickled if layout.pickled else _read_binary
        batches.append(read(contents[file](), name, layout, kind))
    images = np.empty((sum(len(codes) for _, codes in batches), 32, 32, 3), dtype=np.uint8)
    start = 0
    for planes, codes in batches:
        images[start : start + len(codes)] = planes.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        start += len(codes)
    return images, np.concatenate([codes for _, codes in batches])


def _read_pickled(content: bytes, name: str, layout: Layout, kind: str) -> tuple[ByteImages, IntArray]:
    batch = load_batch(io.BytesIO(content), name)
    planes, labels = batch.get("data"), batch.get(_key(kind, "labels"))
    if not isinstance(planes, np.ndarray) or planes.dtype != np.uint8 or planes.shape[1:] != (_PIXELS,):
        raise DataFormatError(f"{name} must hold 'data', bytes of shape (n, {_PIXELS}): download it again.")
    if not isinstance(labels, list) or not all(isinstance(label, int) for label in labels):
        raise DataFormatError(f"{name} must hold {_key(kind, 'labels')!r}, a list of integers.")
    if len(labels) != len(planes):
        raise DataFormatError(f"{name} has {len(planes)} images and {len(labels)} labels.")
    return planes, np.array(labels, dtype=np.int64)


def _read_binary(content: bytes, name: str, layout: Layout, kind: str) -> tuple[ByteImages, IntArray]:
    """Read records of one byte per label followed by the image."""
    n_labels = len(layout.label_kinds)
    if not content or len(content) % (n_labels + _PIXELS):
        raise DataFormatError(
            f"{name} must hold records of {n_labels + _PIXELS} bytes; {len(content)} bytes are not a "
            "multiple of that: it is truncated. Download it again."
        )
    records = np.frombuffer(content, dtype=np.uint8).reshape(-1, n_labels + _PIXELS)
    return records[:, n_labels:], records[:, layout.label_kinds.index(kind)].astype(np.int64)


def _class_names(contents: Contents, layout: Layout, kind: str, origin: str) -> list[str]:
    file = layout.names_files[layout.label_kinds.index(kind)]
    if file not in contents:
        return list(_PUBLISHED_NAMES[kind])
    if not layout.pickled:
        return contents[file]().decode("utf-8", errors="replace").split()
    names = load_batch(io.BytesIO(contents[file]()), f"{file!r} of {origin}").get(_key(kind, "label_names"))
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise DataFormatError(
            f"{file!r} of {origin} must hold {_key(kind, 'label_names')!r}, a list of names."
        )
    return names


def _key(kind: str, name: str) -> str:
    return f"{kind}_{name}" if kind else name


def _layout_of(contents: Contents) -> Layout | None:
    marks = ((layout, {layout.train[0], layout.test[0]}) for layout in LAYOUTS)
    return next((layout for layout, files in marks if files & contents.keys()), None)


def _folder_contents(folder: Path) -> Contents:
    places = [folder, *(folder / layout.folder for layout in LAYOUTS)]
    holding = [
        contents for place in places if _layout_of(contents := {p.name: _reader(p) for p in _files(place)})
    ]
    if len(holding) > 1:
        raise DataFormatError(f"{folder} holds CIFAR more than once: pass the folder of one of them.")
    return holding[0] if holding else {}


def _files(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.is_file()]
    except OSError:  # does not exist, is not a folder or is not readable
        return []


def _reader(path: Path) -> Callable[[], bytes]:
    def read() -> bytes:
        try:
            return path.read_bytes()
        except OSError as error:
            raise DataFormatError(f"{path} cannot be read: {error}.") from error

    return read


def _archive_contents(path: Path) -> Contents:
    """Read the files of CIFAR in an archive in one pass: seeking back in a gzip stream starts it again."""
    wanted = {name for layout in LAYOUTS for name in (*layout.train, *layout.test, *layout.names_files)}
    contents: Contents = {}
    try:
        with tarfile.open(path, "r:*") as archive:
            for member in archive:
                name = Path(member.name).name
                file = archive.extractfile(member) if member.isfile() and name in wanted else None
                if file is None:
                    continue
                if member.size > _LARGEST_FILE:
                    raise DataFormatError(f"{member.name!r} in {path} is larger than any file of CIFAR.")
                contents[name] = io.BytesIO(file.read()).getvalue
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise DataFormatError(
            f"{path} cannot be read as an archive: it is truncated or damaged ({error}). Download it again."
        ) from error
    return contents
