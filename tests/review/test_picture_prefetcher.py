"""Pictures are made before they are requested, one by one, and only those of the latest request."""

import threading

from laplaceconfidence.review.picture_prefetcher import PicturePrefetcher


class Maker:
    """Makes a picture when it is let."""

    def __init__(self) -> None:
        self.made: list[int] = []
        self.may_go_on = threading.Event()
        self.has_begun = threading.Event()
        self.is_done = threading.Event()

    def __call__(self, row: int) -> None:
        self.has_begun.set()
        assert self.may_go_on.wait(20)
        self.made.append(row)
        if row == 9:
            self.is_done.set()
        if row == 1:
            raise FileNotFoundError("gone in the meantime")


def test_the_latest_request_replaces_what_is_not_begun_and_a_lost_file_ends_nothing() -> None:
    maker = Maker()
    prefetcher = PicturePrefetcher(maker)
    prefetcher.prefetch([1, 2, 3])
    assert maker.has_begun.wait(20)
    prefetcher.prefetch([7, 9])
    maker.may_go_on.set()
    assert maker.is_done.wait(20)
    assert maker.made == [1, 7, 9]


def test_the_thread_ends_when_nothing_is_requested_and_another_begins_later() -> None:
    maker = Maker()
    maker.may_go_on.set()
    prefetcher = PicturePrefetcher(maker)
    prefetcher.prefetch([9])
    assert maker.is_done.wait(20)
    maker.is_done.clear()
    prefetcher.prefetch([])
    prefetcher.prefetch([4, 9])
    assert maker.is_done.wait(20)
    assert maker.made == [9, 4, 9]
