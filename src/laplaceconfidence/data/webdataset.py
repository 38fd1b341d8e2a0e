"""Reader of WebDataset shards: tar archives in which the files of a sample share a name and are adjacent.

    0001.jpg  0001.cls   0002.jpg  0002.cls  ...

What follows the first dot is the field: an image, ``cls`` (the label), ``json`` (an object of more fields),
``txt`` (a text) or ``npy`` (a feature vector). Nothing is unpacked to disk.
"""

from __future__ import annotations

import io
import json
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from laplaceconfidence.arrays import ByteImages
from laplaceconfidence.data.arrow_images import ColumnImages
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.image_folder import IMAGE_SUFFIXES
from laplaceconfidence.data.images import load_image
from laplaceconfidence.data.label_files import parse_labels
from laplaceconfidence.data.read_options import USUAL_NAMES, ReadOptions
from laplaceconfidence.data.record_reader import RecordTable
from laplaceconfidence.data.source_paths import in_order, listed_file
from laplaceconfidence.data.tables import TABLE_OPTIONS, dataset_of_table
from laplaceconfidence.exceptions import DataFormatError
from laplaceconfidence.validation import must_be

TAR_SUFFIXES = (".tar", ".tar.gz", ".tgz")
CLASS_FIELD, KEY_FIELD = "cls", "__key__"

_LARGEST_FILE = 256 * 2**20  # bytes of one field of one sample


def tar_files(folder: Path) -> list[Path]:
    """Return the tar archives in a folder, by name.

    Parameters
    ----------
    folder : Path
        The folder.

    Returns
    -------
    list of Path
        Numbers in names are in numeric order.
    """
    return in_order(
        path for path in folder.iterdir() if path.name.lower().endswith(TAR_SUFFIXES) and path.is_file()
    )


def read_webdataset(path: Path, options: ReadOptions) -> NoisyDataset:
    """Read one shard, or all shards of a folder, in one pass; images are decoded.

    Parameters
    ----------
    path : Path
        A tar archive, or a folder of them.
    options : ReadOptions
        ``images`` names the field of the images where there are several, ``image_size`` resizes them; the
        options of a table name fields or keys of the ``json`` files.

    Returns
    -------
    NoisyDataset
        Ids are the names that the files of a sample share.
    """
    usable = [name for name in TABLE_OPTIONS if name != "path"]
    options.allow_only("WebDataset shards", "images", "image_size", *usable)
    shards = tar_files(path) if path.is_dir() else [path]
    samples: list[_Sample] = []
    of_shard: list[str] = []
    for shard in shards:
        samples += _samples(shard, options)
        of_shard += [shard.name.split(".")[0]] * (len(samples) - len(of_shard))
    if not samples:
        raise DataFormatError(f"{path} holds neither samples of a WebDataset nor CIFAR as it is published.")
    keys = [sample.key for sample in samples]
    if len(set(keys)) != len(keys):  # the shards count from the beginning
        keys = [f"{shard}/{key}" for shard, key in zip(of_shard, keys, strict=True)]
    records = [{**sample.fields, KEY_FIELD: key} for sample, key in zip(samples, keys, strict=True)]
    if any(CLASS_FIELD in record for record in records):
        labels = parse_labels([str(record.get(CLASS_FIELD, "")) for record in records]).tolist()
        for record, label in zip(records, labels, strict=True):
            record[CLASS_FIELD] = label
    table = RecordTable(records, str(path))
    if options.label is None and not any(name in table.column_names for name in USUAL_NAMES["label"]):
        options = replace(options, label=CLASS_FIELD)
    options = replace(options, id=options.id or KEY_FIELD)
    return dataset_of_table(table, options, _images(samples, path, options))


@dataclass(slots=True)
class _Sample:
    key: str
    fields: dict[str, Any] = field(default_factory=dict)
    images: dict[str, ByteImages] = field(default_factory=dict)


def _samples(shard: Path, options: ReadOptions) -> Iterator[_Sample]:
    sample: _Sample | None = None
    for name, content in _files(shard):
        path = PurePosixPath(name)
        stem, _, extension = path.name.partition(".")
        key = (path.parent / stem).as_posix()
        if sample is None or sample.key != key:
            if sample is not None:
                yield sample
            sample = _Sample(key)
        _add_field(sample, extension.lower(), content, f"{name!r} in {shard}", options)
    if sample is not None:
        yield sample


def _add_field(sample: _Sample, extension: str, content: bytes, where: str, options: ReadOptions) -> None:
    kind = extension.rpartition(".")[2]
    if extension in sample.fields or extension in sample.images:
        raise DataFormatError(f"{where} is there twice for one sample: write the shard again.")
    try:
        if f".{kind}" in IMAGE_SUFFIXES:
            if options.images in (None, extension):
                sample.images[extension] = load_image(io.BytesIO(content), options.image_size)
        elif kind == "json":
            loaded = json.loads(content)
            if not isinstance(loaded, dict):
                raise ValueError("it is not an object")
            sample.fields |= loaded
        elif kind == "npy":
            sample.fields[extension] = np.load(io.BytesIO(content), allow_pickle=False)
        elif kind in ("txt", "text"):
            sample.fields["text" if extension == kind else extension] = content.decode("utf-8")
        elif kind == CLASS_FIELD:
            sample.fields[extension] = content.decode("utf-8").strip()
    except (ValueError, RecursionError, EOFError, OSError) as error:
        raise DataFormatError(f"{where} cannot be read: {error}.") from error


def _files(shard: Path) -> Iterator[tuple[str, bytes]]:
    """Yield names and contents of the files of an archive."""
    try:
        with tarfile.open(shard, "r:*") as archive:
            for member in archive:
                if member.isdir():
                    continue
                listed_file(shard.parent, member.name, str(shard))
                if not member.isfile():
                    raise DataFormatError(f"{member.name!r} in {shard} is a link, which is not followed.")
                if member.size > _LARGEST_FILE:
                    raise DataFormatError(f"{member.name!r} in {shard} is larger than 256 MiB.")
                file = archive.extractfile(member)
                assert file is not None  # as it is a file
                content = file.read()
                if len(content) != member.size:
                    raise tarfile.ReadError("unexpected end of data")
                yield member.name, content
            _check_end(archive)
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise DataFormatError(
            f"{shard} cannot be read as a tar archive: it is truncated or damaged ({error}). Copy it again."
        ) from error


def _check_end(archive: tarfile.TarFile) -> None:
    """Raise unless the archive ends with empty blocks, as every complete one does.

    The reader takes the end of the file for the end of the archive, so that samples could be lost.
    """
    assert archive.fileobj is not None
    archive.fileobj.seek(archive.offset)
    if archive.fileobj.read(tarfile.BLOCKSIZE).count(0) < tarfile.BLOCKSIZE:
        raise tarfile.ReadError("its end is missing")


def _images(samples: list[_Sample], path: Path, options: ReadOptions) -> ColumnImages | None:
    names = sorted({name for sample in samples for name in sample.images})
    if options.images is not None and not names:
        raise must_be("images", f"a field of images of {path}", options.images)
    per_sample = max(len(sample.images) for sample in samples)
    if per_sample == 0:
        if options.image_size is not None:
            raise must_be("image_size", f"left out, as {path} has no images", options.image_size)
        return None
    if per_sample > 1:
        raise must_be("images", f"given, as {path} has several images per sample ({', '.join(names)})", None)
    if without := [sample.key for sample in samples if not sample.images]:
        raise DataFormatError(f"{len(without):,} samples of {path} have no image, such as {without[0]!r}.")
    images = [next(iter(sample.images.values())) for sample in samples]
    for sample, image in zip(samples, images, strict=True):
        if image.shape != images[0].shape:
            sizes = [f"{width} x {height}" for height, width, _ in (images[0].shape, image.shape)]
            found = f"{samples[0].key!r} has {sizes[0]} pixels, {sample.key!r} has {sizes[1]}"
            raise must_be("image_size", "given where images differ in size", None, f"Here {found}.")
    return ColumnImages(images=np.stack(images))
