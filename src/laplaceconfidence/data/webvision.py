"""Reader of Mini-WebVision: the first 50 classes of the Google part of WebVision 1.0, as published.

    info/train_filelist_google.txt    "google/q0001/abc.jpg 0": path below the folder, then the class
    info/val_filelist.txt             "val000001.jpg 0": name in val_images_256, then the class
    info/synsets.txt                  "n01440764 tench, Tinca tinca": the classes in their order (optional)
    google/q0001/..., val_images_256/ the images

The validation images of ILSVRC12 of the same classes are a second test set. They are in one sub-folder per
synset (``n01440764/ILSVRC2012_val_00000293.JPEG``), or in one folder with a list: ``val.txt`` ("name class",
where the class is a synset or its number in the order of WebVision, from 0) or ``synset_labels.txt`` (one
synset per line, in the order of the file names).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from laplaceconfidence.data.array_files import load_features
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.image_folder import IMAGE_SUFFIXES
from laplaceconfidence.data.read_options import ReadOptions
from laplaceconfidence.exceptions import DataFormatError
from laplaceconfidence.validation import check_choice, must_be

N_CLASSES = 50
"""Number of classes of Mini-WebVision; entries of other classes are ignored."""

TRAIN_LIST = "info/train_filelist_google.txt"
VALIDATION_LIST = "info/val_filelist.txt"
SYNSETS = "info/synsets.txt"
VALIDATION_IMAGES = "val_images_256"

_ILSVRC_LISTS = ("val.txt", "synset_labels.txt", "imagenet_2012_validation_synset_labels.txt")


def is_webvision_folder(folder: Path) -> bool:
    """Return whether a folder has the file lists of WebVision.

    Parameters
    ----------
    folder : Path
        The folder.

    Returns
    -------
    bool
    """
    return (folder / TRAIN_LIST).is_file() or (folder / VALIDATION_LIST).is_file()


def read_webvision(folder: Path, options: ReadOptions) -> NoisyDataset:
    """Read Mini-WebVision from the folder of WebVision 1.0; the images are not decoded.

    Parameters
    ----------
    folder : Path
        The folder.
    options : ReadOptions
        The split "test" is the validation set of WebVision.

    Returns
    -------
    NoisyDataset
        The ids are the paths in the file lists.
    """
    options.allow_only("WebVision", "features", "split")
    split = check_choice(options.split or "train", "split", ("train", "test"))
    file_list, below = (TRAIN_LIST, "") if split == "train" else (VALIDATION_LIST, VALIDATION_IMAGES)
    entries = [entry for entry in _entries(folder / file_list) if entry[1] < N_CLASSES]
    if not entries:
        raise DataFormatError(f"{folder / file_list} has no image of the first {N_CLASSES} classes.")
    ids = [name for name, _ in entries]
    return _dataset(
        folder.absolute() / below, ids, [code for _, code in entries], webvision_synsets(folder), options
    )


def webvision_synsets(folder: Path) -> tuple[str, ...]:
    """Return the names of the 50 classes: their synsets, or their numbers without the list of synsets.

    Parameters
    ----------
    folder : Path
        The folder of WebVision.

    Returns
    -------
    tuple of str
    """
    path = folder / SYNSETS
    if not path.is_file():
        return tuple(str(code) for code in range(N_CLASSES))
    synsets = [words[0] for line in _lines(path) if (words := line.split())]
    if len(synsets) < N_CLASSES or len(set(synsets[:N_CLASSES])) < N_CLASSES:
        raise DataFormatError(
            f"{path} must name {N_CLASSES} different classes or more, one per line; it has {len(synsets)} "
            "lines. Download it again, or remove it to number the classes."
        )
    return tuple(synsets[:N_CLASSES])


def read_ilsvrc_validation(folder: str | Path, synsets: Sequence[str]) -> NoisyDataset:
    """Read the validation images of ILSVRC12 of some classes.

    Parameters
    ----------
    folder : str or Path
        The folder of the images.
    synsets : sequence of str
        The classes, in the order of their codes.

    Returns
    -------
    NoisyDataset
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise must_be("folder", "the folder of ILSVRC12's validation images", str(folder))
    by_folder = [entry for entry in sorted(folder.iterdir()) if entry.is_dir() and entry.name in synsets]
    entries = (
        [(path, folder_.name) for folder_ in by_folder for path in sorted(folder_.iterdir())]
        if by_folder
        else list(_listed_beside_images(folder, synsets))
    )
    code_of = {synset: code for code, synset in enumerate(synsets)}
    known = [(path, code_of[name]) for path, name in entries if name in code_of and _is_image(path)]
    if not known:
        raise DataFormatError(f"{folder} holds no image of the {len(synsets)} classes ({synsets[0]}, ...).")
    ids = [path.relative_to(folder).as_posix() for path, _ in known]
    return _dataset(folder.absolute(), ids, [code for _, code in known], tuple(synsets), ReadOptions())


def _dataset(
    root: Path, ids: list[str], codes: list[int], class_names: tuple[str, ...], options: ReadOptions
) -> NoisyDataset:
    return NoisyDataset.from_arrays(
        codes,
        None if options.features is None else load_features(options.features),
        class_names=class_names,
        ids=ids,
        sources=[str(root / name) for name in ids],
        source_kind="image",
    )


def _listed_beside_images(folder: Path, synsets: Sequence[str]) -> Iterator[tuple[Path, str]]:
    """Yield images and their synsets from a list in the folder of the images or its parent."""
    places = (place / name for name in _ILSVRC_LISTS for place in (folder, folder.parent))
    found = next((path for path in places if path.is_file()), None)
    if found is None:
        raise DataFormatError(
            f"{folder} has no sub-folder of the classes ({synsets[0]}, ...) and no list of its images: "
            f"move the images into one sub-folder per synset, or add {_ILSVRC_LISTS[0]} with lines such as "
            f"'ILSVRC2012_val_00000001.JPEG n01751748'."
        )
    if found.name == "val.txt":
        for name, label in _pairs(found):
            if not label.isdecimal():
                yield folder / name, label
            elif int(label) < len(synsets):
                yield folder / name, synsets[int(label)]
        return
    labels = [line.strip() for line in _lines(found) if line.strip()]
    images = sorted(path for path in folder.iterdir() if _is_image(path))
    if len(labels) != len(images):
        raise DataFormatError(
            f"{found} must have a line for every image of {folder}: it has {len(labels)}, there are "
            f"{len(images)} images."
        )
    yield from zip(images, labels, strict=True)


def _entries(path: Path) -> Iterator[tuple[str, int]]:
    """Yield the names and classes of a file list of WebVision."""
    for name, label in _pairs(path):
        if not label.isdecimal():
            raise DataFormatError(
                f"{path} must have lines such as 'google/q0001/abc.jpg 0'. Got '{name} {label}'."
            )
        yield name, int(label)


def _pairs(path: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(_lines(path), 1):
        if not line.strip():
            continue
        name, _, label = line.strip().rpartition(" ")
        if not name:
            raise DataFormatError(
                f"Line {number} of {path} must be a name and a class with a space between. Got {line[:80]!r}."
            )
        yield name.strip(), label


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataFormatError(f"{path} cannot be read: {error}. Download it again.") from error


def _is_image(path: Path) -> bool:
    return path.suffix.lower() in IMAGE_SUFFIXES
