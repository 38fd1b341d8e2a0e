"""Reader of image folders with one sub-folder per class and the images anywhere below it."""

from __future__ import annotations

import warnings
from pathlib import Path

from laplaceconfidence.data.array_files import load_features
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.read_options import ReadOptions
from laplaceconfidence.exceptions import DataFormatError, LaplaceConfidenceWarning

IMAGE_SUFFIXES = frozenset(
    {".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"}
)

_SPLITS = frozenset({"train", "training", "val", "valid", "validation", "test", "testing", "dev"})
_LAYOUT = "An image folder has one sub-folder per class with its images, such as cats/1.jpg and dogs/2.jpg."


def read_image_folder(folder: Path, options: ReadOptions) -> NoisyDataset:
    """Read the paths of the images below a folder, sorted; the images are not decoded.

    Parameters
    ----------
    folder : Path
        The folder.
    options : ReadOptions
        ``features`` has one row per image in the order of the paths; ``missing_label`` is the name of a
        sub-folder of images without a label.

    Returns
    -------
    NoisyDataset
    """
    options.allow_only("an image folder", "features", "missing_label")
    try:
        images = _images_by_class(folder)
    except OSError as error:
        raise DataFormatError(f"The image folder {folder} cannot be searched: {error}.") from error
    labeled = sorted(
        (path.relative_to(folder).as_posix(), label) for label, paths in images.items() for path in paths
    )
    ids = [name for name, _ in labeled]
    root = folder.absolute()
    return NoisyDataset.from_arrays(
        [label for _, label in labeled],
        None if options.features is None else load_features(options.features),
        missing_label=options.missing_label,
        ids=ids,
        sources=[str(root / name) for name in ids],
        source_kind="image",
    )


def _images_by_class(folder: Path) -> dict[str, list[Path]]:
    entries = [entry for entry in folder.iterdir() if not entry.name.startswith(".")]
    class_folders = sorted(entry for entry in entries if entry.is_dir())
    stray = sorted(entry.name for entry in entries if _is_image(entry))
    if not class_folders:
        found = f"{len(stray)} images but no sub-folders" if stray else "neither sub-folders nor images"
        raise DataFormatError(f"{folder} holds {found}. {_LAYOUT}")
    images = {class_folder.name: _images_below(class_folder) for class_folder in class_folders}
    if not any(images.values()):
        raise DataFormatError(
            f"{folder} has {len(class_folders)} sub-folders and no image in any of them "
            f"({', '.join(sorted(IMAGE_SUFFIXES))}). {_LAYOUT}"
        )
    if set(images) <= _SPLITS:
        raise DataFormatError(
            f"The sub-folders of {folder} are splits ({', '.join(images)}) and not classes: "
            f"read one of them, such as {class_folders[0]}."
        )
    if empty := [name for name, paths in images.items() if not paths]:
        _warn(f"{folder} has {len(empty)} sub-folders without images, which are ignored: {_few(empty)}")
    if stray:
        _warn(f"{folder} has {len(stray)} images outside the sub-folders, which are left out: {_few(stray)}")
    return {name: paths for name, paths in images.items() if paths}


def _images_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if _is_image(path)]


def _is_image(path: Path) -> bool:
    return path.suffix.lower() in IMAGE_SUFFIXES and not path.name.startswith(".") and path.is_file()


def _few(names: list[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "") + "."


def _warn(message: str) -> None:
    warnings.warn(message, LaplaceConfidenceWarning, stacklevel=6)
