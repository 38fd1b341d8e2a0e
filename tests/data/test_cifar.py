"""CIFAR in its four published formats, written here small but to the letter."""

import io
import os
import pickle
import pickletools
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from laplaceconfidence.data.cifar_classes import CIFAR10_CLASSES, CIFAR100_CLASSES, CIFAR100_SUPERCLASSES
from laplaceconfidence.data.readers import read_dataset
from laplaceconfidence.exceptions import DataFormatError, InvalidInputError

N = 4  # images a file; the published ones have 10,000 or more
SUPERCLASSES = tuple(CIFAR100_SUPERCLASSES)


class Python2Pickler(pickle._Pickler):  # type: ignore[name-defined,misc]
    """Writes bytes as Python 2 wrote its strings, which is what the published files hold."""

    dispatch: ClassVar[dict[type, Any]] = dict(pickle._Pickler.dispatch)  # type: ignore[attr-defined]

    def save_bytes(self, value: bytes) -> None:
        short = len(value) < 256
        self.write((b"U" + bytes([len(value)]) if short else b"T" + struct.pack("<i", len(value))) + value)
        self.memoize(value)

    dispatch[bytes] = save_bytes


def python2(content: object) -> bytes:
    file = io.BytesIO()
    Python2Pickler(file, protocol=2).dump(content)
    return file.getvalue().replace(b"numpy._core.multiarray", b"numpy.core.multiarray")


def planes(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (N, 3072), dtype=np.uint8)


def labels(seed: int, n_classes: int) -> list[int]:
    return np.random.default_rng(100 + seed).integers(0, n_classes, N).tolist()


def lines(names: tuple[str, ...]) -> bytes:
    return ("\n".join(names) + "\n").encode()


def as_bytes(names: tuple[str, ...]) -> list[bytes]:
    return [name.encode() for name in names]


def cifar10_python(dump: Callable[[object], bytes]) -> dict[str, bytes]:
    files = {}
    for seed, name in enumerate([f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]):
        files[name] = dump(
            {
                b"batch_label": b"training batch 1 of 5",
                b"labels": labels(seed, 10),
                b"data": planes(seed),
                b"filenames": [b"leptodactylus_s_%06d.png" % i for i in range(N)],
            }
        )
    files["batches.meta"] = dump(
        {b"num_cases_per_batch": 10000, b"label_names": as_bytes(CIFAR10_CLASSES), b"num_vis": 3072}
    )
    return files | {"readme.html": b"<html>"}


def cifar10_binary() -> dict[str, bytes]:
    files = {}
    for seed, name in enumerate([f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]):
        given = np.array(labels(seed, 10), np.uint8)[:, np.newaxis]
        files[name] = np.concatenate([given, planes(seed)], axis=1).tobytes()
    return files | {"batches.meta.txt": lines(CIFAR10_CLASSES) + b"\n", "readme.html": b"<html>"}


def cifar100_python(dump: Callable[[object], bytes]) -> dict[str, bytes]:
    files = {}
    for seed, name in enumerate(["train", "test"]):
        files[name] = dump(
            {
                b"filenames": [b"bos_taurus_s_%06d.png" % i for i in range(N)],
                b"batch_label": b"training batch 1 of 1",
                b"fine_labels": labels(seed, 100),
                b"coarse_labels": labels(seed, 20),
                b"data": planes(seed),
            }
        )
    names = {b"fine_label_names": as_bytes(CIFAR100_CLASSES), b"coarse_label_names": as_bytes(SUPERCLASSES)}
    return files | {"meta": dump(names), "file.txt~": b""}


def cifar100_binary() -> dict[str, bytes]:
    files = {}
    for seed, name in enumerate(["train.bin", "test.bin"]):
        coarse, fine = (np.array(labels(seed, n), np.uint8)[:, np.newaxis] for n in (20, 100))
        files[name] = np.concatenate([coarse, fine, planes(seed)], axis=1).tobytes()
    names = {"fine_label_names.txt": lines(CIFAR100_CLASSES), "coarse_label_names.txt": lines(SUPERCLASSES)}
    return files | names


FORMS: dict[str, tuple[str, Callable[[], dict[str, bytes]]]] = {
    "cifar10 pickled": ("cifar-10-batches-py", lambda: cifar10_python(python2)),
    "cifar10 pickled anew": ("cifar-10-batches-py", lambda: cifar10_python(lambda x: pickle.dumps(x, 2))),
    "cifar10 binary": ("cifar-10-batches-bin", cifar10_binary),
    "cifar100 pickled": ("cifar-100-python", lambda: cifar100_python(python2)),
    "cifar100 pickled anew": ("cifar-100-python", lambda: cifar100_python(lambda x: pickle.dumps(x, 4))),
    "cifar100 binary": ("cifar-100-binary", cifar100_binary),
}
WHERE = ("folder", "folder above", "tar.gz", "tgz", "tar")


def published(form: str, where: str, at: Path, files: dict[str, bytes] | None = None) -> Path:
    name, make = FORMS[form]
    folder = at / name
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in (files or make()).items():
        (folder / file).write_bytes(content)
    if where == "folder":
        return folder
    if where == "folder above":
        return at
    archive = at / f"{name}.{where}"
    with tarfile.open(archive, "w" if where == "tar" else "w:gz") as tar:
        tar.add(folder, arcname=name)
    return archive


def upright(seed: int) -> np.ndarray:
    return planes(seed).reshape(N, 3, 32, 32).transpose(0, 2, 3, 1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("where", WHERE)
def test_every_published_form(tmp_path: Path, form: str, where: str) -> None:
    source = published(form, where, tmp_path)
    n_classes, names = (10, CIFAR10_CLASSES) if "cifar10 " in form else (100, CIFAR100_CLASSES)
    n_train = 5 if n_classes == 10 else 1

    train = read_dataset(source)
    assert train.class_names == names
    assert train.images is not None
    assert train.images.flags.c_contiguous
    np.testing.assert_array_equal(train.images, np.concatenate([upright(seed) for seed in range(n_train)]))
    assert train.labels.tolist() == [code for seed in range(n_train) for code in labels(seed, n_classes)]
    assert train.sample_ids.tolist() == [f"train/{row}" for row in range(n_train * N)]
    assert train.labels_as_written().tolist() == train.labels.tolist()

    test = read_dataset(source, split="test")
    np.testing.assert_array_equal(test.images, upright(n_train))
    assert test.sample_ids.tolist() == [f"test/{row}" for row in range(N)]

    both = read_dataset(source, split="all")
    assert both.sample_ids.tolist() == train.sample_ids.tolist() + test.sample_ids.tolist()
    assert both.labels.tolist() == train.labels.tolist() + test.labels.tolist()


@pytest.mark.parametrize("form", [form for form in FORMS if "cifar100" in form])
def test_coarse_labels(tmp_path: Path, form: str) -> None:
    data = read_dataset(published(form, "folder", tmp_path), label="coarse")
    assert data.class_names == SUPERCLASSES
    assert data.labels.tolist() == labels(0, 20)
    with pytest.raises(
        InvalidInputError, match=r"'label' parameter must be one of 'fine', 'coarse'. Got 'label'"
    ):
        read_dataset(tmp_path, label="label")


def test_the_files_with_the_names_may_be_missing(tmp_path: Path) -> None:
    for form in FORMS:
        folder = published(form, "folder", tmp_path / form.replace(" ", "_"))
        for name in ("batches.meta", "batches.meta.txt", "meta", "fine_label_names.txt"):
            (folder / name).unlink(missing_ok=True)
        assert read_dataset(folder).class_names in (CIFAR10_CLASSES, CIFAR100_CLASSES)


def test_features_beside_the_images(tmp_path: Path) -> None:
    source = published("cifar10 binary", "folder", tmp_path)
    np.save(tmp_path / "embeddings.npy", np.ones((5 * N, 2), np.float16))
    data = read_dataset(source, features=tmp_path / "embeddings.npy")
    assert data.features is not None
    assert data.features.shape == (5 * N, 2)


def test_classes_stand_in_the_published_order() -> None:
    coarse_of_fine = (
        "4 1 14 8 0 6 7 7 18 3 3 14 9 18 7 11 3 9 7 11 6 11 5 10 7 6 13 15 3 15 0 11 1 10 12 14 16 9 11 5 "
        "5 19 8 8 15 13 14 17 18 10 16 4 17 4 2 0 17 4 18 17 10 3 2 12 12 16 12 1 9 19 2 10 0 1 16 12 9 13 "
        "15 13 16 19 2 4 6 19 5 5 8 19 18 1 2 15 6 0 17 8 14 13"
    )
    superclass = {name: i for i, names in enumerate(CIFAR100_SUPERCLASSES.values()) for name in names}
    assert [superclass[name] for name in CIFAR100_CLASSES] == [int(code) for code in coarse_of_fine.split()]
    assert list(SUPERCLASSES) == sorted(SUPERCLASSES)
    assert all(list(names) == sorted(names) for names in CIFAR100_SUPERCLASSES.values())


class Attack:
    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize("file", ["data_batch_1", "batches.meta"])
@pytest.mark.parametrize(
    ("function", "named"),
    [
        (os.system, "posix.system"),
        (eval, "eval"),
        (print, "print"),
        (np.load, "numpy.load"),
        (os.remove, "remove"),
    ],
)
def test_a_pickle_that_calls_anything_is_refused(
    tmp_path: Path, file: str, function: Any, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("still here")
    attack = Attack(function, f"rm {victim}" if function is os.system else str(victim))
    files = cifar10_python(python2)
    files[file] = pickle.dumps({b"data": attack, b"labels": [attack], b"label_names": [attack]}, 2)
    with pytest.raises(DataFormatError, match=rf"'{file}' of .* refers to .*{named}.*could run code"):
        read_dataset(published("cifar10 pickled", "folder", tmp_path, files))
    assert victim.read_text() == "still here"
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "content",
    [
        b"cnumpy\nndarray.__class__\n.",
        b"\x80\x04\x8c\x05numpy\x8c\x12ndarray.__init__.__globals__\x93.",
        b"cbuiltins\ngetattr\n.",
        b"c__main__\nx\n.",
        b"Pnowhere\n.",
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\ndtype\nI0\ntR.",
        b"c_codecs\nencode\n(Vabc\nVidna\ntR.",
    ],
)
def test_ways_around_the_list_of_names_are_closed(tmp_path: Path, content: bytes) -> None:
    files = cifar10_python(python2) | {"data_batch_1": content}
    with pytest.raises(DataFormatError, match="'data_batch_1' of"):
        read_dataset(published("cifar10 pickled", "folder", tmp_path, files))


BAD_BATCHES: list[tuple[dict[bytes, Any], str]] = [
    ({b"data": np.array([None] * N, dtype=object)}, "array of (objects|type 'O8')"),
    ({b"data": np.zeros((N, 3072), np.float32)}, r"must hold 'data', bytes of shape \(n, 3072\)"),
    ({b"data": np.zeros((N, 9), np.uint8)}, r"must hold 'data', bytes of shape \(n, 3072\)"),
    ({b"data": np.array(["text"] * N)}, "array of type 'U4'; only numbers"),
    ({b"data": np.zeros(N, dtype="u1,u1")}, "array of type 'V2'; only numbers"),
    ({b"data": None}, "must hold 'data'"),
    ({b"labels": [0]}, "has 4 images and 1 labels"),
    ({b"labels": [b"cat"] * N}, "must hold 'labels', a list of integers"),
    ({b"labels": [77] * N}, "labels from 0 to 77 for 10 classes|labels from [0-9]* to 77 for 10 classes"),
    ({b"labels": [-1] * N}, "labels from -1 to"),
]


@pytest.mark.parametrize(("change", "message"), BAD_BATCHES)
def test_batches_of_another_content(tmp_path: Path, change: dict[bytes, Any], message: str) -> None:
    batch = {b"labels": labels(0, 10), b"data": planes(0)} | change
    files = cifar10_python(python2) | {"data_batch_1": pickle.dumps(batch, 2)}
    with pytest.raises(DataFormatError, match=message):
        read_dataset(published("cifar10 pickled", "folder", tmp_path, files))


def test_what_is_no_batch(tmp_path: Path) -> None:
    for content, message in ((pickle.dumps([1], 2), "must hold a dict"), (b"", "truncated")):
        files = cifar10_python(python2) | {"data_batch_1": content}
        with pytest.raises(DataFormatError, match=message):
            read_dataset(published("cifar10 pickled", "folder", tmp_path, files))
    files = cifar10_python(python2) | {"batches.meta": pickle.dumps({b"label_names": 3}, 2)}
    with pytest.raises(
        DataFormatError, match=r"'batches.meta' of .* must hold 'label_names', a list of names"
    ):
        read_dataset(published("cifar10 pickled", "folder", tmp_path, files))


def test_bytes_in_either_order_and_layout(tmp_path: Path) -> None:
    data = planes(0)
    for array in (np.asfortranarray(data), data):
        files = cifar10_python(python2)
        files["data_batch_1"] = pickle.dumps({b"labels": labels(0, 10), b"data": array}, 2)
        images = read_dataset(published("cifar10 pickled", "folder", tmp_path, files)).images
        np.testing.assert_array_equal(images[:N], upright(0))  # type: ignore[index]


def test_missing_and_truncated_files_are_named(tmp_path: Path) -> None:
    folder = published("cifar10 binary", "folder", tmp_path)
    (folder / "data_batch_3.bin").unlink()
    with pytest.raises(DataFormatError, match=r"'data_batch_3.bin' of .* is missing"):
        read_dataset(folder)
    (folder / "data_batch_1.bin").write_bytes(b"12345")
    with pytest.raises(DataFormatError, match=r"'data_batch_1.bin' .* records of 3073 bytes; 5 bytes"):
        read_dataset(folder)
    archive = published("cifar100 pickled", "tar.gz", tmp_path / "other")
    archive.write_bytes(archive.read_bytes()[:2000])
    with pytest.raises(DataFormatError, match="truncated or damaged"):
        read_dataset(archive)


def test_other_archives_and_folders(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "other.tar.gz", "w:gz"):
        pass
    with pytest.raises(DataFormatError, match="neither samples of a WebDataset nor CIFAR"):
        read_dataset(tmp_path / "other.tar.gz")
    published("cifar10 binary", "folder", tmp_path)
    published("cifar100 binary", "folder", tmp_path)
    with pytest.raises(DataFormatError, match="holds CIFAR more than once"):
        read_dataset(tmp_path)


def test_options_that_mean_nothing_here(tmp_path: Path) -> None:
    source = published("cifar10 binary", "folder", tmp_path)
    with pytest.raises(
        InvalidInputError, match="'label' parameter must be left out for cifar-10-batches-bin"
    ):
        read_dataset(source, label="fine")
    with pytest.raises(
        InvalidInputError, match=r"'split' parameter must be one of 'train', 'test', 'all'. Got 'dev'"
    ):
        read_dataset(source, split="dev")


@given(
    cut=st.floats(0, 0.999), flips=st.lists(st.tuples(st.floats(0, 0.999), st.integers(1, 255)), max_size=3)
)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_pickles_never_end_in_a_strange_error(
    tmp_path: Path, cut: float, flips: list[tuple[float, int]]
) -> None:
    content = bytearray(
        python2({b"labels": [1, 2], b"data": np.zeros((2, 3072), np.uint8)[:, :0], b"x": [b"y"]})
    )
    if flips:
        for where, bits in flips:
            content[int(where * len(content))] ^= bits
    else:
        content = content[: int(cut * len(content))]
    files = {"test_batch": bytes(content), "data_batch_1": b""}
    folder = published("cifar10 pickled", "folder", tmp_path, files)
    with pytest.raises(DataFormatError, match="'test_batch' of"):
        read_dataset(folder, split="test")


def test_the_published_pickles_are_written_as_python_2_did() -> None:
    opcodes = {opcode.name for opcode, *_ in pickletools.genops(cifar10_python(python2)["data_batch_1"])}
    assert {"SHORT_BINSTRING", "BINSTRING", "GLOBAL"} <= opcodes
    assert not opcodes & {"BINBYTES", "SHORT_BINBYTES", "FRAME"}
