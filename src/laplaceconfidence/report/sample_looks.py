"""Pictures and texts of samples in reports."""

from __future__ import annotations

from typing import Any

from laplaceconfidence.data.picture_encoding import EncodedPicture
from laplaceconfidence.records.sample_arrays import SampleArrays
from laplaceconfidence.records.thumbnails import Thumbnails

PICTURE, SMALL_PICTURE = 224, 80  # pixels of the longer side
SHORT_TEXT = 280
LONG_TEXT = 20_000


def look(samples: SampleArrays, thumbnails: Thumbnails, row: int, longest: int) -> dict[str, Any]:
    """Return the picture or text of a sample.

    Parameters
    ----------
    samples : SampleArrays
        The samples of the audit.
    thumbnails : Thumbnails
        Their pictures.
    row : int
        Row of the sample.
    longest : int
        Pixels of the longer side of its picture.

    Returns
    -------
    dict of str to object
        What the template shows; ``lost`` where its picture cannot be read.
    """
    picture = thumbnails.of(row, longest) if thumbnails.are_pictures else None
    text = None
    if samples.run.record.source_kind == "text" and samples.sources is not None:
        text = str(samples.sources[row])
    return look_of(picture, text, is_picture=thumbnails.are_pictures)


def look_of(picture: EncodedPicture | None, text: str | None, *, is_picture: bool) -> dict[str, Any]:
    """Return a picture or text as the template shows it.

    Parameters
    ----------
    picture : EncodedPicture or None
        The picture, if there is one.
    text : str or None
        The text, if it is one.
    is_picture : bool
        Whether there should be a picture.

    Returns
    -------
    dict of str to object
    """
    return {
        "picture": None if picture is None else picture.data_uri,
        "coarse": picture is not None and picture.is_coarse,
        "lost": is_picture and picture is None,
        "text": None if text is None else text[:SHORT_TEXT],
        "long_text": text[:LONG_TEXT] if text is not None and len(text) > SHORT_TEXT else None,
        "n_characters": 0 if text is None else len(text),
    }
