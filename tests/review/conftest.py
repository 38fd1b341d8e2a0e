from collections.abc import Iterator

import pytest
from review_page import PORT, OpenPage, Page
from starlette.testclient import TestClient

from laplaceconfidence.records import AuditRun
from laplaceconfidence.review.desk import ReviewDesk
from laplaceconfidence.review.guard import Access
from laplaceconfidence.review.server import create_app


@pytest.fixture
def open_page() -> Iterator[OpenPage]:
    """``open_page(run)`` opens the page; ``host`` is where it is served."""
    desks: list[ReviewDesk] = []

    def opened(run: AuditRun, host: str = "127.0.0.1", *, visit: bool = True) -> Page:
        desk = ReviewDesk(run)
        desks.append(desk)
        access = Access(host, PORT)
        client = TestClient(create_app(desk, access, reviewer="ann"), base_url=f"http://{host}:{PORT}")
        if visit:
            assert client.get("/").status_code == 200
        return Page(client, desk, access)

    yield opened
    for desk in desks:
        desk.close()
