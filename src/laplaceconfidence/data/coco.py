"""Reader of COCO-style JSON with one class per image.

{"images": [{"id": 7, "file_name": "a.jpg"}, ...],
 "annotations": [{"image_id": 7, "category_id": 3}, ...],
 "categories": [{"id": 3, "name": "cat"}, ...]}
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from laplaceconfidence.data.array_files import load_features
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.data.read_options import ReadOptions
from laplaceconfidence.data.source_paths import listed_file
from laplaceconfidence.exceptions import DataFormatError
from laplaceconfidence.validation import must_be

_PARTS = ("images", "annotations", "categories")
_LOOKED_AT = 20  # listed images that decide which folder they are in


def is_coco(content: Any) -> bool:
    """Return whether a JSON document has the three lists of COCO.

    Parameters
    ----------
    content : object
        The document.

    Returns
    -------
    bool
    """
    return isinstance(content, dict) and all(isinstance(content.get(part), list) for part in _PARTS)


def read_coco(content: dict[str, Any], path: Path, options: ReadOptions) -> NoisyDataset:
    """Read a COCO document; the images are not decoded.

    Parameters
    ----------
    content : dict
        The document.
    path : Path
        Its file.
    options : ReadOptions
        ``images`` is the folder of the images, also relative to that of the file; without it, they are in the
        folder of the file, or in ``images`` or ``data`` in it. ``features`` has one row per image, in the
        order of the document.

    Returns
    -------
    NoisyDataset
        Ids are the file names. Images without an annotation have no label.
    """
    options.allow_only("a COCO file", "images", "features")
    try:
        category_ids = [category["id"] for category in content["categories"]]
        class_names = [str(category["name"]) for category in content["categories"]]
        images = {image["id"]: str(image["file_name"]) for image in content["images"]}
        annotations = [(note["image_id"], note["category_id"]) for note in content["annotations"]]
        code_of = {category: code for code, category in enumerate(category_ids)}
        if len(code_of) != len(category_ids) or len(images) != len(content["images"]):
            raise ValueError("ids of images and categories must be different")
    except (KeyError, TypeError, ValueError) as error:
        raise DataFormatError(
            f"{path} is not COCO as it is published ({type(error).__name__}: {error}): images need 'id' and "
            "'file_name', annotations 'image_id' and 'category_id', categories 'id' and 'name'."
        ) from error
    if not images:
        raise must_be("source", "a COCO file with at least one image", str(path))
    codes = dict.fromkeys(images, MISSING)
    for image, category in annotations:
        if image not in codes or category not in code_of:
            lost = f"image {image!r}" if image not in codes else f"category {category!r}"
            raise DataFormatError(f"{path} annotates the {lost}, which it does not list: export it again.")
        code = code_of[category]
        if codes[image] not in (MISSING, code):
            names = sorted((class_names[codes[image]], class_names[code]))
            raise DataFormatError(
                f"{path} has annotations of different classes for one image ({images[image]!r}: {names[0]!r} "
                f"and {names[1]!r}), as data for detection has. Only data with one class per image is read."
            )
        codes[image] = code
    names = list(images.values())
    root = _image_folder(path, names, options.images)
    return NoisyDataset.from_arrays(
        list(codes.values()),
        None if options.features is None else load_features(options.features),
        class_names=class_names,
        ids=names,
        sources=[str(listed_file(root, name, str(path))) for name in names],
        source_kind="image",
    )


def _image_folder(path: Path, names: list[str], given: str | None) -> Path:
    beside = path.absolute().parent
    if given is not None:
        # An export reads the file again, maybe in another working directory.
        root = next((place for place in (Path(given), beside / given) if place.is_dir()), None)
        if root is None:
            raise must_be("images", "the folder of the images of a COCO file", given)
        return root.absolute()
    above = (beside.parent,) if beside.name == "annotations" else ()
    places: list[Path] = [place / below for place in (beside, *above) for below in ("", "images", "data")]
    listed = [listed_file(beside, name, str(path)) for name in names[:_LOOKED_AT]]
    found = [sum((place / file.relative_to(beside)).is_file() for file in listed) for place in places]
    return places[found.index(max(found))]
