"""Decoding many pictures at once takes no more memory than a few."""

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from laplaceconfidence.data import picture_encoding
from laplaceconfidence.data.decoding_budget import DecodingBudget, bytes_to_decode
from laplaceconfidence.data.picture_encoding import encode_picture_file


class Counting:
    """Stands in for the decoder and records how many pictures are decoded at the same time."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self._lock = threading.Lock()

    def __call__(self, path: Path, longest: int) -> np.ndarray:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(0.02)
        with self._lock:
            self.now -= 1
        return np.zeros((8, 8, 3), dtype=np.uint8)


@pytest.mark.parametrize(("side", "at_once"), [(10, 3), (1000, 1)])
def test_fifteen_pictures_at_once_stay_within_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, side: int, at_once: int
) -> None:
    path = tmp_path / "picture.png"
    Image.new("RGB", (side, side)).save(path)
    decoder = Counting()
    monkeypatch.setattr(picture_encoding, "load_thumbnail", decoder)
    monkeypatch.setattr(picture_encoding, "BUDGET", DecodingBudget(n_bytes=4_000_000, n_pictures=3))
    with ThreadPoolExecutor(15) as threads:
        made = list(threads.map(lambda _: encode_picture_file(path, 160), range(15)))
    assert all(picture is not None for picture in made)
    assert decoder.most == at_once


def test_a_picture_that_cannot_be_decoded_gives_its_room_back(tmp_path: Path) -> None:
    (tmp_path / "bad.png").write_bytes(b"no image")
    for _ in range(20):
        assert encode_picture_file(tmp_path / "bad.png", 160) is None


def test_eight_large_pictures_take_the_memory_of_one(tmp_path: Path) -> None:
    Image.new("RGB", (4000, 4000)).save(tmp_path / "large.png")
    script = f"""
import resource
from concurrent.futures import ThreadPoolExecutor
from laplaceconfidence.data.picture_encoding import encode_picture_file
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with ThreadPoolExecutor(8) as threads:
    made = list(threads.map(lambda _: encode_picture_file({str(tmp_path / "large.png")!r}, 640), range(8)))
assert all(made)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    )
    assert int(done.stdout) < 400_000  # kB; one takes 200 MB


def test_the_memory_is_known_from_the_header(tmp_path: Path) -> None:
    image = Image.new("RGB", (4000, 3000))
    image.save(tmp_path / "a.png")
    image.save(tmp_path / "a.jpg")
    assert bytes_to_decode(tmp_path / "a.png", 640) == 4000 * 3000 * 12
    assert bytes_to_decode(tmp_path / "a.jpg", 640) < 4000 * 3000  # decoded at a part of its size
    assert bytes_to_decode(tmp_path / "none.png", 640) == 0
