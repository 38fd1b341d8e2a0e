from collections.abc import Iterator

import pytest
from review_page import PORT, OpenPage, Page
from starlette.testclient import TestClient

from laplaceconfidence.records import AuditRun
from laplaceconfidence.review.guard import Access
from laplaceconfidence.review.server import create_app
from laplaceconfidence.review.session import ReviewSession


@pytest.fixture
def open_page() -> Iterator[OpenPage]:
    """``open_page(run)`` opens the page; ``host`` is where it is served."""
    sessions: list[ReviewSession] = []

    def opened(run: AuditRun, host: str = "127.0.0.1", *, visit: bool = True) -> Page:
        session = ReviewSession(run)
        sessions.append(session)
        access = Access(host, PORT)
        client = TestClient(create_app(session, access, reviewer="ann"), base_url=f"http://{host}:{PORT}")
        if visit:
            assert client.get("/").status_code == 200
        return Page(client, session, access)

    yield opened
    for session in sessions:
        session.close()
